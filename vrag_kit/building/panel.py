"""Annotate by hand which images are clues: a grid of images below the question, every
tick on disk at once (Visual-RAG, Figures 5 and 6, appendix C).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.building.agreement import Disputes
from vrag_kit.building.annotating import Annotating
from vrag_kit.building.assignment import assignments
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.log import AnnotationLog, LogFile, Vote
from vrag_kit.errors import VragError
from vrag_kit.plain import Json, JsonView
from vrag_kit.widgets.cards import facts, page_of
from vrag_kit.widgets.pictures import figure, jpeg

if TYPE_CHECKING:
    from anywidget import AnyWidget
    from IPython.display import HTML

FULL = 2048  # longest side of the full-size view, pixels


@cache
def _screen() -> type[AnyWidget]:
    """The widget in the browser: a view that it shows, and messages that it sends."""
    import anywidget
    import traitlets

    class Screen(anywidget.AnyWidget):
        _esm = Path(__file__).with_name("panel.js")
        _css = Path(__file__).with_name("panel.css")
        view = traitlets.Dict().tag(sync=True)

    return Screen


class AnnotationPanel:
    """The panel.

    `view` is what the screen shows, `receive` is what the browser calls; `annotate`
    makes one.
    """

    def __init__(self, work: Annotating) -> None:
        """A screen for `work`."""
        self.work = work
        self.view: Json = {"turn": 0, "message": work.finished(), **work.view()}
        self.widget = _screen()(view=self.view)
        self.widget.on_msg(lambda _, message, buffers: self.receive(message))

    def _repr_mimebundle_(self, **wanted: Any) -> object:  # whatever Jupyter asks with
        """What Jupyter asks of an object: how it looks, by MIME type."""
        return self.widget._repr_mimebundle_(**wanted)

    def send(self, message: Json, pictures: list[bytes]) -> None:
        """Send something to the browser."""
        self.widget.send(message, pictures)

    def receive(self, message: JsonView) -> None:
        """Do what the browser asks for.

        A message has a `type`, its fields, and the `question` (id) that was on the
        screen.

        "seen" (page), "tick" (image, clue), "text", "done", "skip" and "reopen" go to
        the log; "question" (place) and "page" (page), both from 0, turn to another one;
        each of them may bring what was typed (answer, suggestion), which is saved
        first. "thumbnails" and "picture" (image) send pictures. What could not be saved
        is told in the view, which else stays as it was.
        """
        if message["type"] == "thumbnails":
            for doc_id, data in self.work.thumbnails.items():
                self.send({"type": "thumbnail", "image": doc_id}, [data])
        elif message["type"] == "picture":
            if message["image"] in self.work.thumbnails:
                self._send_picture(message["image"])
        else:
            said = self.work.do(message) or self.work.finished()
            # the turn makes it new to the browser even when nothing changed
            turn = self.view["turn"] + 1
            self.view = {"turn": turn, "message": said, **self.work.view()}
            self.widget.set_trait("view", self.view)

    def _send_picture(self, doc_id: str) -> None:
        # a file may vanish; its thumbnail stays on the screen
        with suppress(VragError):
            picture = jpeg(ImageFile(self.work.path_of(doc_id)), FULL, quality=90)
            self.send({"type": "picture", "image": doc_id}, [picture])


def annotate(
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    path: Path | str,
    annotator: str,
    *,
    seed: int = 0,
    disputes: Disputes | None = None,
) -> AnnotationPanel:
    """A panel to tick the images of each question that are clues, and to answer it;
    every action goes to the file `path` at once.

    `questions` has the columns question_id, species, folder, question, explanation,
    feature and rate (the coarse filter's estimate, NaN if unknown). A file that exists
    is gone on with, at the first question that is neither done nor skipped. Several
    annotators use a file each; seed, question and annotator determine the order of the
    images. With `disputes` (from `find_disputes`) only what annotators differ on is
    shown, with what they said; what they agree on is ticked. Raises `VragError` as
    `assignments` and `LogFile` do.
    """
    tasks = assignments(questions, folders, annotator, seed=seed, disputes=disputes)
    return AnnotationPanel(Annotating(tasks, LogFile(path, annotator)))


def annotation_page(
    logs: Sequence[AnnotationLog], image_root: Path | str, *, questions: int = 3, clues: int = 6
) -> HTML:
    """The first `questions` of each log below one another, each with at most `clues` of
    its clues, to read without a kernel; all text is escaped.
    """
    cards = []
    for log in logs:
        for vote in list(log.votes.values())[:questions]:
            cards.append(_card(log.annotator, vote, Path(image_root), clues))
    return page_of(cards, "no question was opened yet")


def _card(annotator: str, vote: Vote, root: Path, most: int) -> str:
    from vrag_kit.plotting.style import CLUE

    clues = [doc_id for doc_id in vote.shown if doc_id in vote.clues]
    unread = f"; {len(vote.unreadable)} could not be read" if vote.unreadable else ""
    rows = {
        "annotator": annotator,
        "species": vote.species,
        "feature": vote.feature,
        "status": vote.status,
        "answer": vote.answer,
        "suggested": vote.suggestion,
        "clues": f"{len(clues)} of {len(vote.shown)} images shown{unread}",
    }
    told = {name: text for name, text in rows.items() if text}
    shown = [
        figure(ImageFile(root / doc_id), caption="clue", frame=CLUE) for doc_id in clues[:most]
    ]
    pictures = "".join(shown)
    left = len(clues) - most
    plural = "" if left == 1 else "s"
    more = f"<p>and {left} more clue{plural}</p>" if left > 0 else ""
    return f"<p><b>{escape(vote.question)}</b></p>{facts(told)}<div>{pictures}</div>{more}"
