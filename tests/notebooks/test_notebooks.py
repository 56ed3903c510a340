"""Notebooks run to their end, are thin, stripped, and declare what the parameter files set.

Eight of them are run by nbval, which compares what a cell prints with what is committed:
those that pyproject.toml names.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
import warm_process
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


@cache
def book(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in book(path).cells if cell.cell_type == "code"]


def parsed(cell: nbformat.NotebookNode) -> ast.Module:
    """The Python of a cell, without magics."""
    return ast.parse("\n".join(x for x in cell.source.splitlines() if not x.startswith("%")))


@pytest.mark.notebooks
@pytest.mark.parametrize("path", WARM, ids=lambda p: p.stem)
def test_a_notebook_runs_to_its_end(path: Path) -> None:
    fewer = {name: value for name, value in FEWER.items() if name in declared_parameters(path)}
    assert warm_process.fault(path, {**fewer, **OF_ONE.get(path.stem, {})}) == ""


def test_what_a_notebook_prints_is_compared_where_pytest_is_told_to(
    pytestconfig: pytest.Config,
) -> None:
    told = pytestconfig.getini("testpaths")
    assert [path.relative_to(ROOT).as_posix() for path in COMPARED] == sorted(told)[:-1]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_opens_with_its_why_and_has_one_cell_of_literal_parameters(path: Path) -> None:
    cells = book(path).cells
    assert cells[0].source.startswith("# ")
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    for statement in ast.parse(tagged[0].source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_is_thin(path: Path) -> None:
    cells = code_cells(path)
    assert len(cells) <= 12
    parameters = 19 if path.stem.startswith("44") else 16
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            assert len(ast.parse(cell.source).body) <= parameters
        elif "import " not in cell.source:  # imports are no code of the experiment
            assert len(cell.source.splitlines()) <= 18, cell.source
        assert not any(
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While)
            for node in ast.walk(parsed(cell))
        )


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_the_first_cell_after_the_parameters_loads_the_extension(path: Path) -> None:
    assert code_cells(path)[1].source.startswith("%load_ext vrag_kit\n")


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_the_judge_that_a_parameter_names_is_opened_before_any_model_is_asked(path: Path) -> None:
    """What is wrong with it is then said before hours of answers, and not behind them."""
    opened, asked = [], []
    for number, cell in enumerate(code_cells(path)):
        for call in ast.walk(parsed(cell)):
            if isinstance(call, ast.Call):
                name = ast.unparse(call.func).rpartition(".")[2]
                at = (number, call.lineno)
                opens = name in (
                    "load_judge",
                    "load_truthfulness_judge",
                    "open_judges",
                    "open_claim_pipeline",
                )
                if opens and not isinstance(call.args[0], ast.Constant):
                    opened.append(at)
                if name.startswith("ask") or name in (
                    "detect_ambiguity",
                    "rewrite_questions",
                    "evaluate_judge",
                ):
                    asked.append(at)
    named = re.search(r"^(?:judge|extractor) = ", code_cells(path)[0].source, re.M)
    if named and path.stem != "36_mrag_choice_reader":  # its extractor reads what no rule can
        assert opened
    assert max(opened, default=(0, 0)) < min(asked, default=(99, 0))


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_is_committed_stripped(path: Path) -> None:
    assert stripped(nbformat.read(path, as_version=4)) == book(path)
    marked = [cell for cell in code_cells(path) if "NBVAL_CHECK_OUTPUT" in cell.source]
    assert all(cell.outputs for cell in marked)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_figures_go_into_the_folder_of_their_notebook(path: Path) -> None:
    folder = path.parent.relative_to(NOTEBOOKS).as_posix()
    code = "\n".join(cell.source for cell in code_cells(path))
    saved = re.findall(r'save_(?:figure|table)\(\s*\w+,\s*figures_dir,\s*"([^"]+)"', code)
    saved += re.findall(r'save_(?:(?:suite_)?answers|versions)\([^"]*"([^"]+)"', code)
    assert saved
    number = path.name[:3]
    expected = number if folder == "." else f"{folder}/{number}"
    assert all(name.startswith(expected) for name in saved), saved


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_whether_the_paper_had_other_data_is_asked_of_the_data(path: Path) -> None:
    """What stands beside printed numbers may be the paper's own data: no notebook says
    "other data" by itself, and what marks printed numbers is told whose data they are.
    """
    for cell in code_cells(path):
        says_so = re.search(r"(?:other|different) data", cell.source)
        assert not says_so or "is_paper_data(" in cell.source, cell.source
        if path.stem == "12_webqa_captions":  # of which data Table 4 is, the paper does not say
            continue
        for call in ast.walk(parsed(cell)):
            if isinstance(call, ast.Call) and len(call.args) > 1:  # ours, and what was printed
                marks = ast.unparse(call.func).removeprefix("analysis.") in (
                    "retrieval_table_with_published",
                    "settings_table",
                )
                assert not marks or "same_data" in [each.arg for each in call.keywords], cell.source


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_markdown_stands_below_anybodys_results_and_says_nothing_of_the_demos(path: Path) -> None:
    """What holds for the demo is a `remark`, which shows only there; what is said of
    numbers is computed from them.
    """
    for cell in book(path).cells:
        if cell.cell_type == "markdown":
            of_the_demo = r"the demo\b|demo's|field-guide-vlm|our answerers|these models|, as here,"
            assert not re.search(of_the_demo, cell.source), cell.source


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_what_a_figure_shows_of_the_paper_is_in_the_csv_beside_it(path: Path) -> None:
    """Told apart by the source, or in a column `paper` beside ours."""
    for cell in code_cells(path):
        code = cell.source
        drawn = re.search(r"others_are|printed_is", code)
        if "save_figure(" in code and drawn and "import" not in code:
            assert re.search(r'reported": printed\b', code), code


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_saved_means_of_judged_answers_say_whose_judge_it_was(path: Path) -> None:
    """But for the tour, which saves what was found, 51, which judges pages, and 43, where
    each data set's own metric, which is named, is the judge; and 61, where what the sides
    were shown may have been found by two.
    """
    code = "\n".join(cell.source for cell in code_cells(path))
    judges = re.search(r"load_(?:truth_)?judge\(", code)
    if judges and path.stem[:2] not in ("00", "51", "43", "60"):
        assert re.search(r'"judge": |\bjudge=', code)
    if "search_one(" in code and "save_answers(" in code and path.stem[:2] != "61":
        assert "found_by" in code
