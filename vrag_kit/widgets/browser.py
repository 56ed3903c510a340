"""Base class of panels that show one item at a time, selected by filters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import ipywidgets


class Panel:
    """Shown in a notebook as its `box`; in plain text as its `repr`."""

    box: ipywidgets.VBox

    def _repr_mimebundle_(self, **wanted: object) -> Mapping[str, object]:
        """What Jupyter asks of an object: how it looks, by MIME type."""
        return {**self.box._repr_mimebundle_(**wanted), "text/plain": repr(self)}


T = TypeVar("T")
ALL = "all"


class Browser(Panel, Generic[T]):
    """Panel that browses items one by one.

    `filters`, by name, select items, `back` and `forward` turn pages; `place` is the index of the
    item shown, from 0, among `chosen`.

    With the keyboard: Tab and Shift+Tab move between these; Space opens a filter, the arrow keys
    move in it and Enter selects; Enter or Space turns the page and keeps the focus, and opens or
    closes folded parts of a card. Other keys are JupyterLab's.
    """

    thing: str
    """Name of one item: "case"."""

    def __init__(self, choices: Mapping[str, Sequence[str]]) -> None:
        """`choices` maps each filter to its values."""
        from ipywidgets import HTML, Button, Dropdown, HBox, Layout, VBox

        self.chosen: Sequence[T] = ()
        self.place = 0
        whole = {"description_width": "initial"}
        self.filters = {
            name: Dropdown(options=[ALL, *values], description=name, style=whole)
            for name, values in choices.items()
        }
        self.back = Button(description="back", tooltip=f"to the {self.thing} before")
        self.forward = Button(description="forward", tooltip=f"to the {self.thing} after")
        self.count = HTML()
        self.card = HTML()
        choosing = HBox(list(self.filters.values()), layout=Layout(flex_flow="row wrap"))
        turning = HBox([self.back, self.forward, self.count])
        self.box = VBox([choosing, turning, self.card])

        for each in self.filters.values():
            each.observe(self._choose, "value")
        self.back.on_click(lambda _: self._turn(-1))
        self.forward.on_click(lambda _: self._turn(1))
        self._choose()

    @abstractmethod
    def matching(self, wanted: Mapping[str, str]) -> Sequence[T]:
        """Return the items that match the filter values; a missing filter matches any."""

    @abstractmethod
    def render_card(self, thing: T) -> str:
        """Return an item as HTML."""

    def _choose(self, _: object = None) -> None:
        values = {name: each.value for name, each in self.filters.items()}
        self.chosen = self.matching({name: v for name, v in values.items() if v != ALL})
        self.place = 0
        self._turn(0)

    def _turn(self, step: int) -> None:
        last = len(self.chosen) - 1
        self.place = min(max(0, self.place + step), max(0, last))
        self.back.disabled = self.place == 0
        self.forward.disabled = self.place >= last
        if last < 0:
            self.count.value = f"no such {self.thing}"
            self.card.value = ""
        else:
            self.count.value = f"{self.place + 1} of {len(self.chosen)}"
            self.card.value = self.render_card(self.chosen[self.place])
