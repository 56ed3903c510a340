"""Endpoints that fail, one or several: what is recorded of it, and nothing is asked twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from endpoints import connect, question
from strange_server import StrangeServer, text_in

from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts
from vrag_kit.workspace import Workspace

PROMPTS = [question(f"number {n}?") for n in range(40)]
pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "status", "calls"),
    [
        ("status 429 slow down, good", "ok", 2),
        ("status 503, status 502, good", "ok", 3),
        ("status 500 oh no", "error: HTTP 500: oh no", 3),
        ("hang 0.8", "timeout: no whole answer within 0.5 s", 3),
        ("drip, good", "ok", 2),
        ("reset, good", "ok", 2),
        ("choiceless", "error: the endpoint's reply cannot be read (it sent ", 1),
        ("page", "error: the endpoint's reply cannot be read (it sent ", 1),
        ("number", "error: the endpoint's reply cannot be read", 1),
        ("truncated", "truncated: cut off at 16 tokens", 1),
        ("empty", "empty: ", 1),
        ("filtered", "refused: content filter", 1),
        ("refusal", "refused: I cannot help with that.", 1),
        ("status 400 against our content policy", "refused: against our content policy", 1),
        ("status 400 maximum context length is 8192", "too long: maximum context", 1),
        ("parts", "ok", 1),
        ("surrogate", "ok", 1),
    ],
)
def test_each_failure_is_kept_for_what_it_is_and_only_what_is_missing_is_asked_again(
    plan: str, status: str, calls: int, server: StrangeServer, store: AnswerStore
) -> None:
    prompts = [question("first?"), question("strange?"), question("last?")]
    server.plans = {"strange?": plan.split(", ")}

    def asked() -> list[int]:
        return [server.calls(piece) for piece in ("first?", "strange?", "last?")]

    first, strange, last = answers = ask_prompts(connect(server, timeout=0.5), prompts, store)
    assert [first.status, last.status] == ["ok", "ok"]
    assert str(strange.failure or "ok").startswith(status)
    assert (strange.raw is not None) == (strange.status in ("ok", "truncated"))
    assert asked() == [1, calls, 1]
    assert ask_prompts(connect(server), prompts, store) == answers
    assert asked() == [1, calls, 1]
    server.plans, again = {}, Workspace(retry_failures=True)
    retried = ask_prompts(connect(server), prompts, store, at=again)
    assert [answer.status for answer in retried] == ["ok", "ok", "ok"]
    assert asked() == [1, calls + (status != "ok"), 1]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("status 401 bad key", "not accepted.*'bad key'"),
        ("status 403 not for you", "not accepted.*not for you"),
        ("status 404 no such model", "URL.*no such model"),
        ("status 400 temperature is unsupported", "temperature is unsupported.*`decoding`"),
        ("detail", "Server is pinned to 'other'"),
        ("page", "OpenAI-compatible.*/v1"),
        ("status 501 not me", "HTTP 501"),
    ],
)
def test_what_would_fail_every_question_is_said_after_one_short_call(
    plan: str, words: str, server: StrangeServer, store: AnswerStore
) -> None:
    server.plans = {"Reply with the word": [plan], "what?": [plan]}
    with pytest.raises(VragError, match=words):
        ask_prompts(connect(server, retries=0), [question("what?")] * 2, store)
    assert len(server.requests) == 1
    assert store.table().empty


def test_a_missing_server_or_another_model_is_refused(
    server: StrangeServer, store: AnswerStore
) -> None:
    with StrangeServer() as other:
        other.serves = "another"
        with pytest.raises(VragError, match=r"another and strange-2026.*`name`"):
            ask_prompts(connect(server, other), PROMPTS, store)
    for urls in ([other.url], [server.url, other.url]):  # nobody listens there any more
        with pytest.raises(VragError, match=rf"Connection error.*{other.url}"):
            ask_prompts(connect(*urls, retries=0), PROMPTS, store)


def test_a_revoked_key_stops_and_loses_nothing(server: StrangeServer, store: AnswerStore) -> None:
    server.plans, server.seconds = {"number 9?": ["status 401 revoked", "good"]}, 0.02
    with pytest.raises(VragError, match="revoked"):
        ask_prompts(connect(server), PROMPTS[:20], store, at=Workspace(batch_size=32))
    assert len({text_in(request) for request in server.requests}) < 20
    answers = ask_prompts(connect(server), PROMPTS[:20], store)
    assert {answer.status for answer in answers} == {"ok"}
    calls = [server.calls(f"number {n}?") for n in range(20)]
    assert calls == [2 if n == 9 else 1 for n in range(20)]


def test_an_endpoint_that_is_gone_stops_the_run(store: AnswerStore) -> None:
    with StrangeServer({"number": ["hollow"]}) as a, StrangeServer({"number": ["hollow"]}) as b:
        words = f"1\\d calls in a row .*the endpoint's reply.*When {a.url}, {b.url}"
        with pytest.raises(VragError, match=words):
            ask_prompts(connect(a, b, retries=0), PROMPTS, store)
        assert len(a.requests) + len(b.requests) < 40


def test_what_single_prompts_are_refused_for_does_not_stop_the_run(store: AnswerStore) -> None:
    prompts = [question("good?"), *(question(f"odd {n}?") for n in range(19))]
    plans = {"odd": ["status 400 At most 1 image(s), max_tokens aside"]}
    with StrangeServer(plans) as a, StrangeServer(plans) as b:
        answers = ask_prompts(connect(a, b, concurrency=1), prompts, store)
        assert [answer.status for answer in answers] == ["ok"] + ["error"] * 19
        assert a.calls("odd 7?") + b.calls("odd 7?") == 1  # no fault of a server


def test_calls_run_at_once_up_to_the_limit(server: StrangeServer, store: AnswerStore) -> None:
    server.seconds = 0.3
    ask_prompts(connect(server, concurrency=5), PROMPTS[:20], store)
    assert server.most_at_once == 5


def test_servers_share_the_work_and_answer_as_one(store: AnswerStore, tmp_path: Path) -> None:
    with StrangeServer(seconds=0.01) as a, StrangeServer(seconds=0.06) as b:
        alone = ask_prompts(connect(a), PROMPTS, store)
        before = len(a.requests)
        with AnswerStore(tmp_path / "two.sqlite") as other:
            answers = ask_prompts(connect(a, b), PROMPTS, other)
        fast, slow = len(a.requests) - before - 1, len(b.requests) - 1  # without the first call
        # known by the same keys, so that a store asks nothing again
        assert ask_prompts(connect(a, b), PROMPTS, store) == alone
    assert fast + slow == len(PROMPTS)
    assert 0 < slow < fast / 1.5
    assert [(x.raw, x.answer_id) for x in answers] == [(x.raw, x.answer_id) for x in alone]
    assert {each.fields["endpoint"] for each in answers} == {a.url, b.url}


@pytest.mark.parametrize("plan", ["hang 1", "status 500 oh no", "choiceless"])
def test_where_one_fails_the_others_go_on_and_it_joins_when_it_is_back(
    plan: str, store: AnswerStore, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrangeServer({"number": [plan]}) as bad, StrangeServer(seconds=0.02) as good:
        model = connect(bad, good, retries=1, timeout=0.3)
        answers = ask_prompts(model, PROMPTS[:20], store)
        assert {(each.fields["endpoint"], each.failure) for each in answers} == {(good.url, None)}
        assert f"{bad.url} fails" in capsys.readouterr().out
        bad.plans = {}
        time.sleep(0.5)  # longer than it rests
        back = ask_prompts(model, PROMPTS[20:], store)
        assert {each.fields["endpoint"] for each in back} == {bad.url, good.url}
