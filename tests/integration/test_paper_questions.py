"""Every params/*/paper.yaml, and figure5.yaml, which runs what one of them leaves out, against
the papers: on how many questions each table runs.
"""

from __future__ import annotations

from dataclasses import dataclass
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
MULTI = {"public test": CONVERSATIONS}
CLUES = {"all": PAPER_QUERIES}
SEVERAL = {
    name: count
    for name, count in QUESTIONS.items()
    if name in (*ASPECTS["perspective"], *ASPECTS["others"])
}


@dataclass(frozen=True)
class Printed:
    """What a paper prints, the notebook that makes it, and the questions behind it."""

    paper: str
    what: str
    notebook: str
    n: int
    groups: dict[str, int]  # group → its questions in the data
    needs: tuple[tuple[str, object], ...] = ()  # parameter → value with which n holds


PRINTED = (
    *(
        Printed("visual_rag", what, notebook, 374, CLUES)
        for what, notebook in (
            ("Table 2", "02"),
            ("Tables 3, 13, zero-shot", "03"),
            ("Table 3, top-k and 1-in-k", "04"),
            ("Figure 3", "05"),
            ("Table 7", "07"),
            ("Table 8", "10"),
            ("Tables 14, 16", "13"),
        )
    ),
    # 266 and 371 are told by the printed percentages (16_paper_audit)
    Printed("visual_rag", "Table 6", "06", 266, {"at least five": 266}, (("max_clues", 5),)),
    Printed(
        "visual_rag", "Table 5", "08", 371, {"in both": 371}, (("second_corpus.name", "iNat24"),)
    ),
    Printed("mrag_bench", "Table 2, Figure 2", "30", 1353, QUESTIONS),
    Printed("mrag_bench", "Table 3", "31", 1353, QUESTIONS),
    Printed("mrag_bench", "Table 4", "32", 1353, QUESTIONS),
    Printed("mrag_bench", "Tables 6, 7, Figure 5, left", "33", 1353, QUESTIONS),
    # Figure 5, right: Perspective and Others; the text says 892 of these 898
    Printed("mrag_bench", "Figure 5, right", "34", 898, SEVERAL, (("example_draws", 3),)),
    Printed("mrag_bench", "Figures 6, 7", "37", 1353, QUESTIONS),
    *(
        Printed("crag_mm", what, notebook, sum(groups.values()), groups, _SPLIT)
        for _SPLIT in ((("crag_mm.split", "public_test"),),)
        for what, notebook, groups in (
            ("Figures 3, 7", "51", SINGLE),
            ("Tables 8, 9", "52", {**SINGLE, **MULTI}),
            ("Figures 4, 8", "53", {**SINGLE, "conversations": CONVERSATIONS}),
            ("Tables 10, 11, before their choice", "53", {**SINGLE, **MULTI}),
        )
    ),
    *(
        Printed("mrag_suite", what, notebook, sum(EIGHT.values()), EIGHT, (("datasets", None),))
        for what, notebook in (
            ("Tables 2, 13", "41"),
            ("Table 9", "42"),
            ("Table 5", "43"),
            ("Tables 3, 4, before the filter", "44"),
            ("Tables 7, 8", "45"),
            ("Tables 6, 10 to 12, before the filter", "46"),
        )
    ),
)


def given_to(paper: str, number: str) -> dict[str, Any]:
    """What a notebook runs with by the one of a paper's files that runs it: "name" and
    "mapping.key" → value.
    """
    found = []
    for file in sorted((ROOT / "params" / paper).glob("*.yaml")):
        if file.name in ("paper.yaml", "figure5.yaml"):
            plan = read_plan(file)
            found += [task for task in plan.tasks if task.notebook.stem[:2] == number]
    (task,) = found
    values: dict[str, Any] = {}
    for name, usual in declared_parameters(task.notebook).items():
        value = task.settings[name]
        values[name] = value
        if isinstance(usual, dict) and isinstance(value, dict):
            values |= {f"{name}.{key}": each for key, each in {**usual, **value}.items()}
        elif isinstance(value, dict):
            values |= {f"{name}.{key}": each for key, each in value.items()}
    return values


def asked(groups: dict[str, int], values: dict[str, Any]) -> int:
    """The questions that the tightest limit leaves of each group."""
    caps = [values[name] for name in LIMITS & set(values) if values[name]]
    return sum(min([count, *caps]) for count in groups.values())


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: f"{row.paper}-{row.notebook}-{row.what}")
def test_a_papers_table_runs_on_the_papers_number_of_questions(
    row: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    values = given_to(row.paper, row.notebook)
    assert asked(row.groups, values) == row.n
    assert {name: values[name] for name, _ in row.needs} == dict(row.needs)


def test_every_paper_file_is_read_and_holds_all_that_is_asked() -> None:
    files = {path.parent.name for path in (ROOT / "params").rglob("paper.yaml")}
    assert files == {row.paper for row in PRINTED}
    assert sum(QUESTIONS.values()) == 1353
    assert len(EIGHT) == len(DATASETS) == 8
