"""An encoder of tiny pictures that takes its time, for tests of several processes at once; it
imports nothing heavy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.retrieval.embedding_cache import ShardPart, embed_part
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.types import Document, Query

COUNT, SHARD, BATCH = 32, 4, 2


class Slow:
    """Embeds a picture as its mean colour; writes down in a file what it encodes."""

    name, fingerprint, normalized = "color", "0" * 64, False

    def __init__(self, place: Path) -> None:
        self.modalities = InputModalities()
        self.document_key = DocumentKey(self.name, self.fingerprint)
        self.prompts: dict[str, str] = {}
        self.place = place

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        return np.ones((len(queries), 3), dtype=np.float32)

    def prepare(self, document: Document) -> Any:
        assert document.image is not None
        return np.asarray(document.image.open(), dtype=np.float32).mean(axis=(0, 1)) + 1

    def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
        time.sleep(0.02)
        with (self.place / "encoded").open("a") as file:
            file.write("x" * len(prepared))
        return np.stack(prepared).astype(np.float32)


def encoded(place: Path) -> int:
    """How many documents were encoded by all processes together."""
    file = place / "encoded"
    return len(file.read_text(encoding="utf-8")) if file.exists() else 0


def pictures(place: Path) -> list[Document]:
    """The documents; drawn where they are not there yet."""
    files = [place / "x" / f"{number:03d}.png" for number in range(COUNT)]
    if not files[-1].exists():
        files[0].parent.mkdir()
        for number, file in enumerate(files):
            Image.new("RGB", (4, 4), (number, 7 * number, 3 * number)).save(file)
    return [Document(doc_id=f"x/{file.name}", image=ImageFile(file)) for file in files]


def work(place: Path, part: ShardPart | None = None, store: str = "store") -> None:
    """Embed the documents, or a part of them."""
    one = part or ShardPart(1, 1)
    embed_part(Slow(place), pictures(place), place / store, one)
