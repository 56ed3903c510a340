"""Every params/*/paper.yaml against the papers: their tables run on all of the papers' questions,
and cost what params/README.md says.
"""

from __future__ import annotations

from typing import Any

import pytest
from readme_pages import README
from strip_notebooks import NOTEBOOKS
from timing import costs as costs_of

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
def test_a_papers_table_runs_on_all_of_the_papers_questions(paper, most, number, monkeypatch):
    monkeypatch.chdir(ROOT)
    values = given_to(paper, number)
    for name in LIMITS & set(values):
        assert values[name] is None or values[name] >= most, name
    needed = NEEDED.get(paper, {}) | NEEDED.get(number, {})
    assert {name: values[name] for name in needed} == needed


def test_every_paper_file_is_read_and_the_questions_are_the_papers():
    files = {path.parent.name for path in (ROOT / "params").rglob("paper.yaml")}
    assert files == {paper for paper, *_ in PAPERS}
    assert sum(QUESTIONS.values()) == 1353
    assert sum(QUESTIONS[each] for each in (*ASPECTS["perspective"], *ASPECTS["others"])) == 898
    assert len(EIGHT) == len(DATASETS) == 8


CALLS = {
    # without a picture, 5 clues, 5 others, the top 7, and 5 draws of one in 6 numbers
    "Visual-RAG": {"answers": 374 * (1 + 5 + 5 + 7 + 5 * 6)},
    # no examples, ground truth, retrieved ones, another question's
    "MRAG-Bench": {"answers": 1_353 * 4},
    # three arms and two, each with two pictures; questions said anew in the last arm
    "CRAG-MM": {"answers": 2 * (3 * 1_938 + 2 * 586 * 4.9)},
    "MRAG-Suite": {"answers": 30_677, "closed book": 30_677},
}


@pytest.mark.slow
@pytest.mark.parametrize("paper", costs_of.PAPERS)
def test_the_readmes_costs_are_those_of_the_papers_own_files(paper, tmp_path):
    found = costs_of.costs(paper, tmp_path)
    for what, calls in CALLS[paper].items():
        told = [each.calls for name, each in found.items() if name.startswith(what)]
        assert told == [pytest.approx(calls)] * len(told)
        assert told
    for name, forecast in found.items():
        told = cells(costs_of.line(paper, name, forecast))
        (printed,) = (each for each in map(cells, README.splitlines()) if each[:1] == told[:1])
        # a stand-in's words have a number in them, which may have a digit more
        assert numbers(printed) == pytest.approx(numbers(told), rel=0.01, abs=0.11)


def cells(row: str) -> list[str]:
    return [each.strip() for each in row.strip("|").split("|")]


def numbers(row: list[str]) -> list[float]:
    return [float(each.replace(",", "")) for each in row[1:]]
