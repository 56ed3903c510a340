"""Every params/*/paper.yaml, and figure5.yaml, which runs what one of them leaves out, against
the papers: their tables run on all of the papers' questions.
"""

from __future__ import annotations

from typing import Any

import pytest
from strip_notebooks import NOTEBOOKS

from vrag_kit.papers.mrag_bench.settings import ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.papers.published import published
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
EIGHT = published("mrag_suite", 1).query("metric == 'n_full'").set_index("dataset")["value"]
# paper, its largest group of questions, the notebooks of its tables and figures
PAPERS = [
    ("visual_rag", 374, "02 03 04 05 06 07 08 10 13"),
    ("mrag_bench", max(QUESTIONS.values()), "30 31 32 33 34 37"),
    ("crag_mm", 1938, "51 52 53"),  # single-turn questions: 30 % of 6,462
    ("mrag_suite", max(EIGHT), "41 42 43 44 45 46"),
]
CASES = [(paper, most, number) for paper, most, numbers in PAPERS for number in numbers.split()]
NEEDED: dict[str, dict[str, object]] = {
    "06": {"max_clues": 5},  # Table 6, on 266 questions
    "08": {"second_corpus.name": "iNat24"},  # Table 5, on 371
    "34": {"example_draws": 3},  # Figure 5, right
    "crag_mm": {"crag_mm.split": "public_test"},
    "mrag_suite": {"datasets": None},
}
"""Notebook, or paper, → the values with which it asks the paper's questions."""


def given_to(paper: str, number: str) -> dict[str, Any]:
    """What a notebook runs with by the one of a paper's files that runs it: "name" and
    "mapping.key" → value.
    """
    found = []
    for name in ("paper.yaml", "figure5.yaml"):
        file = ROOT / "params" / paper / name
        tasks = read_plan(file).tasks if file.exists() else ()
        found += [task for task in tasks if task.notebook.stem[:2] == number]
    (task,) = found
    values: dict[str, Any] = {}
    for name, usual in declared_parameters(task.notebook).items():
        values[name] = value = task.settings[name]
        if isinstance(value, dict):
            whole = {**usual, **value} if isinstance(usual, dict) else value
            values |= {f"{name}.{key}": each for key, each in whole.items()}
    return values


@pytest.mark.parametrize(("paper", "most", "number"), CASES)
def test_a_papers_table_runs_on_all_of_the_papers_questions(
    paper: str, most: int, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    values = given_to(paper, number)
    for name in LIMITS & set(values):
        assert values[name] is None or values[name] >= most, name
    needed = NEEDED.get(paper, {}) | NEEDED.get(number, {})
    assert {name: values[name] for name in needed} == needed


def test_every_paper_file_is_read_and_the_questions_are_the_papers() -> None:
    files = {path.parent.name for path in (ROOT / "params").rglob("paper.yaml")}
    assert files == {paper for paper, *_ in PAPERS}
    assert sum(QUESTIONS.values()) == 1353
    assert sum(QUESTIONS[each] for each in (*ASPECTS["perspective"], *ASPECTS["others"])) == 898
    assert len(EIGHT) == len(DATASETS) == 8
