"""The conversation browser shows a conversation whole: what was searched, found, kept and
said, and where it stopped; no text of the data becomes HTML.
"""

from __future__ import annotations

import re
from html import unescape

import pandas as pd
import pytest
from told_talks import MARKUP, told_found, told_talks, told_turns

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark
from vrag_kit.widgets import browse_conversations, conversations_page
from vrag_kit.widgets.browser import Browser


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Benchmark, pd.DataFrame]:
    benchmark = told_talks(tmp_path_factory.mktemp("pictures"))
    return benchmark, told_turns(benchmark)


@pytest.fixture
def browser(told: tuple[Benchmark, pd.DataFrame]) -> Browser:
    return browse_conversations(*told, told_found(told[0]))


def words(html: str) -> str:
    """What a reader sees of a card, without the markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split()).replace(" ,", ",")


def test_turns_stand_in_order_and_the_stop_below_the_turn_where_it_came(
    browser: Browser,
) -> None:
    # R W W R M: the rule fires at the third turn, the last two count as missing:
    # (1 - 1 - 1 + 0 + 0) / 5
    card = words(browser.card.value)
    assert "correct, incorrect, incorrect | after the stop: correct, missing" in card
    assert "score −0.2, the mean of 5 turns after the stop" in card
    places = [card.index(f"turn {turn} of 5") for turn in range(1, 6)]
    assert places == sorted(places)
    stop = card.index("stopped at turn 3: what is below counts as missing")
    assert places[2] < stop < places[3]
    assert card.count("counts as missing, 0: it comes after the stop") == 2
    assert "verdict correct, 1" in card[places[3] : places[4]]


def test_what_was_found_is_told_kept_or_passed_over_and_once(browser: Browser) -> None:
    card = words(browser.card.value)
    assert card.count("image search: 4 found, 1 kept: Talia ensis") == 1
    assert card.count("image search: 4 found, 1 kept, as in the turn before") == 4
    assert "web search: 3 found, 1 kept: Moths 1" in card
    assert card.count("kept, 0.9 Talia ensis look: red, banded with white; size: 43 mm") == 1
    assert "passed over, 0.8 Talia ensis" in card
    assert "searched: Talia ensis: Where does it live?" in card
    assert "simple-knowledge · animal · normal" in card


def test_what_is_about_the_thing_asked_is_marked_where_the_benchmark_tells(
    browser: Browser,
) -> None:
    assert "relevant" not in words(browser.card.value)
    browser.forward.click()
    card = words(browser.card.value)
    assert "image search: 4 found (2 relevant), 1 kept: Talia ensis" in card
    assert "3. passed over, relevant, 0.7" in card
    assert "1. kept, 0.9" in card


def test_an_arm_shows_its_own_searches_and_without_runs_only_what_was_kept(
    told: tuple[Benchmark, pd.DataFrame], browser: Browser
) -> None:
    browser.filters["arm"].value = "picture, k = 4"
    assert "web search" not in browser.card.value
    assert "image search: 4 found, 2 kept" in browser.card.value
    bare = words(browse_conversations(*told).card.value)
    assert "image search: 1 found, 1 kept: Talia ensis" in bare
    assert "passed over" not in bare


def test_the_filters_want_one_turn_that_has_it_all(browser: Browser) -> None:
    assert repr(browser) == "conversation browser: 9 conversations"
    assert browser.count.value == "1 of 9"
    browser.filters["quality"].value = "blurred"
    assert browser.count.value == "1 of 3"
    browser.filters["score"].value = "missing"  # of two models
    assert browser.count.value == "1 of 2"
    browser.filters["model"].value = MARKUP
    assert browser.count.value == "1 of 1"
    browser.filters["type"].value = "multi-hop"  # asked of the other picture
    assert browser.count.value == "no such conversation"
    assert browser.card.value == ""
    assert set(browser.filters["score"].options) == {
        *("all", "correct", "incorrect", "missing", "after the stop", "no verdict")
    }


def test_a_failed_turn_and_a_picture_that_cannot_be_read_are_told(
    browser: Browser,
) -> None:
    browser.filters["score"].value = "no verdict"
    card = words(browser.card.value)
    assert "score none, for a turn has no verdict" in card
    assert "no verdict: timeout: no whole answer" in card
    assert "no picture:" in card
    assert "not_there.png" in card


def test_turns_that_were_not_asked_are_shown_as_such(told: tuple[Benchmark, pd.DataFrame]) -> None:
    benchmark, turns = told
    asked = turns["asked"] & ~(turns["turn"] > turns["stopped_at"])
    early = turns.assign(asked=asked)
    early[["score", "verdict", "marks"]] = early[["score", "verdict", "marks"]].where(asked)
    card = words(browse_conversations(benchmark, early).card.value)
    assert card.count("verdict not asked counts as missing, 0: it comes after the stop") == 2


def test_a_document_that_the_benchmark_lacks_is_named(
    told: tuple[Benchmark, pd.DataFrame],
) -> None:
    benchmark, turns = told
    run = pd.DataFrame({"query_id": ["long-0"], "doc_id": ["kg-99"], "rank": [1]})
    assert "passed over kg-99" in words(
        browse_conversations(benchmark, turns, {"both": run}).card.value
    )
    with pytest.raises(VragError, match="'rank'"):
        browse_conversations(benchmark, turns, {"both": run.drop(columns="rank")})


def test_searches_that_hung_on_the_models_own_answers_are_shown_to_that_model(
    told: tuple[Benchmark, pd.DataFrame],
) -> None:
    benchmark, turns = told
    run = pd.DataFrame({"query_id": "long-0", "doc_id": ["kg-0", "kg-1"], "rank": 1})
    run = run.assign(model=["small", MARKUP])
    browser = browse_conversations(benchmark, turns, {"both": run})
    assert "image search: 1 found, 1 kept" in browser.card.value
    browser.filters["model"].value = MARKUP
    assert "image search: 2 found, 1 kept" in browser.card.value


def test_no_text_of_the_data_becomes_html(
    told: tuple[Benchmark, pd.DataFrame], browser: Browser
) -> None:
    cards = []
    for _ in range(9):
        cards.append(browser.card.value)
        browser.forward.click()
    pages = [*cards, conversations_page(*told, told_found(told[0]), most=9).data]
    for page in pages:
        assert "<script" not in page
        assert "<img src=nowhere" not in page
    assert all(MARKUP in unescape(page) for page in pages)


def test_the_twin_holds_the_first_conversations_and_stays_small(
    told: tuple[Benchmark, pd.DataFrame],
) -> None:
    page = conversations_page(*told, told_found(told[0]), most=2).data
    assert page.count("<hr>") == 1
    assert len(page) < 100_000
    assert "no such conversation" in conversations_page(told[0], told[1].iloc[:0]).data
