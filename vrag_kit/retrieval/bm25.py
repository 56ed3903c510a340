"""BM25 scores: a text search by shared words, rare words and short texts counting more."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.run import matched_run
from vrag_kit.types import DocId, Evidence, Query

K1, B = 1.5, 0.75
_WORD = re.compile(r"\w+")


class Bm25Index:
    """The words of some texts, and how much each of them tells.

    Robertson & Zaragoza (2009), The Probabilistic Relevance Framework, with Lucene's
    idf, ln(1 + (N − n + 0.5) / (n + 0.5)) for n of N texts, k1 = 1.5 and b = 0.75, by
    the library bm25s. Words are runs of letters and digits in lower case: none is
    stemmed, and none is left out as too short or too common.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """A text without a word is found by no question."""
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells each step
        self._vocabulary: dict[str, int] = {}
        known = self._vocabulary
        numbered = [[known.setdefault(word, len(known)) for word in words(text)] for text in texts]
        self._count = len(numbered)
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        if known:
            self._index.index((numbered, known), create_empty_token=False, show_progress=False)

    def scores(self, question: str) -> np.ndarray:
        """float32, shape (texts,), in their order: at least 0, and 0 for a text that
        shares no word with the question; a word said twice counts twice.
        """
        asked = [self._vocabulary[word] for word in words(question) if word in self._vocabulary]
        if not asked:
            return np.zeros(self._count, np.float32)
        found: np.ndarray = self._index.get_scores_from_ids(asked)
        return found


def bm25_run(queries: Iterable[Query], documents: Mapping[DocId, Evidence], k: int) -> pd.DataFrame:
    """The k documents whose texts match each question best (`Bm25Index`), as a run:
    equal scores by doc_id descending, also at the cut.

    What shares no word with a question is no result, so that fewer than k may come, or
    none. Documents without text, such as pictures without captions, are not among the
    texts that are searched and counted. Raises `VragError` when none has a text, and for
    a k below 1.
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
    return matched_run(queries, list(texts), index.scores, k)


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return _WORD.findall(text.lower())
