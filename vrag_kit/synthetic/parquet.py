"""Columns of texts, numbers, labels and pictures as the hub's data sets have them, and
rows written as parquet, which `datasets` reads with its pictures and labels.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_kit.types import Json, JsonView

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = "text"
NUMBER = "number"
IMAGE = "image"
TEXTS = "texts"
IMAGES = "images"
SORTS = (TEXT, NUMBER, IMAGE, TEXTS, IMAGES)
"""Sorts of columns."""


@dataclass(frozen=True, slots=True)
class ClassLabels:
    """A column of lists of labels, which are stored as their numbers."""

    names: tuple[str, ...]
    """In the order of their numbers."""


Columns = Mapping[str, "str | ClassLabels | Mapping[str, str | ClassLabels]"]
"""Name → one of `SORTS`, `ClassLabels`, or the columns that lie in this one."""


def arrow_schema(columns: Columns) -> tuple[pa.Schema, Json]:
    """(schema, features) of columns as `datasets` reads them."""
    import pyarrow as pa  # heavy

    features = {name: _feature(sort) for name, sort in columns.items()}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    fields = [(name, _type(sort)) for name, sort in columns.items()]
    return pa.schema(fields, metadata=told), features


def parquet_bytes(columns: Columns, rows: Sequence[JsonView]) -> bytes:
    """The bytes of a parquet file with these rows; pictures are {"bytes", "path"}."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    schema, _ = arrow_schema(columns)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    return file.getvalue()


def image_cell(data: bytes) -> dict[str, bytes | None]:
    """An encoded picture as a cell of a column of pictures."""
    return {"bytes": data, "path": None}


def _type(sort: str | ClassLabels | Columns) -> pa.DataType:
    import pyarrow as pa  # heavy

    if isinstance(sort, ClassLabels):
        return pa.list_(pa.int64())
    if isinstance(sort, Mapping):
        return pa.struct([(name, _type(inner)) for name, inner in sort.items()])
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {
        TEXT: pa.string(),
        NUMBER: pa.int64(),
        IMAGE: image,
        TEXTS: pa.list_(pa.string()),
        IMAGES: pa.list_(image),
    }
    return types[sort]


def _feature(sort: str | ClassLabels | Columns) -> Json:
    """As `datasets` describes a column."""
    if isinstance(sort, ClassLabels):
        return _list({"names": list(sort.names), "_type": "ClassLabel"})
    if isinstance(sort, Mapping):
        return {name: _feature(inner) for name, inner in sort.items()}
    text: Json = {"dtype": "string", "_type": "Value"}
    image: Json = {"_type": "Image"}
    features = {
        TEXT: text,
        NUMBER: {"dtype": "int64", "_type": "Value"},
        IMAGE: image,
        TEXTS: _list(text),
        IMAGES: _list(image),
    }
    return features[sort]


def _list(feature: Json) -> Json:
    return {"feature": feature, "_type": "List"}
