"""What a search costs beside one read of the rows and a product: `python -m
tests.timing.search`.

Machines are noisy, so each figure is the median of interleaved repetitions and nothing
here is asserted. The vectors are in the memory that the system keeps of files.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from vrag_kit.benchmarks.string_index import StringIndex
from vrag_kit.retrieval.dense import dense_run, nearest_neighbors
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.retrieval.shards import Embeddings, write_shard
from vrag_kit.types import Query

DOCUMENTS, DIM, QUERIES, POOL, SHARD, K = 99_017, 768, 374, 265, 2048, 30
"""Those of Visual-RAG, with CLIP ViT-L."""


class Given:
    """An encoder whose questions' vectors are given: query i has row i."""

    name, fingerprint, normalized = "given", "0" * 64, True
    modalities = InputModalities()
    document_key = DocumentKey(name, fingerprint)

    def __init__(self, vectors: np.ndarray) -> None:
        self.prompts: dict[str, str] = {}
        self.vectors = vectors

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        return self.vectors[[int(query.query_id) for query in queries]]

    def prepare(self, document: object) -> object:
        raise NotImplementedError

    def encode_documents(self, prepared: Sequence[object]) -> np.ndarray:
        raise NotImplementedError


def seconds(*tasks: Callable[[], object]) -> list[float]:
    """Median wall time of each task; the tasks take turns, so that noise hits all
    alike.
    """
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(5):
        for task, spent in zip(tasks, times, strict=True):
            began = time.perf_counter()
            task()
            spent.append(time.perf_counter() - began)
    return [median(spent) for spent in times]


def unit(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    """Directions, float32."""
    made = rng.standard_normal((count, dim), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def store(folder: Path, parts: Iterator[np.ndarray]) -> Embeddings:
    """Vectors on disk, as embeddings are kept."""
    ids: list[str] = []
    shards: list[Path] = []
    for rows in parts:
        names = [f"p{number:06d}" for number in range(len(ids), len(ids) + len(rows))]
        unknown = [""] * len(rows)
        shards.append(write_shard(folder, names, unknown, rows))
        ids += names
    return Embeddings(StringIndex(ids), np.arange(len(ids)), shards)


def blocked(queries: np.ndarray, vectors: np.ndarray, k: int) -> list[np.ndarray]:
    """The places of each query's first `k` vectors, by a product block by block: the
    least that an exact search does. It orders no ties.
    """
    found = []
    for start in range(0, len(queries), QUERIES):
        products = queries[start : start + QUERIES] @ vectors.T
        best = np.argpartition(products, -k, axis=1)[:, -k:]
        for row, places in zip(products, best, strict=True):
            found.append(places[np.argsort(-row[places])])
    return found


def pools(known: Embeddings, encoder: Given, queries: Sequence[Query]) -> None:
    """Each query in its own pool: all rows are looked at once."""
    names = known.doc_ids
    step = (len(names) - POOL) / (len(queries) - 1)
    starts = [int(number * step) for number in range(len(queries))]
    mine = {str(i): names[start : start + POOL] for i, start in enumerate(starts)}
    places = [np.arange(start, start + POOL) for start in starts]
    block = np.empty((POOL, DIM), np.float32)

    def read() -> None:
        for each in places:
            block[:] = known.rows(each)

    def product() -> None:
        for each, vector in zip(places, encoder.vectors, strict=True):
            known.rows(each) @ vector

    def ours() -> None:
        dense_run(encoder, known, queries, K, mine.__getitem__)

    ours()
    once, least, spent = seconds(read, product, ours)
    print(
        f"{len(queries)} queries in pools of {POOL} among {len(names):,} × {DIM}: one read of these"
        f" rows {once:.3f} s, the products {least:.3f} s, a search {spent:.3f} s ="
        f" {spent / once:.1f} reads (aim at most 3)"
    )


def corpus(known: Embeddings, vectors: np.ndarray, queries: np.ndarray) -> None:
    """All queries in all documents, against a blocked product with its top k over the
    same vectors in memory, which orders no ties.
    """

    def least() -> list[np.ndarray]:
        return blocked(queries, vectors, K)

    def ours() -> list[list[tuple[float, str]]]:
        return nearest_neighbors(queries, known, K)

    fastest, spent = seconds(least, ours)
    names = known.doc_ids
    ranked = [[names[place] for place in places] for places in least()]
    alike = np.mean([[name for _, name in a] == b for a, b in zip(ours(), ranked, strict=True)])
    print(
        f"{len(queries):,} queries in {len(vectors):,} × {vectors.shape[1]}: blocked product with"
        f" top k {fastest:.2f} s, ours {spent:.2f} s = {spent / fastest:.2f} times that (aim at"
        f" most 1.3); {100 * alike:.0f} % of the rankings are the same"
    )


def main() -> None:
    """Visual-RAG's size, and MRAG-Bench's."""
    rng = np.random.default_rng(0)
    for documents, asked in ((DOCUMENTS, QUERIES), (16_130, 1_353)):
        vectors, questions = unit(rng, documents, DIM), unit(rng, asked, DIM)
        with tempfile.TemporaryDirectory() as folder:
            parts = (vectors[start : start + SHARD] for start in range(0, documents, SHARD))
            known = store(Path(folder), parts)
            if documents == DOCUMENTS:
                queries = [Query(query_id=str(i), text="") for i in range(asked)]
                pools(known, Given(questions), queries)
            corpus(known, vectors, questions)


if __name__ == "__main__":
    main()
