"""The browser of answers and its page: any table of answers, with prompts; no text is HTML."""

from __future__ import annotations

import factories
import pandas as pd
import pytest
from markupsafe import escape
from model_stub import ModelStub

from vrag_kit.generation import ask_models, build_prompt, gt_clue, zero_shot
from vrag_kit.papers.visual_rag.answers import error_cases
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark
from vrag_kit.widgets import answers_page, browse_answers
from vrag_kit.workspace import Workspace

Cases = tuple[Benchmark, pd.DataFrame]


@pytest.fixture
def wrong(guide: Benchmark) -> Cases:
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


def test_the_browser_turns_pages_and_filters(wrong: Cases) -> None:
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


def test_answers_are_shown_with_their_prompts(guide: Benchmark, at: Workspace) -> None:
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
