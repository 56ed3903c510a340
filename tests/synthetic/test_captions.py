"""Captions name and place what a photograph shows, never what is hidden."""

from __future__ import annotations

import re

import pytest

from vrag_kit.synthetic.visual_rag.guide import WebQAItem, photo_caption, plan_webqa
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesPlan
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, accepted_spellings


@pytest.fixture(scope="module")
def planned() -> tuple[list[SpeciesPlan], list[WebQAItem]]:
    return plan_webqa(EDITIONS["small"])


def test_positives_show_the_part_that_is_asked_about_and_nothing_else_in_the_corpus_does(
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
) -> None:
    pages, items = planned
    positives = {(item.question, picture) for item in items for picture in item.positives}
    corpus = {picture for item in items for picture in (*item.positives, *item.negatives)}
    shown = {
        (item.question, picture)
        for item in items
        for picture in corpus
        if pages[picture[0]] is item.page
        and item.question.part in item.page.photos[picture[1]].shown
    }
    assert shown == positives


def test_a_caption_has_both_names_and_no_word_for_a_colour_or_pattern(
    planned: tuple[list[SpeciesPlan], list[WebQAItem]],
) -> None:
    forbidden = {word for value in (*COLORS, *PATTERNS) for word in accepted_spellings(value)}
    told = 0
    for page in planned[0]:
        for number in range(len(page.photos)):
            title, caption = photo_caption(page, number, "any")
            assert caption.startswith(title)
            assert page.species.common_name in caption
            assert page.species.scientific_name in caption
            assert not any(
                re.search(rf"\b{word}\b", caption, re.IGNORECASE) for word in forbidden
            ), caption
            told += any(f"showing the {part}" in caption for part in page.photos[number].shown)
            assert "showing the" not in caption or page.photos[number].shown
    assert told > 20
