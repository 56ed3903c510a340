"""A custom judge or rubric: what it is asked, what its words mean, and its scale."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest
import yaml
from model_stub import ModelStub
from own_project import Write, shown
from readme_pages import README

from vrag_kit.errors import VragError
from vrag_kit.judging import SHARES, Rubric, Scale, judge_answers, load_judge, scale_of
from vrag_kit.types import Query
from vrag_kit.workspace import Workspace

ONE = factories.benchmark(
    [Query(query_id="q0", text="Which colour?", answers=("red", "crimson"), group="g")]
)
JUDGES = """
class Scorer:
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

class Fails:
    def score(self, query, answer):
        return {}[answer]

class Nothing:
    pass
"""
SPEAKER = """
from model_stub import ModelStub

speakers = []

class Speaker(ModelStub):
    def __init__(self):
        super().__init__({"pink": "-2", "": "Nearly.\\nScore: 0.75"})
        speakers.append(self)
"""


@pytest.fixture(scope="module")
def readme_rubric() -> Rubric:
    """The rubric that the README shows."""
    known: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-x")  # its judge is an endpoint's, loaded and not asked
        exec(shown("share = Rubric"), known)
    rubric = known["share"]
    assert isinstance(rubric, Rubric)
    return rubric


def answers(*texts: str) -> pd.DataFrame:
    """Answers to the one question."""
    return factories.answers(query_id="q0", answer=list(texts))


def judged(rubric: Rubric, reply: str, folder: Path) -> pd.DataFrame:
    """An answer as a model that always replies so judges it."""
    judge = ModelStub({"": reply})
    judge.fingerprint = reply
    by = load_judge(judge, Workspace(answers_dir=folder), rubric=rubric)
    return judge_answers(by, ONE, answers("pink"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (lambda query: {}, r"TypeError: [^(]*\(\) takes .* given. It is called with the query"),
        (lambda query, answer: {}[answer], r"KeyError: .*judges.py:\d+"),
    ],
)
def test_what_a_rubrics_own_functions_do_wrong_is_said(
    fields: Callable[..., dict[str, str]], words: str, readme_rubric: Rubric, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match=f"rubric: its fields failed with {words}"):
        judged(replace(readme_rubric, fields=fields), "well", tmp_path)


def test_judges_of_one_name_have_keys_of_their_own(readme_rubric: Rubric, tmp_path: Path) -> None:
    other = replace(readme_rubric, template="Is {answer} any of {references}?")
    wide = replace(readme_rubric, scale=Scale(0.0, 2.0))
    same = (readme_rubric, "1")
    judges = [same, (other, "1"), (wide, "1"), (readme_rubric, "0.5"), same]
    keys = [
        judged(rubric, reply, tmp_path / str(place))["judge_id"].item()
        for place, (rubric, reply) in enumerate(judges)
    ]
    assert len(set(keys)) == 4
    assert keys[4] == keys[0]


def test_a_rubric_in_a_parameter_file_is_asked_and_its_last_line_is_the_score(
    mine: Write, readme_rubric: Rubric, tmp_path: Path
) -> None:
    """By the entry that the README shows, of another model."""
    blocks = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (block,) = [code for code in blocks if "rubric:" in code]
    mine(SPEAKER)
    entry = {**yaml.safe_load(block)["judge"], "model": "mine:Speaker"}
    rubric = replace(readme_rubric, scale=Scale(-1, 1))
    judge = load_judge(entry, Workspace(answers_dir=tmp_path), rubric=rubric)
    table = judge_answers(judge, ONE, answers("{question}", "pink"), partial=True)
    np.testing.assert_array_equal(table["score"], [0.75, np.nan])
    first, _, again = sys.modules["mine"].speakers[-1].prompts
    assert first.startswith(
        "Question: Which colour?\nAccepted: red | crimson\nAnswer: {question}\nHow well does"
    )
    assert "Reply with a number from -1 to 1 alone." in again


def test_a_judge_takes_no_rubric(mine: Write, readme_rubric: Rubric) -> None:
    mine(JUDGES)
    with pytest.raises(VragError, match="'Scorer' scores by itself; expected no rubric beside it"):
        load_judge({"model": "mine:Scorer", "rubric": "{answer}"}, rubric=readme_rubric)


@pytest.mark.parametrize(
    ("name", "scores", "raw"),
    [("Scorer", [0, 0.75, np.nan, 0], "Scorer: 0.5"), ("Grades", [0, 0.75, 1, 0], "Grades: 4")],
)
def test_scores_are_brought_to_the_scale_of_accuracy_and_words_stay(
    name: str, scores: list[float], raw: str, mine: Write
) -> None:
    mine(JUDGES)
    rows = answers("one", "two", "three", "").assign(status=["ok"] * 3 + ["empty"])
    table = judge_answers(load_judge(f"mine:{name}"), ONE, rows)
    np.testing.assert_array_equal(table["score"], scores)
    assert scale_of(table) == SHARES
    assert table["verdict"][1] == raw


def test_an_object_judges_and_needs_no_fingerprint(mine: Write) -> None:
    mine(JUDGES)
    own: dict[str, type] = {}
    exec(JUDGES, own)
    by_name = judge_answers(load_judge("mine:Grades"), ONE, answers("one", "two"))
    table = judge_answers(own["Grades"](), ONE, answers("one", "two"))
    assert set(table["judge_id"]) == {""}  # nobody knows whether it is the same class
    assert table.drop(columns="judge_id").equals(by_name.drop(columns="judge_id"))
    with pytest.raises(VragError, match=r"judge Nothing\(…\): found Nothing without score"):
        judge_answers(own["Nothing"](), ONE, answers("one"))
    with pytest.raises(VragError, match="found 'rule'; expected a judge"):
        judge_answers("rule", ONE, answers("one"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Beyond", r"score returned 2 for 'one' .*a number from 0 to 1"),
        ("Fails", r"judge Fails: .* KeyError: 'one' \(mine.py:18\)"),
    ],
)
def test_what_a_judge_gives_off_its_scale_is_said(name: str, words: str, mine: Write) -> None:
    mine(JUDGES)
    with pytest.raises(VragError, match=words):
        judge_answers(load_judge(f"mine:{name}"), ONE, answers("one"))
