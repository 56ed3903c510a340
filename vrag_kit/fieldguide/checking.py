"""Whether parameters name data that there can be; nothing is drawn or opened."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.fieldguide import opening
from vrag_kit.fieldguide.editions import rows_of
from vrag_kit.fieldguide.scenarios.opening import DRAWN_MRAG
from vrag_kit.fieldguide.suite.opening import edition_of
from vrag_kit.fieldguide.worn.opening import DRAWN_WORN
from vrag_kit.workspace import path as project_path

_ROWS = {
    "mrag_rows": DRAWN_MRAG,
    "crag_mm_single": DRAWN_WORN,
    "crag_mm_multi": DRAWN_WORN,
}
"""Parameters that name rows → the drawn editions among them."""


def check_source(parameter: str, source: str | Mapping[str, Any]) -> None:
    """Raise `VragError` for data that `parameter` cannot name; a parameter that names no
    data passes.
    """
    opening.check_source(parameter, source)
    if isinstance(source, str):
        if parameter in _ROWS and source not in _ROWS[parameter]:
            rows_of(parameter, source, _ROWS[parameter])
        if parameter == "suite":
            edition_of(source)
        is_path = "/" in source or project_path(source).is_dir()
        if parameter == "mrag_texts" and not is_path:
            _check_drawn(parameter, source, DRAWN_MRAG, "or a folder of passages")
        if parameter == "guide":
            _check_drawn(parameter, source, opening.DRAWN, "which are drawn")


def _check_drawn(parameter: str, source: str, drawn: Mapping[str, str], words: str) -> None:
    if source in drawn:
        return
    near = get_close_matches(source, drawn, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    names = " or ".join(map(repr, drawn))
    raise VragError(f"{parameter} is {source!r}; expected {names}, {words}.{hint}")
