"""Endpoints that fail, one or several: what is recorded of it, and nothing is asked twice."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from endpoints import connect, hurry, question
from strange_server import StrangeServer, text_in

from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, Hardware, Task, ask_prompts

PROMPTS = [question(f"number {n}?") for n in range(40)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@contextmanager
def server_process(seconds: float, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that can be killed, and its address."""
    code = (
        "import time; from strange_server import StrangeServer\n"
        f"with StrangeServer(seconds={seconds}, port={port}) as s:\n"
        "    print(s.url, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT / "tests"
    )
    assert process.stdout is not None
    with closing(process.stdout):
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
            process.wait()


def gone(urls: int) -> list[str]:
    """Addresses at which nobody listens any more."""
    found = []
    for _ in range(urls):
        with StrangeServer() as server:
            found.append(server.url)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "status", "calls"),
    [
        ("status 429, good", "ok", 2),
        ("status 429 slow down", "rate limited: HTTP 429: slow down", 3),
        ("status 503, status 502, good", "ok", 3),
        ("status 500 oh no", "error: HTTP 500: oh no", 3),
        ("hang 1.8", "timeout: no whole answer within 1.5 s", 3),
        ("drip, good", "ok", 2),
        ("reset", "error: Connection error.", 3),
        ("reset, good", "ok", 2),
        ("choiceless", "error: the endpoint's reply cannot be read (it sent ", 1),
        ("truncated", "truncated: cut off at 16 tokens", 1),
        ("empty", "empty: ", 1),
        ("filtered", "refused: content filter", 1),
        ("refusal", "refused: I cannot help with that.", 1),
        ("status 400 against our content policy", "refused: against our content policy", 1),
        ("status 400 maximum context length is 8192", "too long: maximum context", 1),
        ("status 413 too large", "error: HTTP 413: too large", 1),
        ("garbage", "error: the endpoint's reply cannot be read", 1),
        ("page", "error: the endpoint's reply cannot be read (it sent ", 1),
        ("hollow", "error: the endpoint's reply cannot be read (it sent '{}')", 1),
        ("messageless", "error: the endpoint's reply cannot be read", 1),
        ("oddly chosen", "error: the endpoint's reply cannot be read", 1),
        ("number", "error: the endpoint's reply cannot be read", 1),
        ("unmetered", "ok", 1),
        ("parts", "ok", 1),
        ("surrogate", "ok", 1),
    ],
)
def test_each_failure_is_kept_for_what_it_is_and_only_what_is_missing_is_asked_again(
    plan: str, status: str, calls: int, store: AnswerStore
) -> None:
    prompts = [question("first?"), question("strange?"), question("last?")]
    with StrangeServer({"strange?": plan.split(", ")}) as server:

        def asked() -> list[int]:
            return [server.calls(piece) for piece in ("first?", "strange?", "last?")]

        first, strange, last = answers = ask_prompts(connect(server), prompts, store)
        assert [first.status, last.status] == ["ok", "ok"]
        assert str(strange.failure or "ok").startswith(status)
        assert (strange.raw is not None) == (strange.status in ("ok", "truncated"))
        assert asked() == [1, calls, 1]
        assert ask_prompts(connect(server), prompts, store) == answers
        assert asked() == [1, calls, 1]
        server.plans, again = {}, Hardware(retry_failures=True)
        retried = ask_prompts(connect(server), prompts, store, hardware=again)
        assert [answer.status for answer in retried] == ["ok", "ok", "ok"]
        assert asked() == [1, calls + (status != "ok"), 1]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("status 401 bad key", ["key", "not accepted", "'bad key'"]),
        ("status 403 not for you", ["not accepted", "not for you"]),
        ("status 404 no such model", ["'strange'", "URL", "no such model"]),
        ("status 400 temperature is unsupported", ["temperature is unsupported", "`decoding`"]),
        ("detail", ["Server is pinned to 'other'"]),
        ("page", ["OpenAI-compatible", "/v1"]),
        ("status 500 down", ["HTTP 500: down"]),
        ("status 501 not me", ["HTTP 501", "/v1"]),
    ],
)
@pytest.mark.parametrize("servers", [1, 2])
def test_what_would_fail_every_question_is_said_after_one_short_call(
    plan: str, words: list[str], servers: int, store: AnswerStore
) -> None:
    plans = {"Reply with the word": [plan], "what?": [plan]}
    with StrangeServer(plans) as server, StrangeServer(plans) as other:
        urls = [server.url, other.url][:servers]
        with pytest.raises(VragError) as caught:
            ask_prompts(connect(*urls, retries=0), [question("what?")] * 2, store)
        assert all(word in str(caught.value) for word in words), caught.value
        assert len(server.requests) == 1
    assert "0 answers, 0 failures" in repr(store)


