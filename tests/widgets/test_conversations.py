"""The page of conversations: searches, evidence, answers and the stop; no text is HTML."""

from __future__ import annotations

import math
import re
from html import unescape
from pathlib import Path

import factories
import pandas as pd
import pytest
from PIL import Image

from vrag_kit.analysis import apply_early_stop
from vrag_kit.benchmarks import ImageFile
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.widgets import conversations_page

Conversations = tuple[Benchmark, pd.DataFrame]
MARKUP = "<script>window.ran = 1</script><img src=nowhere onerror='window.ran = 1'>"
LABELS = {"query_category": "simple-knowledge", "domain": "animal", "image_quality": "normal"}
QUESTIONS = {
    "long": [
        "What is it called?",
        "Where does it live?",
        "How large is it?",
        "Is it red?",
        "When?",
    ],
    "short": ["What color is it?", f"Which family {MARKUP} has it?"],
    "": ["Who named it?"],
}
"""Conversation → the questions of its turns; the last is a question alone."""
SCORES = {
    ("small", "both"): [1, -1, -1, 1, 0, 1, 0, 1],
    ("small", "picture"): [1, 1, 0, 1, 1, 1, 1, math.nan],
    (MARKUP, "both"): [1, 1, 0, 1, 1, 1, 0, 1],
}
"""Model, setting → the scores of its answers."""


def image(path: Path) -> ImageFile:
    Image.new("RGB", (192, 256), "brown").save(path)
    return ImageFile(path)


def queries(folder: Path) -> list[Query]:
    found = []
    for name, texts in QUESTIONS.items():
        shown = image(folder / f"{name}.png") if name else ImageFile(folder / "not_there.png")
        for turn, text in enumerate(texts):
            of_turn = {"turn": turn, "conversation_id": name, "metadata": LABELS} if name else {}
            query_id, about = (
                f"{name}-{turn}",
                {"text": text, "image": shown, "group": name or "alone"},
            )
            found.append(Query(query_id=query_id, answers=(f"{MARKUP} Yes.",), **about, **of_turn))
    return found


def documents(folder: Path) -> list[Document]:
    """Two entities of the image search and three pages of the web search."""
    found = []
    for number, name in enumerate(["Talia ensis", f"Talia {MARKUP} osa"]):
        attributes = {"look": "red, banded with white", "size": "43 mm", MARKUP: MARKUP}
        entity = {"entity_name": name, "entity_attributes": attributes}
        about = {"source": "image_search", "entities": [entity]}
        shown = image(folder / f"kg-{number}.png")
        found.append(Document(doc_id=f"kg-{number}", image=shown, metadata=about))
    for number in range(3):
        url = f"https://moths.example/{number}"
        about = {"source": "web_search", "page_name": f"Moths {number}", "page_url": url}
        text = f"A moth of {MARKUP} Norland. " * (1 + 20 * number)
        found.append(Document(doc_id=url, text=text, metadata=about))
    return found


def turns(benchmark: Benchmark) -> pd.DataFrame:
    """Judged turns, stopped after two in a row that are not correct."""
    tables = []
    for (model, setting), scores in SCORES.items():
        found = ("kg-0", "https://moths.example/1") if setting == "both" else ("kg-0", "kg-1")
        table = factories.judged(
            query_id=list(benchmark.queries),
            group=[query.group for query in benchmark.queries.values()],
            search_query=[f"Talia ensis: {query.text}" for query in benchmark.queries.values()],
            doc_ids=[found] * len(scores),
            score=[float(score) for score in scores],
            marks=["abstention" if score == 0 else "" for score in scores],
            **{"model": model, "setting": setting, "k": 4, "answer": f"A red moth {MARKUP}"},
        )
        failed = table["score"].isna()
        table["status"] = table["status"].mask(failed, "timeout")
        table["verdict"] = failed.map({True: "timeout: no whole answer", False: f"Is {MARKUP}"})
        tables.append(table.assign(score_min=-1.0, score_max=1.0))
    return apply_early_stop(pd.concat(tables, ignore_index=True), benchmark, early_stopping_rule)


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Conversations:
    folder = tmp_path_factory.mktemp("images")
    qrels = {"short-0": {"kg-0": 0, "kg-1": 1}}
    benchmark = factories.benchmark(queries(folder), documents(folder), qrels)
    return benchmark, turns(benchmark)


@pytest.fixture(scope="module")
def page(conversations: Conversations) -> str:
    """All nine conversations."""
    return str(conversations_page(*conversations, most=9).data)


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


def test_what_failed_or_was_not_asked_is_said(conversations: Conversations, page: str) -> None:
    card = words(page)
    assert "score none, for a turn has no verdict" in card
    assert "no verdict: timeout: no whole answer" in card
    assert "no picture:" in card
    benchmark, turns = conversations
    asked = turns["asked"] & ~(turns["turn"] > turns["stopped_at"])
    early = turns.assign(asked=asked, doc_ids=[("kg-99",)] * len(turns))
    early[["score", "verdict", "marks"]] = early[["score", "verdict", "marks"]].where(asked)
    card = words(conversations_page(benchmark, early, most=1).data)
    assert card.count("verdict not asked counts as missing, 0: it comes after the stop") == 2
    assert "search: 1 kept: kg-99" in card


def test_no_text_of_the_data_becomes_html_and_the_page_stays_small(
    conversations: Conversations, page: str
) -> None:
    assert "<script" not in page
    assert "<img src=nowhere" not in page
    assert MARKUP in unescape(page)
    benchmark, turns = conversations
    two = conversations_page(*conversations, most=2).data
    assert two.count("<hr>") == 1
    assert len(two) < 100_000
    assert "no such conversation" in conversations_page(benchmark, turns.iloc[:0]).data
