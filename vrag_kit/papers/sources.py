"""Which data a paper's statements are held against: its own, in a named edition, or others,
on which there is no verdict.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.types import Benchmark

SYNTHETIC = "synthetic data: no verdict"
OTHER_DATA = "not the paper's data: no verdict"
NO_EDITION = "an edition that is not known: no verdict"


@dataclass(frozen=True, slots=True)
class Source:
    """What was asked."""

    name: str
    """The benchmark's."""
    edition: str = ""
    """Which release of the paper's own data it is; "" for any other data."""
    no_verdict: str = OTHER_DATA
    """What stands in place of a verdict where there is no edition."""

    def __str__(self) -> str:
        """As tables name it: "visual-rag (Visual-RAG v1, first upload)"."""
        return f"{self.name} ({self.edition})" if self.edition else self.name


def source_in(benchmark: Benchmark, edition: str, otherwise: str = OTHER_DATA) -> Source:
    """`benchmark`, which is `edition` of a paper's data, or "" where it is none; what lies in
    a folder that the kit drew is synthetic, whatever else is true of it.
    """
    if is_synthetic(benchmark):
        return Source(benchmark.name, no_verdict=SYNTHETIC)
    return Source(benchmark.name, edition, otherwise)


def is_synthetic(benchmark: Benchmark) -> bool:
    """Whether the first question, or its image, was read from a drawn edition; False of a
    benchmark without questions.
    """
    query = next(iter(benchmark.queries.values()), None)
    if query is None:
        return False
    places = [query.metadata.get("where")]
    places += [query.image.where] if query.image else []
    return any(isinstance(place, str) and _is_drawn(place) for place in places)


def _is_drawn(where: str) -> bool:
    """Whether a file lies in a folder with the note that drawing an edition leaves there."""
    for folder in (Path(where), *Path(where).parents):
        for name in ("guide.json", "edition.json"):
            try:
                if "drawn_by" in json.loads((folder / name).read_text(encoding="utf-8")):
                    return True
            except (OSError, ValueError, TypeError):
                continue
    return False
