"""What search services cost: `python -m tests.timing.services [search|vectors|words …]`.

Machines are noisy, so times are medians of interleaved repetitions and nothing here is
asserted. Each part runs in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.retrieval.dense import nearest_neighbors
from vrag_kit.retrieval.hybrid import bm25_index, lexical_run
from vrag_kit.retrieval.shards import Embeddings, write_shard
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Query

PARTS = ("search", "vectors", "words")
SHARD = 16_384
QUERIES = 256
"""Compared at once in a blocked product."""


def resident() -> float:
    """Most memory so far, in MB; pages of mapped files that were read count too."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def own() -> float:
    """Memory of its own now, in MB: what no file backs."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


def search() -> None:
    """2,000 pictures in 68,000 × 768, read from shards, against a blocked product with
    its top k over the same vectors in memory, which orders no ties.
    """
    rng = np.random.default_rng(0)
    vectors = unit(rng, 68_000, 768)
    queries = unit(rng, 2_000, 768)
    with tempfile.TemporaryDirectory() as folder:
        known = store(Path(folder), (vectors[start : start + SHARD] for start in blocks(68_000)))

        def least() -> list[np.ndarray]:
            return blocked(queries, vectors, 30)

        def ours() -> list[list[tuple[float, str]]]:
            return nearest_neighbors(queries, known, 30)

        times: list[tuple[float, float]] = []
        for _ in range(3):
            times.append((seconds(least), seconds(ours)))
        fastest, spent = np.median(np.array(times), axis=0)
        names = known.doc_ids
        ranked = [[names[place] for place in places] for places in least()]
        alike = np.mean([[name for _, name in a] == b for a, b in zip(ours(), ranked, strict=True)])
    print(
        f"2,000 in 68,000 × 768: blocked product with top k {fastest:.2f} s, ours {spent:.2f} s ="
        f" {spent / fastest:.2f} times that (aim at most 1.3); {100 * alike:.0f} % of the rankings"
        " are the same"
    )


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


def vectors() -> None:
    """Memory of a search in 100,000 to 800,000 vectors of 384: what grows is ids."""
    rng = np.random.default_rng(0)
    queries = unit(rng, 64, 384)
    for count in (100_000, 400_000, 800_000):
        with tempfile.TemporaryDirectory() as folder:
            parts = (unit(rng, min(SHARD, count - start), 384) for start in blocks(count))
            before = own()
            known = store(Path(folder), parts)
            places = own() - before
            nearest_neighbors(queries, known, 50)
            print(
                f"{count:,} pages, {count * 384 * 4 / 2**20:,.0f} MB of vectors on disk: ids and"
                f" places {places:,.0f} MB ({places * 2**20 / count:.0f} bytes a page), after a"
                f" search {own() - before:,.0f} MB of its own, {resident():,.0f} MB at most"
            )
            del known


def words() -> None:
    """Bytes a page of BM25 over simulated short pages, and processor time."""
    rng = np.random.default_rng(0)
    for count in (25_000, 100_000):
        texts = list(short_pages(rng, count))
        before = own()
        began = time.process_time()
        scores = bm25_index(texts)
        built = time.process_time() - began
        held = own() - before
        names = [f"p{number:06d}" for number in range(count)]
        questions = list(short_pages(rng, 20, words_each=8))
        began = time.process_time()
        for text in questions:
            lexical_run([Query(query_id="q", text=text)], names, scores, 50)
        asked = (time.process_time() - began) / 20
        print(
            f"BM25 over {count:,} pages of 40 words: {held * 2**20 / count:.0f} bytes a page,"
            f" {resident():,.0f} MB at most while it is built ({built:.0f} s),"
            f" {1000 * asked:.0f} ms a question; {800_000 / count * held / 1024:.1f} GB for 800,000"
        )
        del scores


def short_pages(rng: np.random.Generator, count: int, *, words_each: int = 40) -> Iterator[str]:
    """Texts whose words are as unequal as those of a language (Zipf)."""
    for _ in range(count):
        yield " ".join(f"w{number}" for number in rng.zipf(1.2, words_each) % 100_000)


def unit(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    """Directions, float32."""
    made = rng.standard_normal((count, dim), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def blocks(count: int) -> range:
    """Where each shard begins."""
    return range(0, count, SHARD)


def store(folder: Path, parts: Iterator[np.ndarray]) -> Embeddings:
    """Vectors on disk, as embeddings are kept."""
    ids: list[str] = []
    shards: list[Path] = []
    counts: list[int] = []
    dim = 0
    for rows in parts:
        names = [f"p{number:06d}" for number in range(sum(counts), sum(counts) + len(rows))]
        unknown = [""] * len(rows)
        shards.append(write_shard(folder, names, unknown, rows))
        ids += names
        counts.append(len(rows))
        dim = rows.shape[1]
    return Embeddings(StringIndex(ids), np.arange(len(ids)), shards, counts, dim)


def seconds(task: object) -> float:
    """Wall time of a task."""
    began = time.perf_counter()
    task()  # type: ignore[operator]
    return time.perf_counter() - began


def main(parts: Sequence[str]) -> None:
    """Run parts, each in a process of its own where there are several."""
    if len(parts) == 1:
        globals()[parts[0]]()
        return
    for part in parts:
        subprocess.run([sys.executable, "-m", "tests.timing.services", part], check=True)


if __name__ == "__main__":
    main(sys.argv[1:] or PARTS)
