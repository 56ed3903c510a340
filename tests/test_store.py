"""The answer store: asked once, kept once, whatever dies; and clear words for a bad
file or disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from asking_process import SlowModel, ask, start
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from strange_server import StrangeServer, good_words, text_in

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    Hardware,
    Reply,
    Task,
    ask_models,
    ask_prompts,
    gt_clue,
    m_in_k,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.merge_stores import merge_stores
from vrag_kit.generation.store_layout import ImageInfo, answer_ids
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import PLACEHOLDER, Answer, Failure, Message, Prompt, Status

SINGLE = ConversationConfig(prompts=PROMPTS)


@pytest.fixture
def questions(write_annotations: Callable[..., Path], tree: Path) -> Path:
    write_annotations(
        *({"question": f"What color are the feet of the goose, number {n}?"} for n in range(4))
    )
    return tree


TIMEOUT = Failure(Status.TIMEOUT, "60 s")


def answer(
    answer_id: str, raw: str | None = "Answer: red", failure: Failure | None = None
) -> Answer:
    return Answer(answer_id=answer_id, raw=raw, failure=failure, sent={"model": "m"})


def start_two(store: Path, tree: Path, calls: Path | str) -> list[tuple[BaseProcess, Connection]]:
    """Two processes that begin to ask at the same moment."""
    pair = [start(store, tree, calls) for _ in range(2)]
    for _, pipe in pair:
        assert pipe.recv() == "ready"
    for _, pipe in pair:
        pipe.send("go")
    return pair


def test_a_finished_experiment_is_read_back_without_a_model_call(
    questions: Path, tmp_path: Path
) -> None:
    first = ask(tmp_path / "a.sqlite", questions, tmp_path / "calls")
    asked = (tmp_path / "calls").read_text().splitlines()
    again = ask(tmp_path / "a.sqlite", questions, tmp_path / "calls")
    pd.testing.assert_frame_equal(first, again)
    assert (tmp_path / "calls").read_text().splitlines() == asked
    assert (
        max(Counter(asked).values()) == 1
    )  # the one clue of a query is drawn five times and asked once
    assert len(asked) == first["answer_id"].nunique() < len(first)


def storm(store: Path, tree: Path, target: str, calls: Callable[[], int]) -> tuple[int, list[int]]:
    """Kill pairs of processes that ask, again and again at random moments; returns
    (kills at work, calls after each round).
    """
    rng, kills, progress = random.Random("kill"), 0, [0]
    for _ in range(6):
        pair = start_two(store, tree, target)
        deadline = time.monotonic() + 60
        while calls() == progress[-1] and time.monotonic() < deadline and pair[0][0].is_alive():
            time.sleep(0.02)  # until one of them is at work
        for process, _ in pair:
            time.sleep(rng.uniform(0.0, 0.2))
            if process.is_alive():
                process.kill()
                kills += 1
            process.join()
        progress.append(calls())
    return kills, progress


@pytest.mark.slow
def test_killed_over_http_no_stored_answer_is_asked_for_again(
    write_annotations: Callable[..., Path], tree: Path, tmp_path: Path
) -> None:
    write_annotations(
        *({"question": f"What color are the feet of the goose, number {n}?"} for n in range(16))
    )
    store = tmp_path / "stormy.sqlite"

    class Watchful(StrangeServer):
        """Notes what is asked, and what of it is already in the store."""

        asked: ClassVar[list[str]] = []
        needless: ClassVar[list[str]] = []

        def begin(self, body: dict[str, Any]) -> str:
            if "Reply with the word" not in text_in(body):
                words = good_words(body)
                self.asked.append(words)
                with sqlite3.connect(store, timeout=60) as db:
                    found = db.execute("SELECT answer_id FROM answers WHERE raw = ?", (words,))
                    self.needless += [row[0] for row in found]
            return super().begin(body)

    with Watchful(seconds=0.15) as server:
        asked = server.asked
        kills, progress = storm(store, tree, server.url, lambda: len(asked))
        server.seconds = 0.0  # nobody is killed any more
        final = ask(store, tree, server.url)
        assert kills >= 6
        assert progress[1] < progress[2] < progress[3] < final["answer_id"].nunique()
        assert (final["status"] == "ok").all()
        assert stored_ids(store) == sorted(set(final["answer_id"]))
        assert server.needless == []
        assert (
            sum(count - 1 for count in Counter(asked).values()) <= 3 * kills
        )  # three calls at once in each process
        before = len(asked)
        pd.testing.assert_frame_equal(ask(store, tree, server.url), final)
        assert len(asked) == before


def stored_ids(store: Path) -> list[str]:
    with sqlite3.connect(store) as db:
        return sorted(
            row[0] for row in db.execute("SELECT answer_id FROM answers WHERE status = 'ok'")
        )


@pytest.mark.slow
def test_two_processes_at_once_share_the_work(questions: Path, tmp_path: Path) -> None:
    pair = start_two(tmp_path / "a.sqlite", questions, tmp_path / "calls")
    outputs = [pipe.recv() for _, pipe in pair]
    for process, _ in pair:
        process.join()
    assert [process.exitcode for process, _ in pair] == [0, 0], outputs
    assert all(int(re.search(r"(\d+) new", output)[1]) > 0 for output in outputs), outputs
    assert max(Counter((tmp_path / "calls").read_text().split()).values()) == 1


def test_failures_are_kept_with_their_reason_and_asked_again_only_when_told(
    questions: Path, tmp_path: Path
) -> None:
    class Moody(SlowModel):
        healthy = False

        def generate(self, prompts, *, sample=0):
            replies = super().generate(prompts)
            return replies if self.healthy else [Reply(raw=None, failure=TIMEOUT), *replies[1:]]

    benchmark, model = (
        load_visual_rag(questions.parent / "annotations.jsonl", questions),
        Moody(tmp_path / "calls", 0),
    )
    with AnswerStore(tmp_path / "a.sqlite") as store:
        first = run_conversations(model, benchmark, zero_shot(benchmark), store, SINGLE)
        assert list(first["status"]) == ["timeout", "ok", "ok", "ok"]
        assert first["answer"].isna().tolist() == [True, False, False, False]
        model.healthy = True
        pd.testing.assert_frame_equal(
            run_conversations(model, benchmark, zero_shot(benchmark), store, SINGLE),
            first,
        )
        assert (
            run_conversations(
                model,
                benchmark,
                zero_shot(benchmark),
                store,
                SINGLE,
                hardware=Hardware(retry_failures=True),
            )["status"]
            == "ok"
        ).all()
        assert len((tmp_path / "calls").read_text().split()) == 5


def test_each_row_of_the_answers_tells_what_was_asked_and_what_was_shown(
    questions: Path, tmp_path: Path
) -> None:
    benchmark = load_visual_rag(questions.parent / "annotations.jsonl", questions)
    contexts = zero_shot(benchmark) + m_in_k(benchmark, ms=[1], k=2, draws=2)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        table = run_conversations(
            SlowModel(tmp_path / "calls", 0), benchmark, contexts, store, SINGLE
        )
    assert set(table["benchmark"]) == {benchmark.name}
    assert list(table["doc_ids"]) == [context.doc_ids for context in contexts]
    assert list(table["m"].astype("object").where(table["m"].notna(), None)) == [
        context.m for context in contexts
    ]
    groups = [benchmark.queries[context.query_id].group for context in contexts]
    assert list(table["group"]) == groups
    assert set(table["detail"]) == {""}


@pytest.mark.slow
def test_a_lease_is_kept_while_its_holder_lives_and_runs_out_when_it_does_not(
    tmp_path: Path,
) -> None:
    holder, other = (AnswerStore(tmp_path / "a.sqlite", lease=1.5) for _ in range(2))
    assert holder.claim(["x", "y"]) == ["x", "y"]
    with holder.renew_leases():
        time.sleep(2.5)
        assert other.claim(["x"]) == []
    time.sleep(2)
    assert other.claim(["x"]) == ["x"]
    holder.write([answer("y")], {"y": []})
    holder.close()  # gives back nothing of the other's
    with AnswerStore(tmp_path / "a.sqlite") as third:
        assert third.claim(["x", "y"]) == []
    other.close()


def test_a_failure_is_asked_again_by_one_of_two_processes(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as first, AnswerStore(tmp_path / "a.sqlite") as second:
        first.write([answer("x", None, TIMEOUT)], {"x": []})
        seen = second.failures(["x", "y"])
        assert first.claim(["x"]) == []
        assert first.claim(["x"], retry=first.failures(["x"])) == ["x"]
        assert second.claim(["x"], retry=seen) == []  # it is being asked
        first.write([answer("x", None, TIMEOUT)], {"x": []})
        with AnswerStore(tmp_path / "a.sqlite") as third:
            third.write([answer("x", None, TIMEOUT)], {"x": []})
            assert (
                second.claim(["x"], retry=seen) == []
            )  # it was asked again by another, and has failed again


def test_a_prompt_that_many_models_answer_in_many_samples_is_kept_once(tmp_path: Path) -> None:
    prompt = [{"role": "user", "parts": ["long " * 200_000]}]  # 1 MB
    with AnswerStore(tmp_path / "a.sqlite") as store:
        for number in range(20):
            store.write([answer(str(number))], {str(number): prompt})
        assert store.prompt("7") == store.prompt("19") == prompt
    assert (tmp_path / "a.sqlite").stat().st_size < 2_000_000


def test_a_placeholder_of_a_dry_run_is_stored_in_its_copy_and_refused_elsewhere(
    tmp_path: Path,
) -> None:
    path, scratch = tmp_path / "a.sqlite", tmp_path / "scratch"
    placeholder = replace(answer("x"), fields={PLACEHOLDER: "mark"})
    scratch.mkdir()
    with AnswerStore(path) as store:
        with pytest.raises(VragError, match=r"a\.sqlite: .*placeholder of a dry run"):
            store.write([placeholder], {"x": []})
        with dry_run(scratch), AnswerStore(path) as copy:
            copy.write([placeholder], {"x": []})
            assert copy.read(["x"]) == {"x": placeholder}
        assert store.free(["x"]) == ["x"]


def test_a_failure_stays_until_its_retry_has_an_answer(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as reader:
        reader.write([answer("x", None, TIMEOUT)], {"x": []})
        worker = AnswerStore(tmp_path / "a.sqlite")
        assert worker.claim(["x"], retry=worker.failures(["x"])) == ["x"]
        assert reader.read(["x"])["x"].failure == TIMEOUT  # while it is asked again
        worker.close()  # interrupted before there was an answer
        assert reader.read(["x"])["x"].failure == TIMEOUT
        assert reader.claim(["x"], retry=reader.failures(["x"])) == ["x"]


@pytest.mark.slow
def test_a_worker_that_waits_writes_nothing_and_looks_ever_more_rarely(
    questions: Path, tmp_path: Path
) -> None:
    benchmark = load_visual_rag(questions.parent / "annotations.jsonl", questions)
    contexts, model = zero_shot(benchmark), SlowModel(tmp_path / "calls", 0)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        ids = list(run_conversations(model, benchmark, contexts, store, SINGLE)["answer_id"])
    (tmp_path / "a.sqlite").unlink()
    looked, looks = threading.Semaphore(0), list[float]()

    class Watched(AnswerStore):
        def free(self, answer_ids: Sequence[str], **how: Any) -> list[str]:
            looks.append(time.monotonic())
            looked.release()
            return super().free(answer_ids, **how)

    def wait_and_ask() -> None:
        with Watched(tmp_path / "a.sqlite") as store:
            run_conversations(model, benchmark, contexts, store, SINGLE)

    with AnswerStore(tmp_path / "a.sqlite", lease=4) as asking:
        assert asking.claim(ids) == ids
        with closing(sqlite3.connect(tmp_path / "a.sqlite")) as beside:
            before = beside.execute("PRAGMA data_version").fetchone()
            waiting = threading.Thread(target=wait_and_ask)
            waiting.start()
            for _ in range(4):
                assert looked.acquire(timeout=60)
            # it changes with every write of any other connection
            assert beside.execute("PRAGMA data_version").fetchone() == before
        waiting.join()
    waited = [later - earlier for earlier, later in pairwise(looks)]
    assert max(waited) > 2 * waited[0]


@pytest.mark.parametrize(
    ("raw", "before", "now"),
    [("Answer: red, no: blue", "red, no: blue", "blue"), ("red", "red", "red")],
)
def test_a_better_reader_reaches_stored_answers(
    raw: str, before: str, now: str, tmp_path: Path
) -> None:
    class Model(SlowModel):
        def generate(self, prompts: Any, *, sample: int = 0) -> list[Reply]:
            return [Reply(raw=raw, fields={"served": "m-1"}) for _ in prompts]

    model, prompts = Model(tmp_path / "calls", 0), [(Message(role="user", parts=("What?",)),)]
    with AnswerStore(tmp_path / "a.sqlite") as store:
        (first,) = ask_prompts(model, prompts, store)
        assert first.fields["answer"] == before
        (again,) = ask_prompts(
            model, prompts, store, task=Task(read=lambda words: {"answer": words.split(": ")[-1]})
        )
    assert again.fields == {"served": "m-1", "answer": now}


def test_a_late_answer_does_not_replace_the_first(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        store.write([answer("x", "Answer: red")], {"x": []})
        store.write([answer("x", "Answer: blue"), answer("y", None, TIMEOUT)], {"x": [], "y": []})
        assert store.read(["x", "y", "z"]) == {
            "x": answer("x", "Answer: red"),
            "y": answer("y", None, TIMEOUT),
        }


def test_an_empty_answer_is_never_stored_as_a_good_one(tmp_path: Path) -> None:
    with (
        AnswerStore(tmp_path / "a.sqlite") as store,
        pytest.raises(VragError, match="has the status 'ok' but no text"),
    ):
        store.write([answer("x", "  ")], {"x": []})


def test_the_key_is_what_determines_the_answer(tmp_path: Path) -> None:
    def image(name: str, color: int) -> ImageFile:
        Image.new("RGB", (4, 4), (color, 0, 0)).save(tmp_path / name)
        return ImageFile(tmp_path / name)

    a, same, other = image("a.png", 1), image("b.png", 1), image("c.png", 2)
    pixels = {i.where: ImageInfo(pixel_hash(i.open()), (4, 4)) for i in (a, same, other)}

    def key(
        *parts: object,
        fingerprint: str = "f",
        decoding: dict[str, object] | None = None,
        sample: int = 0,
        role: str = "user",
    ) -> str:
        prompt = (Message(role=role, parts=parts),)
        how = decoding or {"do_sample": False}
        return answer_ids([prompt], pixels, fingerprint, how, sample)[0]

    assert key("what?", a) == key(
        "what?", same
    )  # another file with the same pixels is the same question
    different = [
        key("what?", a),
        key("what?", other),
        key("what", a),
        key("what?"),
        key(a, "what?"),
        key("what?", a, other),
        key("what?", other, a),
        key("what?", a, fingerprint="g"),
        key("what?", a, sample=1),
        key("what?", a, decoding={"do_sample": True}),
        key("what?", a, role="system"),
    ]
    assert len(set(different)) == len(different)


@given(
    roles=st.lists(st.sampled_from(["system", "user", "assistant"]), min_size=1, max_size=3),
    parts=st.lists(st.one_of(st.text(), st.integers(0, 2)), max_size=5),
    sample=st.integers(0, 3),
)
def test_keys_are_hashes_of_the_plain_json(
    roles: list[str], parts: list[str | int], sample: int
) -> None:
    images = [ImageFile(Path(f"{n}.png")) for n in range(3)]
    hashes = [hashlib.sha256(bytes([n])).hexdigest() for n in range(3)]
    pictures = {f"{n}.png": ImageInfo(hashes[n], (1, 1)) for n in range(3)}
    shown = tuple(images[part] if isinstance(part, int) else part for part in parts)
    prompt = tuple(Message(role=role, parts=shown) for role in roles)
    asked = [
        {
            "role": role,
            "parts": [{"pixels": hashes[p]} if isinstance(p, int) else p for p in parts],
        }
        for role in roles
    ]
    decoding = {"temperature": 0.7, "do_sample": True, "stop": ["“"]}
    text = json.dumps(["model", asked, decoding, sample], sort_keys=True, ensure_ascii=False)
    try:
        expected = hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:  # half a surrogate pair, which no prompt can hold
        return
    assert answer_ids([prompt], pictures, "model", decoding, sample) == [expected]


def test_a_picture_that_was_replaced_is_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4)).save(path)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        before = store.image_info([ImageFile(path)])
        Image.new("RGB", (4, 5)).save(path)
        assert store.image_info([ImageFile(path)]) != before == {str(path): before[str(path)]}


class Says:
    """A model of one's own; what it does before its first answer may be told."""

    batched = True

    def __init__(self, name: str, first: Callable[[], None] = lambda: None) -> None:
        self.name = self.fingerprint = name
        self.first = first

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        self.first()
        return ["Answer: red"] * len(prompts)


