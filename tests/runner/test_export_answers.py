"""`vrag answers export` writes what the store holds, a row an answer."""

import json

import pandas as pd
import pytest
from commands import said

from vrag_kit.generation import AnswerStore
from vrag_kit.types import Answer, Failure, Status

SHOWN = [{"role": "user", "parts": ["Color?", {"image": "a “b”.png", "pixels": "0f"}]}]


ANSWER = Answer(
    answer_id="x",
    raw="Answer: «red»,\nor so",
    sample=2,
    sent={"model": "m", "temperature": 0.7},
    tokens={"prompt": 3},
    fields={"cost": 0.25, "served": "m-1"},
)


FAILURE = Answer(
    answer_id="y", raw=None, failure=Failure(Status.TIMEOUT, "60 s"), sent={"model": "n"}
)


def test_an_export_holds_answers_and_failures_as_the_store_does(tmp_path):
    path, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    with AnswerStore(path) as store:
        store.write([ANSWER, FAILURE], {"x": SHOWN, "y": []})
        times = store.failures(["y"])
    with AnswerStore(other) as store:
        store.write([ANSWER], {"x": SHOWN})
    for name in ("answers.csv", "answers.parquet"):
        done, _ = said("answers", "export", str(path), str(other), "--to", str(tmp_path / name))
        assert done == 0
    assert len(pd.read_csv(tmp_path / "answers.csv")) == 3
    table = pd.read_parquet(tmp_path / "answers.parquet")
    assert table["store"].tolist() == [str(path), str(path), str(other)]
    answered, failed = table.iloc[0], table.iloc[1]
    assert (answered["raw"], answered["sample"], answered["status"]) == (ANSWER.raw, 2, "ok")
    assert json.loads(answered["prompt"]) == SHOWN
    for column in ("sent", "tokens", "fields"):
        assert json.loads(answered[column]) == dict(getattr(ANSWER, column))
    assert (answered["model"], answered["cost"]) == ("m", 0.25)
    assert (failed["answer_id"], failed["status"], failed["detail"]) == ("y", "timeout", "60 s")
    assert failed[["raw", "cost"]].isna().all()
    assert pd.Timestamp(failed["stored"]).timestamp() == pytest.approx(times["y"], abs=1e-3)
