"""Panels that show one thing after another and keep what is clicked about each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Generic, TypeVar

from vrag_kit.errors import VragError
from vrag_kit.widgets.panel import Panel
from vrag_kit.workspace import shown

T = TypeVar("T")


class OneByOne(Panel, Generic[T]):
    """A panel that goes through `things`; what is said of each is in the file `path` as
    soon as it is clicked.

    `buttons` maps what can be said, skip and back to its buttons; `said` is what was
    said of which thing; `place` is the thing shown, from 0; at the end it is their
    number.

    The buttons are above what is shown, so that they stay where they are. With the
    keyboard: Tab and Shift+Tab walk over them, Enter or Space presses one, and it keeps
    the focus. Other keys are JupyterLab's.
    """

    done_is: str
    """What a thing is of which something was said: "labelled"."""

    def __init__(
        self, things: list[T], said: dict[T, str], path: Path, hints: Mapping[str, str]
    ) -> None:
        """Opens at the first of `things` of which nothing is `said`; `hints` is what can
        be clicked, skip and back among it → what it means.
        """
        from ipywidgets import HTML, Button, HBox, VBox

        self.things = things
        self.said = said
        self.path = path
        self.progress = HTML()
        self.message = HTML()
        self.card = HTML()
        self.buttons = {
            name: Button(description=name, tooltip=hint) for name, hint in hints.items()
        }
        for name, button in self.buttons.items():
            button.on_click(partial(self.clicked, name))
        self.box = VBox([self.progress, HBox(list(self.buttons.values())), self.message, self.card])
        self.place = self._next(0)
        self.show()

    @abstractmethod
    def keep(self, thing: T, name: str) -> dict[T, str]:
        """Put what was clicked into the file as it is now on disk, where another tab may
        have written; returns all that is said now. Raises `OSError` or `VragError` when
        it cannot.
        """

    @abstractmethod
    def card_of(self, thing: T) -> str:
        """What is shown of a thing, in HTML."""

    def __repr__(self) -> str:
        done = f"{self._done()} of {len(self.things)} {self.done_is}"
        return f"{type(self).__name__.lower()} panel: {done}, in {shown(self.path)}"

    def clicked(self, name: str, _: object = None) -> None:
        """What a click on a button does."""
        self.message.value = ""
        if name == "back":
            self.place = max(0, self.place - 1)
        elif self.place < len(self.things) and (name == "skip" or self._kept(name)):
            self.place = self._next(self.place + 1)
        self.show()

    def show(self) -> None:
        """Bring the screen up to date."""
        done, total = self._done(), len(self.things)
        thing = self.things[self.place] if self.place < total else None
        where = f"{self.place + 1} of {total}, " if thing is not None else "the end: "
        self.progress.value = (
            f"{where}{done} {self.done_is}, {total - done} not; saved in {escape(shown(self.path))}"
        )
        if thing is None:
            self.card.value = (
                "Thank you. What was skipped comes again when the panel is opened anew."
            )
        else:
            self.card.value = self.card_of(thing)
        for name, button in self.buttons.items():
            said = thing is not None and self.said.get(thing) == name
            button.disabled = self.place == 0 if name == "back" else thing is None
            button.button_style = "info" if said else ""
            button.icon = "check" if said else ""

    def _kept(self, name: str) -> bool:
        """Keep what was clicked; on failure say so and stay."""
        try:
            self.said = self.keep(self.things[self.place], name)
        except (OSError, VragError) as error:
            self.message.value = (
                f"<b>not saved:</b> {escape(str(error))}. What was saved before is kept; click"
                " again once it is mended."
            )
            return False
        return True

    def _next(self, start: int) -> int:
        """The first place from `start` on of which nothing is said; the end if there is
        none.
        """
        for place in range(start, len(self.things)):
            if self.things[place] not in self.said:
                return place
        return len(self.things)

    def _done(self) -> int:
        return sum(thing in self.said for thing in self.things)
