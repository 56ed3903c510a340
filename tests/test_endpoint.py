"""Models behind an endpoint: what is sent, what is recorded of every way in which
servers fail, and that nothing is asked or paid twice.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants as hub_constants
from PIL import Image
from strange_server import StrangeServer, good_words, images_in, text_in
from worded import worded

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    Hardware,
    Task,
    ask_prompts,
    load_generator,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.remote.cost import image_tokens
from vrag_kit.generation.remote.generator import EndpointGenerator, data_url
from vrag_kit.generation.remote.providers import ENDPOINTS
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Failure, Message, Prompt, Status

SINGLE = ConversationConfig(prompts=PROMPTS)


OPENAI = {
    "top_p": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "seed": 3,
    "max_completion_tokens": 64,
}


def connect(strange: StrangeServer, **options: Any) -> EndpointGenerator:
    entry = {
        "model": f"strange@{strange.url}",
        "timeout": 1.5,
        "retries": 2,
        "concurrency": 4,
        **options,
    }
    return load_generator(entry, decoding={"temperature": 0, "max_new_tokens": 16})


def question(words: str) -> Prompt:
    return worded("no_image", words)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        yield store


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits between retries as the server says, else a twentieth of a second
    instead of half a second and more.
    """
    import openai._base_client as client

    monkeypatch.setattr(client, "INITIAL_RETRY_DELAY", 0.05)
    monkeypatch.setattr(client, "MAX_RETRY_DELAY", 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "status", "calls"),
    [
        (["status 429", "good"], "ok", 2),
        (["status 429 slow down"], "rate limited: HTTP 429: slow down", 3),
        (["status 500", "good"], "ok", 2),
        (["status 500 oh no"], "error: HTTP 500: oh no", 3),
        (["status 503", "status 502", "good"], "ok", 3),
        (["hang 1.8"], "timeout: no whole answer within 1.5 s", 3),
        (["hang 1.8", "good"], "ok", 2),
        (["reset"], "error: Connection error.", 3),
        (["reset", "good"], "ok", 2),
        (["drip"], "timeout: no whole answer within 1.5 s", 3),
        (["choiceless"], "error: the endpoint's reply cannot be read (it sent ", 1),
        (["truncated"], "truncated: cut off at 16 tokens", 1),
        (["empty"], "empty: the model ended without a word", 1),
        (["filtered"], "refused: content filter", 1),
        (["refusal"], "refused: I cannot help with that.", 1),
        (["status 400 against our content policy"], "refused: against our content policy", 1),
        (
            ["status 400 maximum context length is 8192"],
            "too long: maximum context length is 8192",
            1,
        ),
        (["status 413 too large"], "error: HTTP 413: too large", 1),
        (["garbage"], "error: the endpoint's reply cannot be read", 1),
        (["page"], "error: the endpoint's reply cannot be read (it sent ", 1),
        (["hollow"], "error: the endpoint's reply cannot be read (it sent '{}')", 1),
        (["messageless"], "error: the endpoint's reply cannot be read", 1),
        (["oddly chosen"], "error: the endpoint's reply cannot be read", 1),
        (["unmetered"], "ok", 1),
        (["parts"], "ok", 1),
        (["number"], "error: the endpoint's reply cannot be read", 1),
        (["surrogate"], "ok", 1),
    ],
    ids=lambda value: "-".join(value).replace(" ", "_") if isinstance(value, list) else "",
)
def test_each_failure_is_kept_for_what_it_is_and_only_what_is_missing_is_asked_again(
    plan: list[str], status: str, calls: int, store: AnswerStore
) -> None:
    prompts = [question("first?"), question("strange?"), question("last?")]
    with StrangeServer({"strange?": plan}) as server:
        answers = ask_prompts(connect(server), prompts, store)
        assert [answers[0].status, answers[2].status] == ["ok", "ok"]
        assert str(answers[1].failure or "ok").startswith(status)
        assert (answers[1].raw is not None) == (answers[1].status in ("ok", "truncated"))
        assert [server.calls(piece) for piece in ("first?", "strange?", "last?")] == [1, calls, 1]
        assert ask_prompts(connect(server), prompts, store) == answers
        assert [server.calls(piece) for piece in ("first?", "strange?", "last?")] == [1, calls, 1]
        server.plans = {}
        again = ask_prompts(connect(server), prompts, store, hardware=Hardware(retry_failures=True))
        assert [answer.status for answer in again] == ["ok", "ok", "ok"]
        assert [server.calls(piece) for piece in ("first?", "strange?", "last?")] == [
            1,
            calls + (status != "ok"),
            1,
        ]


