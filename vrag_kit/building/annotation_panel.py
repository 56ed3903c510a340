"""Panel to annotate by hand which images are clues: a grid of images below the question.
Every tick is saved at once (Visual-RAG, Figures 5 and 6, appendix C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.building.annotations import IDENTITY, AnnotationFile, Annotations, Vote
from vrag_kit.building.assignments import PAGE, Assignment, make_assignments
from vrag_kit.building.decisions import Dispute
from vrag_kit.building.species import SpeciesFolder
from vrag_kit.errors import VragError
from vrag_kit.files import display_path, safe_join
from vrag_kit.types import Json, JsonView
from vrag_kit.widgets.html import SIDE, Page, card_html, image_html, page_html, to_jpeg

if TYPE_CHECKING:
    from anywidget import AnyWidget

FULL = 2048  # longest side of the full-size view, pixels


@cache
def _screen() -> type[AnyWidget]:
    """The widget in the browser: a view that it displays, and messages that it sends."""
    import anywidget
    import traitlets

    class Screen(anywidget.AnyWidget):
        _esm = Path(__file__).with_name("panel.js")
        _css = Path(__file__).with_name("panel.css")
        view = traitlets.Dict().tag(sync=True)

    return Screen


class AnnotationPanel:
    """Panel to annotate questions.

    `view` is the state of the screen, always made from what is on the disk; `receive` handles the
    browser's messages; `annotate` makes a panel.
    """

    def __init__(self, tasks: Sequence[Assignment], file: AnnotationFile) -> None:
        """Opens at the first question that is neither done nor skipped, at its first page with an
        image that has not been on the screen.
        """
        self._tasks, self._file = tasks, file
        self._place = self._page = 0  # of the question among the tasks, and of its images
        self._thumbnails: dict[str, bytes] = {}  # of the page on the screen, by doc_id
        self._problems: dict[str, str] = {}  # of its images that cannot be read
        self._turn_to_open(0)
        self.view: Json = {"turn": 0, **self._view("")}
        self.widget = _screen()(view=self.view)
        self.widget.on_msg(lambda _, message, buffers: self.receive(message))

    def _repr_mimebundle_(self, **wanted: Any) -> object:  # Any: as Jupyter calls it
        return self.widget._repr_mimebundle_(**wanted)

    def send(self, message: Json, pictures: list[bytes]) -> None:
        """Send a message and images to the browser."""
        self.widget.send(message, pictures)

    def receive(self, message: JsonView) -> None:
        """Handle a message of the browser.

        A message has a `type`, its fields, and the `question` (id) that was on the screen.

        "seen" (page), "tick" (image, clue), "text", "done", "skip" and "reopen" change the vote.
        "question" (place) and "page" (page), both from 0, open another one. Each of them may carry
        typed text (answer, suggestion), which is saved first. "thumbnails" and "picture" (image)
        send images. If saving fails, the view gives the reason, and is otherwise unchanged.
        """
        if message["type"] == "thumbnails":
            for doc_id, data in self._thumbnails.items():
                self.send({"type": "thumbnail", "image": doc_id}, [data])
        elif message["type"] == "picture":
            if message["image"] in self._thumbnails:
                self._send_picture(message["image"])
        else:
            turn = self.view["turn"] + 1  # makes the view new to the browser if nothing changed
            self.view = {"turn": turn, **self._view(self._handle(message))}
            self.widget.set_trait("view", self.view)

    def _send_picture(self, doc_id: str) -> None:
        with suppress(VragError):  # a file may vanish; its thumbnail stays on the screen
            picture = to_jpeg(self._task.folder.image(doc_id), FULL, quality=90)
            self.send({"type": "picture", "image": doc_id}, [picture])

    @property
    def _task(self) -> Assignment:
        return self._tasks[self._place]

    def _vote(self, task: Assignment) -> Vote:
        """The saved vote with the question's current words, else the vote to begin with."""
        saved = self._file.annotations.votes.get(task.vote.question_id)
        if saved is None:
            return task.vote
        return saved.model_copy(update={name: getattr(task.vote, name) for name in IDENTITY})

    def _view(self, message: str) -> Json:
        task, vote = self._task, self._vote(self._task)
        first = self._page * PAGE + 1
        tiles = [
            {
                "image": doc_id,
                "number": number,
                "clue": vote.images.get(doc_id) == 1,
                "problem": self._problems.get(doc_id, ""),
            }
            for number, doc_id in enumerate(task.pages()[self._page], start=first)
        ]
        status = Counter(self._vote(task).status for task in self._tasks)
        path = display_path(self._file.path)
        if not status["open"]:
            message = message or (
                f"All {len(self._tasks)} questions are done or skipped: thank you. Your votes are"
                f" in {path}; name this file in annotation_files."
            )
        progress = (
            f"question {self._place + 1} of {len(self._tasks)}, {status['done']} done,"
            f" {status['skipped']} skipped; images {first}–{first + len(tiles) - 1} of"
            f" {len(task.images)}; {len(vote.clues)} clue(s); saved in {path}"
        )
        return {
            **vote.model_dump(exclude={"images", "unreadable", "species", "folder"}),
            "message": message,
            "progress": progress,
            "place": self._place,
            "places": len(self._tasks),
            "page": self._page,
            "pages": len(task.pages()),
            "called": task.folder.called,
            "explanation": task.explanation,
            "clues": len(vote.clues),
            "not_done": task.incomplete_reason(vote),
            "not_skipped": task.skip_refused_reason(vote),
            "tiles": tiles,
        }

    def _handle(self, message: JsonView) -> str:
        """Execute a message; returns the reason why it was not executed, or ""."""
        try:
            self._file.refresh()  # another panel may have written
            name = message.get("question", self._task.vote.question_id)
            task = next(task for task in self._tasks if task.vote.question_id == name)
            refused = self._save_texts(task, message)
            if refused or task is not self._task:
                return refused
            return self._execute(message, task)
        except (VragError, OSError) as error:
            return f"not saved: {error}"

    def _save_texts(self, task: Assignment, message: JsonView) -> str:
        """Save what was typed, also for a question that was just left."""
        vote, typed = self._vote(task), {}
        for name in ("answer", "suggestion"):
            if name in message:
                typed[name] = message[name].strip().encode("utf-8", "replace").decode()
        typed = {name: text for name, text in typed.items() if text != getattr(vote, name)}
        if typed and vote.status != "open":
            return _closed(vote)
        self._save(task, **typed)
        return ""

    def _execute(self, message: JsonView, task: Assignment) -> str:
        vote = self._vote(task)
        match message["type"]:
            case "question":
                self._turn_to(min(max(0, message["place"]), len(self._tasks) - 1))
            case "page":
                self._open_page(min(max(0, message["page"]), len(task.pages()) - 1))
            case "seen" if vote.status == "open" and message["page"] == self._page:
                self._see(task)
            case "reopen" if vote.status != "open":
                self._save(task, status="open")
                self._see(task)
            case "tick" | "done" | "skip" if vote.status != "open":
                return _closed(vote)
            case "tick" if message["image"] in self._thumbnails:
                images = {**vote.images, message["image"]: int(message["clue"])}
                self._save(task, images=images)
            case "tick":
                return f"not saved: {message['image']} cannot be ticked; it cannot be shown"
            case "done":
                return self._decide(task, "done", task.incomplete_reason(vote))
            case "skip":
                return self._decide(task, "skipped", task.skip_refused_reason(vote))
        return ""

    def _save(self, task: Assignment, **changes: object) -> None:
        before = self._vote(task)
        after = before.model_copy(update=changes)
        if after != before:
            self._file.save(after)

    def _see(self, task: Assignment) -> None:
        """Save which images of this page were on the screen, and which could not be."""
        vote = self._vote(task)
        images = dict(vote.images)
        for doc_id in self._thumbnails:
            images.setdefault(doc_id, int(doc_id in task.dispute.ticked))
        unreadable = dict.fromkeys((*vote.unreadable, *self._problems))
        lost = [doc_id for doc_id in unreadable if doc_id not in images]
        self._save(task, images=images, unreadable=lost)

    def _decide(self, task: Assignment, status: str, refused: str) -> str:
        if refused:
            return f"not {status}: {refused}"
        self._save(task, status=status)
        self._turn_to_open(self._place)
        return ""

    def _turn_to_open(self, start: int) -> None:
        """Turn to the first place from `start` on, and then from the beginning, that is neither
        done nor skipped; to the last one if there is none.
        """
        places = (*range(start, len(self._tasks)), *range(start))
        is_open = [place for place in places if self._vote(self._tasks[place]).status == "open"]
        self._turn_to((*is_open, len(self._tasks) - 1)[0])

    def _turn_to(self, place: int) -> None:
        self._place = place
        vote = self._vote(self._task)
        unseen = set(self._task.unseen_images(vote)) if vote.status == "open" else set()
        pages = enumerate(self._task.pages())
        self._open_page(next((number for number, page in pages if unseen & set(page)), 0))

    def _open_page(self, page: int) -> None:
        """Read the page's images."""
        self._page = page
        doc_ids = self._task.pages()[page]
        with ThreadPoolExecutor(4) as pool:
            read = dict(zip(doc_ids, pool.map(self._read, doc_ids), strict=True))
        self._thumbnails = {name: image for name, (image, _) in read.items() if image}
        self._problems = {name: problem for name, (_, problem) in read.items() if problem}

    def _read(self, doc_id: str) -> tuple[bytes, str]:
        """The thumbnail of an image, or why it cannot be read."""
        try:
            return to_jpeg(self._task.folder.image(doc_id), SIDE), ""
        except VragError as error:
            return b"", str(error)


