"""The case browser shows what it is asked for, turns pages, and lets no text of the
data become HTML; so does its twin on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import escape

from vrag_kit.generation import (
    ask_models,
    build_prompt,
    gt_clue,
    m_in_k,
    with_min_clues,
    zero_shot,
)
from vrag_kit.papers.visual_rag.error_budget import error_cases, error_gallery
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark, Prompt
from vrag_kit.widgets import answers_page, browse_answers


@pytest.fixture
def wrong(guide: Benchmark) -> tuple[Benchmark, pd.DataFrame]:
    """Three wrong answers of two models to three questions, one of which holds markup."""
    ids = list(guide.queries)[:3]
    nasty = replace(
        guide,
        queries={
            **guide.queries,
            ids[0]: replace(
                guide.queries[ids[0]], text="<script>alert(1)</script>?", answers=("<b>red</b>",)
            ),
        },
    )
    rows = [
        (model, query_id, answer, score)
        for model, query_id, answer, score in zip(
            ["a", "a", "b"],
            ids,
            ["<img src=x onerror=alert(2)>", "blue", "green"],
            [0.0, 0.5, 0.0],
            strict=True,
        )
    ]
    table = pd.DataFrame(rows, columns=["model", "query_id", "answer", "score"]).assign(
        setting="gt_clue", k=1, draw=0, abstained=0.0, verdict="Score: 0", status="ok"
    )
    shown = [context.doc_ids for context in gt_clue(nasty, draws=1)][: len(table)]
    table = table.assign(group="g", doc_ids=shown)
    return nasty, error_cases(table, nasty)


def test_a_case_shows_the_images_that_were_sent_for_its_number_of_clues(guide: Benchmark) -> None:
    contexts = m_in_k(with_min_clues(guide, 3), ms=[1, 2, 3], k=5, draws=1)
    table = pd.DataFrame(
        {
            "model": "a",
            "setting": "gt_clue",
            "k": 5,
            "m": pd.array([context.m for context in contexts], "Int64"),
            "draw": 0,
            "query_id": [context.query_id for context in contexts],
            "group": "g",
            "doc_ids": [context.doc_ids for context in contexts],
            "answer": [f"wrong with {context.m}" for context in contexts],
            "score": 0.0,
            "abstained": 0.0,
            "verdict": "Score: 0",
        }
    )
    cases = error_cases(table, guide)
    sent = {(c.query_id, f"wrong with {c.m}"): c.doc_ids for c in contexts}
    assert len(cases) == len(contexts)
    for case in cases.itertuples():
        assert case.doc_ids == sent[case.query_id, case.answer]


def test_the_browser_turns_pages_and_filters(wrong: tuple[Benchmark, pd.DataFrame]) -> None:
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
    assert browser.count.value == "no such answer"
    assert browser.card.value == ""


def test_no_text_of_the_data_becomes_html(wrong: tuple[Benchmark, pd.DataFrame]) -> None:
    for page in (browse_answers(*wrong).card.value, answers_page(*wrong).data):
        assert "<script>" not in page
        assert "<img src=x" not in page
        assert "&lt;script&gt;" in page
        assert "&lt;b&gt;red" in page


def test_the_clue_is_marked_and_pictures_are_small(wrong: tuple[Benchmark, pd.DataFrame]) -> None:
    page = answers_page(*wrong).data
    assert page.count("<figure") == page.count("#009e73") == page.count(">relevant<") == 3
    assert len(page) < 3 * 40_000
    assert "no such answer" in answers_page(wrong[0], wrong[1].iloc[:0]).data


def test_the_sheet_says_how_many_cases_there_are(wrong: tuple[Benchmark, pd.DataFrame]) -> None:
    figure = error_gallery(*wrong, most=2)
    assert "2 of the 2 incorrect and 1 partially correct answers" in figure.get_label()
    assert "seed 0)" in figure.get_label()
    assert sum(bool(axis.images) for axis in figure.axes) == 2


class Blue:
    """Answers blue, whatever is asked."""

    name, fingerprint = "blue", "1"

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return ["Answer: blue"] * len(prompts)


def test_any_table_of_answers_is_shown_with_the_prompt_as_it_was_sent(
    guide: Benchmark, tmp_path: Path
) -> None:
    contexts = [*gt_clue(guide, draws=1)[:2], *zero_shot(guide)[:1]]
    answers = ask_models([Blue()], guide, contexts, tmp_path, prompts=PROMPTS)
    page = answers_page(guide, answers, tmp_path).data
    for context in contexts:
        prompt = build_prompt(guide, context, PROMPTS)
        words = "\n".join(part for part in prompt[-1].parts if isinstance(part, str))
        assert escape(words.strip()) in page
    assert page.count(">relevant<") == page.count("<figure") == 2
    assert page.count("images: 0") == 1
    browser = browse_answers(guide, answers, tmp_path)
    assert list(browser.filters) == ["setting", "k"]
    browser.filters["setting"].value = "zero_shot"
    assert browser.count.value == "1 of 1"
