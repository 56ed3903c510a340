"""The answer store: asked once, stored once, whatever dies; a bad file or disk is named."""

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
from dataclasses import replace
from pathlib import Path

import pytest
from endpoints import connect
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from strange_server import StrangeServer
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts
from vrag_kit.generation.merge_stores import merge_stores
from vrag_kit.generation.store_layout import ImageInfo, answer_ids
from vrag_kit.types import PLACEHOLDER, Answer, Failure, Message, Status

TIMEOUT = Failure(Status.TIMEOUT, "60 s")


def answer(name: str, raw: str | None = "Answer: red", failure: Failure | None = None) -> Answer:
    return Answer(answer_id=name, raw=raw, failure=failure, sent={"model": "m"})


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[[], AnswerStore]:
    """Opens one store for one more process."""
    return lambda: AnswerStore(tmp_path / "a.sqlite", lease=1.0)


def test_a_lease_lasts_while_its_holder_lives(open_store: Callable[[], AnswerStore]) -> None:
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


def test_a_failure_is_retried_by_one_of_two_processes(
    open_store: Callable[[], AnswerStore],
) -> None:
    with open_store() as first, open_store() as second, open_store() as third:
        first.write([answer("x", None, TIMEOUT)], {"x": []})
        seen = second.failures(["x", "y"])
        assert first.claim(["x"]) == []
        assert first.claim(["x"], retry=first.failures(["x"])) == ["x"]
        assert second.read(["x"])["x"].failure == TIMEOUT  # while it is asked again
        assert second.claim(["x"], retry=seen) == []  # it is being asked
        for each in (first, third):
            each.write([answer("x", None, TIMEOUT)], {"x": []})
        assert second.claim(["x"], retry=seen) == []  # it has failed again since


def test_a_placeholder_is_stored_in_a_dry_runs_copy_only(
    store: AnswerStore, tmp_path: Path
) -> None:
    placeholder = replace(answer("x"), fields={PLACEHOLDER: "mark"})
    with pytest.raises(VragError, match=r"a\.sqlite: .*placeholder of a dry run"):
        store.write([placeholder], {"x": []})
    (tmp_path / "scratch").mkdir()
    with dry_run(tmp_path / "scratch"), AnswerStore(store.path) as copy:
        copy.write([placeholder], {"x": []})
        assert copy.read(["x"]) == {"x": placeholder}
    assert store.free(["x"]) == ["x"]


def test_a_late_answer_replaces_none_and_an_empty_one_is_never_good(store: AnswerStore) -> None:
    failed = answer("y", None, TIMEOUT)
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
def test_keys_are_hashes_of_plain_json(
    roles: list[str], parts: list[str | int], sample: int
) -> None:
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


def test_an_image_that_was_replaced_is_hashed_again(store: AnswerStore, tmp_path: Path) -> None:
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


def test_a_store_written_earlier_in_todays_layout_is_read_and_not_changed(tmp_path: Path) -> None:
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


def test_a_store_replaced_while_open_is_refused(store: AnswerStore, tmp_path: Path) -> None:
    AnswerStore(tmp_path / "other.sqlite").close()
    os.replace(tmp_path / "other.sqlite", store.path)
    with pytest.raises(VragError, match="READONLY_DBMOVED"):
        store.write([answer("z")], {"z": []})


def prompts_of(*answer_ids: str) -> dict[str, list[dict[str, object]]]:
    return {each: [{"role": "user", "parts": [f"What of {each}?"]}] for each in answer_ids}


def test_a_prompt_can_be_read_back(
    server: StrangeServer, store: AnswerStore, tmp_path: Path
) -> None:
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
        with AnswerStore(path) as store:
            store.write([answer("x"), answer("y")], prompts_of("x", "y"))
        with closing(sqlite3.connect(path)) as db:
            db.executescript(sql)
        return path

    return make


def another_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE accounts (name TEXT)")
    return path


def cut_off(path: Path) -> Path:
    with AnswerStore(path) as store:
        many = [answer(f"{i:064}") for i in range(200)]
        store.write(many, {each.answer_id: [] for each in many})
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
        (another_database, r"a\.sqlite: .*no such table: about"),
        (lambda path: path.parent, "unable to open database file"),
        (lambda _: Path("/proc/self/a.sqlite"), "unable to open database file"),
    ],
)
def test_what_is_no_good_store_is_named_left_alone_and_not_merged(
    make: Callable[[Path], Path], words: str, tmp_path: Path
) -> None:
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
def test_another_prompt_than_was_asked_is_never_shown(part: str, tmp_path: Path) -> None:
    sql = f"UPDATE prompts SET {part} WHERE prompt LIKE '%What of x?%'"
    with AnswerStore(changed(sql)(tmp_path / "answers.sqlite")) as store:
        assert store.prompt("y") == prompts_of("y")["y"]
        with pytest.raises(VragError, match=r"answers\.sqlite: .*'x'"):
            store.prompt("x")


def test_a_full_disk_keeps_what_was_stored(store: AnswerStore) -> None:
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
def test_questions_of_a_killed_process_are_free_at_once(store: AnswerStore) -> None:
    def owned(sql: str, *values: str) -> list[tuple[str]]:
        with closing(sqlite3.connect(store.path)) as db, db:
            return db.execute(sql, values).fetchall()

    command = [sys.executable, "-c", CLAIMING, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
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