@pytest.mark.parametrize("servers", [1, 2])
def test_a_server_that_is_not_there_is_named(servers: int, store: AnswerStore) -> None:
    urls = gone(servers)
    with pytest.raises(VragError, match=r"Connection error.*" + ".*".join(urls)):
        ask_prompts(connect(*urls, retries=0), [question("first?")], store)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_key_that_is_revoked_under_way_stops_the_run_and_loses_nothing(
    concurrency: int, store: AnswerStore
) -> None:
    prompts = [question(f"number {n}?") for n in range(20)]
    with StrangeServer({"number 9?": ["status 401 revoked", "good"]}, seconds=0.02) as server:
        model, many = connect(server, concurrency=concurrency), Hardware(batch_size=32)
        with pytest.raises(VragError, match="revoked"):
            ask_prompts(model, prompts, store, hardware=many)
        assert len({text_in(request) for request in server.requests}) < 20
        answers = ask_prompts(connect(server), prompts, store)
        assert {answer.status for answer in answers} == {"ok"}
        asked = [server.calls(f"number {n}?") for n in range(20)]
    assert asked == [2 if n == 9 else 1 for n in range(20)]


@pytest.mark.parametrize(
    ("plan", "words"), [("status 500 gone", "HTTP 500: gone"), ("hollow", "the endpoint's reply")]
)
@pytest.mark.parametrize("servers", [1, 2])
def test_an_endpoint_that_is_gone_stops_the_run_instead_of_failing_every_question(
    plan: str, words: str, servers: int, store: AnswerStore
) -> None:
    plans, prompts = {"number": [plan]}, [question(f"number {n}?") for n in range(100)]
    with StrangeServer(plans) as a, StrangeServer(plans) as b:
        urls = [a.url, b.url][:servers]
        with pytest.raises(
            VragError, match=rf"1\d calls in a row .*{words}.*When {', '.join(urls)}"
        ):
            ask_prompts(connect(*urls, retries=0), prompts, store)
        assert len(a.requests) + len(b.requests) < 40


@pytest.mark.slow
def test_what_single_prompts_are_refused_for_does_not_stop_the_run(store: AnswerStore) -> None:
    prompts = [question(f"{'good' if n == 0 else 'odd'} {n}?") for n in range(20)]
    plans = {"odd": ["status 400 At most 1 image(s), max_tokens aside"]}
    with StrangeServer(plans) as a, StrangeServer(plans) as b:
        answers = ask_prompts(connect(a.url, b.url, concurrency=1), prompts, store)
        assert [answer.status for answer in answers] == ["ok"] + ["error"] * 19
        assert a.calls("odd 7?") + b.calls("odd 7?") == 1  # no fault of a server


