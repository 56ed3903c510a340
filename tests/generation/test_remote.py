"""Models behind endpoints, one or several: what is sent and recorded, what no one must read, what
failures become, and what it costs; nothing is asked twice.
"""

from __future__ import annotations

import json
import time
from typing import Any

import factories
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from strange_server import StrangeServer, connect, good_words, images_in, question, text_in
from worded import worded

from vrag_kit.benchmarks import ImageFile, load_visual_rag
from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    Task,
    ask_models,
    ask_prompts,
    load_generator,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.remote.cost import image_tokens
from vrag_kit.generation.remote.generator import EndpointGenerator, data_url
from vrag_kit.generation.remote.providers import ENDPOINTS
from vrag_kit.judging import RuleJudge, add_rouge, judge_answers
from vrag_kit.papers.visual_rag.answers import detect_abstention
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Failure, Status
from vrag_kit.workspace import Workspace

SECRET = "tk-Lorem1psum2dolor"
LOCAL = "m@http://localhost:1/v1"
pytestmark = pytest.mark.usefixtures("short_pauses")


def test_a_redirection_takes_the_key_to_no_other_host(server, store, monkeypatch):
    monkeypatch.setenv("GATEWAY", SECRET)
    with StrangeServer() as other:
        server.plans = {"Reply with the word": [f"to {other.url}/chat/completions"]}
        with pytest.raises(VragError, match="HTTP 307: "):
            ask_prompts(connect(server, key="GATEWAY"), [question("what?")], store)
        assert other.requests == []


def test_what_only_sounds_like_a_secret_may_be_in_an_entry():
    body = {"thinking_tokens": 100, "eos_token": "</s>", "reasoning_effort": "medium"}
    body |= {"extra": {"prefix": "task-2-answer", "draft": "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"}}
    entry = {"model": LOCAL, "body": {**body, "guide": "Use basic English. Name 123 things"}}
    assert load_generator(entry, decoding={"temperature": 0}).sent["body"] == entry["body"]


@pytest.mark.parametrize(
    ("entry", "named", "secret"),
    [
        ({"body": {"x_token": SECRET}}, "body.x_token: .*`key`", SECRET),
        ({"body": {"user": ["a", "q7Gh2Lk9Zx4Vb1Nm5Rt8Ws3"]}}, "body.user: .*`key`", "q7Gh2"),
        ({"body": {"extra": "Bearer abcdefgh"}}, "body.extra: .*`key`", "abcdefgh"),
        ({"model": "m@http://ann:pw-1@localhost:1/v1"}, "localhost:1/v1.*password", "pw-1"),
        ({"model": "m@[http://b:2/v1, http://localhost:1/v1?key=pw-1]"}, "localhost:1/v1", "pw-1"),
        ({"model": "m@http://localhost:1/v1?key=pw-1", "timeout": "long"}, "a query", "pw-1"),
    ],
)
def test_a_secret_is_refused_and_not_shown(entry, named, secret):
    """More are in `bad_inputs.csv`."""
    with pytest.raises(VragError, match=named) as refused:
        load_generator({"model": LOCAL, **entry}, decoding={"temperature": 0})
    assert secret not in str(refused.value)
    assert "`key`" in str(refused.value)


def test_images_arrive_in_order_with_the_same_pixels(server, tmp_path):
    noise, exif = Image.effect_noise((64, 48), 90).convert("RGB"), Image.Exif()
    exif[0x0112] = 6
    noise.save(tmp_path / "turned.jpg", exif=exif)
    noise.save(tmp_path / "plain.jpg")
    for name, mode in {"grey.png": "L", "clear.png": "RGBA", "palette.gif": "P"}.items():
        noise.convert(mode).save(tmp_path / name)
    images = [ImageFile(path) for path in tmp_path.iterdir()]
    prompt = worded("several_images", "What?", images)

    def sent(**options: Any) -> list[str]:
        """The kinds of a message's parts."""
        connect(server, **options).generate([prompt])
        return [part["type"] for part in server.requests[-1]["messages"][0]["content"]]

    assert sent() == ["text"] + ["image_url"] * 5
    pixels = [pixel_hash(image) for image in images_in(server.requests[-1])]
    assert pixels == [pixel_hash(image.open()) for image in images]
    assert sent(images_first=True, max_image_side=32) == ["image_url"] * 5 + ["text"]
    assert {max(image.size) for image in images_in(server.requests[-1])} == {32}
    assert data_url(ImageFile(tmp_path / "plain.jpg")).startswith("data:image/jpeg")  # as it is


