"""BM25 text search, which weighs rare words and short texts more."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import lexical_run
from vrag_kit.types import DocId, Document, Query

K1, B = 1.5, 0.75
_WORD = re.compile(r"\w+")


class Bm25Index:
    """BM25 index over a list of texts.

    Robertson & Zaragoza (2009), The Probabilistic Relevance Framework, with Lucene's idf, ln(1 + (N
    − n + 0.5) / (n + 0.5)) for n of N texts, k1 = 1.5 and b = 0.75, by the library bm25s. Words are
    runs of letters and digits in lower case, without stemming or stop words.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Indexes the texts; a text without a word matches no question."""
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells each step
        self._vocabulary: dict[str, int] = {}
        known = self._vocabulary
        numbered = [
            [known.setdefault(word, len(known)) for word in tokenize(text)] for text in texts
        ]
        self._count = len(numbered)
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        if known:
            self._index.index((numbered, known), create_empty_token=False, show_progress=False)

    def scores(self, question: str) -> np.ndarray:
        """Returns the BM25 score of each text, float32, shape (texts,), in order. Scores are at
        least 0, and 0 for a text without a word of the question; repeated words count repeatedly.
        """
        asked = [self._vocabulary[word] for word in tokenize(question) if word in self._vocabulary]
        if not asked:
            return np.zeros(self._count, np.float32)
        found: np.ndarray = self._index.get_scores_from_ids(asked)
        return found


def bm25_run(queries: Iterable[Query], documents: Mapping[DocId, Document], k: int) -> pd.DataFrame:
    """Returns the k documents that match each question best (`Bm25Index`), as a run. Ties are
    ordered by doc_id descending, also at the cutoff.

    A document without a word of the question is not a result, so a query may have fewer than k
    results, or none. Documents without text, such as images without captions, are neither searched
    nor counted. Raises `VragError` when no document has a text, and for k below 1.
    """
    texts = {
        doc_id: document.text
        for doc_id, document in documents.items()
        if document.text and document.text.strip()
    }
    if k < 1 or not texts:
        raise VragError(
            f"search by bm25: {len(texts):,} of {len(documents):,} documents have a text, and k ="
            f" {k}. Expected at least one, such as a caption or a page's text, and k of 1 or more."
        )
    index = Bm25Index(texts.values())
    return lexical_run(queries, list(texts), index.scores, k)


def tokenize(text: str) -> list[str]:
    """Returns the words of a text in lower case, in order."""
    return _WORD.findall(text.lower())
