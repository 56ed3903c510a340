"""Page benchmarks in their published layout, as small as one likes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

Row = dict[str, Any]


def png(color: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (12, 16), color).save(file, "PNG")
    return file.getvalue()


def page(name: object, shade: int, **more: Any) -> Row:
    return {"corpus-id": name, "image": {"bytes": png((shade,) * 3), "path": None}, **more}


def label(query: object, doc: object, score: float = 1) -> Row:
    return {"query-id": query, "corpus-id": doc, "score": score}


PAGES = [page("deck_a.jpg", 10), page("deck_b.jpg", 20), page("deck_c.jpg", 30)]
QUERIES = [
    {"query-id": "q1", "query": "What is shown?", "answer": "A moth", "is_numerical": False},
    {"query-id": "q2", "query": "How many?", "answer": "7", "is_numerical": True},
]
LABELS = [label("q1", "deck_a.jpg"), label("q2", "deck_b.jpg")]


def write_pages(
    folder: Path,
    pages: Sequence[Row] = PAGES,
    queries: Sequence[Mapping[str, Any]] = QUERIES,
    labels: Sequence[Row] = LABELS,
    *,
    split: str = "train",
) -> Path:
    """Write the three configs, one shard each."""
    for config, rows in (("corpus", pages), ("queries", queries), ("qrels", labels)):
        path = folder / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return folder
