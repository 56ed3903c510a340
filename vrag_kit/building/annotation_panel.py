"""Panel to annotate by hand which images are clues: a grid of images below the question.
Every tick is saved at once (Visual-RAG, Figures 5 and 6, appendix C).
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
from vrag_kit.building.annotating import AnnotationSession
from vrag_kit.building.annotations import AnnotationLog, AnnotationWriter, Vote
from vrag_kit.building.assignment import make_assignments
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.errors import VragError
from vrag_kit.plain import Json, JsonView
from vrag_kit.widgets.cards import definition_list, page_html
from vrag_kit.widgets.images import image_html, to_jpeg

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
    """Panel to annotate questions.

    `view` is the state of the screen, `receive` handles the browser's messages; `annotate` makes
    one.
    """

    def __init__(self, work: AnnotationSession) -> None:
        """Builds the widget of the session `work`."""
        self.work = work
        self.view: Json = {"turn": 0, "message": work.completion_message(), **work.view()}
        self.widget = _screen()(view=self.view)
        self.widget.on_msg(lambda _, message, buffers: self.receive(message))

    def _repr_mimebundle_(self, **wanted: Any) -> object:  # whatever Jupyter asks with
        """What Jupyter asks of an object: how it looks, by MIME type."""
        return self.widget._repr_mimebundle_(**wanted)

    def send(self, message: Json, pictures: list[bytes]) -> None:
        """Send a message and images to the browser."""
        self.widget.send(message, pictures)

    def receive(self, message: JsonView) -> None:
        """Handle a message of the browser.

        A message has a `type`, its fields, and the `question` (id) that was on the screen.

        "seen" (page), "tick" (image, clue), "text", "done", "skip" and "reopen" go to the log.
        "question" (place) and "page" (page), both from 0, open another one. Each of them may carry
        typed text (answer, suggestion), which is saved first. "thumbnails" and "picture" (image)
        send images. If saving fails, the view shows the reason, and is otherwise unchanged.
        """
        if message["type"] == "thumbnails":
            for doc_id, data in self.work.thumbnails.items():
                self.send({"type": "thumbnail", "image": doc_id}, [data])
        elif message["type"] == "picture":
            if message["image"] in self.work.thumbnails:
                self._send_picture(message["image"])
        else:
            said = self.work.handle(message) or self.work.completion_message()
            # the turn makes it new to the browser even when nothing changed
            turn = self.view["turn"] + 1
            self.view = {"turn": turn, "message": said, **self.work.view()}
            self.widget.set_trait("view", self.view)

    def _send_picture(self, doc_id: str) -> None:
        # a file may vanish; its thumbnail stays on the screen
        with suppress(VragError):
            picture = to_jpeg(ImageFile(self.work.image_path(doc_id)), FULL, quality=90)
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
    """Return a panel to tick the images of each question that are clues, and to answer it.
    Every action is saved to the file `path` at once.

    `questions` has the columns question_id, species, folder, question, explanation, feature and
    estimated_clue_rate (the coarse filter's estimate, NaN if unknown). An existing file is
    continued at the first question that is neither done nor skipped. Each annotator uses a separate
    file; seed, question and annotator determine the order of the images. With `disputes` (from
    `find_disputes`) only its images are shown, with the annotators' remarks; undisputed clues are
    ticked. Raises `VragError` as `make_assignments` and `AnnotationWriter` do.
    """
    tasks = make_assignments(questions, folders, annotator, seed=seed, disputes=disputes)
    return AnnotationPanel(AnnotationSession(tasks, AnnotationWriter(path, annotator)))


def annotation_page(
    logs: Sequence[AnnotationLog], image_root: Path | str, *, questions: int = 3, clues: int = 6
) -> HTML:
    """Return the first `questions` of each log as static HTML; all text is escaped.
    Each has at most `clues` of its clues.
    """
    cards = []
    for log in logs:
        for vote in list(log.votes.values())[:questions]:
            cards.append(_card(log.annotator, vote, Path(image_root), clues))
    return page_html(cards, "no question was opened yet")


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
        image_html(ImageFile(root / doc_id), caption="clue", frame=CLUE) for doc_id in clues[:most]
    ]
    pictures = "".join(shown)
    left = len(clues) - most
    plural = "" if left == 1 else "s"
    more = f"<p>and {left} more clue{plural}</p>" if left > 0 else ""
    return (
        f"<p><b>{escape(vote.question)}</b></p>{definition_list(told)}<div>{pictures}</div>{more}"
    )