def test_what_is_sent_is_recorded(server, store, monkeypatch):
    """`requests.json` of the goldens holds what every endpoint and server is sent."""
    monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    entry = {"model": "o4-mini@openai", "body": {"safety": "off"}}
    expected = {"max_completion_tokens": 64 + 8192, "reasoning_effort": "medium", "safety": "off"}
    model = load_generator(entry, decoding={"max_new_tokens": 64})
    task = Task(sample=3, samples=4)
    (answer,) = ask_prompts(model, [question("what?")], store, task=task)
    sent = {name: value for name, value in server.requests[-1].items() if name != "messages"}
    assert sent == {"model": "o4-mini", **expected}
    recorded = {**answer.sent, **answer.sent["body"]}
    assert {name: recorded[name] for name in expected} == expected
    assert answer.tokens == {"prompt": 100, "completion": 10}
    assert (answer.sample, answer.fields["served"]) == (3, "strange-2026")


def test_a_served_checkpoint_decodes_as_its_generation_config_says(tmp_path):
    own = {"do_sample": True, "temperature": 0.6, "top_k": 20}
    (tmp_path / "generation_config.json").write_text(json.dumps(own))
    place = f"{tmp_path}@http://localhost:1/v1"
    entry = {"model": place, "server": "vllm", "name": "m"}
    served = load_generator(entry, decoding={"temperature": None})
    assert (served.decoding["temperature"], served.decoding["top_k"]) == (0.6, 20)
    (tmp_path / "generation_config.json").unlink()
    with pytest.raises(VragError, match=r"`decoding`.*temperature"):
        load_generator({"model": place}, decoding={"temperature": None})


def test_a_key_is_needed_only_to_ask_and_is_written_nowhere(server, store, monkeypatch, capsys):
    def ask() -> Any:
        model = load_generator({"model": "gpt-4o@openai", "retries": 0})
        return ask_prompts(model, [question("what?"), question("strange?")], store)

    server.plans = {"strange?": ["status 500 the key sk-secret-1 is odd"]}
    monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(VragError, match="export OPENAI_API_KEY=…"):
        ask()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-sëcret-1")
    with pytest.raises(VragError, match="invalid characters"):
        ask()
    assert server.requests == []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1\r")
    answers = ask()
    assert answers[1].failure == Failure(Status.ERROR, "HTTP 500: the key … is odd")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask() == answers
    assert b"sk-secret" not in store.path.read_bytes()
    assert "sk-secret" not in capsys.readouterr().out


def test_samples_are_seeded_apart(server, store):
    tasks = [Task(sample=n, samples=9) for n in (0, 1, 0)]
    prompts = [question("what?")]
    first, second, again = (
        ask_prompts(connect(server), prompts, store, task=task) for task in tasks
    )
    assert first == again != second
    words = {"messages": server.requests[1]["messages"], "seed": 0}
    assert first[0].raw == good_words(words)


def test_the_key_holds_what_determines_the_answer_and_a_given_name_but_no_port():
    def key(place: str = "http://localhost:1/v1", **options: Any) -> tuple[str, str]:
        entry = {"model": f"gpt-4o@{place}", "decoding": {"temperature": 0}, **options}
        model = load_generator(entry)
        return model.fingerprint, json.dumps(model.decoding)

    assert key() == key("http://localhost:2/v1") == key("[http://a:1/v1, http://b:2/v1/]")
    assert key(decoding={"temperature": 0.0}) == key()
    changes = [{"name": "other"}, {"body": {"top_k": 6}}, {"max_image_side": 32}]
    others = [key(**change) for change in changes]
    assert len({key(), key("openai"), *others}) == 5


ASKED = [question(f"number {n}?") for n in range(40)]


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
    plan, status, calls, server, store
):
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
def test_what_would_fail_every_question_is_said_after_one_short_call(plan, words, server, store):
    server.plans = {"Reply with the word": [plan], "what?": [plan]}
    with pytest.raises(VragError, match=words):
        ask_prompts(connect(server, retries=0), [question("what?")] * 2, store)
    assert len(server.requests) == 1
    assert store.table().empty


def test_a_missing_server_or_model_is_refused(server, store):
    with StrangeServer() as other:
        other.serves = "another"
        with pytest.raises(VragError, match=r"another and strange-2026.*`name`"):
            ask_prompts(connect(server, other), ASKED, store)
    for urls in ([other.url], [server.url, other.url]):  # nobody listens there any more
        with pytest.raises(VragError, match=rf"Connection error.*{other.url}"):
            ask_prompts(connect(*urls, retries=0), ASKED, store)


def test_a_revoked_key_stops_and_loses_nothing(server, store):
    server.plans, server.seconds = {"number 9?": ["status 401 revoked", "good"]}, 0.02
    with pytest.raises(VragError, match="revoked"):
        ask_prompts(connect(server), ASKED[:20], store, at=Workspace(batch_size=32))
    assert len({text_in(request) for request in server.requests}) < 20
    answers = ask_prompts(connect(server), ASKED[:20], store)
    assert {answer.status for answer in answers} == {"ok"}
    calls = [server.calls(f"number {n}?") for n in range(20)]
    assert calls == [2 if n == 9 else 1 for n in range(20)]


