"""Runs by shared words (tf-idf, BM25) and fused runs against cases worked by hand and slow,
obvious versions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction

import factories
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.errors import VragError
from vrag_kit.retrieval import make_run, reciprocal_rank_fusion
from vrag_kit.retrieval.hybrid import bm25_index, bm25_run, tfidf_run
from vrag_kit.types import Benchmark, Document, Query

DOC_IDS = [f"d{number}" for number in range(6)]
Ranking = dict[str, list[str]]


def run_of(rankings: Ranking) -> pd.DataFrame:
    rows = []
    for query_id, documents in rankings.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(documents)]
    return make_run(rows)


def hits(run: pd.DataFrame, query_id: str = "q") -> list[str]:
    return list(run.loc[run["query_id"] == query_id, "doc_id"])


def texts(*words: str) -> dict[str, Document]:
    return {
        f"d{number}": Document(doc_id=f"d{number}", text=text)
        for number, text in enumerate(words, start=1)
    }


def searching(documents: dict[str, Document], *questions: str) -> Benchmark:
    """Questions, each its own id, over documents."""
    queries = [Query(query_id=text, text=text) for text in questions]
    return factories.benchmark(queries, documents.values())


def test_bm25_finds_what_the_case_worked_by_hand_finds() -> None:
    benchmark = searching(texts("red moth", "red red bird", "blue bird"), "red bird")
    run = bm25_run(benchmark, 3)
    # ln(1 + 1.5 / 2.5) = 0.470004, over 1 + 1.339286, and 2 / 3.821429 + 1 / 2.821429 of it
    assert list(run["doc_id"]) == ["d2", "d3", "d1"]  # of equal scores the later id first
    assert list(run["score"]) == pytest.approx([0.412567, 0.200918, 0.200918], abs=1e-6)
    assert list(run["rank"]) == [1, 2, 3]
    assert hits(bm25_run(benchmark, 2), "red bird") == ["d2", "d3"]


def test_what_shares_no_word_is_no_result_and_a_bare_picture_is_no_text() -> None:
    documents = {**texts("a moth", "the bird"), "picture": Document(doc_id="picture")}
    questions = ("A", "zebra", "THE", "")
    run = bm25_run(searching(documents, *questions), 5)
    assert list(zip(run["query_id"], run["doc_id"], strict=True)) == [("A", "d1"), ("THE", "d2")]
    without = bm25_run(searching(texts("a moth", "the bird"), *questions), 5)
    assert run.equals(without)  # nor does it change what a word is worth


def test_a_bm25_search_of_nothing_or_for_nothing_says_so() -> None:
    with pytest.raises(VragError, match="0 of 1 documents have a text, and k = 3"):
        bm25_run(searching({"p": Document(doc_id="p", text=" ")}, "red"), 3)
    with pytest.raises(VragError, match="1 of 1 documents have a text, and k = 0"):
        bm25_run(searching(texts("red"), "red"), 0)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=12), min_size=1, max_size=8),
    st.text("abcd ", max_size=6),
    st.integers(1, 9),
)
def test_a_bm25_run_is_all_scores_above_0_sorted(words: list[str], asked: str, k: int) -> None:
    documents = texts(*words)
    worded = {doc_id: each.text for doc_id, each in documents.items() if (each.text or "").strip()}
    if not worded:
        return
    scores = bm25_index(map(str, worded.values()))(asked)
    ranked = sorted(((float(s), d) for s, d in zip(scores, worded, strict=True)), reverse=True)
    expected = [doc_id for score, doc_id in ranked if score > 0][:k]
    assert hits(bm25_run(searching(documents, asked), k), asked) == expected


def test_fusion_agrees_with_the_case_worked_by_hand() -> None:
    runs = {"one": run_of({"q": ["d1", "d2", "d3"]}), "two": run_of({"q": ["d3", "d4"]})}
    fused = reciprocal_rank_fusion(runs)
    assert hits(fused) == ["d3", "d1", "d4", "d2"]
    expected = [1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62]
    assert list(fused["score"]) == pytest.approx(expected, rel=1e-12)
    assert list(fused["rank"]) == [1, 2, 3, 4]


def test_equal_sums_of_other_ranks_are_a_tie() -> None:
    at = {3: "a", 12: "b", 24: "a"}  # 1/63 + 1/84 = 1/72 + 1/72
    first = [at.get(rank, f"x{rank}") if rank != 24 else "x24" for rank in range(1, 25)]
    second = [at.get(rank, f"y{rank}") if rank != 3 else "y3" for rank in range(1, 25)]
    fused = reciprocal_rank_fusion({"one": run_of({"q": first}), "two": run_of({"q": second})})
    assert hits(fused)[:2] == ["b", "a"]
    assert fused["score"][0] == fused["score"][1]


rankings = st.lists(st.permutations(DOC_IDS).map(lambda order: order[:4]), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rankings)
def test_fusion_agrees_with_exact_fractions_in_any_order_of_the_runs(
    orders: list[list[str]],
) -> None:
    runs = {str(place): run_of({"q": order}) for place, order in enumerate(orders)}
    exact: dict[str, Fraction] = {}
    for order in orders:
        for rank, doc_id in enumerate(order, start=1):
            exact[doc_id] = exact.get(doc_id, Fraction(0)) + Fraction(1, 60 + rank)
    found = sorted(((score, doc_id) for doc_id, score in exact.items()), reverse=True)
    fused = reciprocal_rank_fusion(runs)
    assert hits(fused) == [doc_id for _, doc_id in found]
    assert list(fused["score"]) == [float(score) for score, _ in found]
    backwards = dict(reversed(list(runs.items())))
    assert reciprocal_rank_fusion(backwards).equals(fused)


def test_what_cannot_be_fused_is_refused_by_name() -> None:
    run = run_of({"q": ["d1", "d2"]})
    with pytest.raises(VragError, match="fuse: 0 runs"):
        reciprocal_rank_fusion({})
    with pytest.raises(VragError, match="run 'one' ranks document 'd1' twice for query 'q'"):
        reciprocal_rank_fusion({"one": pd.concat([run, run])})
    with pytest.raises(VragError, match="fuse, run 'one': the table has no column 'rank'"):
        reciprocal_rank_fusion({"one": run.drop(columns="rank")})


def asked(question: str, *texts: str) -> Benchmark:
    documents = [Document(doc_id=f"d{i}", text=text) for i, text in enumerate(texts)]
    query = Query(query_id="q", text=question)
    return factories.benchmark([query], documents, {"q": {"d0": 1}}, name="words")


def test_scores_are_the_cosines_of_tf_idf_weights() -> None:
    texts = ["the goose and the owl", "The goose", "a grey heron, the heron of the fen"]
    counts = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    known = sorted(set().union(*counts))
    idf = {
        word: math.log((1 + 3) / (1 + sum(word in count for count in counts))) + 1 for word in known
    }

    def vector(count: Counter[str]) -> list[float]:
        raw = [count[word] * idf[word] for word in known]
        return [value / math.hypot(*raw) for value in raw]

    question = vector(Counter({"heron": 1, "the": 1, "goose": 1}))  # "Ibis" is in no document
    expected = {
        f"d{i}": sum(a * b for a, b in zip(question, vector(count), strict=True))
        for i, count in enumerate(counts)
    }
    run = tfidf_run(asked("Ibis, HERON: the goose", *texts), k=3)
    assert dict(zip(run["doc_id"], run["score"], strict=True)) == pytest.approx(expected, rel=1e-9)
    assert list(run["doc_id"]) == sorted(expected, key=lambda doc_id: -expected[doc_id])


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    run = tfidf_run(asked("moth Papaipema", "a moth", "a moth", "a moth", "a Papaipema"), k=1)
    assert list(run["doc_id"]) == ["d3"]


def test_ties_break_by_doc_id_descending_also_at_the_cut_and_where_no_word_is_shared() -> None:
    assert list(tfidf_run(asked("owl", "owl", "owl", "owl", "elk"), k=2)["doc_id"]) == ["d2", "d1"]
    nothing = tfidf_run(asked("ibis", "owl", "elk", "doe"), k=2)
    assert (list(nothing["doc_id"]), list(nothing["score"])) == (["d2", "d1"], [0.0, 0.0])


def test_documents_without_text_and_impossible_depths_are_refused() -> None:
    with pytest.raises(VragError, match="document 'd1' has no text"):
        tfidf_run(asked("owl", "owl", " "), k=1)
    with pytest.raises(VragError, match="words has 2 documents, so k = 0"):
        tfidf_run(asked("owl", "owl", "elk"), k=0)


def test_fewer_documents_than_k_are_all_found() -> None:
    assert list(tfidf_run(asked("owl", "owl", "elk"), k=3)["doc_id"]) == ["d0", "d1"]
