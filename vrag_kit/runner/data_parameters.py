"""Whether parameters name data that there can be; nothing is drawn or opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.open import check_data_spec
from vrag_kit.synthetic.generate import CRAG_MM_EDITIONS, DRAWN, DRAWN_MRAG
from vrag_kit.synthetic.mrag_suite.drawing import suite_edition
from vrag_kit.synthetic.real_data import resolve_rows
from vrag_kit.workspace import path as project_path

_ROWS = {
    "mrag_rows": DRAWN_MRAG,
    "crag_mm_single": CRAG_MM_EDITIONS,
    "crag_mm_multi": CRAG_MM_EDITIONS,
}
"""Parameters that name rows → the drawn editions among them."""


def check_data_parameter(parameter: str, source: str | Mapping[str, Any]) -> None:
    """Raise `VragError` for data that `parameter` cannot name; a parameter that names no
    data passes.
    """
    check_data_spec(parameter, source)
    if isinstance(source, str):
        if parameter in _ROWS and source not in _ROWS[parameter]:
            resolve_rows(parameter, source, _ROWS[parameter])
        if parameter == "mrag_suite":
            suite_edition(source)
        is_path = "/" in source or project_path(source).is_dir()
        if parameter == "mrag_texts" and not is_path:
            _check_drawn(parameter, source, DRAWN_MRAG, "or a folder of passages")
        if parameter == "synthetic_data":
            _check_drawn(parameter, source, DRAWN, "which are drawn")


def _check_drawn(parameter: str, source: str, drawn: Mapping[str, str], words: str) -> None:
    if source in drawn:
        return
    hint = did_you_mean(source, drawn)
    names = " or ".join(map(repr, drawn))
    raise VragError(f"{parameter} is {source!r}; expected {names}, {words}.{hint}")