def test_a_server_that_asks_for_a_pause_gets_it(store: AnswerStore) -> None:
    with StrangeServer({"strange?": ["status 429", "good"]}) as server:
        began = time.monotonic()
        ask_prompts(connect(server), [question("strange?")], store)
        assert time.monotonic() - began >= 1.0  # its Retry-After


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("status 401 bad key", ["key", "not accepted", "'bad key'"]),
        ("status 403 not for you", ["not accepted", "not for you"]),
        ("status 404 no such model", ["'strange'", "URL", "no such model"]),
        ("status 400 temperature is unsupported", ["temperature is unsupported", "`decoding`"]),
        ("status 422 top_k", ["call is refused"]),
        ("detail", ["Server is pinned to 'other'"]),
        ("page", ["OpenAI-compatible", "/v1"]),
        ("status 500 down", ["HTTP 500: down"]),
    ],
)
def test_what_would_fail_every_question_is_said_after_one_short_call(
    plan: str, words: list[str], store: AnswerStore
) -> None:
    with StrangeServer({"Reply with the word": [plan]}) as server:
        with pytest.raises(VragError) as caught:
            ask_prompts(connect(server, retries=0), [question("first?"), question("last?")], store)
        assert all(word in str(caught.value) for word in words), caught.value
        assert len(server.requests) == 1
        assert "0 answers, 0 failures" in repr(store)


def test_a_server_that_is_not_there_is_named(store: AnswerStore) -> None:
    with StrangeServer() as server:
        pass
    with pytest.raises(
        VragError, match=r"Connection error. \(Connect.* at http.* Is the server running"
    ):
        ask_prompts(connect(server, retries=0), [question("first?")], store)


def test_a_server_of_another_kind_on_that_port_is_asked_about_as_well(tmp_path: Path) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)  # 501 to what is posted
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        model = load_generator({"model": f"m@{url}", "retries": 0}, decoding={"temperature": 0})
        with pytest.raises(VragError, match=r"HTTP 501.* at http.*/v1\. .*is that its address\?"):
            model.prepare()
        server.shutdown()


@pytest.mark.slow
def test_a_key_that_is_revoked_under_way_stops_the_run_and_loses_nothing(
    store: AnswerStore,
) -> None:
    prompts = [question(f"number {n}?") for n in range(40)]
    with StrangeServer({"number 20?": ["status 401 revoked", "good"]}, seconds=0.02) as server:
        with pytest.raises(VragError, match=r"revoked.* Answers so far are kept"):
            ask_prompts(connect(server), prompts, store)
        asked = {text_in(request) for request in server.requests}
        assert 20 < len(asked) < 40
        assert [answer.status for answer in ask_prompts(connect(server), prompts, store)] == [
            "ok"
        ] * 40
        assert [server.calls(f"number {n}?") for n in range(40)] == [
            2 if n == 20 else 1 for n in range(40)
        ]


@pytest.mark.parametrize(
    ("plan", "words"), [("status 500 gone", "HTTP 500: gone"), ("hollow", "the endpoint's reply")]
)
def test_an_endpoint_that_is_gone_stops_the_run_instead_of_failing_every_question(
    plan: str, words: str, store: AnswerStore
) -> None:
    with StrangeServer({"number": [plan]}) as server:
        with pytest.raises(VragError, match=rf"1\d calls in a row .*error: {words}"):
            ask_prompts(
                connect(server, retries=0), [question(f"number {n}?") for n in range(100)], store
            )
        assert len(server.requests) < 20


def test_answers_are_kept_one_by_one_also_where_one_call_runs_at_a_time(store: AnswerStore) -> None:
    prompts = [question(f"number {n}?") for n in range(12)]
    with StrangeServer({"number 9?": ["status 401 revoked"]}) as server:
        with pytest.raises(VragError, match="revoked"):
            ask_prompts(
                connect(server, concurrency=1), prompts, store, hardware=Hardware(batch_size=32)
            )
        assert "9 answers, 0 failures" in repr(store)


