"""The browser of conversations: searches, evidence, answers and the stop; no text is HTML."""

from __future__ import annotations

import re
from functools import partial
from html import unescape

import pandas as pd
import pytest
from retrieval_data import refused
from told_talks import MARKUP, told_found, told_talks, told_turns

from vrag_kit.types import Benchmark
from vrag_kit.widgets import browse_conversations, conversations_page
from vrag_kit.widgets.browser import Browser

Talks = tuple[Benchmark, pd.DataFrame]


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Talks:
    benchmark = told_talks(tmp_path_factory.mktemp("pictures"))
    return benchmark, told_turns(benchmark)


@pytest.fixture
def browser(talks: Talks) -> Browser:
    return browse_conversations(*talks, told_found(talks[0]))


def words(browser: Browser) -> str:
    """What a reader sees of the card, without the markup."""
    text = unescape(re.sub(r"<[^>]*>", " ", browser.card.value))
    return " ".join(text.split()).replace(" ,", ",")


def test_turns_are_in_order_and_the_stop_is_below_its_turn(browser: Browser) -> None:
    # R W W R M: the rule fires at the third turn, the last two count as missing:
    # (1 - 1 - 1 + 0 + 0) / 5
    card = words(browser)
    assert "correct, incorrect, incorrect | after the stop: correct, missing" in card
    assert "score −0.2, the mean of 5 turns after the stop" in card
    places = [card.index(f"turn {turn} of 5") for turn in range(1, 6)]
    assert places == sorted(places)
    stop = card.index("stopped at turn 3: what is below counts as missing")
    assert places[2] < stop < places[3]
    assert card.count("counts as missing, 0: it comes after the stop") == 2
    assert "verdict correct, 1" in card[places[3] : places[4]]


def test_evidence_is_marked_as_kept_or_skipped_and_shown_once(browser: Browser) -> None:
    card = words(browser)
    assert card.count("image search: 4 found, 1 kept: Talia ensis") == 1
    assert card.count("image search: 4 found, 1 kept, as in the turn before") == 4
    assert "web search: 3 found, 1 kept: Moths 1" in card
    assert card.count("kept, 0.9 Talia ensis look: red, banded with white; size: 43 mm") == 1
    assert "passed over, 0.8 Talia ensis" in card
    assert "searched: Talia ensis: Where does it live?" in card
    assert "simple-knowledge · animal · normal" in card
    assert "relevant" not in card
    browser.forward.click()
    card = words(browser)
    assert "image search: 4 found (2 relevant), 1 kept: Talia ensis" in card
    assert "3. passed over, relevant, 0.7" in card


def test_an_arm_shows_its_own_searches_and_without_runs_only_what_was_kept(
    talks: Talks, browser: Browser
) -> None:
    browser.filters["arm"].value = "picture, k = 4"
    assert "web search" not in browser.card.value
    assert "image search: 4 found, 2 kept" in browser.card.value
    bare = words(browse_conversations(*talks))
    assert "image search: 1 found, 1 kept: Talia ensis" in bare
    assert "passed over" not in bare
    run = pd.DataFrame({"query_id": "long-0", "doc_id": ["kg-0", "kg-1"], "rank": 1})
    run = run.assign(model=["small", MARKUP])  # searches that hung on the model's answers
    browser = browse_conversations(*talks, {"both": run})
    assert "image search: 1 found, 1 kept" in browser.card.value
    browser.filters["model"].value = MARKUP
    assert "image search: 2 found, 1 kept" in browser.card.value


def test_the_filters_want_one_turn_that_has_it_all(browser: Browser) -> None:
    assert repr(browser) == "conversation browser: 9 conversations"
    counts = [browser.count.value]
    for name, value in (
        ("quality", "blurred"),
        ("score", "missing"),  # of two models
        ("model", MARKUP),
        ("type", "multi-hop"),  # asked of the other image
    ):
        browser.filters[name].value = value
        counts.append(browser.count.value)
    assert counts == ["1 of 9", "1 of 3", "1 of 2", "1 of 1", "no such conversation"]
    assert browser.card.value == ""
    scores = {"all", "correct", "incorrect", "missing", "after the stop", "no verdict"}
    assert set(browser.filters["score"].options) == scores


def test_failed_turns_unreadable_images_and_turns_that_were_not_asked_are_said(
    talks: Talks, browser: Browser
) -> None:
    browser.filters["score"].value = "no verdict"
    card = words(browser)
    assert "score none, for a turn has no verdict" in card
    assert "no verdict: timeout: no whole answer" in card
    assert "no picture:" in card
    assert "not_there.png" in card
    benchmark, turns = talks
    asked = turns["asked"] & ~(turns["turn"] > turns["stopped_at"])
    early = turns.assign(asked=asked)
    early[["score", "verdict", "marks"]] = early[["score", "verdict", "marks"]].where(asked)
    card = words(browse_conversations(benchmark, early))
    assert card.count("verdict not asked counts as missing, 0: it comes after the stop") == 2
    run = pd.DataFrame({"query_id": ["long-0"], "doc_id": ["kg-99"], "rank": [1]})
    assert "passed over kg-99" in words(browse_conversations(benchmark, turns, {"both": run}))
    unranked = {"both": run.drop(columns="rank")}
    refused(partial(browse_conversations, benchmark, turns, unranked), "'rank'")


def test_no_text_of_the_data_becomes_html_and_the_page_stays_small(
    talks: Talks, browser: Browser
) -> None:
    page = partial(conversations_page, *talks, told_found(talks[0]))
    cards = [page(most=9).data]
    for _ in range(9):
        cards.append(browser.card.value)
        browser.forward.click()
    for html in cards:
        assert "<script" not in html
        assert "<img src=nowhere" not in html
        assert MARKUP in unescape(html)
    two = page(most=2).data
    assert two.count("<hr>") == 1
    assert len(two) < 100_000
    assert "no such conversation" in conversations_page(talks[0], talks[1].iloc[:0]).data
