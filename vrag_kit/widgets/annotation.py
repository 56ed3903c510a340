"""Base class of panels that show items one by one and save a label for each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Generic, TypeVar

from vrag_kit.errors import VragError
from vrag_kit.widgets.browser import Panel
from vrag_kit.workspace import display_path

T = TypeVar("T")


class AnnotationPanel(Panel, Generic[T]):
    """Panel that steps through `things`; every click saves a label to the file `path`.

    `buttons` maps labels, skip and back to their buttons; `said` maps things to labels; `place` is
    the index of the thing shown, from 0, and at the end their number.

    The buttons are above the card, and therefore do not move. With the keyboard: Tab and Shift+Tab
    move between them, Enter or Space presses one, and it keeps the focus. Other keys are
    JupyterLab's.
    """

    done_is: str
    """Adjective for things that have a label: "labelled"."""

    def __init__(
        self, things: list[T], labels: dict[T, str], path: Path, hints: Mapping[str, str]
    ) -> None:
        """Opens at the first of `things` without a label.
        `hints` maps the buttons, skip and back among them, to their tooltips.
        """
        from ipywidgets import HTML, Button, HBox, VBox

        self.things = things
        self.said = labels
        self.path = path
        self.progress = HTML()
        self.message = HTML()
        self.card = HTML()
        self.buttons = {
            name: Button(description=name, tooltip=hint) for name, hint in hints.items()
        }
        for name, button in self.buttons.items():
            button.on_click(partial(self.on_click, name))
        self.box = VBox([self.progress, HBox(list(self.buttons.values())), self.message, self.card])
        self.place = self._next(0)
        self.refresh()

    @abstractmethod
    def save(self, thing: T, name: str) -> dict[T, str]:
        """Write a label to the file as it is now on disk, and return all labels.
        Another tab may have written to it. Raises `OSError` or `VragError` when it cannot be
        written.
        """

    @abstractmethod
    def render_card(self, thing: T) -> str:
        """Return a thing as HTML."""

    def __repr__(self) -> str:
        done = f"{self._done()} of {len(self.things)} {self.done_is}"
        return f"{type(self).__name__}: {done}, in {display_path(self.path)}"

    def on_click(self, name: str, _: object = None) -> None:
        """Handle a click on the button `name`."""
        self.message.value = ""
        if name == "back":
            self.place = max(0, self.place - 1)
        elif self.place < len(self.things) and (name == "skip" or self._kept(name)):
            self.place = self._next(self.place + 1)
        self.refresh()

    def refresh(self) -> None:
        """Update progress, card and buttons."""
        done, total = self._done(), len(self.things)
        thing = self.things[self.place] if self.place < total else None
        where = f"{self.place + 1} of {total}, " if thing is not None else "the end: "
        self.progress.value = (
            f"{where}{done} {self.done_is}, {total - done} not; saved in"
            f" {escape(display_path(self.path))}"
        )
        if thing is None:
            self.card.value = (
                "Thank you. What was skipped comes again when the panel is opened anew."
            )
        else:
            self.card.value = self.render_card(thing)
        for name, button in self.buttons.items():
            said = thing is not None and self.said.get(thing) == name
            button.disabled = self.place == 0 if name == "back" else thing is None
            button.button_style = "info" if said else ""
            button.icon = "check" if said else ""

    def _kept(self, name: str) -> bool:
        """Keep what was clicked; on failure say so and stay."""
        try:
            self.said = self.save(self.things[self.place], name)
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
