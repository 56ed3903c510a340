"""Notebooks run to their end, are thin, stripped, and declare what the parameter files set.

Eight of them are run by nbval, which compares what a cell prints with what is committed:
those that pyproject.toml names.
"""

import ast
import re
from functools import cache
from pathlib import Path

import nbformat
import notebook_process
import pytest
from strip_notebooks import NOTEBOOKS, PATHS, stripped

from vrag_kit.runner.params import declared_parameters

ROOT = NOTEBOOKS.parent
COMPARED = [path for path in PATHS if "NBVAL_CHECK_OUTPUT" in path.read_text(encoding="utf-8")]
WARM = [path for path in PATHS if path not in COMPARED]
FEWER = {
    **{"ks": [1, 3, 5], "draws": 1, "counterfactual_draws": 1, "distractor_ks": [1, 3]},
    **{"questions_per_scenario": 2, "panel_questions_per_scenario": 2, "example_counts": [1, 3]},
}
"""Names of parameters, in any notebook → values with which it asks models less than by its own."""
ONE_MODEL = {"models": ["field-guide-vlm-few"]}
OF_ONE = {
    "07_easy_negatives": ONE_MODEL,
    "09_wikipedia_text_rag": ONE_MODEL,
    "15_error_budget": {**ONE_MODEL, "clue_positions": {"ks": [3, 5], "draws": 1}},
    "18_why_distractors_hurt": ONE_MODEL,
    "19_abstention_as_detection": {"paired_contexts": {"ks": [1, 3], "draws": 1}},
    "43_evidence_modes": {"max_questions": {"per_dataset": 4}},
    "44_claim_diagnostics": {"max_questions": {"per_dataset": 5}},
    "45_ambiguity": {"ambiguity": {"questions_per_dataset": 8, "ambiguous_share": 0.5}},
    "46_prompt_sweep": {
        "prompt_sweep": {
            "prompts": ["plain-ex1-direct", "expert-ex3-direct"],
            "questions_per_dataset": 3,
            "paper_layout_questions": 1,
            "controls": True,
        },
    },
    "52_crag_mm_answers": {"mismatched_questions": 8, "mismatched_conversations": 4},
    "60_across_papers": {
        "max_questions": {"per_scenario": 1, "per_dataset": 1},
    },
}
"""The same of one notebook."""


LOADS_JUDGE = r"(?:load_judge|load_truthfulness_judge|open_judges|open_claim_pipeline)\((?!\")"
QUERIES_MODELS = r"\b(?:ask\w*|detect_ambiguity|rewrite_questions|evaluate_judge)\("
OF_THE_DEMO = r"the demo\b|demo's|field-guide-vlm|our answerers|these models|, as here,"


@cache
def book(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in book(path).cells if cell.cell_type == "code"]


def tree(code: str) -> ast.Module:
    """The Python of a cell, without magics."""
    return ast.parse("\n".join(x for x in code.splitlines() if not x.startswith("%")))


each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


@pytest.mark.notebooks
@pytest.mark.parametrize("path", WARM, ids=lambda p: p.stem)
def test_a_notebook_runs_to_its_end(path):
    fewer = {name: value for name, value in FEWER.items() if name in declared_parameters(path)}
    assert notebook_process.fault(path, {**fewer, **OF_ONE.get(path.stem, {})}) == ""


def test_notebooks_with_outputs_are_run_by_nbval(pytestconfig):
    told = pytestconfig.getini("testpaths")
    assert [path.relative_to(ROOT).as_posix() for path in COMPARED] == sorted(told)[:-1]


@each_notebook
def test_a_notebook_opens_with_its_why_and_one_cell_of_literal_parameters(path):
    assert book(path).cells[0].source.startswith("# ")
    first, second = code_cells(path)[:2]
    assert second.source.startswith("%load_ext vrag_kit\n")
    parameters = [
        cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", ())
    ]
    assert parameters == [first]
    statements = ast.parse(first.source).body
    assert len(statements) <= (19 if path.stem.startswith("44") else 16)
    for statement in statements:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)


@each_notebook
def test_a_notebook_is_thin(path):
    _, *cells = code_cells(path)
    assert len(cells) < 12
    for cell in cells:
        imports = "import " in cell.source  # which are no code of the experiment
        assert imports or len(cell.source.splitlines()) <= 18, cell.source
        for node in ast.walk(tree(cell.source)):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While)


@each_notebook
def test_a_notebook_is_committed_stripped(path):
    assert stripped(nbformat.read(path, as_version=4)) == book(path)
    marked = [cell for cell in code_cells(path) if "NBVAL_CHECK_OUTPUT" in cell.source]
    assert all(cell.outputs for cell in marked)


@each_notebook
def test_figures_go_into_the_folder_of_their_notebook(path):
    folder = path.parent.relative_to(NOTEBOOKS).as_posix()
    code = "\n".join(cell.source for cell in code_cells(path))
    saved = re.findall(r'save_(?:figure|table)\(\s*\w+,\s*at,\s*"([^"]+)"', code)
    saved += re.findall(r'save_(?:(?:suite_)?answers|versions)\([^"]*"([^"]+)"', code)
    assert saved
    number = path.name[:3]
    expected = number if folder == "." else f"{folder}/{number}"
    assert all(name.startswith(expected) for name in saved), saved


@each_notebook
def test_the_judge_that_a_parameter_names_is_opened_before_any_model_is_queried(path):
    """What is wrong with it is then said before hours of answers, and not behind them."""
    code = "\n".join(cell.source for cell in code_cells(path)[1:])
    opened = [match.start() for match in re.finditer(LOADS_JUDGE, code)]
    queried = re.search(QUERIES_MODELS, code)
    named = re.search(r"^(?:judge|extractor) = ", code_cells(path)[0].source, re.M)
    if named and path.stem != "36_mrag_choice_reader":  # its extractor reads what no rule can
        assert opened
    if opened and queried:
        assert max(opened) < queried.start()


@each_notebook
def test_what_is_said_of_data_holds_for_anybodys_data(path):
    """What holds for the demo is a `remark`, which shows only there."""
    for cell in book(path).cells:
        if cell.cell_type == "markdown":
            assert not re.search(OF_THE_DEMO, cell.source), cell.source
        elif re.search(r"(?:other|different) data", cell.source):
            assert "is_paper_data(" in cell.source, cell.source


@each_notebook
def test_saved_numbers_name_their_judge_and_retriever(path):
    code = "\n".join(cell.source for cell in code_cells(path))
    # the tour saves what was found, 51 judges pages, and in 43 and 60 the metric is the judge
    is_judged = re.search(r"load_(?:truthfulness_)?judge\(", code)
    if is_judged and path.stem[:2] not in ("00", "51", "43", "60"):
        assert re.search(r'"judge": |\bjudge=', code)
    if "search_one(" in code and "save_answers(" in code:
        assert "found_by" in code or path.stem.startswith("61")  # of two runs
