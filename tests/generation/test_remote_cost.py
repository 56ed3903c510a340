"""What endpoints cost: forecast, counted and capped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import factories
import pytest
from endpoints import connect, hurry, question
from strange_server import StrangeServer
from worded import worded

from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    ConversationConfig,
    ask_prompts,
    load_generator,
    zero_shot,
)
from vrag_kit.generation.conversation import run_conversations
from vrag_kit.generation.remote.cost import image_tokens
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Query


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def priced(server: StrangeServer, **options: Any) -> EndpointGenerator:
    return connect(server, name="m", **{"prices": [10_000.0, 0.0], **options})


def test_a_forecast_above_the_cap_stops_before_the_first_call(store: AnswerStore) -> None:
    with StrangeServer() as server:
        dear = connect(server, prices=[1000.0, 50_000.0], max_cost=5)
        forecast = dear.estimate_cost([question("what?")] * 10, {})
        words = len(question("what?")[0].parts[0]) // 4 + 8
        assert forecast.cost == pytest.approx(10 * (words * 1000 + 16 * 50_000) / 1e6)
        with pytest.raises(VragError, match=r"about 8.\d\d, and max_cost is 5\. Nothing"):
            ask_prompts(dear, [question(f"number {n}?") for n in range(10)], store)
        assert server.requests == []


def test_a_run_stops_when_its_answers_have_cost_what_they_may(store: AnswerStore) -> None:
    """A call is forecast at less than the one dollar that it turns out to cost."""
    prompts = [question(f"number {n}?") for n in range(20)]
    with StrangeServer(seconds=0.02) as server:
        with pytest.raises(VragError, match=r"have cost \d+.00 US dollars,.* max_cost is 12"):
            ask_prompts(priced(server, max_cost=12, concurrency=2), prompts, store)
        spent = store.total_cost("m")
        assert 12 <= spent <= 14  # the calls under way are paid for, too
        assert spent == len(server.requests) - 1  # the call that tried the endpoint is no answer
        answers = ask_prompts(priced(server, max_cost=100), prompts, store)
        assert {answer.fields["cost"] for answer in answers} == {1.0}


def test_what_was_paid_for_failures_is_not_forgotten_when_they_are_asked_again(
    store: AnswerStore,
) -> None:
    again = Workspace(retry_failures=True)
    with StrangeServer({"strange?": ["truncated"]}) as server:
        for _ in range(3):
            model = priced(server, max_cost=100)
            ask_prompts(model, [question("strange?")], store, at=again)
    assert store.total_cost("m") == 3


def test_the_cap_is_checked_for_all_samples_before_the_first(store: AnswerStore) -> None:
    query = Query(query_id="q", text="What color are the feet of the goose?", group="g")
    contexts, benchmark = zero_shot(factories.benchmark([query])), factories.benchmark([query])
    how = ConversationConfig(prompts=PROMPTS)
    with StrangeServer() as server:
        once = priced(server).estimate_cost([worded("no_image", query.text)], {}).cost
        model = priced(server, max_cost=2.5 * once)
        with pytest.raises(VragError, match="Nothing more was asked"):
            run_conversations(model, benchmark, contexts, store, how, samples=3)
        assert server.requests == []


def test_a_cap_needs_an_endpoint_that_counts(store: AnswerStore) -> None:
    with StrangeServer({"Reply with the word": ["unmetered"]}) as server:
        with pytest.raises(VragError, match="`max_cost: null`"):
            ask_prompts(priced(server), [question("what?")], store)
        (answer,) = ask_prompts(priced(server, max_cost=None), [question("what?")], store)
    assert answer.status == "ok"


def test_what_an_endpoint_had_in_its_cache_is_recorded_and_has_its_own_price() -> None:
    with StrangeServer({"again": ["cached"]}) as server:
        model = priced(server, prices=[1000, 2000, 250])
        new, again = (model.generate([question(words)])[0].tokens for words in ("new", "again"))
    assert "cached" not in new
    assert again == {"prompt": 100, "completion": 10, "cached": 80}
    assert model.cost(new) == pytest.approx((100 * 1000 + 10 * 2000) / 1e6)
    assert model.cost(again) == pytest.approx((20 * 1000 + 80 * 250 + 10 * 2000) / 1e6)


def test_a_forecast_tells_hours_by_the_calls_at_once_and_tokens_of_answers() -> None:
    model = load_generator({"model": "gpt-4o@openai", "concurrency": 4})
    forecast = model.estimate_cost([question("what?")] * 7_200, {})
    assert forecast.hours == 7_200 * 5 / 4 / 3_600
    assert "2 h 30 min" in str(forecast)
    assert forecast.answer_tokens == 7_200 * 64
    thinking = load_generator("o4-mini@openai").estimate_cost([question("what?")], {})
    assert thinking.answer_tokens == 64 + 500


def test_only_models_that_are_known_have_prices_and_a_cap() -> None:
    known, strange = (
        load_generator(f"{name}@openai") for name in ("gpt-4o-2024-11-20", "gpt-4o-realtime")
    )
    assert (known.max_cost, strange.max_cost) == (25.0, None)
    assert "no price is known for this model" in str(strange.estimate_cost([question("what?")], {}))


def test_pictures_are_counted_by_the_rules_that_providers_publish() -> None:
    assert image_tokens("tiles of 512", (1024, 1024)) == 765  # the example in OpenAI's guide
    assert image_tokens("tiles of 512", (2048, 4096)) == 1105  # likewise
    assert image_tokens("tiles of 768", (384, 384)) == 258
    assert image_tokens("tiles of 768", (960, 540)) == 6 * 258  # the example in Google's guide
    assert image_tokens("pixels / 750", (1000, 1000)) == pytest.approx(1334, abs=1)
    assert image_tokens("pixels / 750", (4000, 3000)) <= 1601  # larger ones are made smaller first
