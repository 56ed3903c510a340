"""Panels that show one thing at a time of those that are chosen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from vrag_kit.widgets.panel import Panel

T = TypeVar("T")
ALL = "all"


class Browsing(Panel, Generic[T]):
    """A panel that turns over things.

    `filters`, by name, choose among them, `back` and `forward` turn pages; `place` is
    the thing shown, from 0, among `chosen`.

    With the keyboard: Tab and Shift+Tab walk over these; Space opens a filter, the arrow
    keys choose there and Enter takes; Enter or Space turns the page and keeps the focus,
    and opens or closes what is folded on a card. Other keys are JupyterLab's.
    """

    thing: str
    """What one of the things is called: "case"."""

    def __init__(self, choices: Mapping[str, Sequence[str]]) -> None:
        """`choices` is what can be chosen: filter → its values."""
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
        """The things that have the wanted values; of filters not named, any."""

    @abstractmethod
    def card_of(self, thing: T) -> str:
        """What is shown of a thing, in HTML."""

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
            self.card.value = self.card_of(self.chosen[self.place])
