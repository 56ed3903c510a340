"""BM25, tf-idf and fused runs against cases by hand and slow, obvious versions; images and texts
are searched apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import factories
import numpy as np
import pandas as pd
import pytest
from conftest import WEIGHTS
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from retrieval_data import refused
from sklearn.feature_extraction.text import TfidfVectorizer

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval import make_run, reciprocal_rank_fusion
from vrag_kit.retrieval.hybrid import (
    BM25,
    FUSED,
    bm25_index,
    bm25_run,
    score_by_modality,
    search_by_modality,
    tfidf_run,
)
from vrag_kit.types import Benchmark, Document, Query

CLIP = str(WEIGHTS / "field-guide-clip-32")


def run_of(documents: list[str]) -> pd.DataFrame:
    return make_run(("q", doc_id, -float(place)) for place, doc_id in enumerate(documents))


def hits(run: pd.DataFrame, query_id: str = "q") -> list[str]:
    return list(run.loc[run["query_id"] == query_id, "doc_id"])


def searching(words: Sequence[str], *questions: str) -> Benchmark:
    """Questions, each its own id, over documents d1, d2, … of these words."""
    queries = [Query(query_id=text, text=text) for text in questions]
    numbered = enumerate(words, start=1)
    documents = [Document(doc_id=f"d{number}", text=text) for number, text in numbered]
    return factories.benchmark(queries, documents)


def test_bm25_agrees_with_its_definition():
    rng = np.random.default_rng(3)
    documents = [" ".join(rng.choice(list("abcdefgh"), size)) for size in rng.integers(1, 12, 30)]
    mean = np.mean([len(text.split()) for text in documents])
    scores = bm25_index(documents)
    for question in ("a b", "h", "a a c", "nothing here"):
        for text, score in zip(documents, scores(question), strict=True):
            words, expected = text.split(), 0.0
            for word in question.split():
                holding = sum(word in other.split() for other in documents)
                weight = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
                count = words.count(word)
                expected += weight * count / (count + 1.5 * (0.25 + 0.75 * len(words) / mean))
            assert score == pytest.approx(expected, abs=1e-5)


def test_a_document_without_a_common_word_is_no_result_and_a_bare_image_no_text():
    plain = searching(["a moth", "the bird"], "A", "zebra", "THE", "")
    with_image = replace(plain, corpus={**plain.corpus, "picture": Document(doc_id="picture")})
    run = bm25_run(with_image, 5)
    assert list(zip(run["query_id"], run["doc_id"], strict=True)) == [("A", "d1"), ("THE", "d2")]
    assert run.equals(bm25_run(plain, 5))


def test_equal_sums_of_other_ranks_are_a_tie():
    at = {3: "a", 12: "b", 24: "a"}  # 1/63 + 1/84 = 1/72 + 1/72
    first = [at.get(rank, f"x{rank}") if rank != 24 else "x24" for rank in range(1, 25)]
    second = [at.get(rank, f"y{rank}") if rank != 3 else "y3" for rank in range(1, 25)]
    fused = reciprocal_rank_fusion({"one": run_of(first), "two": run_of(second)})
    assert hits(fused)[:2] == ["b", "a"]
    assert fused["score"][0] == fused["score"][1]


DOC_IDS = [f"d{number}" for number in range(6)]
ranking = st.permutations(DOC_IDS).map(lambda order: order[:4])


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(ranking, min_size=1, max_size=4))
def test_fusion_agrees_with_exact_fractions_in_any_order(orders):
    exact: dict[str, Fraction] = {}
    for order in orders:
        for rank, doc_id in enumerate(order, start=1):
            exact[doc_id] = exact.get(doc_id, Fraction(0)) + Fraction(1, 60 + rank)
    best = sorted(((score, doc_id) for doc_id, score in exact.items()), reverse=True)
    runs = {str(place): run_of(order) for place, order in enumerate(orders)}
    fused = reciprocal_rank_fusion(runs)
    assert hits(fused) == [doc_id for _, doc_id in best]
    assert list(fused["score"]) == [float(score) for score, _ in best]
    assert reciprocal_rank_fusion(dict(reversed(list(runs.items())))).equals(fused)


def test_tfidf_scores_are_the_cosines_of_scikit_learns_vectors():
    words = ["the goose and the owl", "The goose", "a grey heron, the heron of the fen"]
    question = "Ibis, HERON: the goose"  # an ibis is in no document
    vectors = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit(words)
    expected = (vectors.transform([question]) @ vectors.transform(words).T).toarray()[0]
    run = tfidf_run(searching(words, question), k=3)
    assert hits(run, question) == [f"d{place + 1}" for place in np.argsort(-expected)]
    assert run["score"].tolist() == pytest.approx(sorted(expected, reverse=True))
    tied = searching(["owl", "owl", "owl", "elk"], "owl", "ibis")  # no document has an ibis
    run = tfidf_run(tied, k=2)
    assert (hits(run, "owl"), hits(run, "ibis")) == (["d3", "d2"], ["d4", "d3"])
    refused(partial(tfidf_run, searching([" "], "owl"), k=1), "'d1' has no text")


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Three images with captions, three texts; q0 is answered by an image and a text."""
    folder, documents = tmp_path_factory.mktemp("pictures"), []
    for number, color in enumerate(("red", "green", "blue")):
        Image.new("RGB", (32, 32), color).save(folder / f"{color}.png")
        image = ImageFile(folder / f"{color}.png")
        caption = f"A {color} moth" if number else "The moth Talia"
        documents.append(Document(doc_id=f"p{number}", image=image, text=caption))
        documents.append(Document(doc_id=f"t{number}", text=f"In {color} woods it lives."))
    asked = {"q0": "Where does Talia live, in red woods?", "q1": "Which moth is green?"}
    queries = [Query(query_id=name, text=text, group=name) for name, text in asked.items()]
    return factories.benchmark(queries, documents, {"q0": {"p0": 1, "t0": 1}, "q1": {"p1": 1}})


