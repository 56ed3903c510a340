"""The toy paper's data as a benchmark: talks.json, pages.tsv, and pictures beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from vrag_kit.benchmarks import ImageFile
from vrag_kit.types import Benchmark, Document, Query


def load_talks(folder: Path) -> Benchmark:
    """Read the talks and pages in `folder`: a query a turn, grouped by the shape."""
    talks = json.loads((folder / "talks.json").read_text(encoding="utf-8"))
    queries: dict[str, Query] = {}
    qrels: dict[str, dict[str, int]] = {}
    for talk in talks:
        for turn, asked in enumerate(talk["turns"]):
            query_id = f"{talk['talk']}-{turn}"
            queries[query_id] = Query(
                query_id=query_id,
                text=asked["ask"],
                image=ImageFile(folder / talk["photo"]),
                answers=(asked["right"],),
                choices=tuple(asked["options"]),
                group=talk["shape"],
                conversation_id=talk["talk"],
                turn=turn,
            )
            qrels[query_id] = dict.fromkeys(asked["pages"], 1)
    return Benchmark(
        name="toy talks",
        fingerprint=hashlib.sha256((folder / "talks.json").read_bytes()).hexdigest(),
        queries=queries,
        corpus=_pages(folder),
        qrels=qrels,
    )


def _pages(folder: Path) -> dict[str, Document]:
    pages = {}
    for line in (folder / "pages.tsv").read_text(encoding="utf-8").splitlines():
        doc_id, picture, text = line.split("\t")
        image = ImageFile(folder / picture)
        pages[doc_id] = Document(
            doc_id=doc_id, image=image, text=text, metadata={"source": "pages"}
        )
    return pages
