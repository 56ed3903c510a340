"""Every search service is asked in one way; results are cached by what was asked; crops are
searched one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import tiny_retrievers as tiny
from PIL import Image
from retrieval_data import refused
from small_index import FULL, Small, converted_service, own_text_service

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.retrieval import (
    SearchService,
    annotated_region,
    cached_service,
    image_service,
    load_encoder,
    text_service,
    with_regions,
)
from vrag_kit.retrieval.services import WHOLE_IMAGE, Crop
from vrag_kit.types import Document, Query

Make = Callable[[Small], SearchService]
Box = tuple[float, float, float, float]


def of_images(small: Small) -> SearchService:
    return image_service(small.entries, small.clip, small.at)


def of_vectors(small: Small) -> SearchService:
    return own_text_service(small, small.bert)


ALL: dict[str, Make] = {
    "images": of_images,
    "regions": lambda small: with_regions(of_images(small), lambda query: []),
    "cached images": lambda small: cached_service(of_images(small), small.root / "replies"),
    "converted images": partial(converted_service, by="image"),
    "vectors": of_vectors,
    "bm25": partial(own_text_service, entry="bm25"),
    "words": partial(own_text_service, entry="words"),
}
every_service = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


@pytest.mark.slow
@every_service
def test_a_service_ranks_at_most_k_by_one_part_of_a_query(make, small):
    service, asked = make(small), small.queries()
    run = service.search(asked, 3)
    assert list(run.columns) == ["query_id", "doc_id", "rank", "score"]
    assert set(run["doc_id"]) <= set(service.corpus)
    for _, hits in run.groupby("query_id"):
        assert list(hits["rank"]) == list(range(1, len(hits) + 1))
        assert len(hits) <= 3
        assert hits["score"].is_monotonic_decreasing
        assert hits["doc_id"].is_unique
    other = {"text": "hindwings"} if service.modality == "image" else {"image": None}
    assert service.search([replace(query, **other) for query in asked], 3).equals(run)
    alone = run[run["query_id"] == "q1"].reset_index(drop=True)
    assert service.search(asked[1:2], 3).equals(alone)
    assert service.search([], 3).empty


@every_service
def test_a_services_fingerprint_covers_its_documents(make, small):
    service = make(small)
    assert make(small).fingerprint == service.fingerprint
    unknown = make is ALL["regions"]  # its regions are unknown
    assert (not service.fingerprint) == unknown
    assert (make(small.without_first()).fingerprint == service.fingerprint) == unknown


def test_an_image_finds_itself_and_scores_are_products_of_vectors(small):
    run = of_images(small).search(small.queries(), 4)
    assert list(run[run["rank"] == 1]["doc_id"]) == list(small.entries)
    bare = Query(query_id="bare", text="a bird")
    refused(lambda: of_images(small).search([bare], 1), "'bare' has no image")
    vectors = tiny.embed(load_encoder(small.clip), list(small.entries.values()))
    products = vectors @ vectors.T
    for query_id, doc_id, _, score in run.itertuples(index=False):
        expected = products[int(query_id[1:]), int(doc_id[3:])]
        assert score == pytest.approx(float(expected), abs=1e-5)


def test_a_page_has_the_score_of_its_best_chunk_of_512_words(small):
    encoder, asked = load_encoder(small.bert), small.queries()
    words = f"It eats fish. {FULL}".split()
    heron = ["Heron A grey bird of the fen."]
    heron += [" ".join(words[start : start + 512]) for start in (0, 512, 1024)]
    chunks = {
        "https://a.org/heron": heron,
        "https://a.org/the%20owl": ["Owl A brown bird of the night."],
        "https://b.org/http": ["HTTP A http link is no bird."],
        "https://b.org/moth": ["Moth A red moth, banded with white.", "Larvae eat nettles."],
    }
    expected = {}
    for page, texts in chunks.items():
        vectors = tiny.embed(encoder, [Document(doc_id="c", text=text) for text in texts])
        best = (encoder.encode_queries(asked) @ vectors.T).max(axis=1)
        expected |= {(f"q{number}", page): float(score) for number, score in enumerate(best)}
    run = of_vectors(small).search(asked, 8)  # as many as there are chunks
    pairs = zip(run["query_id"], run["doc_id"], strict=True)
    assert dict(zip(pairs, run["score"], strict=True)) == pytest.approx(expected, abs=1e-5)


def test_hits_are_cut_to_k_chunks_before_pages_are_made_unique(small):
    text = "red moth"
    twice = Document(doc_id="twice", text=text, metadata={"page_result": text})
    pages = {"twice": twice, "other": Document(doc_id="other", text="red owl")}
    service = text_service(pages, "bm25", small.at, chunks=page_chunks)
    asked = [Query(query_id="q", text="red moth")]
    assert list(service.search(asked, 2)["doc_id"]) == ["twice"]
    assert list(service.search(asked, 3)["doc_id"]) == ["twice", "other"]


def test_an_empty_page_and_another_part_of_a_query_are_refused(small):
    empty = {"p": Document(doc_id="p", text=" ", metadata={"page_name": "", "page_result": None})}
    for entry in ("bm25", "words", small.bert):
        make = partial(text_service, empty, entry, small.at, chunks=page_chunks)
        refused(make, "'p' is empty")
    asking = {"model": small.clip, "query": "text"}
    refused(partial(image_service, small.entries, asking, small.at), "'text'", "'image'")


# cached results


def counted(service: SearchService) -> tuple[SearchService, list[int]]:
    """A service, and the number of queries of each of its searches."""
    sizes: list[int] = []

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        sizes.append(len(queries))
        return service.search(queries, k)

    return replace(service, ranker=rank), sizes


def test_cached_results_hold_for_one_k_service_and_query(small, tmp_path):
    query, (service, sizes) = small.queries()[0], counted(own_text_service(small, "bm25"))
    cached = cached_service(service, tmp_path / "new" / "folder")
    cached.search([query], 3)
    cached.search([replace(query, query_id="other", image=None)], 3)  # the same question
    assert sizes == [1]
    cached.search([query], 2)
    cached.search([replace(query, text=f"{query.text}?")], 3)
    fewer, sizes_of_fewer = counted(own_text_service(small.without_first(), "bm25"))
    cached_service(fewer, tmp_path / "new" / "folder").search([query], 3)
    assert (sizes, sizes_of_fewer) == ([1, 1, 1], [1])
    twins = [query, replace(query, query_id="twin"), replace(query, query_id="new", text="zebra")]
    for _ in range(2):  # a zebra is found nowhere, which is cached too
        run = cached.search(twins, 3)
        assert sizes[3:] == [1]
        hits = run.groupby("query_id")["doc_id"].agg(list)
        assert set(hits.index) == {"q0", "twin"}
        assert hits["q0"] == hits["twin"]


def test_a_damaged_cache_is_named(small, tmp_path):
    (tmp_path / "replies.sqlite").write_text("no database, but long enough " * 70)
    service = cached_service(own_text_service(small, "bm25"), tmp_path)
    refused(lambda: service.search(small.queries(), 1), "replies.sqlite", "remove")


# regions


@pytest.fixture
def collage(small, tmp_path):
    """A query whose image holds entry kg-3 at the left and kg-0 at the right."""
    whole = Image.new("RGB", (160, 64), "grey")
    for name, size, at in (("kg-3", (64, 64), (0, 0)), ("kg-0", (60, 40), (100, 24))):
        image = small.entries[name].image
        whole.paste(image.open().resize(size), at)
    whole.save(tmp_path / "collage.png")
    return Query(query_id="c", text="", image=ImageFile(tmp_path / "collage.png"))


LEFT, RIGHT = (0.0, 0.0, 0.4, 1.0), (100 / 160, 24 / 64, 1.0, 1.0)


def test_a_document_has_its_best_score_over_the_crops(collage, small):
    def search(*boxes: Box, k: int = 4) -> pd.DataFrame:
        return with_regions(of_images(small), lambda query: boxes).search([collage], k)

    run = search(LEFT, RIGHT, WHOLE_IMAGE)
    assert set(run["doc_id"][:2]) == {"kg-3", "kg-0"}
    alone = pd.concat([search(box) for box in (LEFT, RIGHT, WHOLE_IMAGE)])
    best = alone.groupby("doc_id")["score"].max()
    assert list(run["score"]) == list(best[run["doc_id"]])
    assert search(LEFT, RIGHT, WHOLE_IMAGE, k=2).equals(run[run["rank"] <= 2])


def test_a_crop_holds_the_pixels_of_its_region_and_is_another_image(collage):
    crop = Crop(collage.image, RIGHT)
    expected = collage.image.open().crop((100, 24, 160, 64))
    assert np.array_equal(np.asarray(crop.open()), np.asarray(expected))
    assert crop.stamp not in (collage.image.stamp, Crop(collage.image, LEFT).stamp)
    assert crop.data().startswith(b"\x89PNG")
    assert Crop(collage.image, (-1.0, 0.5, 2.0, 7.0)).open().size == (160, 32)


def test_results_are_cached_by_crop(collage, small, tmp_path):
    service, searched = counted(of_images(small))
    for regions in ([LEFT], [LEFT, RIGHT], [LEFT, RIGHT]):
        cached = with_regions(cached_service(service, tmp_path), lambda query, boxes=regions: boxes)
        expected = with_regions(of_images(small), lambda query, boxes=regions: boxes)
        assert cached.search([collage], 2).equals(expected.search([collage], 2))
    assert searched == [1, 1]
    refused(partial(cached_service, cached, tmp_path), "by-region")


def test_marked_regions_are_pixels_of_the_size_that_they_were_marked_in(collage):
    for size, region in [((160, 64), [100, 24, 160, 64]), ((320, 128), [200, 48, 320, 128])]:
        marked = replace(collage, metadata={"region": region, "image_size": list(size)})
        assert annotated_region(marked) == [RIGHT]
    assert annotated_region(collage) == []


def test_a_margin_widens_a_region(collage, small):
    """0.25 − 0.5 · 0.5 and 0.75 + 0.5 · 0.5 across; 0.5 − 0.5 · 0.25 and 0.75 + 0.5 · 0.25 down;
    and an image ends at its edges.
    """
    for box, wide in {
        (0.25, 0.5, 0.75, 0.75): (0.0, 0.375, 1.0, 0.875),
        (0.0, 0.5, 0.5, 1.0): (0.0, 0.25, 0.75, 1.0),
    }.items():
        run = with_regions(of_images(small), lambda query, box=box: [box], margin=0.5)
        expected = with_regions(of_images(small), lambda query, wide=wide: [wide])
        assert run.search([collage], 4).equals(expected.search([collage], 4))
        assert run.name == f"{expected.name}-and-0.5"