def test_each_modality_is_searched_and_fused_apart(benchmark, at):
    retrievers = {"image": [BM25, CLIP], "text": [BM25]}
    runs = search_by_modality(benchmark, retrievers, at=at, k=2)
    names = {modality: list(by_name) for modality, by_name in runs.items()}
    assert names == {"image": [BM25, "field-guide-clip-32", FUSED], "text": [BM25]}
    for modality, by_name in runs.items():
        found = set(pd.concat(by_name.values())["doc_id"])
        assert {benchmark.corpus[doc_id].modality for doc_id in found} == {modality}
    image = dict(list(runs["image"].items())[:2])
    assert runs["image"][FUSED].equals(reciprocal_rank_fusion(image))
    assert hits(runs["text"][BM25], "q0")[0] == "t0"
    scores = score_by_modality(benchmark, runs, cutoffs=[1])
    recall = scores[(scores["metric"] == "recall") & (scores["retriever"] == BM25)]
    found = recall.set_index(["modality", "query_id"])["value"]
    assert found["text", "q0"] == found["image", "q0"] == found["image", "q1"] == 1.0
    assert found["text"].isna().tolist() == [False, True]  # no text answers q1


def test_words_are_searched_among_candidates(benchmark, at):
    pools = {"q0": ("p1", "t1", "t2"), "q1": ("p0", "p1", "p2")}
    bound = replace(benchmark, pools=pools, left_out={"q1": frozenset({"p1"})})
    runs = search_by_modality(bound, {"image": [BM25], "text": [BM25]}, at=at, k=2)
    assert set(hits(runs["image"][BM25], "q1")) == {"p0", "p2"}
    assert set(hits(runs["text"][BM25], "q0")) == {"t1", "t2"}


def test_images_without_captions_have_no_word_search(benchmark, at):
    silent = {name: replace(benchmark.corpus[name], text=None) for name in ("p0", "p1", "p2")}
    bare = replace(benchmark, corpus=silent, qrels={"q0": {"p0": 1}, "q1": {"p1": 1}})
    search = partial(search_by_modality, bare, k=2, at=at)
    assert search({"image": [BM25], "text": [BM25]}) == {}
    refused(partial(search, {"sound": [BM25]}), "'sound'", "image")
