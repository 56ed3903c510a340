"""A clue drawn again differs in the asked part and nowhere else, and the questions'
answers differ with it.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageFilter

from vrag_kit.errors import VragError
from vrag_kit.generation import gt_clue, one_in_k
from vrag_kit.judging import load_judge
from vrag_kit.synthetic.visual_rag.counterfactual import (
    CounterfactualImage,
    counterfactual_benchmark,
    counterfactual_id,
    with_counterfactual_clues,
)
from vrag_kit.synthetic.world.shapes import part_map
from vrag_kit.synthetic.world.views import compose_view, draw_photograph
from vrag_kit.types import Benchmark

SMALL = "field-guide-small"


@pytest.fixture(scope="module")
def world(guide: Benchmark) -> Benchmark:
    return counterfactual_benchmark(SMALL, guide)


def pictures(world: Benchmark, query_id: str) -> list[CounterfactualImage]:
    return [world.corpus[doc_id].image for doc_id in world.relevant(query_id)]


def mask_of(drawn: CounterfactualImage, part: str) -> np.ndarray:
    """Where the part can be seen, as far as the picture's blur carries it."""
    labels, label_of = part_map(compose_view(drawn.species, drawn.view), drawn.size)
    seen = Image.fromarray((np.asarray(labels) == label_of[part]).astype(np.uint8) * 255)
    reach = 2 + int(np.ceil(4 * drawn.view.blur * drawn.size))  # pixels; 1 for the edge's own
    return np.asarray(seen.filter(ImageFilter.MaxFilter(2 * reach + 1))) > 0


def test_with_its_own_values_a_clue_is_drawn_to_the_byte_as_the_guide_has_it(
    guide: Benchmark, world: Benchmark
) -> None:
    from vrag_kit.synthetic.visual_rag.counterfactual import _found

    for query_id, query in guide.queries.items():
        species, _ = _found("small", query)
        (own, *_), (again, *_) = guide.relevant(query_id), pictures(world, query_id)
        assert replace(again, species=species).data() == guide.corpus[own].image.data()


def test_only_the_asked_parts_pixels_differ(guide: Benchmark, world: Benchmark) -> None:
    from vrag_kit.synthetic.visual_rag.counterfactual import _found

    compared = 0
    for query_id, query in guide.queries.items():
        species, question = _found("small", query)
        for drawn in pictures(world, query_id)[:3]:
            before = np.asarray(draw_photograph(species, drawn.view, drawn.size)).astype(int)
            after = np.asarray(draw_photograph(drawn.species, drawn.view, drawn.size)).astype(int)
            differs = np.abs(after - before).max(axis=2) > 0
            mask = mask_of(drawn, question.part)
            assert not (differs & ~mask).any(), query_id
            # far more than noise: a clue shows at least half a percent of the frame
            assert differs.sum() >= 0.003 * drawn.size**2, query_id
            compared += 1
    assert compared > 20


def test_the_new_value_is_told_by_the_answers_and_is_nowhere_else_on_the_species(
    guide: Benchmark, world: Benchmark
) -> None:
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


def test_labels_and_pools_hold_the_new_pictures_in_the_place_of_the_clues(
    guide: Benchmark, world: Benchmark
) -> None:
    assert list(world.queries) == list(guide.queries)
    for query_id in guide.queries:
        own = guide.relevant(query_id)
        assert world.relevant(query_id) == tuple(
            counterfactual_id(doc_id, query_id) for doc_id in own
        )
        assert set(world.candidates(query_id)) == set(world.qrels[query_id])
        assert not set(own) & set(world.qrels[query_id])
        assert set(world.qrels[query_id]) <= set(world.corpus)
    assert world.fingerprint != guide.fingerprint


def test_in_contexts_only_the_clues_are_exchanged(guide: Benchmark, world: Benchmark) -> None:
    contexts = gt_clue(guide, draws=2) + one_in_k(guide, ks=[3], draws=1)
    for own, other in zip(contexts, with_counterfactual_clues(contexts, guide), strict=True):
        assert replace(other, doc_ids=own.doc_ids) == own
        assert other.doc_ids[0] == counterfactual_id(own.doc_ids[0], own.query_id)
        assert other.doc_ids[1:] == own.doc_ids[1:]
        assert set(other.doc_ids) <= set(world.corpus)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_values(
    guide: Benchmark, world: Benchmark
) -> None:
    again, other = (
        counterfactual_benchmark(SMALL, guide),
        counterfactual_benchmark(SMALL, guide, seed=1),
    )
    query_id = next(iter(guide.queries))
    (one, *_), (two, *_) = pictures(world, query_id), pictures(again, query_id)
    assert one.data() == two.data()
    assert one.stamp == two.stamp
    assert Image.open(io.BytesIO(one.data())).size == (one.size, one.size)
    values = [each.answers for each in world.queries.values()]
    assert values == [each.answers for each in again.queries.values()]
    assert values != [each.answers for each in other.queries.values()]


def test_a_part_of_the_guide_swaps_as_the_whole(guide: Benchmark, world: Benchmark) -> None:
    some = list(guide.queries)[3:5]
    part = counterfactual_benchmark(SMALL, guide.subset(some))
    assert {name: query.answers for name, query in part.queries.items()} == {
        name: world.queries[name].answers for name in some
    }


def test_a_page_is_planned_when_a_picture_of_it_is_drawn_and_once_by_all_threads(
    guide: Benchmark,
) -> None:
    from vrag_kit.synthetic.visual_rag.counterfactual import _views

    _views.cache_clear()
    drawn = pictures(counterfactual_benchmark(SMALL, guide), next(iter(guide.queries)))
    assert len({each.stamp for each in drawn}) == len(drawn) > 1
    assert _views.cache_info().misses == 0
    with ThreadPoolExecutor(4) as pool:
        views = list(pool.map(lambda each: each.view, drawn))
    assert len(set(views)) == len(drawn)
    assert _views.cache_info().misses == 1


def test_what_was_not_drawn_cannot_be_drawn_again(guide: Benchmark) -> None:
    with pytest.raises(VragError, match="only in a drawn world"):
        counterfactual_benchmark({"annotations": "a.jsonl", "image_root": "images"}, guide)
    with pytest.raises(VragError, match="none of the full Field Guide"):
        counterfactual_benchmark("field-guide", guide)
