"""Rows in the columns of CRAG-MM's hub data sets (v0.1.2), as parquet whose metadata tell
the names of the labels; single- and multi-turn data number them differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.synthetic.crag_mm.edition import Session
from vrag_kit.synthetic.parquet import (
    IMAGE,
    TEXT,
    TEXTS,
    ClassLabels,
    Columns,
    image_cell,
    parquet_bytes,
)

_DOMAINS = {"flower": "plants and gardening", "mushroom": "plants and gardening"}
MULTI = {
    "domain": NAMES["domain"],
    "query_category": (
        "reasoning",
        "simple-knowledge",
        "comparison",
        "simple-recognition",
        "multi-hop",
        "aggregation",
    ),
    "dynamism": ("fast-changing", "static", "slow-changing", "real-time"),
    "image_quality": ("rotated", "truncated", "occluded", "low light", "blurred", "normal"),
}
"""Names of labels in the order of their numbers, in the multi-turn data."""
SINGLE = {
    "domain": NAMES["domain"],
    "query_category": (
        "reasoning",
        "comparison",
        "aggregation",
        "simple-recognition",
        "simple-knowledge",
        "multi-hop",
    ),
    "dynamism": ("static", "fast-changing", "real-time", "slow-changing"),
    "image_quality": ("normal", "low light", "blurred", "occluded", "rotated", "truncated"),
}
"""In the single-turn data."""
Numbering = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SessionWithImage:
    """A session with its picture, which lies in the row or at an address."""

    session: Session
    image: bytes  # b"" where there is an address
    image_url: str


def parquet_rows(rows: Sequence[SessionWithImage], numbering: Numbering) -> bytes:
    """The bytes of a parquet file with these rows, which `datasets` reads with its labels."""
    labels = {column: ClassLabels(names) for column, names in numbering.items()}
    columns: Columns = {
        "session_id": TEXT,
        "image": IMAGE,
        "image_url": TEXT,
        "turns": {"interaction_id": TEXTS, "query": TEXTS, **labels},
        "answers": {"interaction_id": TEXTS, "ans_full": TEXTS},
    }
    return parquet_bytes(columns, [_columns(row, numbering) for row in rows])


def _columns(row: SessionWithImage, numbering: Numbering) -> dict[str, object]:
    """Column → value, in the data set's order."""
    session = row.session
    ids = list(session.interaction_ids)
    turns: dict[str, list[object]] = {
        "interaction_id": [*ids],
        "query": [turn.question for turn in session.turns],
        **{column: [] for column in numbering},
    }
    for turn in session.turns:
        told = {
            "domain": _DOMAINS.get(turn.pictured.kind, "animal"),
            "query_category": turn.category,
            "dynamism": turn.dynamism,
            "image_quality": session.quality,
        }
        for column, name in told.items():
            turns[column].append(numbering[column].index(name))
    return {
        "session_id": session.session_id,
        "image": image_cell(row.image) if row.image else None,
        "image_url": row.image_url or None,
        "turns": turns,
        "answers": {
            "interaction_id": ids,
            "ans_full": [turn.reply.sentence for turn in session.turns],
        },
    }
