"""The answer store: asked once, stored once, whatever dies; a bad file or disk is named; and many
stores become one, with every answer once.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from strange_server import connect
from typer.testing import CliRunner
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts
from vrag_kit.generation.merge_stores import merge_stores
from vrag_kit.generation.store_layout import ImageInfo, answer_ids
from vrag_kit.runner.cli import app
from vrag_kit.types import PLACEHOLDER, Answer, Failure, Message, Status

TIMEOUT = Failure(Status.TIMEOUT, "")
Open = Callable[[], AnswerStore]


def answer(name: str, raw: str | None = "Answer: red", status: str = "ok", **fields: Any) -> Answer:
    failure = None if status == "ok" else Failure(Status(status), "")
    return Answer(answer_id=name, raw=raw, failure=failure, sent={"model": "m"}, fields=fields)


def prompts_of(*answer_ids: str) -> dict[str, list[dict[str, object]]]:
    return {each: [{"role": "user", "parts": [f"What of {each}?"]}] for each in answer_ids}


def stored(path: Path, *answers: Answer) -> Path:
    """The path of a store, to which these answers are written."""
    with AnswerStore(path) as store:
        for each in answers:
            store.write([each], prompts_of(each.answer_id))
    return path


def rows(path: Path, table: str = "answers") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


@pytest.fixture
def open_store(tmp_path):
    """Opens one store for one more process."""
    return lambda: AnswerStore(tmp_path / "a.sqlite", lease=1.0)


def test_a_lease_lasts_while_its_holder_lives(open_store):
    holder, other = open_store(), open_store()
    assert holder.claim(["x", "y"]) == ["x", "y"]
    with holder.renew_leases():
        time.sleep(1.6)
        assert other.claim(["x"]) == []
    time.sleep(1.2)
    assert other.claim(["x"]) == ["x"]
    holder.write([answer("y")], {"y": []})
    holder.close()  # gives back nothing of the other's
    with open_store() as third:
        assert third.claim(["x", "y"]) == []
    other.close()


def test_a_failure_is_retried_by_one_of_two_processes(open_store):
    with open_store() as first, open_store() as second, open_store() as third:
        first.write([answer("x", None, "timeout")], {"x": []})
        seen = second.failures(["x", "y"])
        assert first.claim(["x"]) == []
        assert first.claim(["x"], retry=first.failures(["x"])) == ["x"]
        assert second.read(["x"])["x"].failure == TIMEOUT  # while it is asked again
        assert second.claim(["x"], retry=seen) == []  # it is being asked
        for each in (first, third):
            each.write([answer("x", None, "timeout")], {"x": []})
        assert second.claim(["x"], retry=seen) == []  # it has failed again since


def test_a_placeholder_stays_in_a_dry_runs_copy(store, tmp_path):
    placeholder = answer("x", **{PLACEHOLDER: "mark"})
    with pytest.raises(VragError, match=r"a\.sqlite: .*placeholder of a dry run"):
        store.write([placeholder], {"x": []})
    (tmp_path / "scratch").mkdir()
    with dry_run(tmp_path / "scratch"), AnswerStore(store.path) as copy:
        copy.write([placeholder], {"x": []})
        assert copy.read(["x"]) == {"x": placeholder}
    assert store.free(["x"]) == ["x"]


def test_a_late_answer_replaces_none_and_an_empty_one_is_never_good(store):
    failed = answer("y", None, "timeout")
    store.write([answer("x", "Answer: red")], {"x": []})
    store.write([answer("x", "Answer: blue"), failed], {"x": [], "y": []})
    assert store.read(["x", "y", "z"]) == {"x": answer("x", "Answer: red"), "y": failed}
    with pytest.raises(VragError, match="'ok'"):
        store.write([answer("z", "  ")], {"z": []})


@given(
    st.lists(st.sampled_from(["system", "user", "assistant"]), min_size=1, max_size=3),
    st.lists(st.one_of(st.text(st.characters(codec="utf-8")), st.integers(0, 2)), max_size=5),
    st.integers(0, 3),
)
def test_keys_are_hashes_of_json(roles, parts, sample):
    images = [ImageFile(Path(f"{n}.png")) for n in range(3)]
    hashes = [hashlib.sha256(bytes([n])).hexdigest() for n in range(3)]
    infos = {f"{n}.png": ImageInfo(hashes[n], (1, 1)) for n in range(3)}
    shown = tuple(images[part] if isinstance(part, int) else part for part in parts)
    prompt = tuple(Message(role=role, parts=shown) for role in roles)
    plain = [{"pixels": hashes[part]} if isinstance(part, int) else part for part in parts]
    messages = [{"role": role, "parts": plain} for role in roles]
    decoding = {"temperature": 0.7, "do_sample": True, "stop": ["“"]}
    text = json.dumps(["model", messages, decoding, sample], sort_keys=True, ensure_ascii=False)
    expected = [hashlib.sha256(text.encode()).hexdigest()]
    assert answer_ids([prompt], infos, "model", decoding, sample) == expected


def test_an_image_that_was_replaced_is_hashed_again(store, tmp_path):
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4)).save(path)
    before = store.image_info([ImageFile(path)])
    Image.new("RGB", (4, 5)).save(path)
    assert store.image_info([ImageFile(path)]) != before == {str(path): before[str(path)]}


LAYOUT = """
CREATE TABLE about (version INTEGER NOT NULL);
CREATE TABLE answers (
    answer_id TEXT PRIMARY KEY, status TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '', raw TEXT,
    fields TEXT, model TEXT, sample INTEGER, prompt_id TEXT, sent TEXT, tokens TEXT,
    stored REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE prompts (prompt_id TEXT PRIMARY KEY, prompt TEXT NOT NULL);
CREATE TABLE claims (
    answer_id TEXT PRIMARY KEY, owner TEXT NOT NULL, lease_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE pictures (
    place TEXT NOT NULL, stamp TEXT NOT NULL, pixels TEXT NOT NULL, width INTEGER NOT NULL,
    height INTEGER NOT NULL, PRIMARY KEY (place, stamp)
) WITHOUT ROWID;
CREATE TABLE spending (
    writer TEXT NOT NULL, model TEXT NOT NULL, dollars REAL NOT NULL, PRIMARY KEY (writer, model)
) WITHOUT ROWID;
INSERT INTO about VALUES (5);
INSERT INTO prompts VALUES ('PROMPT', '[{"role": "user", "parts": ["What is red?"]}]');
INSERT INTO answers VALUES
    ('x', 'ok', '', 'Answer: red', '{"served": "m-1"}', 'm', 0, 'PROMPT', '{"model": "m"}',
     '{"prompt": 3}', 10.5),
    ('y', 'refused', 'no', NULL, '{}', 'm', 0, 'PROMPT', '{"model": "m"}', '{}', 11.5);
INSERT INTO pictures VALUES ('a.png', '1', 'abc', 4, 5);
INSERT INTO spending VALUES ('someone', 'm', 1.5);
"""

"""A store as it has been written since layout 5, in plain SQL: paid answers stay readable."""


def test_a_store_written_earlier_in_todays_layout_is_read_and_not_changed(tmp_path):
    path = tmp_path / "a.sqlite"
    prompt = '[{"role": "user", "parts": ["What is red?"]}]'
    with closing(sqlite3.connect(path)) as db:
        db.executescript(LAYOUT.replace("PROMPT", hashlib.sha256(prompt.encode()).hexdigest()))
        db.commit()
    before = path.read_bytes()
    with AnswerStore(path) as store:
        found = store.read(["x", "y"])
        assert (found["x"].raw, found["x"].fields) == ("Answer: red", {"served": "m-1"})
        assert found["x"].tokens == {"prompt": 3}
        assert found["y"].failure == Failure(Status.REFUSED, "no")
        assert store.failures(["x", "y"]) == {"y": 11.5}
        assert store.prompt("x") == json.loads(prompt)
        assert store.image_uris("abc") == ["a.png"]
        assert store.total_cost("m") == 1.5
        assert store.free(["x", "y", "z"]) == ["z"]
    assert path.read_bytes() == before


def test_a_store_replaced_while_open_is_refused(store, tmp_path):
    AnswerStore(tmp_path / "other.sqlite").close()
    os.replace(tmp_path / "other.sqlite", store.path)
    with pytest.raises(VragError, match="READONLY_DBMOVED"):
        store.write([answer("z")], {"z": []})


def test_prompts_are_read_back(server, store, tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.jpg")
    prompt = worded("one_image", "number 0?", [ImageFile(tmp_path / "a.jpg")])
    (given,) = ask_prompts(connect(server), [prompt], store)
    (message,) = store.prompt(given.answer_id)
    assert "number 0?" in message["parts"][0]
    assert message["parts"][1]["image"].endswith("a.jpg")
    with pytest.raises(VragError, match="'nonsense'"):
        store.prompt("nonsense")


def changed(sql: str) -> Callable[[Path], Path]:
    """Makes a store of two answers that somebody changed."""

    def make(path: Path) -> Path:
        stored(path, answer("x"), answer("y"))
        with closing(sqlite3.connect(path)) as db:
            db.executescript(sql)
        return path

    return make


def cut_off(path: Path) -> Path:
    stored(path, *(answer(f"{i:064}") for i in range(99)))
    os.truncate(path, path.stat().st_size // 2)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (changed("UPDATE answers SET raw = NULL WHERE answer_id = 'x'"), "answer 'x' .*'ok'"),
        (changed("UPDATE answers SET status = 'fine' WHERE answer_id = 'x'"), "'x' .*'fine'"),
        (changed("UPDATE answers SET sent = '{' WHERE answer_id = 'x'"), "answer 'x'"),
        (changed("UPDATE about SET version = 4"), r"layout \[4\], expected layout 5"),
        (cut_off, r"a\.sqlite: .*cannot be used"),
        (changed("DROP TABLE about"), r"a\.sqlite: .*no such table: about"),
        (lambda path: path.parent, "unable to open database file"),
        (lambda _: Path("/proc/self/a.sqlite"), "unable to open database file"),
    ],
)
def test_a_bad_store_is_left_alone(make, words, tmp_path):
    path, new = make(tmp_path / "a.sqlite"), tmp_path / "new.sqlite"
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(VragError, match=words):
        AnswerStore(path)
    if path.is_file():
        with pytest.raises(VragError, match=r"a\.sqlite"):
            merge_stores([path], to=new)
        assert path.read_bytes() == before
        assert not new.exists()


@pytest.mark.parametrize("part", ["prompt = '[]'", "prompt_id = 'nowhere'"])
def test_another_prompt_than_was_asked_is_never_shown(part, tmp_path):
    sql = f"UPDATE prompts SET {part} WHERE prompt LIKE '%What of x?%'"
    with AnswerStore(changed(sql)(tmp_path / "answers.sqlite")) as store:
        assert store.prompt("y") == prompts_of("y")["y"]
        with pytest.raises(VragError, match=r"answers\.sqlite: .*'x'"):
            store.prompt("x")


def test_a_full_disk_keeps_what_was_stored(store):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    store.write([answer("first")], {"first": []})
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
    try:
        with pytest.raises(VragError, match=rf"^{store.path}: the answer store cannot be used"):
            store.write([answer("second", "red " * 50_000)], {"second": []})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with AnswerStore(store.path) as again:
        assert set(again.read(["first", "second"])) == {"first"}


CLAIMING = """import sys, time
from vrag_kit.generation import AnswerStore
store = AnswerStore(sys.argv[1], lease=600)
print(*store.claim(["x", "y"]), flush=True)
time.sleep(600)"""


@pytest.mark.slow
def test_questions_of_a_killed_process_are_free_at_once(store):
    def owned(sql: str, *values: str) -> list[tuple[str]]:
        with closing(sqlite3.connect(store.path)) as db, db:
            return db.execute(sql, values).fetchall()

    command = [sys.executable, "-c", CLAIMING, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout.readline() == "x y\n"
        assert store.free(["x", "y", "z"]) == ["z"]
        os.kill(asking.pid, signal.SIGSTOP)  # it stands still, and is alive
        assert store.free(["x", "y", "z"]) == ["z"]
        ((owner,), *_) = owned("SELECT owner FROM claims")
        os.kill(asking.pid, signal.SIGKILL)
        os.waitid(os.P_PID, asking.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried
        for name, free in (("another/1/1 5f", ["z"]), ("", ["z"]), (owner, ["x", "y", "z"])):
            owned("UPDATE claims SET owner = ?", name)
            assert store.free(["x", "y", "z"]) == free
        assert store.claim(["x", "y", "z"]) == ["x", "y", "z"]


def test_all_that_stores_hold_is_in_the_merged_one(tmp_path):
    failed = answer("y", None, "timeout")
    a = stored(tmp_path / "a.sqlite", answer("x"), failed, answer("z", cost=0.5))
    b, c = stored(tmp_path / "b.sqlite", answer("v"), answer("z", cost=0.25)), tmp_path / "c.sqlite"
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


def test_merging_again_changes_no_byte_and_what_grew_is_added(tmp_path):
    a = stored(tmp_path / "a.sqlite", answer("x", cost=1.0), answer("y", None, "timeout"))
    b, c = stored(tmp_path / "b.sqlite", answer("y"), answer("s", "red")), tmp_path / "c.sqlite"
    stored(a, answer("s", "blue"))
    merge_stores([a, b], to=c)
    before = c.read_bytes()
    merge_stores([a, b], to=c)
    merge_stores([b, a, c], to=c)
    assert c.read_bytes() == before
    stored(a, answer("new", cost=2.0))
    merged, _ = merge_stores([a, b], to=c)
    assert merged["new"].tolist() == [1, 0]
    with AnswerStore(c) as target:
        assert target.total_cost("m") == 3.0


STATUSES = ["timeout", "truncated", "ok"]
Held = dict[str, tuple[str, str]]
held = st.dictionaries(
    st.sampled_from("pqrs"), st.tuples(st.sampled_from(STATUSES), st.sampled_from("ab"))
)


@settings(max_examples=8)
@given(st.lists(held, min_size=2, max_size=3))
def test_the_order_of_merging_does_not_matter(tmp_path_factory, several):
    folder, stores, best = tmp_path_factory.mktemp("stores"), [], {}
    for place, held_here in enumerate(several):
        path = stored(folder / f"{place}.sqlite")
        for name, (status, raw) in held_here.items():
            stored(path, answer(name, None if status == "timeout" else raw, status))
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


def merge(*words: object) -> str:
    """What the command prints."""
    return CliRunner().invoke(app, ["answers", "merge", *map(str, words)]).output


def test_of_answers_that_differ_the_first_is_kept_and_all_are_listed(tmp_path):
    names, c = [f"id-{number}" for number in range(3)], tmp_path / "c.sqlite"
    a, b = (
        stored(tmp_path / f"{color}.sqlite", *(answer(name, color) for name in names))
        for color in ("red", "blue")
    )
    printed = merge(b, a, "--to", c, "--csv", tmp_path / "d.csv")
    for words in ("3 answers differ", "id-0", "red", "blue", str(a)):
        assert words in printed
    listed = pd.read_csv(tmp_path / "d.csv")
    assert (listed["answer_id"].tolist(), set(listed["dropped"])) == (names, {"blue"})
    with AnswerStore(c) as target:
        assert target.read(["id-0"])["id-0"].raw == "red"  # the earlier one


def test_who_is_asking_goes_on_and_is_told_of(tmp_path):
    a, c = stored(tmp_path / "a.sqlite", answer("x")), stored(tmp_path / "c.sqlite")
    with AnswerStore(a) as theirs, AnswerStore(c) as ours, AnswerStore(c) as other:
        assert theirs.claim(["y", "z"]) == ["y", "z"]
        assert ours.claim(["x", "z"]) == ["x", "z"]
        assert "2 questions are being asked: merge again" in merge(a, "--to", c)
        assert other.free(["x", "y", "z"]) == ["y"]  # x is answered, z is being asked by us
        ours.write([answer("x", "Answer: late"), answer("z")], {"x": [], "z": []})
        assert ours.read(["x"])["x"].raw == "Answer: red"
