"""Replies are kept under what was asked; crops are asked one by one; recall by hand."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from small_index import Small, own_text_service

from vrag_kit.benchmarks import ImageFile, entity_names
from vrag_kit.errors import VragError
from vrag_kit.retrieval import (
    SearchService,
    annotated_region,
    cached_service,
    image_service,
    make_run,
    with_regions,
)
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.retrieval.services import WHOLE, Crop
from vrag_kit.types import Document, Query


def counted(service: SearchService) -> tuple[SearchService, list[int]]:
    """A service, and the number of queries of each of its searches."""
    sizes: list[int] = []

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        sizes.append(len(queries))
        return service.search(queries, k)

    return replace(service, ranker=rank), sizes


def pages(small: Small) -> tuple[SearchService, list[int]]:
    return counted(own_text_service(small, "bm25"))


def pictures(small: Small) -> tuple[SearchService, list[int]]:
    return counted(image_service(small.entries, small.clip, small.cache))


def test_cached_results_are_read_back_bit_for_bit(small: Small, tmp_path: Path) -> None:
    for make in (pages, pictures):
        first, searched = make(small)
        run = cached_service(first, tmp_path).search(small.queries(), 3)
        second, again = make(small)
        assert cached_service(second, tmp_path).search(small.queries(), 3).equals(run)
        assert run.equals(second.search(small.queries(), 3))
        assert (searched, again) == ([4], [4])


def test_replies_hold_for_one_k_one_service_and_one_text_or_picture(
    small: Small, tmp_path: Path
) -> None:
    query = small.queries()[0]
    service, searched = pages(small)
    cached = cached_service(service, tmp_path)
    cached.search([query], 3)
    cached.search([replace(query, query_id="other", image=None)], 3)  # the same question
    assert searched == [1]
    cached.search([query], 2)
    cached.search([replace(query, text=f"{query.text}?")], 3)
    fewer, searched_fewer = pages(small.without_first())
    cached_service(fewer, tmp_path).search([query], 3)
    assert (searched, searched_fewer) == ([1, 1, 1], [1])
    twins = [query, replace(query, query_id="twin"), replace(query, query_id="new", text="owl")]
    run = cached_service(service, tmp_path / "new").search(twins, 3)
    assert searched[-1] == 2
    hits = [run[run["query_id"] == name]["doc_id"].tolist() for name in ("q0", "twin")]
    assert hits[0] == hits[1] != []


def test_the_same_pixels_in_another_file_are_the_same_question(
    small: Small, tmp_path: Path
) -> None:
    (query, other, *_) = small.queries()
    path = tmp_path / "copy.bmp"
    query.image.open().save(path)  # type: ignore[union-attr]
    service, searched = pictures(small)
    cached = cached_service(service, tmp_path)
    cached.search([query], 2)
    cached.search([replace(query, image=ImageFile(path))], 2)
    assert searched == [1]
    cached.search([replace(query, image=other.image)], 2)
    assert searched == [1, 1]


def test_a_question_that_finds_nothing_is_cached_too(small: Small, tmp_path: Path) -> None:
    service, searched = pages(small)
    nothing = Query(query_id="q", text="zebra")
    assert cached_service(service, tmp_path).search([nothing], 3).empty
    assert cached_service(service, tmp_path).search([nothing], 3).empty
    assert searched == [1]
    assert cached_service(service, tmp_path).search([], 3).empty


def test_an_interruption_loses_the_results_of_at_most_64_queries(
    small: Small, tmp_path: Path
) -> None:
    service, searched = pages(small)
    queries = [Query(query_id=f"{number}", text=f"owl {number}") for number in range(150)]

    def fail_at_the_third(queries: Sequence[Query], k: int) -> pd.DataFrame:
        if len(searched) == 2:
            raise KeyboardInterrupt
        return service.search(queries, k)

    with pytest.raises(KeyboardInterrupt):
        cached_service(replace(service, ranker=fail_at_the_third), tmp_path).search(queries, 3)
    run = cached_service(service, tmp_path).search(queries, 3)
    assert searched == [64, 64, 22]
    assert run.equals(service.search(queries, 3))


def test_a_damaged_file_of_replies_is_named(small: Small, tmp_path: Path) -> None:
    (tmp_path / "replies.sqlite").write_text("no database, but a text that is long enough " * 50)
    with pytest.raises(VragError, match=r"replies\.sqlite: replies cannot be read .*remove"):
        cached_service(pages(small)[0], tmp_path).search(small.queries(), 3)


@pytest.fixture
def collage(small: Small, tmp_path: Path) -> Query:
    """A query whose picture holds entry kg-3 at the left and kg-0 at the right."""
    left = small.entries["kg-3"].image.open().resize((64, 64))  # type: ignore[union-attr]
    right = small.entries["kg-0"].image.open().resize((60, 40))  # type: ignore[union-attr]
    whole = Image.new("RGB", (160, 64), "grey")
    whole.paste(left, (0, 0))
    whole.paste(right, (100, 24))
    whole.save(tmp_path / "collage.png")
    return Query(query_id="c", text="", image=ImageFile(tmp_path / "collage.png"))


LEFT, RIGHT = (0.0, 0.0, 0.4, 1.0), (100 / 160, 24 / 64, 1.0, 1.0)


def test_a_document_has_its_best_score_over_the_crops(collage: Query, small: Small) -> None:
    service = image_service(small.entries, small.clip, small.cache)
    crops = [LEFT, RIGHT, WHOLE]
    alone = [with_regions(service, lambda query, box=box: [box]) for box in crops]
    scores = [each.search([collage], 4).set_index("doc_id")["score"] for each in alone]
    run = with_regions(service, lambda query: crops).search([collage], 4)
    assert set(run["doc_id"][:2]) == {"kg-3", "kg-0"}
    for doc_id, score in zip(run["doc_id"], run["score"], strict=True):
        assert score == max(each[doc_id] for each in scores)
    for k in (1, 2, 3):
        cut = with_regions(service, lambda query: crops).search([collage], k)
        assert cut.equals(run[run["rank"] <= k])


def test_a_crop_holds_the_pixels_of_its_region_and_is_another_picture(collage: Query) -> None:
    assert collage.image is not None
    crop = Crop(collage.image, RIGHT)
    expected = collage.image.open().crop((100, 24, 160, 64))
    assert np.array_equal(np.asarray(crop.open()), np.asarray(expected))
    assert crop.stamp not in (collage.image.stamp, Crop(collage.image, LEFT).stamp)
    assert crop.data().startswith(b"\x89PNG")
    beyond = Crop(collage.image, (-1.0, 0.5, 2.0, 7.0)).open()
    assert beyond.size == (160, 32)
    for box in [(0.5, 0.0, 0.5, 1.0), (0.6, 0.0, 0.4, 1.0), (1.2, 0.0, 1.4, 1.0)]:
        with pytest.raises(VragError, match=r"collage\.png .*: the region holds no pixel"):
            Crop(collage.image, box).open()


def test_results_of_crops_are_cached_each_and_those_of_all_regions_are_not(
    collage: Query, small: Small, tmp_path: Path
) -> None:
    service, searched = pictures(small)
    plain = image_service(small.entries, small.clip, small.cache)
    for regions in ([LEFT], [LEFT, RIGHT], [LEFT, RIGHT]):
        cached = with_regions(cached_service(service, tmp_path), lambda query, boxes=regions: boxes)
        expected = with_regions(plain, lambda query, boxes=regions: boxes)
        assert cached.search([collage], 2).equals(expected.search([collage], 2))
    assert searched == [1, 1]
    with pytest.raises(VragError, match="by-region: its results depend on more"):
        cached_service(cached, tmp_path)


def test_marked_regions_are_pixels_of_the_size_that_they_were_marked_in(collage: Query) -> None:
    marked = replace(collage, metadata={"region": [100, 24, 160, 64], "image_size": [160, 64]})
    assert annotated_region(marked) == [RIGHT]
    larger = {"region": [200, 48, 320, 128], "image_size": [320, 128]}
    assert annotated_region(replace(collage, metadata=larger)) == [RIGHT]
    assert annotated_region(replace(collage, metadata={"region": [100, 24, 160, 64]})) == [RIGHT]
    assert annotated_region(collage) == []
    for wrong in ([1, 2, 3], "left", [1, 2, 3, None]):
        with pytest.raises(VragError, match="query 'c': its region is"):
            annotated_region(replace(collage, metadata={"region": wrong}))


def test_a_margin_widens_a_region_on_each_side_as_far_as_the_picture_goes(
    collage: Query, small: Small
) -> None:
    service = image_service(small.entries, small.clip, small.cache)
    # 0.25 − 0.5 · 0.5 and 0.75 + 0.5 · 0.5 across; 0.5 − 0.5 · 0.25 and 0.75 + 0.5 · 0.25 down
    box, wide = (0.25, 0.5, 0.75, 0.75), (0.0, 0.375, 1.0, 0.875)
    low, cut = (0.0, 0.5, 0.5, 1.0), (0.0, 0.25, 0.75, 1.0)
    for region, expected in [(box, wide), (low, cut), (WHOLE, WHOLE)]:
        run = with_regions(service, lambda query, box=region: [box], margin=0.5)
        own = with_regions(service, lambda query, box=expected: [box])
        assert run.search([collage], 4).equals(own.search([collage], 4))
        assert run.name == f"{own.name}-and-0.5"
    for margin in (-0.1, float("nan"), float("inf")):
        with pytest.raises(VragError, match=r"margin is .*; expected a share of a region's side"):
            with_regions(service, annotated_region, margin=margin)


def test_a_search_by_text_has_no_regions(small: Small) -> None:
    with pytest.raises(VragError, match="bm25 reads the text of a query, which has no regions"):
        with_regions(pages(small)[0], annotated_region)


KG = {
    f"kg-{number}": Document(
        doc_id=f"kg-{number}",
        metadata={"entities": [{"entity_name": name} for name in names]},
    )
    for number, names in enumerate([["Talia ensis"], ["Talia osa", "Talia  Ensis"], ["Moth"]])
}
ASKED = [
    Query(query_id="first", text="?", entity="Talia ensis", group="g"),
    Query(query_id="third", text="?", entity="moth"),
    Query(query_id="never", text="?", entity="Heron"),
    Query(query_id="nothing found", text="?", entity="Moth"),
    Query(query_id="not told", text="?"),
]
RUN = make_run(
    [(name, f"kg-{number}", 1.0 - number / 10) for name in ("first", "third", "never", "not told")
     for number in (1, 0, 2)]
)  # fmt: skip


def test_an_entity_is_found_where_one_of_the_first_k_hits_shows_it() -> None:
    table = entity_hit_rate(RUN, ASKED, KG, entity_names, cutoffs=[1, 2, 3])
    assert set(table["metric"]) == {"hit_rate"}
    values = table.pivot(index="query_id", columns="k", values="value")
    assert values.loc["first"].tolist() == [1, 1, 1]
    assert values.loc["third"].tolist() == [0, 0, 1]
    assert values.loc["never"].tolist() == [0, 0, 0]
    assert values.loc["nothing found"].tolist() == [0, 0, 0]
    assert "not told" not in values.index
    held = {"first": True, "third": True, "never": False, "nothing found": True}
    assert entity_coverage(ASKED, KG, entity_names) == held


def test_a_page_that_tells_the_answer_is_found_and_one_that_cannot_be_told_is_no_value() -> None:
    asked: list[str] = []

    def relevance(pairs: Sequence[tuple[Query, Document]]) -> list[bool | None]:
        asked.extend(f"{query.query_id} {page.doc_id}" for query, page in pairs)
        said = {"kg-0": None, "kg-1": False, "kg-2": True}
        return [said[page.doc_id] for _, page in pairs]

    table = hit_rate(RUN, ASKED[:1], KG, relevance, cutoffs=[3, 1, 2])
    assert asked == ["first kg-0", "first kg-1", "first kg-2"]
    values = dict(zip(table["k"], table["value"], strict=True))
    assert values[3] == 1  # a page is known to tell it
    assert np.isnan(values[1])  # none is, and one could not be told
    assert np.isnan(values[2])
    with pytest.raises(VragError, match="expected 1 or more"):
        hit_rate(RUN, ASKED, KG, relevance, cutoffs=[0])
    with pytest.raises(VragError, match="the run finds 3 documents that the corpus does not hold"):
        hit_rate(RUN, ASKED, {}, relevance, cutoffs=[3])


def test_a_search_without_its_cache_folder_makes_one(small: Small, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    cached_service(pages(small)[0], folder).search(small.queries(), 1)
    shutil.rmtree(folder)
    cached_service(pages(small)[0], folder).search(small.queries(), 1)
