"""Lexical search by tf-idf weights.

It is a baseline for any text retriever, and sufficient for names.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import make_run, top_k_scores
from vrag_kit.types import Benchmark


class TfidfIndex:
    """Index of tf-idf weights of texts (scikit-learn's `TfidfVectorizer`). A weight is a word's
    count, in lower case, times ln((1 + N) / (1 + texts with it)) + 1, for N texts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises `ValueError` when no text has a word."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._weights = TfidfVectorizer(token_pattern=r"\w+")
        self._texts = self._weights.fit_transform(texts)

    def scores(self, question: str) -> np.ndarray:
        """Returns the cosine with each text, in order: float64, shape (texts,), in [0, 1].

        Words that occur in no text are ignored.
        """
        products = self._texts @ self._weights.transform([question]).T
        found: np.ndarray = products.toarray().ravel()
        return found


def tfidf_run(benchmark: Benchmark, *, k: int) -> pd.DataFrame:
    """Returns the k documents of the whole corpus that match each question best, as a run. Ties are
    ordered by doc_id descending, also at the cutoff.

    The score is the cosine, in [0, 1], of tf-idf weights (see `TfidfIndex`). Returns all documents
    where there are fewer than k. Raises `VragError` for a document without text, and for k below 1.
    """
    for doc_id, document in benchmark.corpus.items():
        if not (document.text or "").strip():
            raise VragError(
                f"{benchmark.name}: document {doc_id!r} has no text, so no word of it can be"
                " matched. Load a benchmark with texts."
            )
    if k < 1 or not benchmark.corpus:
        raise VragError(
            f"{benchmark.name} has {len(benchmark.corpus)} documents, so k = {k} finds nothing."
            " Choose k of at least 1, and load a benchmark with documents."
        )
    names = list(benchmark.corpus)
    index = TfidfIndex(document.text or "" for document in benchmark.corpus.values())
    rows: list[tuple[str, str, float]] = []
    for query_id, query in benchmark.queries.items():
        best = top_k_scores(index.scores(query.text), names, k)
        rows += [(query_id, doc_id, score) for score, doc_id in best]
    return make_run(rows)
