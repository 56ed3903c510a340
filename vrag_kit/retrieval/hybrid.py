"""Text search by BM25 and tf-idf, fusion of runs, and search by modality."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.transforms import restrict_to_modality
from vrag_kit.config import Entry
from vrag_kit.errors import VragError
from vrag_kit.retrieval.compare import score_runs, search_all
from vrag_kit.retrieval.runs import RUN_COLUMNS, make_run
from vrag_kit.types import MODALITIES, Benchmark, DocId, Query, QueryId
from vrag_kit.workspace import Workspace

K1, B = 1.5, 0.75
K0 = 60
"""The constant k of Cormack, Clarke & Büttcher."""
BM25 = "bm25"
FUSED = "fused"
Runs = dict[str, dict[str, pd.DataFrame]]
"""Modality → retriever name → run."""
WordScores = Callable[[str], np.ndarray]
"""Maps a question to the score of each text, shape (texts,)."""


def tokenize(text: str) -> list[str]:
    """Returns the words of a text in lower case, in order."""
    return re.findall(r"\w+", text.lower())


def bm25_index(texts: Iterable[str]) -> WordScores:
    """Returns a function that maps a question to the BM25 score of each text, float32, in order.
    Scores are at least 0, and 0 for a text without a word of the question; repeated words count
    repeatedly.

    Robertson & Zaragoza (2009), The Probabilistic Relevance Framework, with Lucene's idf, ln(1 + (N
    − n + 0.5) / (n + 0.5)) for n of N texts, k1 = 1.5 and b = 0.75, by the library bm25s. Words are
    runs of letters and digits in lower case, without stemming or stop words.
    """
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    known: dict[str, int] = {}
    numbers = [[known.setdefault(word, len(known)) for word in tokenize(text)] for text in texts]
    if not known:
        return lambda question: np.zeros(len(numbers), np.float32)
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index((numbers, known), create_empty_token=False, show_progress=False)
    return lambda question: index.get_scores_from_ids(index.get_tokens_ids(tokenize(question)))


def tfidf_index(texts: Iterable[str]) -> WordScores:
    """Returns a function that maps a question to its cosine with each text, float64, in order, in
    [0, 1]. Words that occur in no text are ignored. Raises `ValueError` when no text has a word.

    Vectors are tf-idf weights (scikit-learn's `TfidfVectorizer`): a word's count, in lower case,
    times ln((1 + N) / (1 + texts with it)) + 1, for N texts.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\w+")
    weights = vectorizer.fit_transform(texts)
    return lambda question: (weights @ vectorizer.transform([question]).T).toarray().ravel()


def bm25_run(benchmark: Benchmark, k: int) -> pd.DataFrame:
    """Returns the k documents that match each question best (`bm25_index`), as a run. Ties are
    ordered by doc_id descending, also at the cutoff. A query finds only its candidates; all texts
    count for what is rare.

    A document without a word of the question is not a result, so a query may have fewer than k
    results, or none. Documents without text, such as images without captions, are neither searched
    nor counted.
    """
    texts = {
        doc_id: document.text
        for doc_id, document in benchmark.corpus.items()
        if document.text and document.text.strip()
    }
    everything = benchmark.pools is None and not benchmark.left_out
    candidates = None if everything else benchmark.searchable
    queries, scores = benchmark.queries.values(), bm25_index(texts.values())
    return lexical_run(queries, list(texts), scores, k, candidates=candidates)


def tfidf_run(benchmark: Benchmark, *, k: int) -> pd.DataFrame:
    """Returns the k documents of the whole corpus that match each question best, as a run. Ties are
    ordered by doc_id descending, also at the cutoff.

    The score is the cosine, in [0, 1], of tf-idf weights (see `tfidf_index`). Returns all documents
    where there are fewer than k. Raises `VragError` for a document without text.
    """
    texts = {doc_id: document.text or "" for doc_id, document in benchmark.corpus.items()}
    if silent := [doc_id for doc_id, text in texts.items() if not text.strip()]:
        raise VragError(f"{benchmark.name}: document {silent[0]!r} has no text to be searched.")
    queries, scores = benchmark.queries.values(), tfidf_index(texts.values())
    return lexical_run(queries, list(texts), scores, k, above=-1.0)


def reciprocal_rank_fusion(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Fuses several runs (by name) into one run by reciprocal rank. A document's score is the sum
    of 1 / (60 + rank) over the runs that found it; ties are ordered by doc_id descending.

    The order of the runs does not matter; each ranks a document once for a query. Raises
    `ValueError` without a run.

    Cormack, Clarke & Büttcher (2009), "Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods", SIGIR.
    """
    ranks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for query_id, doc_id, rank, _ in pd.concat(runs.values())[RUN_COLUMNS].itertuples(index=False):
        ranks[query_id, doc_id].append(rank)
    return make_run([(*pair, _rrf_score(tuple(sorted(each)))) for pair, each in ranks.items()])


@cache
def _rrf_score(ranks: tuple[int, ...]) -> float:
    """Returns the sum of 1 / (60 + rank), rounded once: equal sums of other ranks, such as
    1/63 + 1/84 and 1/72 + 1/72, are equal.
    """
    return float(sum(Fraction(1, K0 + rank) for rank in ranks))


def search_by_modality(
    benchmark: Benchmark,
    retrievers: Mapping[str, Sequence[Entry]],
    *,
    k: int,
    at: Workspace,
) -> Runs:
    """Searches the documents of each modality with its own retrievers, at most k results per query.
    "fused" (`reciprocal_rank_fusion`) follows where a modality has several runs, with all of their
    documents.

    `retrievers` maps a modality to what `search_all` takes, and "bm25", which searches passages,
    captions and page text. "bm25" is omitted where no document has text, and a modality where there
    are no documents or no retrievers. Raises `VragError` for an unknown modality, and as
    `search_all` does.
    """
    if unknown := [each for each in retrievers if each not in MODALITIES]:
        raise VragError(f"retrievers: found {unknown[0]!r}, expected {' or '.join(MODALITIES)}.")
    present = {document.modality for document in benchmark.corpus.values()}
    found: Runs = {}
    for modality in [each for each in MODALITIES if each in present]:
        part = restrict_to_modality(benchmark, modality)
        entries = list(retrievers.get(modality, ()))
        runs: dict[str, pd.DataFrame] = {}
        if BM25 in entries and any((each.text or "").strip() for each in part.corpus.values()):
            runs[BM25] = bm25_run(part, k)
        dense = [entry for entry in entries if entry != BM25]
        runs |= search_all(part, dense, k=k, at=at)
        if len(runs) > 1:
            runs[FUSED] = reciprocal_rank_fusion(runs)
        if runs:
            found[modality] = runs
    return found


def score_by_modality(benchmark: Benchmark, runs: Runs, *, cutoffs: Sequence[int]) -> pd.DataFrame:
    """Returns the table of `score_runs` for each modality, with modality as the first column.
    Labels are those of the modality's documents.
    """
    tables = []
    for modality, by_name in runs.items():
        scores = score_runs(restrict_to_modality(benchmark, modality), by_name, cutoffs=cutoffs)
        scores.insert(0, "modality", modality)
        tables.append(scores)
    return pd.concat(tables, ignore_index=True)


def lexical_run(
    queries: Iterable[Query],
    names: Sequence[str],
    scores: WordScores,
    k: int,
    *,
    candidates: Callable[[QueryId], Collection[DocId]] | None = None,
    above: float = 0.0,
) -> pd.DataFrame:
    """Returns the k texts that match each question best, as a run; ties by name descending, also at
    the cutoff. A text is a result if its score is `above` that number: with 0, if it shares a word.

    `scores(question)`: shape (n,), at least 0, the score of each name. `candidates(query_id)`: the
    names that a query may find, by default all.
    """
    rows: list[tuple[str, str, float]] = []
    for query in queries:
        found = scores(query.text)
        places = np.flatnonzero(found > above)
        if candidates is not None:
            allowed = set(candidates(query.query_id))
            places = places[[names[place] in allowed for place in places.tolist()]]
        if len(places) > k:
            places = places[found[places] >= np.partition(found[places], -k)[-k]]
        rows += [(query.query_id, names[at], float(found[at])) for at in places.tolist()]
    run = make_run(rows)
    return run[run["rank"] <= k].reset_index(drop=True)
