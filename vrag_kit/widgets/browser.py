"""Panels in notebooks, and the one that browses items, selected by filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

if TYPE_CHECKING:
    import ipywidgets

ALL = "all"


class Panel:
    """Displayed in a notebook as its `box`; in plain text as its `repr`."""

    box: ipywidgets.VBox

    def _repr_mimebundle_(self, **wanted: object) -> Mapping[str, object]:
        return {**self.box._repr_mimebundle_(**wanted), "text/plain": repr(self)}


class Browser(Panel):
    """Panel that browses items one by one.

    `filters`, by name, select items, `back` and `forward` turn pages; `place` is the index of the
    item displayed, from 0, among `chosen`.

    With the keyboard: Tab and Shift+Tab move between these; Space opens a filter, the arrow keys
    move in it and Enter selects; Enter or Space turns the page and keeps the focus, and opens or
    closes folded parts of a card. Other keys are JupyterLab's.
    """

    def __init__(self, labels: pd.DataFrame, card: Callable[[int], Markup], item: str) -> None:
        """`labels` has the filter values, as text or missing: its columns are the filters, its
        index is the number of the item, which may recur. An item matches if one of its rows matches
        all filters. `card` makes the card of a number; `item` is what one is called: "answer".
        """
        from ipywidgets import HTML, Button, Dropdown, HBox, Layout, VBox

        self.labels = labels
        self.render_card = card
        self.item = item
        self.chosen: Sequence[int] = ()
        self.place = 0
        self.filters = {
            str(name): Dropdown(
                options=[ALL, *values.dropna().unique()],
                description=str(name),
                style={"description_width": "initial"},
            )
            for name, values in labels.items()
            if values.nunique(dropna=False) > 1
        }
        self.back = Button(description="back", tooltip=f"to the {item} before")
        self.forward = Button(description="forward", tooltip=f"to the {item} after")
        self.count = HTML()
        self.card = HTML()
        for each in self.filters.values():
            each.observe(self._choose, "value")
        self.back.on_click(lambda _: self._turn(-1))
        self.forward.on_click(lambda _: self._turn(1))
        filters = HBox(list(self.filters.values()), layout=Layout(flex_flow="row wrap"))
        self.box = VBox([filters, HBox([self.back, self.forward, self.count]), self.card])
        self._choose()

    def __repr__(self) -> str:
        return f"{self.item} browser: {self.labels.index.nunique()} {self.item}s"

    def _choose(self, _: object = None) -> None:
        rows = self.labels
        for name, each in self.filters.items():
            if each.value != ALL:
                rows = rows[rows[name] == each.value]
        self.chosen = list(rows.index.unique())
        self.place = 0
        self._turn(0)

    def _turn(self, step: int) -> None:
        last = len(self.chosen) - 1
        self.place = min(max(0, self.place + step), max(0, last))
        self.back.disabled = self.place == 0
        self.forward.disabled = self.place >= last
        if last < 0:
            self.count.value = f"no such {self.item}"
            self.card.value = ""
        else:
            self.count.value = f"{self.place + 1} of {len(self.chosen)}"
            self.card.value = self.render_card(self.chosen[self.place])
