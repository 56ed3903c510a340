"""Pages and browsers: conversations with searches, evidence and the stop, any table of answers with
its prompts; no text is HTML.
"""

import math
import re
from dataclasses import replace
from html import unescape

import factories
import pandas as pd
import pytest
from conversation_data import entry, make_conversations, page
from markupsafe import escape
from model_stub import ModelStub

from vrag_kit.analysis import apply_early_stop
from vrag_kit.generation import ask_models, build_prompt, gt_clue, zero_shot
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.papers.visual_rag.answers import error_cases
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark
from vrag_kit.widgets import answers_page, browse_answers, conversations_page

Conversations = tuple[Benchmark, pd.DataFrame]
MARKUP = "<script>window.ran = 1</script><img src=nowhere onerror='window.ran = 1'>"
LABELS = {"query_category": "simple-knowledge", "domain": "animal", "image_quality": "normal"}
SCORES = {"small": [1, -1, -1, 1, 0, 1, 0], MARKUP: [1, 1, 0, 1, 1, 1, math.nan]}
"""Model → the scores of its answers: five turns of a conversation, two of another."""
FOUND = {"small": ("kg-0", "moths"), MARKUP: ("kg-0", "kg-1")}


@pytest.fixture(scope="module")
def conversations(tmp_path_factory):
    """Judged turns, stopped after two in a row that are not correct; one image is lost."""
    folder = tmp_path_factory.mktemp("images")
    made = make_conversations(folder, {"long": 5, "short": 2})
    (folder / "short.png").unlink()
    about = {"answers": (f"{MARKUP} Yes.",), "metadata": LABELS}
    look = {"look": "red, banded with white", "size": "43 mm", MARKUP: MARKUP}
    documents = [entry("kg-0", ("Talia ensis", look)), entry("kg-1", (f"Talia {MARKUP}", {}))]
    documents.append(page("moths", "Moths 1", f"A moth of {MARKUP} Norland. " * 20))
    benchmark = replace(
        made,
        queries={name: replace(query, **about) for name, query in made.queries.items()},
        corpus={document.doc_id: document for document in documents},
        qrels={"short-0": {"kg-0": 0, "kg-1": 1}},
    )
    tables = []
    for model, scores in SCORES.items():
        table = factories.judged(
            query_id=list(made.queries),
            search_query=[f"Talia ensis: {query.text}" for query in made.queries.values()],
            doc_ids=[FOUND[model]] * len(scores),
            score=[float(score) for score in scores],
            marks=["abstention" if score == 0 else "" for score in scores],
            **{"model": model, "answer": f"A red moth {MARKUP}"},
        )
        failed = table["score"].isna()
        table["status"] = table["status"].mask(failed, "timeout")
        table["verdict"] = failed.map({True: "timeout: no whole answer", False: f"Is {MARKUP}"})
        tables.append(table.assign(score_min=-1.0, score_max=1.0))
    turns = pd.concat(tables, ignore_index=True)
    return benchmark, apply_early_stop(turns, benchmark, early_stopping_rule)


@pytest.fixture(scope="module")
def html(conversations):
    """All four conversations."""
    return str(conversations_page(*conversations, most=9).data)


def words(text: str) -> str:
    """What a reader sees, without the markup."""
    text = unescape(re.sub(r"<[^>]*>", " ", text))
    return " ".join(text.split()).replace(" ,", ",")


def test_turns_are_in_order_and_the_stop_is_below_its_turn(html):
    # R W W R M: the rule fires at the third turn, the last two count as missing:
    # (1 - 1 - 1 + 0 + 0) / 5
    card = words(html.split("<hr>")[0])
    assert "correct, incorrect, incorrect | after the stop: correct, missing" in card
    assert "score −0.2, the mean of 5 turns after the stop" in card
    places = [card.index(f"turn {turn} of 5") for turn in range(1, 6)]
    assert places == sorted(places)
    stop = card.index("stopped at turn 3: what is below counts as missing")
    assert places[2] < stop < places[3]
    assert card.count("counts as missing, 0: it comes after the stop") == 2
    assert "verdict correct, 1" in card[places[3] : places[4]]


def test_evidence_is_shown_once_and_what_is_relevant_is_said(html):
    first, second = map(words, html.split("<hr>")[:2])
    assert first.count("image search: 1 kept: Talia ensis") == 1
    assert first.count("image search: 1 kept, as in the turn before") == 4
    assert "web search: 1 kept: Moths 1" in first
    assert first.count("Talia ensis look: red, banded with white; size: 43 mm") == 1
    assert "searched: Talia ensis: turn 1 of long?" in first
    assert "simple-knowledge · animal · normal" in first
    assert "relevant" not in first + second
    assert "image search: 2 kept (1 relevant): Talia ensis" in words(html)


def test_what_failed_or_was_not_asked_is_said(conversations, html):
    card = words(html)
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


def test_no_text_of_the_data_becomes_html_and_the_page_stays_small(conversations, html):
    assert "<script" not in html
    assert "<img src=nowhere" not in html
    assert MARKUP in unescape(html)
    benchmark, turns = conversations
    two = conversations_page(*conversations, most=2).data
    assert two.count("<hr>") == 1
    assert len(two) < 100_000
    assert "no such conversation" in conversations_page(benchmark, turns.iloc[:0]).data


Cases = tuple[Benchmark, pd.DataFrame]


@pytest.fixture
def wrong(guide):
    """Three wrong answers of two models to three questions."""
    table = factories.judged(
        model=["a", "a", "b"],
        query_id=list(guide.queries)[:3],
        answer=["red", "blue", "green"],
        score=[0.0, 0.5, 0.0],
        verdict="Score: 0",
        doc_ids=[context.doc_ids for context in gt_clue(guide, draws=1)][:3],
    )
    return guide, error_cases(table, guide)


def test_the_browser_turns_pages_and_filters(wrong):
    browser = browse_answers(*wrong)
    assert repr(browser) == "answer browser: 3 answers"
    assert browser.count.value == "1 of 3"
    assert browser.back.disabled
    browser.forward.click()
    browser.forward.click()
    assert browser.count.value == "3 of 3"
    assert browser.forward.disabled
    browser.filters["model"].value = "b"
    assert browser.count.value == "1 of 1"
    assert "green" in browser.card.value
    browser.filters["outcome"].value = "partially correct"
    assert (browser.count.value, browser.card.value) == ("no such answer", "")


def test_answers_are_shown_with_their_prompts(guide, at):
    contexts = [*gt_clue(guide, draws=1)[:2], *zero_shot(guide)[:1]]
    model = ModelStub({"": "Answer: blue"})
    answers = ask_models([model], guide, contexts, at, prompts=PROMPTS)
    page = answers_page(guide, answers, at).data
    for context in contexts:
        prompt = build_prompt(guide, context, PROMPTS)
        words = "\n".join(part for part in prompt[-1].parts if isinstance(part, str))
        assert escape(words.strip()) in page
    assert page.count(">relevant<") == page.count("<figure") == 2
    assert page.count("images: 0") == 1
    browser = browse_answers(guide, answers, at)
    assert list(browser.filters) == ["setting", "k"]
    browser.filters["setting"].value = "zero_shot"
    assert browser.count.value == "1 of 1"
