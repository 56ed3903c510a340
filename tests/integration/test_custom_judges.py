"""A custom judge or rubric: what it is asked, what its words mean, and its scale."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from factories import benchmark
from own_project import Write, shown
from pages import README

from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES, Rubric, Scale, judge_answers, load_judge, scale_of
from vrag_kit.types import Benchmark, Prompt, Query

QUERY = Query(query_id="q", text="Which colour?", answers=("red",))
ONE = Benchmark(name="b", fingerprint="f", queries={"q": QUERY}, corpus={}, qrels={})


@pytest.fixture(autouse=True)
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's judge is an endpoint's model, which is not loaded without its key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")


def readmes() -> Rubric:
    """The rubric that the README shows."""
    known: dict[str, object] = {}
    exec(shown("share = Rubric"), known)
    rubric = known["share"]
    assert isinstance(rubric, Rubric)
    return rubric


class Says:
    """A judge that replies to an answer as it is told to, and then to what it is asked again."""

    batched = False

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.fingerprint = " ".join(replies)
        self.heard: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.heard += prompts
        return [self.replies.pop(0) for _ in prompts]


def judged(rubric: Rubric, says: Says, folder: Path, *answers: str) -> pd.DataFrame:
    rows = pd.DataFrame({"query_id": "q", "answer": answers, "status": "ok", "detail": ""})
    return judge_answers(load_judge(says, folder, rubric=rubric), ONE, rows)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (lambda query: {}, r"TypeError: [^(]*\(\) takes .* given. It is called with the query"),
        (lambda query, answer: {}[answer], r"KeyError: .*judges.py:\d+"),
    ],
)
def test_what_a_rubrics_own_functions_do_wrong_is_said(
    fields: object, words: str, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match=f"rubric: its fields failed with {words}"):
        judged(replace(readmes(), fields=fields), Says("well", "well"), tmp_path, "red")


def test_judges_of_one_name_are_told_apart_by_rubric_scale_and_model(tmp_path: Path) -> None:
    mine = readmes()
    other = replace(mine, template="Is {answer} any of {references}?")
    wide = replace(mine, scale=Scale(0.0, 2.0))
    told = [(mine, "1"), (other, "1"), (wide, "1"), (mine, "0.5"), (mine, "1")]
    tables = [
        judged(rubric, Says(reply), tmp_path / str(place), "pink")
        for place, (rubric, reply) in enumerate(told)
    ]
    assert {name for table in tables for name in table["judge"]} == {"Says"}
    keys = [table["judge_id"].item() for table in tables]
    assert len(set(keys)) == 4
    assert keys[4] == keys[0]


SPEAKER = """
heard = []


class Speaker:
    def generate(self, prompts):
        heard.extend(part for prompt in prompts for part in prompt[-1].parts)
        return ["{reply}" for _ in prompts]


class Scorer:
    def score(self, query, answer):
        return 1.0
"""


def in_the_readmes_words(model: str) -> dict[str, Any]:
    """The entry that the README shows in a parameter file, of this model."""
    (block,) = [
        code for code in re.findall(r"```yaml\n(.*?)```", README, re.S) if "rubric:" in code
    ]
    return {**yaml.safe_load(block)["judge"], "model": model}


@pytest.mark.parametrize(
    ("reply", "scale", "score"),
    [
        ("Nearly.\\nScore: 0.75", Scale(0, 1), 0.75),
        ("-1", Scale(-1, 1), -1.0),
        ("-1", Scale(0, 1), math.nan),
    ],
)
def test_a_rubric_in_the_words_of_a_parameter_file_is_asked_and_its_last_line_is_the_score(
    reply: str, scale: Scale, score: float, mine: Write, tmp_path: Path
) -> None:
    mine(SPEAKER.replace("{reply}", reply))
    protocol = replace(readmes(), scale=scale)
    judge = load_judge(in_the_readmes_words("mine:Speaker"), tmp_path, rubric=protocol)
    rows = pd.DataFrame({"query_id": "q", "answer": ["{question}"], "status": "ok", "detail": ""})
    query = replace(QUERY, answers=("red", "crimson"))
    table = judge_answers(judge, replace(ONE, queries={"q": query}), rows, partial=True)
    assert table["score"][0] == pytest.approx(score, nan_ok=True)
    first, *again = sys.modules["mine"].heard
    assert first.startswith(
        "Question: Which colour?\nAccepted: red | crimson\nAnswer: {question}\nHow well does"
    )
    assert bool(again) == math.isnan(score)
    assert again[1:] == []
    assert all(f"Reply with a number from {scale.worst:g} to 1 alone." in each for each in again)


def test_a_class_that_scores_takes_no_words_beside_it(mine: Write, tmp_path: Path) -> None:
    mine(SPEAKER)
    with pytest.raises(VragError, match="'Scorer' scores by itself; expected no rubric beside it"):
        load_judge(in_the_readmes_words("mine:Scorer"), tmp_path, rubric=readmes())


JUDGES = """
class Long:
    scale = (-1, 1)
    def score(self, query, answer):
        return {"one": -1, "two": 0.5}.get(answer)

