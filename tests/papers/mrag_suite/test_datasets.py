"""Each data set of the suite is judged by its own metric; free text by a rubric that knows no
subject, and Visual-RAG's own by Visual-RAG's alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vrag_kit.judging import UnparsedError
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.papers.mrag_suite.datasets import DATASETS, OWN_METRIC, dataset_metric
from vrag_kit.papers.mrag_suite.prompts import SHORT_ANSWERS, read_grade
from vrag_kit.synthetic.mrag_suite import open_judges
from vrag_kit.types import Benchmark, Query

OF_ORGANISMS = "dark brown, dark grey, dark purple"
"""Words of Visual-RAG's Table 12."""


def test_a_data_set_is_judged_by_its_own_metric_and_no_other_by_visual_rags_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    asked_of = Query(query_id="q", text="Which?", answers=("a",), group="g", choices=("a", "b"))
    one = Benchmark(name="b", fingerprint="f", queries={"q": asked_of}, corpus={}, qrels={})
    judges = open_judges("gpt-4o@openai", dict.fromkeys([*DATASETS, "Own"], one), tmp_path)
    names = {name: judge.name for name, judge in judges.items()}
    assert names == {**OWN_METRIC, "Visual-RAG": "gpt-4o", "Own": "gpt-4o"}
    asked = {name: each.prompt_text for name, each in judges.items() if isinstance(each, LLMJudge)}
    assert {name for name, words in asked.items() if OF_ORGANISMS in words} == {"Visual-RAG"}
    assert "color" not in asked["Own"]
    assert open_judges("rule", {"Visual-RAG": one}, tmp_path)["Visual-RAG"].name == "rule"
    bare = replace(one, queries={"q": replace(asked_of, choices=())})
    assert dataset_metric("MRAG-Bench", bare) == "normalised_em"  # open answers, as in the paper


def test_free_text_is_judged_by_question_references_and_answer_each_on_a_line() -> None:
    query = Query(query_id="q", text="Who\nbuilt {it}?", answers=("Ann", "A. Lee"), group="g")
    (message,) = SHORT_ANSWERS.build_prompt(query, "Ann,\nI think")
    last = str(message.parts[0]).splitlines()[-3:]
    assert last == [
        "Question: Who built {it}?",
        'Accepted answers: ["Ann", "A. Lee"]',
        "Answer to grade: Ann, I think",
    ]


@pytest.mark.parametrize(
    ("raw", "score", "marks"),
    [
        ("Grade: CORRECT", 1, set()),
        ("It names one of two.\n**Grade: partial**", 0.5, set()),
        ("<think>Grade: CORRECT?</think>It is another year.\nGrade: INCORRECT.", 0, set()),
        ('It declines.\n"Grade: NO ANSWER"', 0, {"abstention"}),
    ],
)
def test_a_grade_is_the_last_line(raw: str, score: float, marks: set[str]) -> None:
    verdict = SHORT_ANSWERS.parse_verdict(raw)
    assert (verdict.score, verdict.marks) == (score, marks)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "Grade: CORRECT\nas it says Ann",
        "Grade: CORRECT\nGrade: INCORRECT",
        "Grade: 0.5",
        "Grade: NOT CORRECT",
    ],
)
def test_anything_else_is_unreadable_and_no_number(raw: str) -> None:
    with pytest.raises(UnparsedError):
        read_grade(raw)
