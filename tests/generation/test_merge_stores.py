"""Many stores become one: every answer once, whatever order, repetition or death."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from vrag_kit.generation import AnswerStore
from vrag_kit.generation.merge_stores import merge_stores
from vrag_kit.runner.cli import app
from vrag_kit.types import Answer, Failure, Status

LOCAL = {"model": "m", "do_sample": False}


SAMPLED = {"model": "m", "do_sample": True, "temperature": 0.7}


SERVED = {"model": "m", "temperature": 0.0, "endpoint": "http://localhost:8000/v1"}


TIMEOUT = Failure(Status.TIMEOUT, "60 s")


def said(
    answer_id: str,
    raw: str | None = "Answer: red",
    failure: Failure | None = None,
    sent: Mapping[str, Any] = LOCAL,
    **fields: Any,
) -> Answer:
    return Answer(answer_id=answer_id, raw=raw, failure=failure, sent=sent, fields=fields)


def store(path: Path, *answers: Answer) -> Path:
    prompt = [{"role": "user", "parts": ["What color are the feet of the goose?"]}]
    with AnswerStore(path) as kept:
        for answer in answers:
            kept.write([answer], {answer.answer_id: prompt})
    return path


def rows(path: Path, table: str = "answers") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


def test_all_that_stores_hold_is_in_the_merged_one(tmp_path: Path) -> None:
    a = store(tmp_path / "a.sqlite", said("x"), said("y", None, TIMEOUT), said("z", cost=0.5))
    b = store(tmp_path / "b.sqlite", said("v", sent=SERVED, served="m-1"), said("z", cost=0.25))
    with closing(sqlite3.connect(b)) as db:
        db.execute("INSERT INTO pictures VALUES ('p.png', '9-1', 'hash', 4, 5)")
        db.commit()
    before = a.read_bytes(), b.read_bytes()
    merged, _ = merge_stores([a, b], to=tmp_path / "c.sqlite")
    assert merged["store"].tolist() == [str(a), str(b)]
    assert merged[["new", "already_there"]].to_numpy().tolist() == [[3, 0], [1, 1]]
    z_of_a = [row for row in rows(a) if row[0] == "z"]
    v_of_b = [row for row in rows(b) if row[0] == "v"]
    assert rows(tmp_path / "c.sqlite") == [*v_of_b, *rows(a)[:2], *z_of_a]
    assert rows(tmp_path / "c.sqlite", "pictures") == [("p.png", "9-1", "hash", 4, 5)]
    with AnswerStore(tmp_path / "c.sqlite") as target:
        assert target.total_cost("m") == 0.75  # both were paid, though one answer stands
    assert (a.read_bytes(), b.read_bytes()) == before


def test_merging_again_changes_no_byte_and_what_grew_is_added(tmp_path: Path) -> None:
    a = store(tmp_path / "a.sqlite", said("x", cost=1.0), said("y", None, TIMEOUT))
    b = store(tmp_path / "b.sqlite", said("y", sent=SAMPLED), said("s", "red", sent=SAMPLED))
    store(a, said("s", "blue", sent=SAMPLED))
    merge_stores([a, b], to=tmp_path / "c.sqlite")
    before = (tmp_path / "c.sqlite").read_bytes()
    merge_stores([a, b], to=tmp_path / "c.sqlite")
    merge_stores([b, a, tmp_path / "c.sqlite"], to=tmp_path / "c.sqlite")
    assert (tmp_path / "c.sqlite").read_bytes() == before
    store(a, said("new", cost=2.0))
    merged, _ = merge_stores([a, b], to=tmp_path / "c.sqlite")
    assert merged["new"].tolist() == [1, 0]
    with AnswerStore(tmp_path / "c.sqlite") as target:
        assert target.total_cost("m") == 3.0


@settings(max_examples=8, deadline=None)
@given(
    held=st.lists(
        st.dictionaries(
            st.sampled_from("pqrs"),
            st.tuples(st.sampled_from(["ok", "truncated", "timeout"]), st.sampled_from("ab")),
        ),
        min_size=2,
        max_size=3,
    )
)
def test_the_order_of_merging_does_not_matter(
    held: Sequence[dict[str, tuple[str, str]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    stores, best = [], dict[str, tuple[Any, ...]]()
    for place, answers in enumerate(held):
        path = store(folder / f"{place}.sqlite")
        with AnswerStore(path) as kept:
            for answer_id, (status, raw) in answers.items():
                failure = None if status == "ok" else Failure(Status(status), "")
                words = None if status == "timeout" else raw
                kept.write([said(answer_id, words, failure, SAMPLED)], {answer_id: []})
        for row in rows(path):
            # an answer before a bad one before none; the first answer, the last failure
            worth = ["timeout", "truncated", "ok"].index(row[1])
            order = (worth, -row[-1] if worth else row[-1])
            if row[0] not in best or order > best[row[0]][0]:
                best[row[0]] = (order, row)
        stores.append(path)
    expected = [row for _, (_, row) in sorted(best.items())]
    for number, order in enumerate(permutations(stores)):
        merge_stores(order, to=folder / f"to{number}.sqlite")
        assert rows(folder / f"to{number}.sqlite") == expected


def merge(*stores: Path, to: Path, options: Sequence[object] = ()) -> Any:
    words = ["answers", "merge", *map(str, stores), "--to", str(to), *map(str, options)]
    return CliRunner().invoke(app, words)


def test_of_answers_that_differ_the_first_is_kept_and_all_are_listed(tmp_path: Path) -> None:
    a, b, c = (tmp_path / f"{name}.sqlite" for name in "abc")
    names = [f"id-{number}" for number in range(3)]
    store(a, *(said(name, f"red {name}") for name in names), said("same"))
    store(b, *(said(name, f"blue {name}") for name in names), said("same"))
    done = merge(b, a, to=c, options=["--csv", tmp_path / "d.csv"])
    for words in ("3 answers differ", "id-0", "red id-0", "blue id-0", str(a)):
        assert words in done.output
    listed = pd.read_csv(tmp_path / "d.csv")
    assert listed["answer_id"].tolist() == names
    assert listed["dropped"].tolist() == [f"blue {name}" for name in names]
    with AnswerStore(c) as target:
        assert target.read(["id-0"])["id-0"].raw == "red id-0"  # the earlier one


def test_a_store_that_is_missing_or_empty_stops_the_merge(tmp_path: Path) -> None:
    good, bad = store(tmp_path / "good.sqlite", said("x")), tmp_path / "bad.sqlite"
    for _ in range(2):
        assert "bad.sqlite" in str(merge(good, bad, to=tmp_path / "c.sqlite").exception)
        assert not (tmp_path / "c.sqlite").exists()
        bad.touch()


def test_who_is_asking_goes_on_and_is_told_of(tmp_path: Path) -> None:
    a, c = store(tmp_path / "a.sqlite", said("x")), store(tmp_path / "c.sqlite")
    with AnswerStore(a) as theirs, AnswerStore(c) as ours, AnswerStore(c) as other:
        assert theirs.claim(["y", "z"]) == ["y", "z"]
        assert ours.claim(["x", "z"]) == ["x", "z"]
        done = merge(a, to=c)
        assert "2 questions are being asked: merge again" in done.output
        assert other.free(["x", "y", "z"]) == ["y"]  # x is answered, z is being asked by us
        ours.write([said("x", "Answer: late"), said("z")], {"x": [], "z": []})
        assert ours.read(["x"])["x"].raw == "Answer: red"
