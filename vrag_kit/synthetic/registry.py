"""Generate any edition by its name, as `vrag draw` does."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.synthetic.crag_mm.drawing import generate_crag_mm
from vrag_kit.synthetic.generate import CRAG_MM_EDITIONS, DRAWN, DRAWN_MRAG, DRAWN_SUITE
from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
from vrag_kit.synthetic.mrag_suite.drawing import generate_suite
from vrag_kit.synthetic.visual_rag.guide import generate_field_guide

_GENERATORS = (
    (DRAWN, generate_field_guide),
    (DRAWN_MRAG, generate_mrag_bench),
    (CRAG_MM_EDITIONS, generate_crag_mm),
)


def generate_edition(edition: str, folder: Path | str) -> str:
    """Generate "field-guide", "field-guide-mrag-bench", "field-guide-crag-mm",
    "field-guide-mrag-suite", or one of these with "-small", unless it exists; returns a line that
    says where it is. The Field Guide that a suite needs is generated in the project's data.

    Raises `VragError` for an unknown edition, and as the generators do.
    """
    for names, generate in _GENERATORS:
        if edition in names:
            return f"{edition} is in {generate(names[edition], folder)}"
    if edition in DRAWN_SUITE:
        suite, guide = generate_suite(edition, folder)
        return f"{edition} is in {suite}, with photographs that are in {guide}"
    known = [*DRAWN, *DRAWN_MRAG, *CRAG_MM_EDITIONS, *DRAWN_SUITE]
    raise VragError(
        f"unknown edition {edition!r}; expected one of {', '.join(map(repr, known))}."
        + did_you_mean(edition, known)
    )