@pytest.mark.slow
def test_what_single_prompts_are_refused_for_does_not_stop_the_run(store: AnswerStore) -> None:
    prompts = [question(f"{'good' if n == 0 else 'odd'} {n}?") for n in range(20)]
    with StrangeServer({"odd": ["status 400 At most 1 image(s), max_tokens aside"]}) as server:
        answers = ask_prompts(connect(server, concurrency=1), prompts, store)
        assert [answer.status for answer in answers] == ["ok"] + ["error"] * 19
        assert all(answer.detail.startswith("HTTP 400") for answer in answers[1:])


@pytest.mark.slow
def test_calls_run_at_once_up_to_the_limit(store: AnswerStore) -> None:
    with StrangeServer(seconds=0.4) as server:
        ask_prompts(
            connect(server, concurrency=5), [question(f"number {n}?") for n in range(20)], store
        )
        assert server.most_at_once == 5


def test_pictures_arrive_in_order_with_the_pixels_that_local_models_get(tmp_path: Path) -> None:
    noise = Image.effect_noise((64, 48), 90).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures = {
        "plain.jpg": {},
        "turned.jpg": {"exif": exif},
        "grey.png": {},
        "clear.png": {},
        "palette.gif": {},
        "plain.png": {},
    }
    for name, options in pictures.items():
        changed = {
            "grey.png": noise.convert("L"),
            "clear.png": noise.convert("RGBA"),
            "palette.gif": noise.convert("P"),
        }.get(name, noise)
        changed.save(tmp_path / name, **options)
    images = [ImageFile(tmp_path / name) for name in pictures]
    with StrangeServer() as server:
        connect(server).generate([worded("several_images", "What?", images)])
        assert [pixel_hash(image) for image in images_in(server.requests[-1])] == [
            pixel_hash(image.open()) for image in images
        ]
        kinds = [part["type"] for part in server.requests[-1]["messages"][0]["content"]]
        assert kinds == ["text"] + ["image_url"] * 6
        connect(server, images_first=True, max_image_side=32).generate(
            [worded("several_images", "What?", images)]
        )
        assert [part["type"] for part in server.requests[-1]["messages"][0]["content"]] == [
            "image_url"
        ] * 6 + ["text"]
        assert {max(image.size) for image in images_in(server.requests[-1])} == {32}
    assert data_url(images[0]).startswith("data:image/jpeg")  # sent as it is
    assert data_url(images[1]).startswith("data:image/png")  # a server might not turn it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "decoding", "expected"),
    [
        ("gpt-4o@openai", {}, {"model": "gpt-4o", "temperature": 1.0, **OPENAI}),
        ("gpt-4o@openai", {"temperature": 0}, {"model": "gpt-4o", "temperature": 0.0, **OPENAI}),
        (
            "o4-mini@openai",
            {},
            {"model": "o4-mini", "max_completion_tokens": 64 + 8192, "reasoning_effort": "medium"},
        ),
        (
            "gemini-2.5-pro@gemini",
            {},
            {
                "model": "gemini-2.5-pro",
                "temperature": 1.0,
                "top_p": 0.95,
                "max_tokens": 64 + 128,
                "extra_body": {"google": {"thinking_config": {"thinking_budget": 128}}},
            },
        ),
        (
            "claude-sonnet-4-20250514@anthropic",
            {},
            {
                "model": "claude-sonnet-4-20250514",
                "temperature": 1.0,
                "max_tokens": 64,
                "thinking": {"type": "disabled"},
            },
        ),
        ("gpt-4o@openai", {"temperature": 0.3}, {"model": "gpt-4o", "temperature": 0.3, **OPENAI}),
    ],
)
def test_every_field_that_an_endpoint_takes_is_sent_and_recorded(
    entry: str,
    decoding: Any,
    expected: dict[str, Any],
    store: AnswerStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with StrangeServer() as server:
        for about in ENDPOINTS.values():
            monkeypatch.setitem(about, "base_url", server.url)
            monkeypatch.setenv(about["key"], "sk-secret")
        generator = load_generator(entry, decoding={**decoding, "max_new_tokens": 64})
        (answer,) = ask_prompts(
            generator, [question("what?")], store, task=Task(sample=3, samples=4)
        )
        sent = {name: value for name, value in server.requests[-1].items() if name != "messages"}
        assert sent == expected
        recorded = {**answer.sent, **answer.sent["body"], "seed": answer.sample}
        assert {name: recorded[name] for name in expected if name != "model"} == {
            name: value for name, value in expected.items() if name != "model"
        }
        assert answer.tokens == {"prompt": 100, "completion": 10}
        assert answer.fields["served"] == "strange-2026"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("served", "told"),
    [
        ("other-model", "2 of 8 verdicts came from 'other-model', not 'strange'"),
        ("strange-mini", "2 of 8 verdicts came from 'strange-mini', not 'strange'"),
        ("strange-2026-08-06", "verdicts came from 'strange-2026' (6), 'strange-2026-08-06' (2)"),
        ("strange-2026", ""),
    ],
)
def test_answers_of_another_model_or_of_two_versions_are_named_whenever_they_are_used(
    served: str, told: str, store: AnswerStore, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = {f"{word}?": [f"as {served}"] for word in ("leaf", "bark")}
    prompts = [question(f"{word}?") for word in ("leaf", "bark", *"abcdef")]
    with StrangeServer(plans) as server:
        for _ in range(2):
            ask_prompts(connect(server), prompts, store, task=Task(what="verdicts"))
            lines = [line for line in capsys.readouterr().out.splitlines() if "came from" in line]
            assert lines == ([f"note: strange: {told}"] if told else [])


@pytest.mark.parametrize(
    ("server_name", "more"),
    [
        ("vllm", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0}),
        ("transformers", {}),
        ("openai", {"presence_penalty": 0.0}),
    ],
)
def test_servers_differ_in_the_fields_that_they_take(
    server_name: str, more: dict[str, float]
) -> None:
    with StrangeServer() as server:
        connect(server, server=server_name).generate([question("what?")])
        sent = {
            name: value
            for name, value in server.requests[-1].items()
            if name not in ("messages", "model")
        }
        assert sent == {
            "temperature": 0.0,
            "top_p": 1.0,
            "frequency_penalty": 0.0,
            "max_tokens": 16,
            "seed": 0,
            **more,
        }


