"""Draws any edition by its name into a folder, as `vrag draw` does."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.guide import draw_field_guide
from vrag_kit.fieldguide.pages import EDITIONS
from vrag_kit.fieldguide.scenarios.drawing import draw_mrag_bench
from vrag_kit.fieldguide.scenarios.opening import DRAWN_MRAG
from vrag_kit.fieldguide.suite.opening import DRAWN_SUITE, draw_with_guide
from vrag_kit.fieldguide.worn.drawing import draw_crag_mm
from vrag_kit.fieldguide.worn.opening import DRAWN_WORN


def draw_named(edition: str, folder: Path | str) -> str:
    """Draw "full" or "small" of the Field Guide, or "mrag-drawn", "worn-drawn",
    "suite-drawn" or one of these with "-small" behind it, unless it is there already;
    returns a line that says where it is. With a suite the Field Guide whose photographs
    it uses is drawn into the project's data.

    Raises `VragError` for an unknown edition, and as drawing does.
    """
    if edition in EDITIONS:
        drawn = draw_field_guide(edition, folder, workers=cores())
        return f"the {edition} Field Guide is in {drawn}"
    if edition in DRAWN_MRAG:
        drawn = draw_mrag_bench(DRAWN_MRAG[edition], folder, workers=cores())
        return f"{edition} is in {drawn}"
    if edition in DRAWN_WORN:
        drawn = draw_crag_mm(DRAWN_WORN[edition], folder, workers=cores())
        return f"{edition} is in {drawn}"
    if edition in DRAWN_SUITE:
        drawn, guide = draw_with_guide(edition, folder)
        return f"{edition} is in {drawn}, with photographs that are in {guide}"
    known = [*EDITIONS, *DRAWN_MRAG, *DRAWN_WORN, *DRAWN_SUITE]
    near = get_close_matches(edition, known, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise VragError(
        f"unknown edition {edition!r}; expected one of {', '.join(map(repr, known))}.{hint}"
    )
