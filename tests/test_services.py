"""Whatever lies behind a search service, it is asked in one way and answers alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_retrievers as tiny
from small_index import FULL, TEXTS, Small, converted_service, own_text_service

from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.errors import VragError
from vrag_kit.retrieval import (
    SearchService,
    cached_service,
    image_service,
    load_encoder,
    text_service,
    with_regions,
)
from vrag_kit.retrieval.hybrid import bm25_index
from vrag_kit.types import Document, Query

Make = Callable[[Small], SearchService]
PICTURES: dict[str, Make] = {
    "pictures": lambda it: image_service(it.entries, it.clip, it.cache),
    "converted pictures": lambda it: converted_service(it, "image"),
}
VECTORS: dict[str, Make] = {
    "vectors": lambda it: own_text_service(it, it.bert),
    "converted vectors": lambda it: converted_service(it, "text"),
}
WORDS: dict[str, Make] = {
    "bm25": lambda it: own_text_service(it, "bm25"),
    "words": lambda it: own_text_service(it, "words"),
}
AROUND: dict[str, Make] = {
    "kept pictures": lambda it: cached_service(PICTURES["pictures"](it), it.root / "replies"),
    "kept vectors": lambda it: cached_service(VECTORS["vectors"](it), it.root / "replies"),
    "regions": lambda it: with_regions(PICTURES["pictures"](it), lambda query: []),
}
ALL = {**PICTURES, **VECTORS, **WORDS, **AROUND}
every_service = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())


@pytest.mark.slow
@every_service
def test_a_run_holds_at_most_k_documents_of_the_corpus_best_first(make: Make, small: Small) -> None:
    service = make(small)
    run = service.search(small.queries(), 3)
    assert list(run.columns) == ["query_id", "doc_id", "rank", "score"]
    assert set(run["doc_id"]) <= set(service.corpus)
    for _, hits in run.groupby("query_id"):
        assert list(hits["rank"]) == list(range(1, len(hits) + 1))
        assert len(hits) <= 3
        assert hits["score"].is_monotonic_decreasing
        assert hits["doc_id"].is_unique


@pytest.mark.slow
@every_service
def test_a_service_reads_one_part_of_a_query_and_company_changes_nothing(
    make: Make, small: Small
) -> None:
    service = make(small)
    asked = small.queries()
    run = service.search(asked, 4)
    other = {"text": "hindwings"} if service.modality == "image" else {"image": None}
    assert service.search([replace(query, **other) for query in asked], 4).equals(run)
    alone = service.search(asked[1:2], 4)
    together = run[run["query_id"] == "q1"].reset_index(drop=True)
    assert together.equals(alone)
    assert service.search([], 4).empty


@every_service
def test_what_no_service_answers_is_refused_by_name(make: Make, small: Small) -> None:
    service = make(small)
    asked = small.queries()
    with pytest.raises(VragError, match=f"{service.name}: k is 0; expected 1 or more"):
        service.search(asked, 0)
    with pytest.raises(VragError, match="two queries 'q0'"):
        service.search([asked[0], asked[0]], 1)
    bare = Query(query_id="bare", text=" ")
    with pytest.raises(VragError, match=f"query 'bare' has no {service.modality}"):
        service.search([asked[0], bare], 1)


@every_service
def test_the_fingerprint_tells_the_documents_and_how_they_are_compared(
    make: Make, small: Small
) -> None:
    service = make(small)
    assert make(small).fingerprint == service.fingerprint
    if make is AROUND["regions"]:  # its regions are unknown
        assert not service.fingerprint
        return
    assert make(small.without_first()).fingerprint != service.fingerprint


def test_no_two_indexes_share_a_fingerprint(small: Small) -> None:
    made = [make(small).fingerprint for make in {**PICTURES, **VECTORS, **WORDS}.values()]
    assert len(set(made)) == len(made)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize(
    "alike",
    [
        ["pictures", "converted pictures", "kept pictures", "regions"],
        ["vectors", "converted vectors", "kept vectors"],
    ],
    ids=["pictures", "vectors"],
)
def test_services_over_the_same_vectors_return_equal_runs(
    alike: list[str], k: int, small: Small
) -> None:
    first, *others = [ALL[name](small).search(small.queries(), k) for name in alike]
    assert len(first)
    for run in others:
        assert run.drop(columns="score").equals(first.drop(columns="score"))
        assert list(run["score"]) == pytest.approx(list(first["score"]), abs=1e-6)


def test_a_picture_finds_itself_and_scores_are_products_of_the_encoders_vectors(
    small: Small,
) -> None:
    service = image_service(small.entries, small.clip, small.cache)
    run = service.search(small.queries(), 4)
    assert list(run[run["rank"] == 1]["doc_id"]) == list(small.entries)
    vectors = tiny.embed(load_encoder(small.clip), list(small.entries.values()))
    products = vectors @ vectors.T
    for query_id, doc_id, _, score in run.itertuples(index=False):
        expected = products[int(query_id[1:]), int(doc_id[3:])]
        assert score == pytest.approx(float(expected), abs=1e-5)


def test_chunks_are_the_opening_and_runs_of_512_words_and_a_page_has_its_best_chunks_score(
    small: Small,
) -> None:
    service = own_text_service(small, small.bert)
    encoder = load_encoder(small.bert)
    words = f"It eats fish. {FULL}".split()
    heron = ["Heron A grey bird of the fen."]
    heron += [" ".join(words[start : start + 512]) for start in (0, 512, 1024)]
    chunks = {
        "https://a.org/heron": heron,
        "https://a.org/the%20owl": ["Owl A brown bird of the night."],
        "https://b.org/http": ["HTTP A http link is no bird."],
        "https://b.org/moth": ["Moth A red moth, banded with white.", "Larvae eat nettles."],
    }
    asked = small.queries()
    expected = {}
    for page, texts in chunks.items():
        vectors = tiny.embed(encoder, [Document(doc_id="c", text=text) for text in texts])
        best = (encoder.encode_queries(asked) @ vectors.T).max(axis=1)
        expected |= {(f"q{number}", page): score for number, score in enumerate(best)}
    run = service.search(asked, 8)  # as many as there are chunks
    assert len(run) == len(expected) == 16
    for query_id, doc_id, _, score in run.itertuples(index=False):
        assert score == pytest.approx(float(expected[query_id, doc_id]), abs=1e-5)


def test_hits_are_cut_to_k_chunks_before_pages_are_made_unique(small: Small) -> None:
    text = "red moth"
    twice = Document(doc_id="twice", text=text, metadata={"page_result": text})
    other = Document(doc_id="other", text="red owl")
    pages = {"twice": twice, "other": other}
    service = text_service(pages, "bm25", small.cache, chunks=page_chunks)
    asked = [Query(query_id="q", text="red moth")]
    assert list(service.search(asked, 2)["doc_id"]) == ["twice"]
    assert list(service.search(asked, 3)["doc_id"]) == ["twice", "other"]


def test_bm25_agrees_with_its_definition_written_out() -> None:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcdefgh"), size)) for size in rng.integers(1, 12, 30)]
    questions = ["a b", "h", "a a c", "nothing here"]
    mean = np.mean([len(text.split()) for text in texts])
    scores = bm25_index(texts)
    for question in questions:
        for text, score in zip(texts, scores(question), strict=True):
            words = text.split()
            expected = 0.0
            for word in question.split():
                holding = sum(word in other.split() for other in texts)
                weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                count = words.count(word)
                expected += weight * count / (count + 1.5 * (0.25 + 0.75 * len(words) / mean))
            assert score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("make", [*VECTORS.values(), *WORDS.values()], ids=[*VECTORS, *WORDS])
def test_a_question_that_begins_with_http_is_a_text(make: Make, small: Small) -> None:
    asked = [query for query in small.queries() if query.text.startswith("http")]
    (query,) = asked
    run = make(small).search(asked, 10)
    again = make(small).search([replace(query, image=None)], 10)
    assert run.equals(again)
    assert set(run["doc_id"]) <= set(small.pages)
    if make in WORDS.values():
        assert run["doc_id"][0] == "https://b.org/http"


def test_an_empty_page_an_empty_index_and_a_query_side_of_another_part_are_refused(
    small: Small,
) -> None:
    empty = {"p": Document(doc_id="p", text=" ", metadata={"page_name": "", "page_result": None})}
    for entry in ("bm25", "words", small.bert):
        with pytest.raises(VragError, match="document 'p' is empty"):
            text_service(empty, entry, small.cache, chunks=page_chunks)
        with pytest.raises(VragError, match="no documents to search"):
            text_service({}, entry, small.cache)
    with pytest.raises(VragError, match="no documents to search"):
        image_service({}, small.clip, small.cache)
    with pytest.raises(VragError, match="query is 'text'; expected 'image'"):
        image_service(small.entries, {"model": small.clip, "query": "text"}, small.cache)


@pytest.mark.slow
def test_a_sentence_transformers_folder_is_pooled_as_asked(tmp_path: Path) -> None:
    """An index by mean pooling of a model whose own modules take the first token."""
    tiny.sentences(tmp_path / "own")
    plain = {"model": str(tmp_path / "own-bert"), "pooling": "cls", "normalize": True}
    asked = {"model": str(tmp_path / "own"), "pooling": "cls", "normalize": True}
    queries = [Query(query_id=text, text=text) for text in TEXTS]
    vectors = load_encoder(asked).encode_queries(queries)
    assert np.array_equal(vectors, load_encoder(plain).encode_queries(queries))
    own = load_encoder(str(tmp_path / "own")).encode_queries(queries)
    assert not np.allclose(vectors, own, atol=0.01)