def test_an_endpoint_that_is_gone_stops_the_run(store):
    with StrangeServer({"number": ["hollow"]}) as a, StrangeServer({"number": ["hollow"]}) as b:
        words = f"1\\d calls in a row .*the endpoint's reply.*When {a.url}, {b.url}"
        with pytest.raises(VragError, match=words):
            ask_prompts(connect(a, b, retries=0), ASKED, store)
        assert len(a.requests) + len(b.requests) < 40


def test_what_single_prompts_are_refused_for_does_not_stop_the_run(store):
    prompts = [question("good?"), *(question(f"odd {n}?") for n in range(19))]
    plans = {"odd": ["status 400 At most 1 image(s), max_tokens aside"]}
    with StrangeServer(plans) as a, StrangeServer(plans) as b:
        answers = ask_prompts(connect(a, b, concurrency=1), prompts, store)
        assert [answer.status for answer in answers] == ["ok"] + ["error"] * 19
        assert a.calls("odd 7?") + b.calls("odd 7?") == 1  # no fault of a server


def test_calls_run_at_once_up_to_the_limit(server, store):
    server.seconds = 0.3
    ask_prompts(connect(server, concurrency=5), ASKED[:20], store)
    assert server.most_at_once == 5


def test_servers_share_the_work_and_answer_as_one(store, tmp_path):
    with StrangeServer(seconds=0.01) as a, StrangeServer(seconds=0.06) as b:
        alone = ask_prompts(connect(a), ASKED, store)
        before = len(a.requests)
        with AnswerStore(tmp_path / "two.sqlite") as other:
            answers = ask_prompts(connect(a, b), ASKED, other)
        fast, slow = len(a.requests) - before - 1, len(b.requests) - 1  # without the first call
        # known by the same keys, so that a store asks nothing again
        assert ask_prompts(connect(a, b), ASKED, store) == alone
    assert fast + slow == len(ASKED)
    assert 0 < slow < fast / 1.5
    assert [(x.raw, x.answer_id) for x in answers] == [(x.raw, x.answer_id) for x in alone]
    assert {each.fields["endpoint"] for each in answers} == {a.url, b.url}


@pytest.mark.parametrize("plan", ["hang 1", "status 500 oh no", "choiceless"])
def test_where_one_fails_the_others_go_on_and_it_joins_when_it_is_back(plan, store, capsys):
    with StrangeServer({"number": [plan]}) as bad, StrangeServer(seconds=0.02) as good:
        model = connect(bad, good, retries=1, timeout=0.3)
        answers = ask_prompts(model, ASKED[:20], store)
        assert {(each.fields["endpoint"], each.failure) for each in answers} == {(good.url, None)}
        assert f"{bad.url} fails" in capsys.readouterr().out
        bad.plans = {}
        time.sleep(0.5)  # longer than it rests
        back = ask_prompts(model, ASKED[20:], store)
        assert {each.fields["endpoint"] for each in back} == {bad.url, good.url}


def priced(server: StrangeServer, **options: Any) -> EndpointGenerator:
    """A model of one dollar a call, as it turns out."""
    return connect(server, name="m", **{"prices": [10_000.0, 0.0], **options})


def test_a_forecast_above_the_cap_stops_the_run(server, store):
    dear = connect(server, prices=[1000.0, 50_000.0], max_cost=5)
    forecast = dear.estimate_cost([question("what?")] * 10, {})
    words = len(question("what?")[0].parts[0]) // 4 + 8
    assert forecast.cost == pytest.approx(10 * (words * 1000 + 16 * 50_000) / 1e6)
    with pytest.raises(VragError, match=r"about 8.\d\d, and max_cost is 5\. Nothing"):
        ask_prompts(dear, ASKED[:10], store)
    benchmark = factories.benchmark()
    once = dear.estimate_cost([question("What?")], {}).cost
    model = connect(server, prices=[1000.0, 50_000.0], max_cost=2.5 * once)
    how = ConversationConfig(prompts=PROMPTS)
    with pytest.raises(VragError, match="Nothing more was asked"):  # all three samples count
        run_conversations(model, benchmark, zero_shot(benchmark), store, how, samples=3)
    assert server.requests == []


def test_a_run_stops_when_its_cost_is_at_the_cap(server, store):
    server.seconds = 0.02
    with pytest.raises(VragError, match=r"have cost \d+.00 US dollars,.* max_cost is 12"):
        ask_prompts(priced(server, max_cost=12, concurrency=2), ASKED[:20], store)
    spent = store.total_cost("m")
    assert 12 <= spent <= 14  # the calls under way are paid for, too
    assert spent == len(server.requests) - 1  # the call that tried the endpoint is no answer
    answers = ask_prompts(priced(server, max_cost=100), ASKED[:20], store)
    assert {answer.fields["cost"] for answer in answers} == {1.0}


