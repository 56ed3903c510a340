"""Rows in MRAG-Bench's columns, written as parquet shards that are named, and so sorted,
as the real ones are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_bench.edition import PlannedQuestion
from vrag_kit.synthetic.mrag_bench.scenarios import Scenario
from vrag_kit.synthetic.parquet import IMAGE, IMAGES, TEXT, image_cell, parquet_bytes

_COLUMNS = {
    "id": TEXT,
    "aspect": TEXT,
    "scenario": TEXT,
    "image": IMAGE,
    "gt_images": IMAGES,
    "question": TEXT,
    "A": TEXT,
    "B": TEXT,
    "C": TEXT,
    "D": TEXT,
    "answer_choice": TEXT,
    "answer": TEXT,
    "image_type": TEXT,
    "source": TEXT,
    "retrieved_images": IMAGES,
}
Shown = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]
"""Encoded pictures: the query's, the examples' and those a retriever found."""


@dataclass(frozen=True, slots=True)
class MragBenchRow:
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
            "image": image_cell(self.shown[0]),
            "gt_images": [image_cell(data) for data in self.shown[1]],
            "question": question.text,
            **options,
            "answer_choice": question.letter,
            "answer": options[question.letter],
            "image_type": self.image_type,
            "source": "known species" if question.asks == "name" else "new",
            "retrieved_images": [image_cell(data) for data in self.shown[2]],
        }


def shard_name(number: int, shards: int) -> str:
    """As in the data set: "test-00009-…", then "test-000010-…", one digit longer."""
    digits = f"0000{number}"
    return f"test-{digits}-of-0000{shards}.parquet"


def write_shards(rows: Sequence[MragBenchRow], folder: Path, shards: int) -> None:
    """Write the rows, as evenly as can be, into that many parquet files."""
    for number in range(shards):
        first, last = (len(rows) * edge // shards for edge in (number, number + 1))
        shard = [row.columns() for row in rows[first:last]]
        write_file(folder / shard_name(number, shards), parquet_bytes(_COLUMNS, shard))
