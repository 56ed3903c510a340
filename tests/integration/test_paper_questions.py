"""Every params/*/paper.yaml, and figure5.yaml, which runs what one of them leaves out, against
the papers: on how many questions each table runs.
"""

from __future__ import annotations

from typing import Any

import pytest
from strip_notebooks import NOTEBOOKS

from vrag_kit.papers.crag_mm.audit import CONVERSATIONS
from vrag_kit.papers.mrag_bench.settings import ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.published import PAPER_QUERIES
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import read_plan

ROOT = NOTEBOOKS.parent
LIMITS = {  # parameters that cap how many questions are asked, each of every group; None: none
    "questions_per_scenario",
    "panel_questions_per_scenario",
    "web_questions",
    "max_questions.per_dataset",
    "ambiguity.questions_per_dataset",
    "prompt_sweep.questions_per_dataset",
}
SUITE = published("mrag_suite", 1).query("metric == 'n_full'").set_index("dataset")["value"]
EIGHT = {str(name): int(count) for name, count in SUITE.items()}
SINGLE = {"public test": 1938}  # 30 % of 6,462
MULTI = {"conversations": CONVERSATIONS}
CLUES = {"all": PAPER_QUERIES}
SEVERAL = {
    name: count
    for name, count in QUESTIONS.items()
    if name in (*ASPECTS["perspective"], *ASPECTS["others"])
}


SPLIT = {"crag_mm.split": "public_test"}
ALL_DATA = {"datasets": None}
# paper, table, notebook, group → its questions in the data, parameter → value that it needs
TABLES: list[tuple[str, str, str, dict[str, int], dict[str, object]]] = [
    ("visual_rag", "Table 2", "02", CLUES, {}),
    ("visual_rag", "Tables 3, 13, zero-shot", "03", CLUES, {}),
    ("visual_rag", "Table 3, top-k and 1-in-k", "04", CLUES, {}),
    ("visual_rag", "Figure 3", "05", CLUES, {}),
    ("visual_rag", "Table 7", "07", CLUES, {}),
    ("visual_rag", "Table 8", "10", CLUES, {}),
    ("visual_rag", "Tables 14, 16", "13", CLUES, {}),
    # 266 and 371 follow from the printed percentages (16_paper_audit)
    ("visual_rag", "Table 6", "06", {"at least five": 266}, {"max_clues": 5}),
    ("visual_rag", "Table 5", "08", {"in both": 371}, {"second_corpus.name": "iNat24"}),
    ("mrag_bench", "Table 2, Figure 2", "30", QUESTIONS, {}),
    ("mrag_bench", "Table 3", "31", QUESTIONS, {}),
    ("mrag_bench", "Table 4", "32", QUESTIONS, {}),
    ("mrag_bench", "Tables 6, 7, Figure 5, left", "33", QUESTIONS, {}),
    # Figure 5, right: Perspective and Others; the text says 892 of these 898
    ("mrag_bench", "Figure 5, right", "34", SEVERAL, {"example_draws": 3}),
    ("mrag_bench", "Figures 6, 7", "37", QUESTIONS, {}),
    ("crag_mm", "Figures 3, 7", "51", SINGLE, SPLIT),
    ("crag_mm", "Tables 8, 9", "52", {**SINGLE, **MULTI}, SPLIT),
    ("crag_mm", "Figures 4, 8; Tables 10, 11", "53", {**SINGLE, **MULTI}, SPLIT),
    ("mrag_suite", "Tables 2, 13", "41", EIGHT, ALL_DATA),
    ("mrag_suite", "Table 9", "42", EIGHT, ALL_DATA),
    ("mrag_suite", "Table 5", "43", EIGHT, ALL_DATA),
    ("mrag_suite", "Tables 3, 4, before the filter", "44", EIGHT, ALL_DATA),
    ("mrag_suite", "Tables 7, 8", "45", EIGHT, ALL_DATA),
    ("mrag_suite", "Tables 6, 10 to 12, before the filter", "46", EIGHT, ALL_DATA),
]


def given_to(paper: str, number: str) -> dict[str, Any]:
    """What a notebook runs with by the one of a paper's files that runs it: "name" and
    "mapping.key" → value.
    """
    found = []
    for file in sorted((ROOT / "params" / paper).glob("*.yaml")):
        if file.name in ("paper.yaml", "figure5.yaml"):
            plan = read_plan(file)
            found += [each for each in plan.given.items() if each[0].stem[:2] == number]
    ((path, given),) = found
    values: dict[str, Any] = {}
    for name, usual in declared_parameters(path).items():
        value = given.get(name, usual)
        values[name] = value
        if isinstance(usual, dict) and isinstance(value, dict):
            values |= {f"{name}.{key}": each for key, each in {**usual, **value}.items()}
        elif isinstance(value, dict):
            values |= {f"{name}.{key}": each for key, each in value.items()}
    return values


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row[0]}-{row[2]}-{row[1]}")
def test_a_papers_table_runs_on_the_papers_questions(
    row: tuple[str, str, str, dict[str, int], dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cap is below a group's questions, and what selects them is as the paper has it."""
    paper, _, notebook, groups, needs = row
    monkeypatch.chdir(ROOT)
    values = given_to(paper, notebook)
    caps = [values[name] for name in LIMITS & set(values) if values[name]]
    assert min([*caps, max(groups.values())]) == max(groups.values())
    assert {name: values[name] for name in needs} == needs


def test_every_paper_file_is_read_and_the_questions_are_the_papers() -> None:
    files = {path.parent.name for path in (ROOT / "params").rglob("paper.yaml")}
    assert files == {paper for paper, *_ in TABLES}
    assert (sum(QUESTIONS.values()), sum(SEVERAL.values()), PAPER_QUERIES) == (1353, 898, 374)
    assert len(EIGHT) == len(DATASETS) == 8
