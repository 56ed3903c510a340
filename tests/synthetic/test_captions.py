"""Captions name and place what a photograph shows, never what is hidden."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from vrag_kit.benchmarks import captions_only, load_webqa
from vrag_kit.retrieval import evaluate
from vrag_kit.retrieval.hybrid import tfidf_run
from vrag_kit.synthetic.visual_rag.captions import VIEWS, WebQAItem, photo_caption, plan_webqa
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesPlan
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, accepted_spellings
from vrag_kit.types import Benchmark


@pytest.fixture(scope="module")
def planned() -> tuple[list[SpeciesPlan], list[WebQAItem]]:
    return plan_webqa(EDITIONS["small"])


@pytest.fixture(scope="module")
def webqa(guide_folder: Path) -> Benchmark:
    folder = guide_folder / "webqa"
    return load_webqa(folder / "WebQA_train_val.json", folder / "imgs.tsv", name="captions")


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


def test_captions_give_their_species_away_to_plain_word_matching(webqa: Benchmark) -> None:
    run = tfidf_run(captions_only(webqa), k=5)
    same = [
        webqa.queries[query_id].entity in (webqa.corpus[doc_id].text or "")
        for query_id, doc_id in zip(run["query_id"], run["doc_id"], strict=True)
    ]
    assert np.mean(same) > 0.8
    hits = evaluate(run, webqa.qrels, cutoffs=(1,)).query("metric == 'hit'")["value"]
    assert hits.mean() > 0.3  # a random order: 0.5 %


def test_every_pose_has_its_words() -> None:
    assert set(VIEWS) == {
        pose
        for kind in KINDS.values()
        for pose in (*kind.resting, *(part.pose for part in kind.hidden))
    }
