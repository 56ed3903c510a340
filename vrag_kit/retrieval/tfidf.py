"""Search by the words that question and document share.

It is what any retriever of texts has to beat, and all that names need.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.retrieval.run import make_run
from vrag_kit.types import Benchmark


def word_run(benchmark: Benchmark, *, k: int) -> pd.DataFrame:
    """The k documents of the whole corpus whose texts share most with each question, as
    a run; ties by doc_id descending, also at the cut.

    The score is the cosine, in [0, 1], of tf-idf weights: occurrences of a word, in
    lower case, times ln((1 + N) / (1 + documents with it)) + 1 for N documents
    (scikit-learn's `TfidfVectorizer`). Words that no document has count for nothing.
    All documents where there are fewer than k. Raises `VragError` for a document
    without text, and for a k below 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

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
    k = min(k, len(benchmark.corpus))
    names = list(benchmark.corpus)
    weights = TfidfVectorizer(token_pattern=r"\w+")
    documents = weights.fit_transform(document.text for document in benchmark.corpus.values())
    rows: list[tuple[str, str, float]] = []
    for query_id, query in benchmark.queries.items():
        scores = (documents @ weights.transform([query.text]).T).toarray().ravel()
        tied = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        best = sorted(((float(scores[i]), names[i]) for i in tied), reverse=True)[:k]
        rows += [(query_id, doc_id, score) for score, doc_id in best]
    return make_run(rows)