def test_the_cost_of_retried_failures_is_counted(server, store):
    server.plans = {"strange?": ["truncated"]}
    for _ in range(3):
        again = Workspace(retry_failures=True)
        ask_prompts(priced(server, max_cost=100), [question("strange?")], store, at=again)
    assert store.total_cost("m") == 3


def test_a_cap_needs_an_endpoint_that_counts(server, store):
    server.plans = {"Reply with the word": ["unmetered"]}
    with pytest.raises(VragError, match="`max_cost: null`"):
        ask_prompts(priced(server), ASKED[:20], store)
    answers = ask_prompts(priced(server, max_cost=None), ASKED[:20], store)
    assert {answer.status for answer in answers} == {"ok"}


def test_what_an_endpoint_had_in_its_cache_has_its_own_price(server):
    server.plans = {"again": ["cached"]}
    model = priced(server, prices=[1000, 2000, 250])
    new, again = (model.generate([question(words)])[0].tokens for words in ("new", "again"))
    assert "cached" not in new
    assert again == {"prompt": 100, "completion": 10, "cached": 80}
    assert model.cost(new) == pytest.approx((100 * 1000 + 10 * 2000) / 1e6)
    assert model.cost(again) == pytest.approx((20 * 1000 + 80 * 250 + 10 * 2000) / 1e6)


def test_a_forecast_tells_hours_by_the_calls_at_once_and_tokens_of_answers():
    model = load_generator({"model": "gpt-4o@openai", "concurrency": 4})
    forecast = model.estimate_cost([question("what?")] * 7_200, {})
    assert forecast.hours == 7_200 * 5 / 4 / 3_600
    assert "2.50 hours" in str(forecast)
    assert forecast.answer_tokens == 7_200 * 64
    thinking = load_generator("o4-mini@openai").estimate_cost([question("what?")], {})
    assert thinking.answer_tokens == 64 + 500


def test_only_models_that_are_known_have_prices_and_a_cap():
    names = ("gpt-4o-2024-11-20", "gpt-4o-realtime")
    known, strange = (load_generator(f"{name}@openai") for name in names)
    assert (known.max_cost, strange.max_cost) == (25.0, None)
    assert "no price is known for this model" in str(strange.estimate_cost([question("what?")], {}))


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        ("tiles of 512", (1024, 1024), 765),  # the example in OpenAI's guide
        ("tiles of 512", (2048, 4096), 1105),  # likewise
        ("tiles of 768", (384, 384), 258),
        ("tiles of 768", (960, 540), 6 * 258),  # the example in Google's guide
        ("pixels / 750", (1000, 1000), 1334),
        ("pixels / 750", (4000, 3000), 1601),  # larger ones are made smaller first
    ],
)
def test_images_count_by_published_rules(rule, size, tokens):
    assert image_tokens(rule, size) == pytest.approx(tokens, abs=1 if "pixels" in rule else 0)


REPLIES = {
    "the back": "say Answer: black",
    "the beak": "empty",
    "the feet": "say Answer:",
    "the tail": "truncated",
    "the eyes": "filtered",
}


@pytest.fixture
def goose(write_annotations, tree):
    """Five questions, whose right answer is black."""
    questions = [{"question": f"What color is {part}?"} for part in REPLIES]
    return load_visual_rag(write_annotations(*questions), tree)


def test_empty_and_truncated_answers_are_wrong_and_a_refused_one_has_no_score(
    server, goose, at, capsys
):
    server.plans = {part: [reply] for part, reply in REPLIES.items()}
    model = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
    for came in (": 5 new;", ": 5 from the store;"):
        answers = ask_models([model], goose, zero_shot(goose), at, prompts=PROMPTS)
        said = capsys.readouterr().out
        for words in (came, "2 failed, such as empty", "1 failed, such as truncated", "refused"):
            assert words in said
    assert answers["status"].tolist() == ["ok", "empty", "empty", "truncated", "refused"]
    assert answers["answer"].tolist()[:4] == ["black", "", "", "the hindwings are"]
    assert pd.isna(answers["answer"][4])
    judged = judge_answers(RuleJudge(), goose, answers)
    assert judged["marks"].tolist() == ["", "empty", "empty", "cut off", ""]
    np.testing.assert_array_equal(judged["score"], [1, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(judged["abstained"], [0, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(add_rouge(goose, answers)["rouge"], [1, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(detect_abstention(judged)["phrase_match"], [0, 0, 0, 0, np.nan])
