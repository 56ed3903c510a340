"""What a corpus costs beside its encoder, from 10,000 to 1,000,000 photographs:
`python -m tests.timing.embedding`.

They are small files in folders of species, read by the loader of Visual-RAG. The encoder
costs nothing, so that all is what the kit adds. Each size is loaded, embedded and searched
in a process of its own, and again in another one, so that memory is its own. Machines are
noisy: times are of the processor, and nothing here is asserted. Aims: the same time and
memory a photograph at every size, and under 2 GB in all for 5 million.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from uuid import UUID

import numpy as np

from tests.timing import FreeEncoder
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.retrieval import embed_documents
from vrag_kit.retrieval.dense import dense_run, nearest_neighbors
from vrag_kit.types import Document

SIZES = (10_000, 100_000, 1_000_000)
"""The first is all noise in memory."""
RECKONED, AIM = 5_000_000, 2_000
"""Photographs, and MB."""
POOL, DIM = 265, 64
QUESTIONS = 374
"""Of Visual-RAG: what is found for each takes memory of its own."""


def resident() -> float:
    """Most memory so far, in MB; pages of mapped files that were read count too."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def photographs(species: int) -> Iterator[tuple[str, int]]:
    """(doc_id, number) of a species' photographs, called as iNaturalist's are."""
    folder = f"{species:05d}_Animalia_Arthropoda_Insecta_Lepidoptera_Noctuidae_A_species"
    for number in range(species * POOL, (species + 1) * POOL):
        yield f"{folder}/{UUID(int=number)}.jpg", number


def write_files(place: Path) -> None:
    """The photographs of the largest size, and a file of questions for each."""
    for count in SIZES:
        with (place / f"{count}.jsonl").open("w", encoding="utf-8") as lines:
            for species in range(count // POOL):
                images = {doc_id: int(not number % POOL) for doc_id, number in photographs(species)}
                asked = {"question": "What colour is it?", "answer": ["red"], "images": images}
                lines.write(json.dumps({**asked, "sn": f"A species{species}"}) + "\n")
    for species in range(SIZES[-1] // POOL):
        named = list(photographs(species))
        (place / "images" / named[0][0]).parent.mkdir(parents=True)
        for doc_id, number in named:
            with open(f"{place}/images/{doc_id}", "wb", buffering=0) as file:
                file.write(b"%d" % number)


def number_of(document: Document) -> int:
    return UUID(Path(document.doc_id).stem).int % 4096


def work(place: Path, root: Path, count: int) -> list[tuple[str, float, float]]:
    """Load, embed and search: (step, seconds of processor, most memory so far in MB)."""
    table = np.random.default_rng(0).standard_normal((4096, DIM), np.float32)
    encoder, steps = FreeEncoder(table, number_of), []
    began = time.process_time()

    def done(name: str) -> None:
        nonlocal began
        steps.append((name, time.process_time() - began, resident()))
        began = time.process_time()

    benchmark = load_visual_rag(place / f"{count}.jsonl", place / "images")
    done("loaded")
    known = embed_documents(encoder, benchmark.corpus.values(), root)
    done("embedded")
    queries = list(benchmark.queries.values())[:QUESTIONS]
    dense_run(encoder, known, queries, 30, benchmark.candidates)
    done(f"{QUESTIONS} pools searched")
    nearest_neighbors(table[:64], known, 30)
    done("64 queries in all")
    return steps


def measure(place: Path, root: Path, count: int, what: str) -> None:
    """Print time and memory of all of it. A search works on blocks of a fixed size, and
    holds what is found of so many questions: that is not reckoned up.
    """
    with tempfile.TemporaryDirectory() as scratch:  # so that what is loaded is loaded
        work(place, Path(scratch), SIZES[0])
    before = resident()
    print(f"{count:,} photographs, {what}, beside {before:,.0f} MB:")
    steps = work(place, root, count)
    for name, seconds, peak in steps:
        print(f"  {name}: {1e6 * seconds / count:.1f} µs each, {peak - before:,.0f} MB at most")
    peaks = [peak for _, _, peak in steps]
    held = peaks[1] - before
    reckoned = before + held * RECKONED / count + peaks[-1] - peaks[1]
    print(
        f"  {held * 2**20 / count:,.0f} bytes each: of {RECKONED:,} {reckoned:,.0f} MB in all (aim"
        f" below {AIM:,})",
        flush=True,
    )


def main() -> None:
    """Every size, twice, each time in a process of its own."""
    alone = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)
    with tempfile.TemporaryDirectory() as place, alone as pool:
        write_files(Path(place))
        for count in SIZES:
            print(flush=True)
            for what in ("new", "again"):
                root = Path(place, f"embeddings of {count}")
                pool.submit(measure, Path(place), root, count, what).result()


if __name__ == "__main__":
    main()
