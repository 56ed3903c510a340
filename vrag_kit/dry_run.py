"""The dry run of this process: models and searches are recorded, not called.

Three factories ask for the current one: `load_generator`, searches, and `AnswerStore`. Beside
them, nothing that it computes is saved, and no large edition is generated for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class DryRun:
    """The records of a dry run so far."""

    scratch: Path
    """Temporary folder; placeholder answers may be stored only below it."""
    stores: set[Path] = field(default_factory=set)
    """Copies of the answer stores that were opened, below `scratch`."""
    models: list[Any] = field(default_factory=list)  # `DryRunGenerator`, which this room precedes
    """Dry-run generators that were opened, each with the prompts it received."""
    any_order: set[str] = field(default_factory=set)
    """Retrievers that were not run yet; arbitrary documents replace their results."""
    corpora: list[Any] = field(default_factory=list)  # `PlannedEmbedding`
    """Corpora searched by vectors, which would be embedded."""
    missing: dict[str, None] = field(default_factory=dict)
    """Why models and retrievers cannot be loaded on this machine, each reason once."""
    asks: bool = True
    """Whether models may be opened, to record the prompts they would receive."""


_current: list[DryRun] = []


@contextmanager
def dry_run(scratch: Path) -> Iterator[DryRun]:
    """Make this whole process a dry run within the block."""
    _current.append(DryRun(scratch))
    try:
        yield _current[-1]
    finally:
        _current.pop()


def current_dry_run() -> DryRun | None:
    """Return the current dry run; None where models are really called."""
    return _current[-1] if _current else None
