"""What a search costs compared with one read of the rows and a product: `python -m
tests.timing.search`. The vectors are in the memory that the system keeps of files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from tests.timing import FreeEncoder, seconds
from vrag_kit.retrieval.dense import dense_run, nearest_neighbors
from vrag_kit.retrieval.shards import Embeddings, write_shard
from vrag_kit.types import Query

DOCUMENTS, DIM, QUERIES, POOL, SHARD, K = 99_017, 768, 374, 265, 2048, 30
"""Those of Visual-RAG, with CLIP ViT-L."""


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    """Directions, float32."""
    made = rng.standard_normal((count, DIM), np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def store(folder: Path, vectors: np.ndarray) -> Embeddings:
    """Vectors on disk, as embeddings are cached."""
    ids = [f"p{number:06d}" for number in range(len(vectors))]
    shards = []
    for start in range(0, len(ids), SHARD):
        part = slice(start, start + SHARD)
        shards.append(write_shard(folder, ids[part], [""] * len(ids[part]), vectors[part]))
    return Embeddings(pd.Index(ids, dtype=object), np.arange(len(ids)), shards)


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


def pools(known: Embeddings, vectors: np.ndarray) -> None:
    """Each query in its own pool: all rows are looked at once."""
    names, encoder = list(known.ids), FreeEncoder(vectors)
    queries = [Query(query_id=str(number), text="") for number in range(len(vectors))]
    step = (len(names) - POOL) / (len(queries) - 1)
    starts = [int(number * step) for number in range(len(queries))]
    mine = {str(i): tuple(names[start : start + POOL]) for i, start in enumerate(starts)}
    places = [np.arange(start, start + POOL) for start in starts]

    def product() -> None:
        for each, vector in zip(places, vectors, strict=True):
            known.rows(each) @ vector

    once, least, spent = seconds(
        lambda: [known.rows(each).copy() for each in places],
        product,
        lambda: dense_run(encoder, known, queries, K, mine.__getitem__),
        repeats=5,
    )
    print(
        f"{len(queries)} queries in pools of {POOL} among {len(names):,} × {DIM}: one read of these"
        f" rows {once:.3f} s, the products {least:.3f} s, a search {spent:.3f} s ="
        f" {spent / once:.1f} reads (aim at most 3)"
    )


def corpus(known: Embeddings, vectors: np.ndarray, queries: np.ndarray) -> None:
    """All queries in all documents, against a blocked product with its top k over the
    same vectors in memory, which orders no ties.
    """
    fastest, spent = seconds(
        lambda: blocked(queries, vectors, K),
        lambda: nearest_neighbors(queries, known, K),
        repeats=5,
    )
    names, alike = list(known.ids), 0
    found = nearest_neighbors(queries, known, K)
    for ranked, places in zip(found, blocked(queries, vectors, K), strict=True):
        alike += [name for _, name in ranked] == [names[place] for place in places]
    print(
        f"{len(queries):,} queries in {len(vectors):,} × {DIM}: blocked product with top k"
        f" {fastest:.2f} s, ours {spent:.2f} s = {spent / fastest:.2f} times that (aim at"
        f" most 1.3); {100 * alike / len(queries):.0f} % of the rankings are the same"
    )


def main() -> None:
    """Visual-RAG's size, and MRAG-Bench's."""
    rng = np.random.default_rng(0)
    for documents, asked in ((DOCUMENTS, QUERIES), (16_130, 1_353)):
        vectors, questions = unit(rng, documents), unit(rng, asked)
        with tempfile.TemporaryDirectory() as folder:
            known = store(Path(folder), vectors)
            if documents == DOCUMENTS:
                pools(known, questions)
            corpus(known, vectors, questions)


if __name__ == "__main__":
    main()
