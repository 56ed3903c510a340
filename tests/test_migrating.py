"""What was paid for is not asked again: the endpoint's address is no part of a key, and
old stores are brought under the new keys.

`tests/data/answers_v2.sqlite` was written by the kit before version 3 of the store: a
`StrangeServer` at another port was asked the prompts below as "org/strange" with
{"body": {"top_k": 5}, "max_image_side": 64}, greedily, 16 tokens; the last was refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from strange_server import StrangeServer
from typer.testing import CliRunner

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.generation.keys import StoredPrompt, answer_key
from vrag_kit.generation.migrating import migrate_answers
from vrag_kit.generation.remote.endpoint import EndpointGenerator
from vrag_kit.runner.cli import app
from vrag_kit.types import Answer, Message, Prompt

OLD = Path(__file__).parent / "data" / "answers_v2.sqlite"


@pytest.fixture
def prompts(tmp_path: Path) -> list[Prompt]:
    Image.new("RGB", (4, 4), (200, 90, 30)).save(tmp_path / "orange.png")
    orange = ImageFile(tmp_path / "orange.png")
    return [
        (Message(role="user", parts=("What is it?",)),),
        (Message(role="user", parts=("What color is this?", orange)),),
        (
            Message(role="system", parts=("Be brief.",)),
            Message(role="user", parts=("strange?",)),
        ),
    ]


def entry(server: StrangeServer, **options: object) -> dict[str, Any]:
    asked = {"model": f"org/strange@{server.url}", "body": {"top_k": 5}, "max_image_side": 64}
    return {**asked, **options}


def ask(which: dict[str, Any], prompts: list[Prompt], path: Path) -> list[Answer]:
    model = load_generator(which, decoding="greedy", max_new_tokens=16)
    with AnswerStore(path) as store:
        return ask_prompts(model, prompts, store)


def test_another_port_asks_nothing_again(prompts: list[Prompt], tmp_path: Path) -> None:
    with StrangeServer() as first:
        answers = ask(entry(first), prompts, tmp_path / "a.sqlite")
    with StrangeServer() as second:
        assert second.url != first.url
        assert ask(entry(second), prompts, tmp_path / "a.sqlite") == answers
        assert second.requests == []


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"body": {"top_k": 6}}, {"max_image_side": 32}]
)
def test_what_determines_the_answer_and_a_given_name_are_part_of_the_key(
    change: dict[str, object], prompts: list[Prompt], tmp_path: Path
) -> None:
    with StrangeServer() as server:
        first = ask(entry(server), prompts[:1], tmp_path / "a.sqlite")
        other = ask(entry(server, **change), prompts[:1], tmp_path / "a.sqlite")
        assert server.calls("What is it?") == 2
        assert first[0].answer_id != other[0].answer_id


def test_a_provider_and_a_proxy_are_two_models() -> None:
    provider, proxy, node = [
        load_generator(f"gpt-4o@{place}", decoding="greedy", max_new_tokens=16)
        for place in ("openai", "http://localhost:1/v1", "http://localhost:2/v1")
    ]
    assert provider.fingerprint != proxy.fingerprint == node.fingerprint


def test_a_providers_answers_get_its_name_into_their_keys(tmp_path: Path) -> None:
    model = load_generator("gpt-4o@openai", decoding="greedy", max_new_tokens=16)
    assert isinstance(model, EndpointGenerator)
    prompt: StoredPrompt = [{"role": "user", "parts": ["What is it?"]}]
    sent = {"model": model.name, **model.sent, **model.decoding}
    del sent["endpoint_name"]  # as it was stored before the name was part of the key
    shaping = {
        "name": model.name,
        "model_id": "gpt-4o",
        "body": model.sent["body"],
        "max_image_side": None,
        "images_first": False,
    }
    nameless = hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()
    old = answer_key(nameless, prompt, model.decoding, 0)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        store.write([Answer(answer_id=old, sample=0, raw="a fox", sent=sent)], {old: prompt})
    assert migrate_answers(tmp_path / "a.sqlite").moved == 1
    with AnswerStore(tmp_path / "a.sqlite") as store:
        today = answer_key(model.fingerprint, prompt, model.decoding, 0)
        assert store.read([today])[today].raw == "a fox"
    assert migrate_answers(tmp_path / "a.sqlite").new == 1


def test_an_old_store_is_brought_under_the_new_keys_and_asks_nothing_again(
    prompts: list[Prompt], tmp_path: Path
) -> None:
    found = migrate_answers(OLD, to=tmp_path / "new.sqlite")
    assert (found.new, found.doubled, found.unknown) == (3, 0, ())
    with StrangeServer() as server:
        answers = ask(entry(server), prompts, tmp_path / "new.sqlite")
        assert server.requests == []
    assert [answer.status for answer in answers] == ["ok", "ok", "refused"]
    assert answers[2].detail == "against our content policy"
    again = migrate_answers(tmp_path / "new.sqlite")
    assert (again.moved, again.new) == (0, 3)


def test_opening_an_old_store_is_enough_to_find_its_answers(
    prompts: list[Prompt], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(OLD, tmp_path / "a.sqlite")
    with StrangeServer() as server:
        ask(entry(server), prompts, tmp_path / "a.sqlite")
        assert server.requests == []
    assert "3 answers of served models now stand under today's keys" in capsys.readouterr().out


SHAPING = ("endpoint", "model_id", "body", "max_image_side", "images_first")
DECODING = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens")


def test_of_answers_asked_at_two_addresses_one_is_moved_and_the_others_stay_beside(
    prompts: list[Prompt], tmp_path: Path
) -> None:
    old, copy = shutil.copy(OLD, tmp_path / "old.sqlite"), tmp_path / "new.sqlite"
    with sqlite3.connect(old) as db:
        rows = db.execute("SELECT answer_id, prompt, sent FROM answers").fetchall()
        for answer_id, prompt, sent in rows:
            elsewhere = {**json.loads(sent), "endpoint": "http://localhost:1/v1"}
            # what a served model was known by in those days, and the key that follows
            shaping = json.dumps({name: elsewhere[name] for name in SHAPING}, sort_keys=True)
            known_by = hashlib.sha256(shaping.encode()).hexdigest()
            decoding = {name: elsewhere[name] for name in DECODING}
            second = answer_key(known_by, json.loads(prompt), decoding, 0)
            db.execute(
                "INSERT INTO answers SELECT ?, 'ok', 'Answer: elsewhere', fields, model, sample,"
                " prompt, ?, tokens, owner, lease_until FROM answers WHERE answer_id = ?",
                (second, json.dumps(elsewhere), answer_id),
            )
    done = CliRunner().invoke(app, ["answers", "migrate", str(old), "--to", str(copy)])
    assert "3 had been asked at a second address, and stay beside" in done.output
    with sqlite3.connect(copy) as db:
        assert db.execute("SELECT COUNT(*) FROM answers").fetchone() == (6,)
    with StrangeServer() as server:
        answers = ask(entry(server), prompts, copy)
        assert server.requests == []
    assert [answer.status for answer in answers] == ["ok"] * 3  # refused at the first address
    assert answers[2].raw == "Answer: elsewhere"


def test_a_model_with_a_new_name_is_found_by_its_entry(
    prompts: list[Prompt], tmp_path: Path
) -> None:
    with AnswerStore(shutil.copy(OLD, tmp_path / "look.sqlite")):
        pass
    with StrangeServer() as server:
        renamed = entry(server, name="mine", prices=[1, 1])
        old_url = stored_url(tmp_path / "look.sqlite")
        params = {"models": [{**renamed, "model": f"org/strange@{old_url}"}], "decoding": "greedy"}
        (tmp_path / "p.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
        done = CliRunner().invoke(
            app,
            [
                *("answers", "migrate", str(OLD), "--to", str(tmp_path / "new.sqlite")),
                *("--params", str(tmp_path / "p.yaml")),
            ],
            catch_exceptions=False,
        )
        assert "3 answers moved to new keys" in done.output
        assert len(ask(renamed, prompts, tmp_path / "new.sqlite")) == 3
        assert server.requests == []


def stored_url(path: Path) -> str:

    with sqlite3.connect(path) as db:
        (sent,) = db.execute("SELECT sent FROM answers LIMIT 1").fetchone()
    return str(json.loads(sent)["endpoint"])


def test_a_copy_never_replaces_a_file_and_a_store_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "new.sqlite").write_text("")
    with pytest.raises(VragError, match="there is a file already"):
        migrate_answers(OLD, to=tmp_path / "new.sqlite")
    with pytest.raises(VragError, match="there is no answer store"):
        migrate_answers(tmp_path / "none.sqlite")


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_what_is_no_store_is_named_and_leaves_nothing_behind(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    with pytest.raises(VragError, match=r"notes.txt: no.* answer store"):
        migrate_answers(tmp_path / "notes.txt", to=tmp_path / "new.sqlite")
    assert list(tmp_path.iterdir()) == [tmp_path / "notes.txt"]


def test_a_second_migration_with_entries_finds_what_the_first_moved(
    prompts: list[Prompt], tmp_path: Path
) -> None:
    migrate_answers(OLD, to=tmp_path / "new.sqlite")
    url = stored_url(tmp_path / "new.sqlite")
    asked = {"model": f"org/strange@{url}", "body": {"top_k": 5}, "max_image_side": 64}
    again = migrate_answers(tmp_path / "new.sqlite", entries=[{**asked, "name": "mine"}])
    assert (again.moved, again.unknown) == (3, ())
    with StrangeServer() as server:
        assert len(ask(entry(server, name="mine"), prompts, tmp_path / "new.sqlite")) == 3
        assert server.requests == []
