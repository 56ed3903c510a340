"""Columns of texts, numbers and pictures as the hub's data sets have them, and rows
written as parquet.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.files import write_file
from vrag_kit.plain import Json, JsonView

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = "text"
NUMBER = "number"
IMAGE = "image"
TEXTS = "texts"
IMAGES = "images"
SORTS = (TEXT, NUMBER, IMAGE, TEXTS, IMAGES)
"""Sorts of columns."""


def schema_of(columns: Mapping[str, str]) -> tuple[pa.Schema, Json]:
    """(schema, features) of columns, name → sort, as `datasets` reads them."""
    import pyarrow as pa  # heavy

    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    text = {"dtype": "string", "_type": "Value"}
    sorts = {
        TEXT: (pa.string(), text),
        NUMBER: (pa.int64(), {"dtype": "int64", "_type": "Value"}),
        IMAGE: (picture, {"_type": "Image"}),
        TEXTS: (pa.list_(pa.string()), {"feature": text, "_type": "List"}),
        IMAGES: (pa.list_(picture), {"feature": {"_type": "Image"}, "_type": "List"}),
    }
    features = {name: sorts[sort][1] for name, sort in columns.items()}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    fields = [(name, sorts[sort][0]) for name, sort in columns.items()]
    return pa.schema(fields, metadata=told), features


def write_parquet(path: Path, columns: Mapping[str, str], rows: Sequence[JsonView]) -> None:
    """Write rows as one parquet file; `columns` are name → sort."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    schema, _ = schema_of(columns)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    write_file(path, file.getvalue())
