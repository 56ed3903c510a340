"""A clue drawn again differs in the asked part and nowhere else, and the questions'
answers differ with it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from PIL import ImageFilter

from vrag_kit.errors import VragError
from vrag_kit.generation import gt_clue, one_in_k
from vrag_kit.judging import load_judge
from vrag_kit.synthetic.visual_rag.counterfactual import (
    CounterfactualImage,
    _found,
    counterfactual_benchmark,
    counterfactual_id,
    with_counterfactual_clues,
)
from vrag_kit.synthetic.visual_rag.pages import EDITIONS
from vrag_kit.synthetic.world.photographs import compose_view, draw_photograph
from vrag_kit.synthetic.world.shapes import part_mask
from vrag_kit.types import Benchmark

SMALL = "field-guide-small"
SIZE = EDITIONS["small"].size


@pytest.fixture(scope="module")
def world(guide):
    return counterfactual_benchmark(SMALL, guide)


def pictures(world: Benchmark, query_id: str) -> list[CounterfactualImage]:
    return [world.corpus[doc_id].image for doc_id in world.relevant(query_id)]


def mask_of(drawn: CounterfactualImage, part: str) -> np.ndarray:
    """Where the part can be seen, as far as the picture's blur carries it."""
    seen = part_mask(compose_view(drawn.species, drawn.view), part, SIZE)
    reach = 2 + int(np.ceil(4 * drawn.view.blur * SIZE))  # pixels; 1 for the edge's own
    return np.asarray(seen.filter(ImageFilter.MaxFilter(2 * reach + 1))) > 0


def test_only_the_asked_parts_pixels_differ(guide, world):
    for query_id, query in guide.queries.items():
        species, question = _found("small", query)
        both = zip(guide.relevant(query_id), pictures(world, query_id), strict=True)
        for doc_id, drawn in islice(both, 3):
            usual = replace(drawn, species=species)
            assert usual.data() == guide.corpus[doc_id].image.data()
            before = np.asarray(draw_photograph(species, drawn.view, SIZE)).astype(int)
            after = np.asarray(draw_photograph(drawn.species, drawn.view, SIZE)).astype(int)
            differs = np.abs(after - before).max(axis=2) > 0
            assert not (differs & ~mask_of(drawn, question.part)).any(), query_id
            # far more than noise: a clue shows at least half a percent of the frame
            assert differs.sum() >= 0.003 * SIZE**2, query_id


def test_the_new_value_is_told_by_the_answers_and_is_nowhere_else_on_the_species(guide, world):
    judge = load_judge("rule")
    for query_id, query in world.queries.items():
        before = guide.queries[query_id]
        assert (query.text, query.group) == (before.text, before.group)
        assert judge.verdict(query, query.answers[0]).score == 1
        assert judge.verdict(query, before.answers[0]).score == 0
        assert judge.verdict(before, query.answers[0]).score == 0
        species = pictures(world, query_id)[0].species
        values = query.answers[0].split(" and ")
        assert not {species.outside.color, species.outside.second} & set(values)


def test_what_was_not_drawn_cannot_be_drawn_again(guide):
    with pytest.raises(VragError, match="only in a drawn world"):
        counterfactual_benchmark({"annotations": "a.jsonl", "image_root": "images"}, guide)
    with pytest.raises(VragError, match="none of the full Field Guide"):
        counterfactual_benchmark("field-guide", guide)


def test_labels_pools_and_contexts_hold_the_new_images_in_place_of_the_clues(guide, world):
    assert list(world.queries) == list(guide.queries)
    assert world.fingerprint != guide.fingerprint
    for query_id in guide.queries:
        own = guide.relevant(query_id)
        swapped = tuple(counterfactual_id(doc_id, query_id) for doc_id in own)
        assert world.relevant(query_id) == swapped
        assert set(world.candidates(query_id)) == set(world.qrels[query_id]) <= set(world.corpus)
        assert not set(own) & set(world.qrels[query_id])
    contexts = gt_clue(guide, draws=2) + one_in_k(guide, ks=[3], draws=1)
    for own, other in zip(contexts, with_counterfactual_clues(contexts, guide), strict=True):
        first = counterfactual_id(own.doc_ids[0], own.query_id)
        assert other == replace(own, doc_ids=(first, *own.doc_ids[1:]))