def test_a_picture_that_changes_before_the_next_model_is_asked_as_it_is_then(
    questions: Path, tmp_path: Path
) -> None:
    benchmark = load_visual_rag(questions.parent / "annotations.jsonl", questions)
    contexts = gt_clue(benchmark, draws=1)
    clue = questions / contexts[0].doc_ids[0]
    models = [Says("a", lambda: Image.new("RGB", (3, 4), "red").save(clue)), Says("b")]
    table = ask_models(models, benchmark, contexts, tmp_path, prompts=PROMPTS)
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        (now,) = store.image_info([ImageFile(clue)]).values()
        asked = [str(store.prompt(name)) for name in table["answer_id"]]
    assert [now.pixels in each for each in asked] == (table["model"] == "b").tolist()


def test_what_was_asked_can_be_read_back(questions: Path, tmp_path: Path) -> None:
    benchmark = load_visual_rag(questions.parent / "annotations.jsonl", questions)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        table = run_conversations(
            SlowModel(tmp_path / "calls", 0), benchmark, gt_clue(benchmark), store, SINGLE
        )
        (message,) = store.prompt(table["answer_id"][0])
        assert "number 0?" in message["parts"][0]
        assert message["parts"][1]["image"].endswith("a.jpg")
        with pytest.raises(VragError, match="no answer 'nonsense'"):
            store.prompt("nonsense")


