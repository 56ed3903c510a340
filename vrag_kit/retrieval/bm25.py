"""BM25 scores: a text search by shared words, rare words and short texts counting more."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

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


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return _WORD.findall(text.lower())