def _closed(vote: Vote) -> str:
    return f"not saved: this question is {vote.status} already; reopen it to change it"


def annotate(
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    path: Path | str,
    annotator: str,
    *,
    seed: int = 0,
    disputes: Mapping[str, Dispute] | None = None,
) -> AnnotationPanel:
    """Return a panel to tick the images of each question that are clues, and to answer it.
    Every action is saved to the file `path` at once.

    `questions` has the columns question_id, species, folder, question, explanation and feature. The
    coarse filter's estimate is not shown: it would lead the annotator. An existing file is
    continued at the first question that is neither done nor skipped. Each annotator uses a separate
    file; seed, question and annotator determine the order of the images. With `disputes` (from
    `find_disputes`) only its images are displayed; undisputed clues are ticked. Raises `VragError`
    as `make_assignments` and `AnnotationFile` do.
    """
    tasks = make_assignments(questions, folders, annotator, seed=seed, disputes=disputes)
    return AnnotationPanel(tasks, AnnotationFile(path, annotator))


def annotation_page(
    annotations: Sequence[Annotations],
    image_root: Path | str,
    *,
    questions: int = 3,
    clues: int = 6,
) -> Page:
    """Return the first `questions` of each annotator as static HTML; all text is escaped.
    Each has at most `clues` of its clues.
    """
    cards = []
    for each in annotations:
        for vote in list(each.votes.values())[:questions]:
            facts = {"annotator": each.annotator, "status": vote.status, "answer": vote.answer}
            facts["clues"] = f"{len(vote.clues)} of {len(vote.images)} images shown"
            paths = [safe_join(Path(image_root), name, "annotation page") for name in vote.clues]
            images = [image_html(ImageFile(path), kind="relevant") for path in paths[:clues]]
            cards.append(card_html(vote.question, facts, images))
    return page_html(cards, "no question was opened yet")