@pytest.mark.parametrize("layout", [1, 2, 3, 4, 99])
def test_a_store_of_another_layout_is_refused_and_left_alone(layout: int, tmp_path: Path) -> None:
    path, good = tmp_path / "a.sqlite", tmp_path / "good.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE about (version INTEGER NOT NULL)")
        db.execute("CREATE TABLE answers (answer_id TEXT PRIMARY KEY, status TEXT NOT NULL)")
        db.execute("INSERT INTO about VALUES (?)", (layout,))
        db.commit()
    AnswerStore(good).close()
    before = path.read_bytes()
    expected = rf"a\.sqlite: .* layout {layout}, expected layout 5; "
    with pytest.raises(VragError, match=expected):
        AnswerStore(path)
    with pytest.raises(VragError, match=expected):
        merge_stores([path], to=tmp_path / "new.sqlite")
    with pytest.raises(VragError, match=expected):
        merge_stores([good], to=path)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path, good]


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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process that kills itself")
def test_a_store_that_was_killed_while_it_was_made_is_made_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    code = f"""
import os, signal
from vrag_kit.generation import AnswerStore, store
make = store.create_tables
def killed(db):
    db.execute("PRAGMA cache_spill = 1")  # half of it reaches the disk
    make(db)
    os.kill(os.getpid(), signal.SIGKILL)
store.create_tables = killed
AnswerStore({str(path)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert path.exists()
    with AnswerStore(path) as store:
        store.write([answer("x")], {"x": []})
    with AnswerStore(path) as store:
        assert list(store.read(["x"])) == ["x"]


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"hello " * 400, lambda data: data[:4096] + os.urandom(len(data) - 4096)],
)
def test_a_damaged_store_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.sqlite"
    with AnswerStore(path) as store:
        store.write([answer(f"{i:064}") for i in range(200)], {f"{i:064}": [] for i in range(200)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        VragError, match=r"a\.sqlite: the answer store cannot be used .* Restore a copy"
    ):
        AnswerStore(path)


def another_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE accounts (name TEXT)")
    return path


def below_a_file(path: Path) -> Path:
    path.write_text("")
    return path / "a.sqlite"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (another_database, r"no answer store \(it holds accounts\)"),
        (lambda path: path.parent, "a folder; expected a file, such as .*answers.sqlite"),
        (below_a_file, "Choose a path with write access"),
        (lambda _: Path("/proc/self/a.sqlite"), "Choose a path with write access"),
    ],
    ids=["another database", "a folder", "below a file", "a read-only place"],
)
def test_what_is_no_place_for_a_store_is_refused(
    place: Callable[[Path], Path], words: str, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match=words):
        AnswerStore(place(tmp_path / "file"))


@pytest.mark.slow
def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from vrag_kit.errors import VragError
from vrag_kit.dry_run import dry_run
from vrag_kit.types import PLACEHOLDER
from vrag_kit.generation import AnswerStore
from vrag_kit.types import Answer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = AnswerStore({str(tmp_path / "a.sqlite")!r})
store.write([Answer(answer_id="first", raw="Answer: red")], {{"first": []}})
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    store.write([Answer(answer_id="second", raw="Answer: " + "red " * 50_000)], {{"second": []}})
except VragError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "the answer store cannot be used" in done.stdout
    assert "answers stored so far are kept" in done.stdout
    with AnswerStore(tmp_path / "a.sqlite") as store:
        assert set(store.read(["first", "second"])) == {"first"}


def damaged(path: Path, sql: str) -> None:
    """A store of two answers, then changed by somebody."""
    with AnswerStore(path) as store:
        prompts = {each: [{"role": "user", "parts": [f"What of {each}?"]}] for each in "xy"}
        store.write([answer("x"), answer("y")], prompts)
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE answers SET raw = NULL WHERE answer_id = 'x'", "answer 'x' .*'ok'.* is damaged"),
        ("UPDATE answers SET status = 'fine' WHERE answer_id = 'x'", "answer 'x' .*'fine'"),
        ("UPDATE answers SET sent = '{' WHERE answer_id = 'x'", "answer 'x' .* is damaged"),
        ("UPDATE answers SET fields = NULL WHERE answer_id = 'x'", "answer 'x' .* is damaged"),
        ("DELETE FROM about", "layout 0, expected layout 5"),
        ("UPDATE about SET version = 'x'", "layout 'x', expected layout 5"),
    ],
)
def test_a_row_that_is_no_answer_is_named_at_opening_and_counts_for_nothing(
    sql: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "answers.sqlite"
    damaged(path, sql)
    with pytest.raises(VragError, match=rf"answers\.sqlite: .*{words}"):
        AnswerStore(path)


@pytest.mark.parametrize("part", ["prompt = '[]'", "prompt_id = 'nowhere'"])
def test_another_prompt_than_was_asked_is_never_shown_or_merged(part: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    damaged(path, f"UPDATE prompts SET {part} WHERE prompt LIKE '%What of x?%'")
    with AnswerStore(path) as store:
        assert store.prompt("y") == [{"role": "user", "parts": ["What of y?"]}]
        with pytest.raises(VragError, match=r"answers\.sqlite: no answer 'x'"):
            store.prompt("x")
    if part.startswith("prompt ="):
        with pytest.raises(VragError, match=r"answers\.sqlite: .*prompt .* is not the one"):
            merge_stores([path], to=tmp_path / "merged.sqlite")


def test_a_store_that_was_replaced_while_it_was_open_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    damaged(tmp_path / "other.sqlite", "DELETE FROM claims")
    with AnswerStore(path) as store:
        os.replace(tmp_path / "other.sqlite", path)
        with pytest.raises(VragError, match=r"replaced or deleted while it was open; run again"):
            store.write([answer("z")], {"z": []})