@pytest.mark.slow
def test_calls_run_at_once_up_to_the_limit_and_pause_as_long_as_the_server_says(
    store: AnswerStore,
) -> None:
    with StrangeServer({"number 3?": ["status 429", "good"]}, seconds=0.2) as server:
        began = time.monotonic()
        prompts = [question(f"number {n}?") for n in range(20)]
        ask_prompts(connect(server, concurrency=5), prompts, store)
        assert time.monotonic() - began >= 1.0  # its Retry-After
        assert server.most_at_once == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("served", "words"),
    [
        ("other-model", "2 of 8 verdicts came from 'other-model', not 'strange'"),
        ("strange-2026-08-06", "verdicts came from 'strange-2026' (6), 'strange-2026-08-06' (2)"),
        ("strange-2026", ""),
    ],
)
def test_answers_of_another_model_or_of_two_versions_are_named_whenever_they_are_used(
    served: str, words: str, store: AnswerStore, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = {f"{word}?": [f"as {served}"] for word in ("leaf", "bark")}
    prompts = [question(f"{word}?") for word in ("leaf", "bark", *"abcdef")]
    with StrangeServer(plans) as server:
        for _ in range(2):
            ask_prompts(connect(server), prompts, store, task=Task(what="verdicts"))
            lines = [line for line in capsys.readouterr().out.splitlines() if "came from" in line]
            assert lines == ([f"note: strange: {words}"] if words else [])


@pytest.mark.slow
def test_servers_share_the_work_by_their_speed_and_answer_as_one(
    store: AnswerStore, tmp_path: Path
) -> None:
    with StrangeServer(seconds=0.01) as a, StrangeServer(seconds=0.06) as b:
        alone = ask_prompts(connect(a), PROMPTS, store)
        before = len(a.requests)
        with AnswerStore(tmp_path / "two.sqlite") as other:
            answers = ask_prompts(connect(a, b), PROMPTS, other)
        shares = [len(a.requests) - before - 1, len(b.requests) - 1]  # without the first call
        # known by the same keys, so that a store asks nothing again
        assert ask_prompts(connect(a, b), PROMPTS, store) == alone
    assert sum(shares) == len(PROMPTS)
    assert 0 < shares[1] < shares[0] / 1.5
    assert [(x.raw, x.answer_id) for x in answers] == [(x.raw, x.answer_id) for x in alone]
    assert {each.fields["endpoint"] for each in answers} == {a.url, b.url}


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True], ids=["under way", "from the first call"])
@pytest.mark.parametrize(
    "plan", ["hang 3", "status 500 oh no", "status 429", "reset", "garbage", "page", "choiceless"]
)
def test_where_one_fails_the_others_go_on_and_it_is_said_once(
    plan: str, first: bool, store: AnswerStore, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = {"number": [plan], **({"Reply with the word": [plan]} if first else {})}
    with StrangeServer(plans) as bad, StrangeServer(seconds=0.02) as good:
        answers = ask_prompts(connect(bad.url, good.url, retries=1), PROMPTS, store)
        assert {each.fields["endpoint"] for each in answers} == {good.url}
    assert {each.failure for each in answers} == {None}
    printed = capsys.readouterr().out
    words = f"{bad.url}.* left out" if first else f"{bad.url} fails"
    assert len(re.findall(words, printed)) == 1
    assert " failed" not in printed


@pytest.mark.slow
def test_one_that_is_killed_in_the_middle_loses_nothing_and_joins_when_it_is_back(
    store: AnswerStore,
) -> None:
    many = [question(f"number {n}?") for n in range(250)]
    with StrangeServer(seconds=0.05) as stays, server_process(0.05) as (dies, url):
        model = connect(stays.url, url, retries=1)
        served = stays.begin

        def begin(body: dict[str, Any]) -> str:
            if len(stays.requests) == 10:
                dies.kill()
                dies.wait()
            return served(body)

        stays.begin = begin  # type: ignore[method-assign]  # the moment at which the other dies
        answers = ask_prompts(model, many[:75], store)
        with server_process(0.05, int(url.split(":")[2].split("/")[0])):
            deadline, came = time.monotonic() + 30, set[str]()
            while url not in came and time.monotonic() < deadline:
                few = ask_prompts(model, many[len(answers) :][:4], store)
                came = {each.fields["endpoint"] for each in few}
                answers += few
                time.sleep(0.1)
            back = ask_prompts(model, many[len(answers) :], store)
    assert {each.failure for each in [*answers, *back]} == {None}
    assert {each.fields["endpoint"] for each in back} == {url, stays.url}


def test_one_that_is_not_there_at_the_beginning_is_done_without(
    store: AnswerStore, capsys: pytest.CaptureFixture[str]
) -> None:
    (url,) = gone(1)
    with StrangeServer() as good:
        answers = ask_prompts(connect(url, good.url, retries=1), PROMPTS, store)
    assert {each.failure for each in answers} == {None}
    assert len(re.findall(f"{url}.* left out", capsys.readouterr().out)) == 1


def test_servers_of_different_models_are_refused_at_the_beginning(store: AnswerStore) -> None:
    with StrangeServer() as a, StrangeServer() as b:
        b.serves = "another"
        with pytest.raises(VragError, match=r"another and strange-2026.*`name`"):
            ask_prompts(connect(a.url, b.url), PROMPTS, store)
