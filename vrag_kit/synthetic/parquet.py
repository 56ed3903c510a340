"""Columns of texts, numbers, labels and pictures as the hub's data sets have them, and
rows written as parquet, which `datasets` reads with its pictures and labels.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

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


def image_cell(data: bytes) -> dict[str, bytes | None]:
    """Return an encoded picture as a cell of a column of pictures."""
    return {"bytes": data, "path": None}


def shards(rows: Sequence[JsonView], count: int) -> list[Sequence[JsonView]]:
    """Return the rows in `count` parts, as even as possible."""
    edges = [len(rows) * number // count for number in range(count + 1)]
    return [rows[first:last] for first, last in pairwise(edges)]
