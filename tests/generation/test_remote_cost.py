"""What endpoints cost: forecast, counted and capped."""

from __future__ import annotations

from typing import Any

import factories
import pytest
from endpoints import connect, question
from strange_server import StrangeServer

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
from vrag_kit.workspace import Workspace

ASKED = [question(f"number {n}?") for n in range(20)]
pytestmark = pytest.mark.usefixtures("short_pauses")


def priced(server: StrangeServer, **options: Any) -> EndpointGenerator:
    """A model of one dollar a call, as it turns out."""
    return connect(server, name="m", **{"prices": [10_000.0, 0.0], **options})


def test_a_forecast_above_the_cap_stops_the_run(server: StrangeServer, store: AnswerStore) -> None:
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


def test_a_run_stops_when_its_cost_is_at_the_cap(server: StrangeServer, store: AnswerStore) -> None:
    server.seconds = 0.02
    with pytest.raises(VragError, match=r"have cost \d+.00 US dollars,.* max_cost is 12"):
        ask_prompts(priced(server, max_cost=12, concurrency=2), ASKED, store)
    spent = store.total_cost("m")
    assert 12 <= spent <= 14  # the calls under way are paid for, too
    assert spent == len(server.requests) - 1  # the call that tried the endpoint is no answer
    answers = ask_prompts(priced(server, max_cost=100), ASKED, store)
    assert {answer.fields["cost"] for answer in answers} == {1.0}


def test_the_cost_of_retried_failures_is_counted(server: StrangeServer, store: AnswerStore) -> None:
    server.plans = {"strange?": ["truncated"]}
    for _ in range(3):
        again = Workspace(retry_failures=True)
        ask_prompts(priced(server, max_cost=100), [question("strange?")], store, at=again)
    assert store.total_cost("m") == 3


def test_a_cap_needs_an_endpoint_that_counts(server: StrangeServer, store: AnswerStore) -> None:
    server.plans = {"Reply with the word": ["unmetered"]}
    with pytest.raises(VragError, match="`max_cost: null`"):
        ask_prompts(priced(server), ASKED, store)
    answers = ask_prompts(priced(server, max_cost=None), ASKED, store)
    assert {answer.status for answer in answers} == {"ok"}


def test_what_an_endpoint_had_in_its_cache_has_its_own_price(server: StrangeServer) -> None:
    server.plans = {"again": ["cached"]}
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
    assert "2.50 hours" in str(forecast)
    assert forecast.answer_tokens == 7_200 * 64
    thinking = load_generator("o4-mini@openai").estimate_cost([question("what?")], {})
    assert thinking.answer_tokens == 64 + 500


def test_only_models_that_are_known_have_prices_and_a_cap() -> None:
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
def test_images_are_counted_by_published_rules(
    rule: str, size: tuple[int, int], tokens: int
) -> None:
    assert image_tokens(rule, size) == pytest.approx(tokens, abs=1 if "pixels" in rule else 0)