class Grades:
    scale = (1, 5)
    def score(self, query, answer):
        return {"one": 1, "two": 4, "three": 5}[answer]

class Beyond:
    def score(self, query, answer):
        return 2

class Texts:
    def score(self, query, answer):
        return "0.5"

class Fails:
    def score(self, query, answer):
        return {}[answer]

class Nothing:
    pass
"""


@pytest.fixture
def texts() -> Benchmark:
    """Two questions whose accepted answer is 1."""
    return benchmark([Query(query_id=q, text="a", group=q, answers=("1",)) for q in ("q1", "q2")])


def answers_to_q1(*said: str) -> pd.DataFrame:
    """These answers, one of which the model left empty."""
    rows = [{"query_id": "q1", "answer": each, "status": "ok"} for each in said]
    rows.append({"query_id": "q1", "answer": "", "status": "empty"})
    return pd.DataFrame(rows).assign(detail="")


@pytest.mark.parametrize(
    ("name", "scores", "raw"),
    [
        ("Long", [0, 0.75, np.nan, 0], ["Long: -1", "Long: 0.5"]),
        ("Grades", [0, 0.75, 1, 0], ["Grades: 1", "Grades: 4"]),
    ],
)
def test_scores_are_brought_to_the_scale_of_accuracy_and_words_stay(
    name: str, scores: list[float], raw: list[str], mine: Write, texts: Benchmark
) -> None:
    mine(JUDGES)
    judged = judge_answers(load_judge(f"mine:{name}"), texts, answers_to_q1("one", "two", "three"))
    np.testing.assert_array_equal(judged["score"], scores)
    assert scale_of(judged) == SHARES
    assert list(judged["verdict"][:2]) == raw


def test_an_object_judges_and_needs_no_fingerprint(mine: Write, texts: Benchmark) -> None:
    mine(JUDGES)
    own: dict[str, Any] = {}
    exec(JUDGES, own)
    answers = answers_to_q1("one", "two")[:2]
    by_name = judge_answers(load_judge("mine:Grades"), texts, answers)
    judged = judge_answers(own["Grades"](), texts, answers)
    assert set(judged["judge_id"]) == {""}  # whether it is the same class nobody knows
    assert judged.drop(columns="judge_id").equals(by_name.drop(columns="judge_id"))
    assert judge_answers(load_judge(own["Grades"]()), texts, answers).equals(judged)
    with pytest.raises(VragError, match=r"judge Nothing\(…\): found Nothing without score"):
        judge_answers(own["Nothing"](), texts, answers)
    with pytest.raises(VragError, match="found 'rule'; expected a judge"):
        judge_answers("rule", texts, answers)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Beyond", r"score returned 2 for 'one' .*a number from 0 to 1"),
        ("Texts", r"score returned '0.5' for 'one' .*a number from 0 to 1"),
        ("Fails", r"judge Fails: .* KeyError: 'one' \(mine.py:22\)"),
    ],
)
def test_what_a_judge_gives_off_its_scale_is_said(
    name: str, words: str, mine: Write, texts: Benchmark
) -> None:
    mine(JUDGES)
    with pytest.raises(VragError, match=words):
        judge_answers(load_judge(f"mine:{name}"), texts, answers_to_q1("one")[:1])
