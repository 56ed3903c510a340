"""Images of one color, and an encoder that embeds an image as its mean color.

It imports nothing heavy: worker processes of the tests start fast.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import ShardPart, embed_part
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.types import Document, Query


class ColorEncoder:
    """A query's text is a JSON list, its vector. Counts what it encodes, in the file `log` too."""

    name, fingerprint, normalized = "color", "0" * 64, False

    def __init__(self, log: Path | None = None, pause: float = 0.0) -> None:
        self.modalities = InputModalities()
        self.document_key = DocumentKey(self.name, self.fingerprint)
        self.encoded = 0
        self.log = log
        self.pause = pause

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        return np.array([json.loads(query.text) for query in queries], np.float32).reshape(-1, 3)

    def prepare(self, document: Document) -> Any:
        return np.asarray(document.image.open(), dtype=np.float32).mean(axis=(0, 1)) + 1

    def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
        time.sleep(self.pause)
        self.encoded += len(prepared)
        if self.log is not None:
            with self.log.open("a") as file:
                file.write("x" * len(prepared))
        return np.stack(prepared).astype(np.float32)


def pictures(folder: Path, count: int) -> list[Document]:
    """Documents of images in `folder`, which are drawn unless they exist."""
    folder.mkdir(exist_ok=True, parents=True)
    files = [folder / f"{number:03d}.png" for number in range(count)]
    for number, file in enumerate(files):
        if not file.exists():
            color = (number % 250, 7 * number % 250, 13 * number % 250)
            Image.new("RGB", (4, 4), color).save(file)
    return [Document(doc_id=f"{folder.name}/{file.name}", image=ImageFile(file)) for file in files]


def square(folder: Path, side: int) -> Document:
    """An image of a model's own size, which nothing resizes, and a text."""
    pixels = np.random.default_rng(3).integers(0, 255, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "square.png")
    image = ImageFile(folder / "square.png")
    return Document(doc_id="square", image=image, text="The goose has black feet.")


def moved(documents: Sequence[Document], to: Path) -> list[Document]:
    """The same documents, whose images' folder is moved."""
    folder = to.with_name(documents[0].doc_id.partition("/")[0])
    folder.rename(to)
    images = [ImageFile(to / Path(document.doc_id).name) for document in documents]
    return [replace(each, image=image) for each, image in zip(documents, images, strict=True)]


def ask(color: Sequence[float], query_id: str = "q") -> Query:
    return Query(query_id=query_id, text=json.dumps(list(color)))


COUNT, SHARD, BATCH = 32, 4, 2
"""Of `work`: documents in all, in a shard and in a batch."""


def work(place: Path, part: ShardPart | None = None, store: str = "store") -> None:
    """Embed the `COUNT` images of a folder, or a part of them, slowly."""
    encoder = ColorEncoder(place / "encoded", pause=0.02)
    embed_part(encoder, pictures(place / "x", COUNT), place / store, part or ShardPart(1, 1))


def encoded(place: Path) -> int:
    """How many documents all calls of `work` encoded."""
    return len((place / "encoded").read_text(encoding="utf-8"))


def refused(call: Callable[[], object], *tokens: str) -> None:
    """The call raises `VragError`, and the message holds each token."""
    with pytest.raises(VragError) as error:
        call()
    assert [token for token in tokens if token not in str(error.value)] == [], str(error.value)
