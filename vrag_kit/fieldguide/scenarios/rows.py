"""Rows in MRAG-Bench's columns, written as parquet shards that are named, and so sorted,
as the real ones are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.fieldguide.scenarios.edition import PlannedQuestion
from vrag_kit.fieldguide.scenarios.table import Scenario
from vrag_kit.files import write_file

Picture = dict[str, bytes | str | None]


Shown = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]
"""Encoded pictures: the query's, the examples' and those a retriever found."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question as a row of the data set."""

    id: str
    scenario: Scenario
    question: PlannedQuestion
    image_type: str
    shown: Shown

    def columns(self) -> dict[str, object]:
        """Column → value, in the data set's order."""
        question = self.question
        options = dict(zip("ABCD", question.options, strict=True))
        return {
            "id": self.id,
            "aspect": self.scenario.aspect,
            "scenario": self.scenario.label,
            "image": _picture(self.shown[0]),
            "gt_images": [_picture(data) for data in self.shown[1]],
            "question": question.text,
            **options,
            "answer_choice": question.letter,
            "answer": options[question.letter],
            "image_type": self.image_type,
            "source": "known species" if question.asks == "name" else "new",
            "retrieved_images": [_picture(data) for data in self.shown[2]],
        }


def _picture(data: bytes) -> Picture:
    return {"bytes": data, "path": None}


def shard_name(number: int, shards: int) -> str:
    """As in the data set: "test-00009-…", then "test-000010-…", one digit longer."""
    digits = f"0000{number}"
    return f"test-{digits}-of-0000{shards}.parquet"


def write_shards(rows: Sequence[Row], folder: Path, shards: int) -> None:
    """Write the rows, as evenly as can be, into that many parquet files."""
    for number in range(shards):
        first, last = (len(rows) * edge // shards for edge in (number, number + 1))
        write_file(folder / shard_name(number, shards), parquet(rows[first:last]))


def parquet(rows: Sequence[Row]) -> bytes:
    """The bytes of a parquet file with these rows, which `datasets` reads as pictures."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {"image": image, "gt_images": pa.list_(image), "retrieved_images": pa.list_(image)}
    columns = [row.columns() for row in rows]
    text, picture = {"dtype": "string", "_type": "Value"}, {"_type": "Image"}
    features: dict[str, object] = {}
    for name in columns[0]:
        features[name] = {"feature": picture, "_type": "List"} if name.endswith("images") else text
    features["image"] = picture
    schema = pa.schema(
        [(name, types.get(name, pa.string())) for name in columns[0]],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(columns, schema=schema), file)
    return file.getvalue()
