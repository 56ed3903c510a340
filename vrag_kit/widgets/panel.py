"""Base class of panels: objects with ipywidgets, shown as a cell's last line.

ipywidgets is imported when a panel is made; the static HTML versions do not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ipywidgets


class Panel:
    """Shown in a notebook as its `box`; in plain text as its `repr`."""

    box: ipywidgets.VBox

    def _repr_mimebundle_(self, **wanted: object) -> Mapping[str, object]:
        """What Jupyter asks of an object: how it looks, by MIME type."""
        return {**self.box._repr_mimebundle_(**wanted), "text/plain": repr(self)}