def test_a_served_checkpoint_decodes_as_its_generation_config_says(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "generation_config.json").write_text(
        json.dumps({"do_sample": True, "temperature": 0.6, "top_k": 20, "repetition_penalty": 1.05})
    )
    with StrangeServer() as server:
        served = load_generator(
            {"model": f"{tmp_path / 'm'}@{server.url}", "server": "vllm", "name": "m"},
            decoding={"temperature": None},
        )
        assert (
            served.decoding
            | {
                "temperature": 0.6,
                "top_k": 20,
                "top_p": 1.0,
                "repetition_penalty": 1.05,
            }
            == served.decoding
        )
        with pytest.raises(
            VragError, match=r"defaults are not known here, .*`decoding`.*temperature"
        ):
            load_generator(
                {"model": f"{tmp_path / 'nowhere'}@{server.url}"}, decoding={"temperature": None}
            )


def test_the_hub_is_asked_once_for_a_served_models_defaults_and_never_for_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            looked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as hub, StrangeServer() as server:
        threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True).start()
        template = f"http://127.0.0.1:{hub.server_address[1]}/{{repo_id}}/{{filename}}"
        monkeypatch.setattr(hub_constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(hub_constants, "HF_HUB_CACHE", str(tmp_path))
        entry = {"model": f"somebody/model@{server.url}", "server": "vllm"}
        load_generator(entry, decoding={"temperature": 0})
        load_generator({**entry, "decoding": {"temperature": 0.7}})
        assert looked == []
        for name, asks in (("model", 0), ("somebody/model", 1)):
            with pytest.raises(VragError, match="its defaults are not known here"):
                load_generator({**entry, "model": f"{name}@{server.url}"})
            assert looked == ["/somebody/model/generation_config.json"] * asks
        cached = tmp_path / "models--somebody--model"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs" / "main").write_text("f" * 40)
        (cached / "snapshots" / ("f" * 40)).mkdir(parents=True)
        config = json.dumps({"do_sample": True, "temperature": 0.6})
        (cached / "snapshots" / ("f" * 40) / "generation_config.json").write_text(config)
        assert load_generator(entry).decoding["temperature"] == 0.6
        hub.shutdown()
    assert len(looked) == 1


def test_a_key_is_needed_only_to_ask_and_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with (
        StrangeServer({"strange?": ["status 500 the key sk-secret-1 is odd"]}) as server,
        AnswerStore(tmp_path / "a.sqlite") as store,
    ):
        monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
        with pytest.raises(VragError, match="export OPENAI_API_KEY=…"):
            ask_prompts(load_generator("gpt-4o@openai"), [question("what?")], store)
        assert server.requests == []
        monkeypatch.setenv("OPENAI_API_KEY", "sk-sëcret-1")
        with pytest.raises(VragError, match="contains invalid characters"):
            ask_prompts(load_generator("gpt-4o@openai"), [question("what?")], store)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1\r")
        answers = ask_prompts(
            load_generator({"model": "gpt-4o@openai", "retries": 0}),
            [question("what?"), question("strange?")],
            store,
        )
        assert answers[1].failure == Failure(Status.ERROR, "HTTP 500: the key … is odd")
        monkeypatch.delenv("OPENAI_API_KEY")
        assert (
            ask_prompts(
                load_generator("gpt-4o@openai"), [question("what?"), question("strange?")], store
            )
            == answers
        )
    assert b"sk-secret" not in (tmp_path / "a.sqlite").read_bytes()
    assert "sk-secret" not in capsys.readouterr().out


SECRET = "tk-Lorem1psum2dolor"


def test_headers_come_from_the_environment_and_what_they_hold_is_shown_and_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GATEWAY", raising=False)
    prompts = [question("what?"), question("strange?"), question("odd?")]
    plans = {
        "strange?": ["status 500 you sent <Authorization> and <X-Token>"],
        "odd?": [f"page {'.' * 50}<X-Token>"],  # which is cut within the secret
    }
    headers = {"Authorization": "Bearer $GATEWAY", "X-Token": "$GATEWAY", "X-Org": "my-lab"}
    with StrangeServer(plans) as server, AnswerStore(tmp_path / "a.sqlite") as store:
        server.wants = {"Authorization": f"Bearer {SECRET}", "X-Token": SECRET, "X-Org": "my-lab"}
        asked = partial(connect, server, retries=0, headers=headers)
        with pytest.raises(VragError, match=r"Set it with `export GATEWAY=…`"):
            ask_prompts(asked(), prompts, store)
        assert "GATEWAY" in asked().missing()
        monkeypatch.setenv("GATEWAY", f"{SECRET}-of-another")
        with pytest.raises(VragError, match=r"the key in GATEWAY is not accepted: ") as no:
            ask_prompts(asked(), prompts, store)
        assert SECRET not in str(no.value)
        assert server.requests == []
        monkeypatch.setenv("GATEWAY", f"{SECRET}\r\n")
        answers = ask_prompts(asked(), prompts, store)
        assert [str(each.failure) for each in answers[:2]] == [
            "None",
            "error: HTTP 500: you sent Bearer … and …",
        ]
        monkeypatch.delenv("GATEWAY")
        assert ask_prompts(asked(), prompts, store) == answers  # all that is stored needs no key
        assert ask_prompts(connect(server), prompts, store) == answers  # nor do its keys
    told = capsys.readouterr().out + repr(answers) + repr(asked())
    assert SECRET[:4] not in told
    assert SECRET[:4].encode() not in (tmp_path / "a.sqlite").read_bytes()


def test_a_redirection_takes_headers_to_no_other_host(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY", SECRET)
    with StrangeServer() as other:
        plans = {"Reply with the word": [f"to {other.url}/chat/completions"]}
        with StrangeServer(plans) as server:
            asked = connect(server, headers={"X-Token": "$GATEWAY"})
            with pytest.raises(VragError, match=rf"HTTP 307: .* at {server.url}"):
                ask_prompts(asked, [question("what?")], store)
        assert other.requests == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"body": {"x_token": SECRET}}, "body.x_token: found what looks"),
        (
            {"body": {"metadata": {"apiKey": "abc"}}},
            "body.metadata.apiKey: found what looks",
        ),
        ({"body": {"user": "sk-proj-ABC123456"}}, "body.user: found what looks"),
        (
            {"body": {"user": ["a", "q7Gh2Lk9Zx4Vb1Nm5Rt8Ws3"]}},
            "body.user: found what looks",
        ),
        ({"body": {"extra": "Bearer abcdefgh"}}, "body.extra: found what looks"),
        ({"headers": {"X-Token": SECRET}}, "headers, X-Token: found what looks"),
        (
            {"headers": {"Authorization": "Bearer abcdefgh"}},
            "headers, Authorization: found what looks",
        ),
        ({"headers": {"X-Org": "sk-proj-ABC123456"}}, "headers, X-Org: found what looks"),
        ({"headers": {"X-Org": "sk-proj-ABC123456 $B"}}, "headers, X-Org: found what looks"),
        ({"headers": {"X-Org": "${B}"}}, "headers, X-Org: found what no header can hold"),
        ({"headers": {"X-Org": 12345678}}, "headers: found a dict; expected"),
        ({"headers": {"X-Org": "a\r\nb: c"}}, "headers, X-Org: found what no header can hold"),
        ({"headers": {"X Org": "$B"}}, "headers, X Org: found what no header can hold"),
        ({"headers": SECRET}, "headers: found a str; expected a mapping"),
    ],
)
def test_a_secret_in_an_entry_is_refused_by_its_place_and_not_shown(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(VragError) as refused:
        load_generator({"model": "m@http://localhost:1/v1", **options}, decoding={"temperature": 0})
    told = str(refused.value)
    assert f"model 'm@http://localhost:1/v1', {named}" in told
    assert "{X-Token: $NAME}" in told
    for secret in (SECRET, "ABC123456", "q7Gh2", "abcdefgh", "12345678"):
        assert secret not in told


def test_what_only_sounds_like_a_secret_may_be_in_an_entry() -> None:
    body = {"thinking_tokens": 100, "eos_token": "</s>", "reasoning_effort": "medium"}
    body |= {"extra": {"prefix": "task-2-answer", "draft": "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"}}
    body["guide"] = "Use basic English. Name 123 things"
    entry = {"model": "m@http://localhost:1/v1", "body": body, "headers": {"X-Org": "my-lab-2"}}
    assert load_generator(entry, decoding={"temperature": 0}).sent["body"] == body


@pytest.mark.parametrize(
    "address",
    [
        "http://ann:pw-1@localhost:1/v1",
        "http://ann:pw-1/2@localhost:1/v1",
        "[http://localhost:2/v1, http://ann:pw-1@localhost:1/v1]",
        "http://localhost:1/v1?key=pw-1",
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(address: str) -> None:
    for entry in (f"m@{address}", {"model": f"m @ {address}", "timeout": "long"}):
        with pytest.raises(VragError, match="user name, a password or a query") as refused:
            load_generator(entry, decoding={"temperature": 0})
        assert "pw-1" not in str(refused.value)
        assert "localhost:1/v1" in str(refused.value)
        assert "`headers: {Authorization: Bearer $NAME}`" in str(refused.value)


def test_a_forecast_above_the_cap_stops_before_the_first_call(store: AnswerStore) -> None:
    with StrangeServer() as server:
        dear = connect(server, prices=[1000.0, 50_000.0], max_cost=5)
        forecast = dear.estimate_cost([question("what?")] * 10, {})
        words = len(question("what?")[0].parts[0]) // 4 + 8
        assert forecast.cost == pytest.approx(10 * (words * 1000 + 16 * 50_000) / 1e6)
        with pytest.raises(
            VragError, match=r"about 8.\d\d US dollars.* max_cost is 5\. Nothing was asked"
        ):
            ask_prompts(dear, [question(f"number {n}?") for n in range(10)], store)
        assert server.requests == []


def test_a_run_stops_when_its_answers_have_cost_what_they_may(store: AnswerStore) -> None:
    prompts = [question(f"number {n}?") for n in range(30)]
    with StrangeServer(seconds=0.02) as server:
        priced = {
            "prices": [10_000.0, 0.0],
            "concurrency": 2,
        }  # a call is forecast at less than the one dollar that it turns out to cost
        with pytest.raises(VragError, match=r"have cost \d+.00 US dollars and max_cost is 12"):
            ask_prompts(connect(server, **priced, max_cost=12, name="m"), prompts[:20], store)
        spent = store.total_cost("m")
        assert 12 <= spent <= 14  # the calls under way are paid for, too
        assert (
            spent == len(server.requests) - 1
        )  # and the one that tried the endpoint is not among the answers
        server.plans, free = {}, connect(server, **priced, max_cost=100, name="m")
        answers = ask_prompts(free, prompts[:20], store)
        assert {answer.fields["cost"] for answer in answers} == {1.0}


@pytest.mark.slow
def test_what_was_paid_for_failures_is_not_forgotten_when_they_are_asked_again(
    store: AnswerStore,
) -> None:
    priced = {"prices": [10_000.0, 0.0], "max_cost": 100, "name": "m"}
    with StrangeServer({"strange?": ["truncated"]}) as server:
        for _ in range(3):
            ask_prompts(
                connect(server, **priced),
                [question("strange?")],
                store,
                hardware=Hardware(retry_failures=True),
            )
        assert store.total_cost("m") == 3


def test_the_cap_is_checked_for_all_samples_before_the_first(
    write_annotations: Callable[..., Path], tree: Path, store: AnswerStore
) -> None:
    benchmark = load_visual_rag(write_annotations({}), tree)
    with StrangeServer() as server:
        once = (
            connect(server, prices=[10_000.0, 0.0])
            .estimate_cost([worded("no_image", next(iter(benchmark.queries.values())).text)], {})
            .cost
        )
        with pytest.raises(VragError, match="Nothing was asked"):
            run_conversations(
                connect(server, prices=[10_000.0, 0.0], max_cost=2.5 * once),
                benchmark,
                zero_shot(benchmark),
                store,
                SINGLE,
                samples=3,
            )
        assert server.requests == []


def test_what_an_endpoint_had_in_its_cache_is_recorded_and_has_its_own_price() -> None:
    with StrangeServer({"again": ["cached"]}) as server:
        priced = connect(server, prices=[1000, 2000, 250])
        new, again = priced.generate([question("first?")]), priced.generate([question("again?")])
    assert "cached" not in new[0].tokens
    assert again[0].tokens == {"prompt": 100, "completion": 10, "cached": 80}
    assert priced.cost(new[0].tokens) == pytest.approx((100 * 1000 + 10 * 2000) / 1e6)
    assert priced.cost(again[0].tokens) == pytest.approx((20 * 1000 + 80 * 250 + 10 * 2000) / 1e6)
    assert "at 1000 for a million" in str(priced.estimate_cost([question("again?")], {}))


def test_a_forecast_tells_what_nested_prompts_cost_at_the_least(tmp_path: Path) -> None:
    """Of 1-in-1, 1-in-2 and 1-in-3 the second shares one picture, the third two; each
    begins with words of four tokens, and has a question of its own behind.
    """
    pictures = [ImageFile(tmp_path / f"{number}.png") for number in range(3)]
    sizes = {each.where: (512, 512) for each in pictures}  # 85 + 170 tokens each, says OpenAI
    prompts = [
        (Message(role="user", parts=("Look at these: ....", *pictures[:k], f"What of {k}?")),)
        for k in (3, 1, 2)
    ]
    entry = {"model": "gpt-4o@openai", "prices": [1000, 0, 100]}
    forecast = load_generator(entry).estimate_cost(prompts, sizes)
    shared = 2 * 4 + 3 * 255
    assert forecast.cost == pytest.approx(forecast.tokens * 1000 / 1e6)
    least = forecast.cost - shared * 900 / 1e6
    assert f"{least:.2f} if the provider caches what prompts share" in str(forecast)
    alone = load_generator(entry).estimate_cost(prompts[:1], sizes)
    assert "caches" not in str(alone)


def test_a_forecast_tells_hours_by_the_calls_at_once_and_tokens_of_answers() -> None:
    model = load_generator({"model": "gpt-4o@openai", "concurrency": 4})
    forecast = model.estimate_cost([question("what?")] * 7_200, {})
    assert forecast.hours == 7_200 * 5 / 4 / 3_600
    assert "about 2 h 30 min if a call takes 5 seconds, 4 at once" in str(forecast)
    assert forecast.answer_tokens == 7_200 * 64
    assert "and 460,800 of answers" in str(forecast)
    thinking = load_generator("o4-mini@openai").estimate_cost([question("what?")], {})
    assert thinking.answer_tokens == 64 + 500


def test_a_cap_needs_an_endpoint_that_counts(store: AnswerStore) -> None:
    with StrangeServer({"Reply with the word": ["unmetered"]}) as server:
        with pytest.raises(VragError, match=r"does not count tokens, .*`max_cost: null`"):
            ask_prompts(connect(server, prices=[1, 1]), [question("what?")], store)
        assert (
            ask_prompts(connect(server, prices=[1, 1], max_cost=None), [question("what?")], store)[
                0
            ].status
            == "ok"
        )


def test_only_models_that_are_known_have_prices_and_a_cap() -> None:
    known, strange = (
        load_generator(f"{name}@openai") for name in ("gpt-4o-2024-11-20", "gpt-4o-realtime")
    )
    assert (known.max_cost, strange.max_cost) == (25.0, None)
    assert "no price is known for this model" in str(strange.estimate_cost([question("what?")], {}))


def test_an_entrys_body_adds_to_what_the_endpoint_needs(tmp_path: Path) -> None:
    more = load_generator({"model": "gemini-2.5-pro@gemini", "body": {"safety": "off"}})
    assert more.sent["body"] == {
        "safety": "off",
        "extra_body": {"google": {"thinking_config": {"thinking_budget": 128}}},
    }


def test_the_same_endpoint_written_otherwise_is_the_same_endpoint() -> None:
    plain, slash = (
        load_generator(f"m@http://localhost:1/v1{end}", decoding={"temperature": value})
        for end, value in (("", 1), ("/", 1.0))
    )
    assert (plain.fingerprint, json.dumps(plain.decoding)) == (
        slash.fingerprint,
        json.dumps(slash.decoding),
    )


def test_pictures_are_counted_by_the_rules_that_providers_publish() -> None:
    assert image_tokens("tiles of 512", (1024, 1024)) == 765  # the example in OpenAI's guide
    assert image_tokens("tiles of 512", (2048, 4096)) == 1105  # likewise
    assert image_tokens("tiles of 768", (384, 384)) == 258
    assert image_tokens("tiles of 768", (960, 540)) == 6 * 258  # the example in Google's guide
    assert image_tokens("pixels / 750", (1000, 1000)) == pytest.approx(1334, abs=1)
    assert image_tokens("pixels / 750", (4000, 3000)) <= 1601  # larger ones are made smaller first


def test_samples_are_seeded_apart(store: AnswerStore) -> None:
    with StrangeServer() as server:
        first, second, again = (
            ask_prompts(
                connect(server), [question("what?")], store, task=Task(sample=sample, samples=9)
            )[0]
            for sample in (0, 1, 0)
        )
        assert [request["seed"] for request in server.requests[1:]] != []
        assert first == again != second
        assert first.raw == good_words({"messages": server.requests[1]["messages"], "seed": 0})


def test_a_history_keeps_its_roles(tmp_path: Path) -> None:
    with StrangeServer() as server:
        connect(server).generate(
            [
                (
                    Message(role="system", parts=("Be brief.",)),
                    Message(role="user", parts=("What?",)),
                    Message(role="assistant", parts=("Red.",)),
                    Message(role="user", parts=("And?",)),
                )
            ]
        )
        said = [
            (message["role"], message["content"]) for message in server.requests[-1]["messages"]
        ]
        assert said == [
            ("system", "Be brief."),
            ("user", "What?"),
            ("assistant", "Red."),
            ("user", "And?"),
        ]


def asked_of(server: StrangeServer, **options: Any) -> EndpointGenerator:
    entry = {"model": f"org/strange@{server.url}", "body": {"top_k": 5}, "max_image_side": 64}
    return load_generator({**entry, **options}, decoding={"temperature": 0, "max_new_tokens": 16})


def test_another_port_asks_nothing_again(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), (200, 90, 30)).save(tmp_path / "orange.png")
    picture = ImageFile(tmp_path / "orange.png")
    prompts = [
        question("What is it?"),
        (Message(role="user", parts=("What color is this?", picture)),),
        question("strange?"),
    ]
    with AnswerStore(tmp_path / "a.sqlite") as store:
        with StrangeServer() as first:
            answers = ask_prompts(asked_of(first), prompts, store)
        with StrangeServer() as second:
            assert second.url != first.url
            assert ask_prompts(asked_of(second), prompts, store) == answers
            assert second.requests == []


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"body": {"top_k": 6}}, {"max_image_side": 32}]
)
def test_what_determines_the_answer_and_a_given_name_are_part_of_the_key(
    change: dict[str, object], store: AnswerStore
) -> None:
    with StrangeServer() as server:
        (one,) = ask_prompts(asked_of(server), [question("What is it?")], store)
        (other,) = ask_prompts(asked_of(server, **change), [question("What is it?")], store)
        assert len(server.requests) == 4  # each model's first call, and the question
        assert one.answer_id != other.answer_id


def test_a_provider_and_a_proxy_are_two_models() -> None:
    provider, proxy, node = [
        load_generator(f"gpt-4o@{place}", decoding={"temperature": 0, "max_new_tokens": 16})
        for place in ("openai", "http://localhost:1/v1", "http://localhost:2/v1")
    ]
    assert provider.fingerprint != proxy.fingerprint == node.fingerprint
