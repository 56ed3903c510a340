"""Word matching ranks by shared words, rare ones more, and agrees with the definition
written out.
"""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest

from vrag_kit.errors import VragError
from vrag_kit.retrieval.tfidf import word_run
from vrag_kit.types import Benchmark, Evidence, Query


def asked(question: str, *texts: str) -> Benchmark:
    corpus = {f"d{i}": Evidence(doc_id=f"d{i}", text=text) for i, text in enumerate(texts)}
    return Benchmark(
        name="words",
        fingerprint="",
        queries={"q": Query(query_id="q", text=question)},
        corpus=corpus,
        qrels={"q": {"d0": 1}},
    )


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
    run = word_run(asked("Ibis, HERON: the goose", *texts), k=3)
    assert dict(zip(run["doc_id"], run["score"], strict=True)) == pytest.approx(expected, rel=1e-9)
    assert list(run["doc_id"]) == sorted(expected, key=lambda doc_id: -expected[doc_id])


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    run = word_run(asked("moth Papaipema", "a moth", "a moth", "a moth", "a Papaipema"), k=1)
    assert list(run["doc_id"]) == ["d3"]


def test_ties_break_by_doc_id_descending_also_at_the_cut_and_where_no_word_is_shared() -> None:
    assert list(word_run(asked("owl", "owl", "owl", "owl", "elk"), k=2)["doc_id"]) == ["d2", "d1"]
    nothing = word_run(asked("ibis", "owl", "elk", "doe"), k=2)
    assert (list(nothing["doc_id"]), list(nothing["score"])) == (["d2", "d1"], [0.0, 0.0])


def test_documents_without_text_and_impossible_depths_are_refused() -> None:
    with pytest.raises(VragError, match="document 'd1' has no text"):
        word_run(asked("owl", "owl", " "), k=1)
    with pytest.raises(VragError, match="words has 2 documents, so k = 0"):
        word_run(asked("owl", "owl", "elk"), k=0)


def test_fewer_documents_than_k_are_all_found() -> None:
    assert list(word_run(asked("owl", "owl", "elk"), k=3)["doc_id"]) == ["d0", "d1"]
