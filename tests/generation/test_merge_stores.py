"""Many stores become one: every answer once, whatever order, repetition or death."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
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

PROMPT = [{"role": "user", "parts": ["What color are the feet of the goose?"]}]


def said(
    answer_id: str, raw: str | None = "Answer: red", status: str = "ok", **fields: Any
) -> Answer:
    failure = None if status == "ok" else Failure(Status(status), "")
    sent = {"model": "m", "temperature": 0.7}
    return Answer(answer_id=answer_id, raw=raw, failure=failure, sent=sent, fields=fields)


def stored(path: Path, *answers: Answer) -> Path:
    """The path of a store, to which these answers are written."""
    with AnswerStore(path) as store:
        for answer in answers:
            store.write([answer], {answer.answer_id: PROMPT})
    return path


def rows(path: Path, table: str = "answers") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


def test_all_that_stores_hold_is_in_the_merged_one(tmp_path: Path) -> None:
    failed = said("y", None, "timeout")
    a = stored(tmp_path / "a.sqlite", said("x"), failed, said("z", cost=0.5))
    b, c = stored(tmp_path / "b.sqlite", said("v"), said("z", cost=0.25)), tmp_path / "c.sqlite"
    with closing(sqlite3.connect(b)) as db, db:
        db.execute("INSERT INTO pictures VALUES ('p.png', '9-1', 'hash', 4, 5)")
    before = a.read_bytes(), b.read_bytes()
    merged, _ = merge_stores([a, b], to=c)
    assert merged["store"].tolist() == [str(a), str(b)]
    assert merged[["new", "already_there"]].to_numpy().tolist() == [[3, 0], [1, 1]]
    assert rows(c) == [rows(b)[0], *rows(a)]
    assert rows(c, "pictures") == [("p.png", "9-1", "hash", 4, 5)]
    with AnswerStore(c) as target:
        assert target.total_cost("m") == 0.75  # both were paid, though one answer stands
    assert (a.read_bytes(), b.read_bytes()) == before


def test_merging_again_changes_no_byte_and_what_grew_is_added(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.sqlite", said("x", cost=1.0), said("y", None, "timeout"))
    b, c = stored(tmp_path / "b.sqlite", said("y"), said("s", "red")), tmp_path / "c.sqlite"
    stored(a, said("s", "blue"))
    merge_stores([a, b], to=c)
    before = c.read_bytes()
    merge_stores([a, b], to=c)
    merge_stores([b, a, c], to=c)
    assert c.read_bytes() == before
    stored(a, said("new", cost=2.0))
    merged, _ = merge_stores([a, b], to=c)
    assert merged["new"].tolist() == [1, 0]
    with AnswerStore(c) as target:
        assert target.total_cost("m") == 3.0


STATUSES = ["timeout", "truncated", "ok"]
Held = dict[str, tuple[str, str]]
held = st.dictionaries(
    st.sampled_from("pqrs"), st.tuples(st.sampled_from(STATUSES), st.sampled_from("ab"))
)


@settings(max_examples=8, deadline=None)
@given(st.lists(held, min_size=2, max_size=3))
def test_the_order_of_merging_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, several: Sequence[Held]
) -> None:
    folder, stores, best = tmp_path_factory.mktemp("stores"), [], {}
    for place, answers in enumerate(several):
        path = stored(folder / f"{place}.sqlite")
        for name, (status, raw) in answers.items():
            stored(path, said(name, None if status == "timeout" else raw, status))
        for row in rows(path):
            # an answer before a bad one before none; the first answer, the last failure
            worth = STATUSES.index(row[1])
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
    names, c = [f"id-{number}" for number in range(3)], tmp_path / "c.sqlite"
    a, b = (
        stored(tmp_path / f"{color}.sqlite", *(said(name, color) for name in names), said("same"))
        for color in ("red", "blue")
    )
    done = merge(b, a, to=c, options=["--csv", tmp_path / "d.csv"])
    for words in ("3 answers differ", "id-0", "red", "blue", str(a)):
        assert words in done.output
    listed = pd.read_csv(tmp_path / "d.csv")
    assert (listed["answer_id"].tolist(), set(listed["dropped"])) == (names, {"blue"})
    with AnswerStore(c) as target:
        assert target.read(["id-0"])["id-0"].raw == "red"  # the earlier one


def test_who_is_asking_goes_on_and_is_told_of(tmp_path: Path) -> None:
    a, c = stored(tmp_path / "a.sqlite", said("x")), stored(tmp_path / "c.sqlite")
    with AnswerStore(a) as theirs, AnswerStore(c) as ours, AnswerStore(c) as other:
        assert theirs.claim(["y", "z"]) == ["y", "z"]
        assert ours.claim(["x", "z"]) == ["x", "z"]
        assert "2 questions are being asked: merge again" in merge(a, to=c).output
        assert other.free(["x", "y", "z"]) == ["y"]  # x is answered, z is being asked by us
        ours.write([said("x", "Answer: late"), said("z")], {"x": [], "z": []})
        assert ours.read(["x"])["x"].raw == "Answer: red"
