"""The page of conversations: searches, evidence, answers and the stop; no text is HTML."""

from __future__ import annotations

import re
from html import unescape

import pandas as pd
import pytest
from told_talks import MARKUP, told_talks, told_turns

from vrag_kit.types import Benchmark
from vrag_kit.widgets import conversations_page

Talks = tuple[Benchmark, pd.DataFrame]


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Talks:
    benchmark = told_talks(tmp_path_factory.mktemp("pictures"))
    return benchmark, told_turns(benchmark)


@pytest.fixture(scope="module")
def page(talks: Talks) -> str:
    """All nine conversations."""
    return str(conversations_page(*talks, most=9).data)


def words(html: str) -> str:
    """What a reader sees, without the markup."""
    text = unescape(re.sub(r"<[^>]*>", " ", html))
    return " ".join(text.split()).replace(" ,", ",")


def test_turns_are_in_order_and_the_stop_is_below_its_turn(page: str) -> None:
    # R W W R M: the rule fires at the third turn, the last two count as missing:
    # (1 - 1 - 1 + 0 + 0) / 5
    card = words(page.split("<hr>")[0])
    assert "correct, incorrect, incorrect | after the stop: correct, missing" in card
    assert "score −0.2, the mean of 5 turns after the stop" in card
    places = [card.index(f"turn {turn} of 5") for turn in range(1, 6)]
    assert places == sorted(places)
    stop = card.index("stopped at turn 3: what is below counts as missing")
    assert places[2] < stop < places[3]
    assert card.count("counts as missing, 0: it comes after the stop") == 2
    assert "verdict correct, 1" in card[places[3] : places[4]]


def test_evidence_is_shown_once_and_what_is_relevant_is_said(page: str) -> None:
    first, second = map(words, page.split("<hr>")[:2])
    assert first.count("image search: 1 kept: Talia ensis") == 1
    assert first.count("image search: 1 kept, as in the turn before") == 4
    assert "web search: 1 kept: Moths 1" in first
    assert first.count("Talia ensis look: red, banded with white; size: 43 mm") == 1
    assert "searched: Talia ensis: Where does it live?" in first
    assert "simple-knowledge · animal · normal" in first
    assert "relevant" not in first + second
    assert "image search: 2 kept (1 relevant): Talia ensis" in words(page)


def test_what_failed_or_was_not_asked_is_said(talks: Talks, page: str) -> None:
    card = words(page)
    assert "score none, for a turn has no verdict" in card
    assert "no verdict: timeout: no whole answer" in card
    assert "no picture:" in card
    benchmark, turns = talks
    asked = turns["asked"] & ~(turns["turn"] > turns["stopped_at"])
    early = turns.assign(asked=asked, doc_ids=[("kg-99",)] * len(turns))
    early[["score", "verdict", "marks"]] = early[["score", "verdict", "marks"]].where(asked)
    card = words(conversations_page(benchmark, early, most=1).data)
    assert card.count("verdict not asked counts as missing, 0: it comes after the stop") == 2
    assert "search: 1 kept: kg-99" in card


def test_no_text_of_the_data_becomes_html_and_the_page_stays_small(talks: Talks, page: str) -> None:
    assert "<script" not in page
    assert "<img src=nowhere" not in page
    assert MARKUP in unescape(page)
    two = conversations_page(*talks, most=2).data
    assert two.count("<hr>") == 1
    assert len(two) < 100_000
    assert "no such conversation" in conversations_page(talks[0], talks[1].iloc[:0]).data
