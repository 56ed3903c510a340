"""What keeping embeddings costs beside making them, from 10,000 to 1,000,000 documents:
`python -m tests.timing.embedding`.

The encoder costs nothing, so that all is what the kit adds. Each size is embedded in a
process of its own, and looked up again in another one, so that memory is its own; nothing
here is asserted. Aims: the same time and memory a document at every size, and under 2 GB
for 5 million.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.timing.services import resident
from vrag_kit.retrieval.embedding import embed_documents
from vrag_kit.retrieval.nearest import nearest
from vrag_kit.retrieval.parts import DocumentSide, Shown
from vrag_kit.types import Evidence

SIZES = (10_000, 100_000, 1_000_000)
"""The first is all noise in memory."""
DIM = 64


class Corpus(Collection[Evidence]):
    """Documents that are made when someone looks at them, called as iNaturalist's are."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, document: object) -> bool:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Evidence]:
        for number in range(self._count):
            folder = f"{number // 265:05d}_Animalia_Arthropoda_Insecta_Lepidoptera_A_species"
            yield Evidence(doc_id=f"{folder}/{number:032x}.jpg", text=str(number))


class Free:
    """An encoder that costs nothing: vectors are taken from a table."""

    name, fingerprint, normalized = "free", "0" * 64, False
    shown = Shown()
    documents = DocumentSide(name, fingerprint)

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        self._table = np.random.default_rng(0).standard_normal((4096, DIM), np.float32)

    def encode_queries(self, queries: Sequence[object]) -> np.ndarray:
        raise NotImplementedError

    def prepare(self, document: Evidence) -> int:
        return int(document.text or 0) % len(self._table)

    def encode_documents(self, prepared: Sequence[int]) -> np.ndarray:
        return self._table[list(prepared)]


def measure(root: Path, count: int, what: str) -> None:
    """Embed, or look up what was embedded and search in it; prints time and memory."""
    with tempfile.TemporaryDirectory() as scratch:  # so that what is loaded is loaded
        embed_documents(Free(), Corpus(10_000), scratch)
    before = resident()
    began = time.perf_counter()
    known = embed_documents(Free(), Corpus(count), root)
    spent = time.perf_counter() - began
    held = resident() - before
    print(
        f"{count:,} documents, {what}: {spent:.1f} s, {1e6 * spent / count:.0f} µs a document;"
        f" {held:,.0f} MB, {held * 2**20 / count:,.0f} bytes a document"
    )
    if what == "again":
        began = time.perf_counter()
        nearest(np.random.default_rng(1).standard_normal((64, DIM), np.float32), known, 30)
        spent = time.perf_counter() - began
        print(
            f"  64 queries in all of them: {spent:.2f} s, {1e6 * spent / count:.2f} µs a document"
        )


def main() -> None:
    """Every size, twice, each time in a process of its own."""
    for count in SIZES:
        print()
        with tempfile.TemporaryDirectory() as root:
            for what in ("new", "again"):
                command = [sys.executable, "-m", "tests.timing.embedding", root, str(count), what]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        main()
