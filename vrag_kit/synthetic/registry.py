"""Draws any edition by its name into a folder, as `vrag draw` does."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.processes import available_cores
from vrag_kit.synthetic.crag_mm.drawing import generate_crag_mm
from vrag_kit.synthetic.crag_mm.opening import CRAG_MM_EDITIONS
from vrag_kit.synthetic.drawn_guide import DRAWN
from vrag_kit.synthetic.guide import generate_field_guide
from vrag_kit.synthetic.mrag_bench.drawing import generate_mrag_bench
from vrag_kit.synthetic.mrag_bench.opening import DRAWN_MRAG
from vrag_kit.synthetic.mrag_suite.opening import DRAWN_SUITE, generate_suite_with_guide


def generate_edition(edition: str, folder: Path | str) -> str:
    """Draw "field-guide", "field-guide-mrag-bench", "field-guide-crag-mm",
    "field-guide-mrag-suite" or one of these with "-small" behind it, unless it is there already;
    returns a line that says where it is. With a suite the Field Guide whose photographs
    it uses is drawn into the project's data.

    Raises `VragError` for an unknown edition, and as drawing does.
    """
    if edition in DRAWN:
        drawn = generate_field_guide(DRAWN[edition], folder, workers=available_cores())
        return f"{edition} is in {drawn}"
    if edition in DRAWN_MRAG:
        drawn = generate_mrag_bench(DRAWN_MRAG[edition], folder, workers=available_cores())
        return f"{edition} is in {drawn}"
    if edition in CRAG_MM_EDITIONS:
        drawn = generate_crag_mm(CRAG_MM_EDITIONS[edition], folder, workers=available_cores())
        return f"{edition} is in {drawn}"
    if edition in DRAWN_SUITE:
        drawn, guide = generate_suite_with_guide(edition, folder)
        return f"{edition} is in {drawn}, with photographs that are in {guide}"
    known = [*DRAWN, *DRAWN_MRAG, *CRAG_MM_EDITIONS, *DRAWN_SUITE]
    raise VragError(
        f"unknown edition {edition!r}; expected one of {', '.join(map(repr, known))}."
        + did_you_mean(edition, known)
    )
