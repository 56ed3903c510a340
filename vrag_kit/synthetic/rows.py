"""Columns of texts, numbers, labels and images as the hub's data sets have them, and rows written
as parquet, which `datasets` reads with its images and labels, or as lines of JSON.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.files import write_file
from vrag_kit.types import Json, JsonView

if TYPE_CHECKING:
    import pyarrow as pa


def list_of(feature: Json) -> Json:
    """Return the column of lists of a feature."""
    return {"feature": feature, "_type": "List"}


def class_labels(names: Sequence[str]) -> Json:
    """Return the column of lists of labels, which are stored as their numbers in `names`."""
    return list_of({"names": list(names), "_type": "ClassLabel"})


TEXT: Json = {"dtype": "string", "_type": "Value"}
NUMBER: Json = {"dtype": "int64", "_type": "Value"}
IMAGE: Json = {"_type": "Image"}
TEXTS, IMAGES = list_of(TEXT), list_of(IMAGE)


def arrow_table(columns: JsonView, rows: Sequence[JsonView]) -> pa.Table:
    """Return rows as a table of these columns: name → feature, or the columns that lie in it;
    pictures are {"bytes", "path"}.
    """
    import pyarrow as pa  # heavy
    from datasets import Features

    return pa.Table.from_pylist(list(rows), schema=Features.from_dict(columns).arrow_schema)


def parquet_bytes(columns: JsonView, rows: Sequence[JsonView]) -> bytes:
    """Return the bytes of a parquet file with these rows, as `arrow_table` has them."""
    import pyarrow.parquet as pq  # heavy

    file = io.BytesIO()
    pq.write_table(arrow_table(columns, rows), file)
    return file.getvalue()


def write_json_lines(path: Path, rows: Iterable[JsonView]) -> None:
    """Write rows as JSON, one a line."""
    write_file(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def image_cell(data: bytes) -> dict[str, bytes | None]:
    """Return an encoded picture as a cell of a column of pictures."""
    return {"bytes": data, "path": None}


def shards(rows: Sequence[JsonView], count: int) -> list[Sequence[JsonView]]:
    """Return the rows in `count` parts, as even as possible."""
    edges = [len(rows) * number // count for number in range(count + 1)]
    return [rows[first:last] for first, last in pairwise(edges)]
