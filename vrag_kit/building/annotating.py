"""State and rules of the annotation panel, without the screen (appendix C of the paper).
The view of a page is always made from what the disk holds.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.building.annotations import AnnotationWriter, Vote
from vrag_kit.building.assignment import PAGE, Assignment
from vrag_kit.errors import VragError
from vrag_kit.plain import Json, JsonView
from vrag_kit.widgets.images import to_jpeg
from vrag_kit.workspace import display_path


class AnnotationSession:
    """One annotator's session on some questions.

    `handle` executes an action, `view` returns the state of the screen after it.
    """

    def __init__(self, tasks: list[Assignment], file: AnnotationWriter) -> None:
        """Opens at the first question that is neither done nor skipped.
        Its first page with an image that was not shown yet is on the screen.
        """
        self.thumbnails: dict[str, bytes] = {}  # of the page on the screen, by doc_id
        self._tasks, self._file = tasks, file
        self._place: int = 0  # of the question on the screen, among the tasks
        self._page: int = 0
        self._problems: dict[str, str] = {}  # of those that cannot be read
        # questions whose words are in the log since they were turned to
        self._announced: set[str] = set()
        self._turn_to(self._next_open(0))

    def handle(self, message: JsonView) -> str:
        """Execute a message of `AnnotationPanel.receive`.
        Returns the reason why it was not executed, or "".
        """
        try:
            self._file.refresh()
            return self._do(
                message["type"], message.get("question", self._task.question_id), message
            )
        except VragError as error:
            return f"not saved: {error}"
        except OSError as error:
            return (
                f"not saved: {self._file.path}: {error.strerror}. What was saved before is kept;"
                " try again once it is mended."
            )

    def view(self) -> Json:
        """Return the state of the screen: texts, numbers and doc_ids."""
        task, vote = self._task, self._vote
        clues = vote.clues if vote else frozenset()
        return {
            "progress": self._progress(),
            "question_id": task.question_id,
            "place": self._place,
            "places": len(self._tasks),
            "page": self._page,
            "pages": len(task.pages()),
            "called": task.called,
            "question": task.question,
            "explanation": task.explanation,
            "feature": task.feature,
            "rate": task.rate_in_words,
            "status": vote.status if vote else "open",
            "clues": len(clues),
            "answer": vote.answer if vote else task.proposal,
            "suggestion": vote.suggestion if vote else "",
            "not_done": task.incomplete_reason(vote),
            "not_skipped": task.skip_refused_reason(vote),
            "tiles": [
                self._tile(number, doc_id)
                for number, doc_id in enumerate(self._page_images(), start=self._page * PAGE + 1)
            ],
        }

    def image_path(self, doc_id: str) -> Path:
        """Return the path of an image of the question on the screen."""
        return self._task.root / doc_id

    def _tile(self, number: int, doc_id: str) -> Json:
        return {
            "image": doc_id,
            "number": number,
            "clue": self._vote is not None and doc_id in self._vote.clues,
            "problem": self._problems.get(doc_id, ""),
            "remark": self._task.remarks.get(doc_id, ""),
        }

    @property
    def _task(self) -> Assignment:
        return self._tasks[self._place]

    @property
    def _vote(self) -> Vote | None:
        return self._file.log.votes.get(self._task.question_id)

    def completion_message(self) -> str:
        """Return the closing message once all questions are decided; "" before."""
        if any(not self._decided(task.question_id) for task in self._tasks):
            return ""
        return (
            f"All {len(self._tasks)} questions are done or skipped: thank you. What you ticked is"
            f" in {display_path(self._file.path)}; name this file among those that count."
        )

    def _do(self, kind: str, question_id: str, message: JsonView) -> str:
        """One action; returns why nothing was done, or ""."""
        decided = self._decided(question_id)
        refused = ""
        if decided:
            status = self._file.log.votes[question_id].status
            refused = f"not saved: this question is {status} already; reopen it to change it"
        typed = self._changed_texts(question_id, message)  # also of a question that was just left
        if typed and decided:
            return refused
        for event, text in typed.items():
            self._log(question_id, event, {"text": text})
        if question_id != self._task.question_id:
            return ""
        match kind:
            case "question":
                self._turn_to(min(max(0, message["place"]), len(self._tasks) - 1))
            case "page":
                self._open_page(min(max(0, message["page"]), len(self._task.pages()) - 1))
            case "reopen" if decided:
                self._log(question_id, "reopened")
                self._see()
            case "seen" if not decided and message["page"] == self._page:
                self._see()
            case "seen" | "reopen" | "text":
                pass
            case _ if decided:
                return refused
            case "tick":
                return self._tick(message["image"], bool(message["clue"]))
            case "done" | "skip":
                return self._decide(kind)
            case _:
                raise VragError(
                    f"the panel's browser side sent {kind!r}, which is nothing that can be done;"
                    " reload the page."
                )
        return ""

    def _see(self) -> None:
        """Log the images of this page that were not on the screen before."""
        vote, task = self._vote, self._task
        shown = set(vote.shown) if vote else set()
        told = vote.unreadable if vote else frozenset()
        new = [doc_id for doc_id in self._page_images() if doc_id not in shown]
        images = [doc_id for doc_id in new if doc_id not in self._problems]
        unreadable = [doc_id for doc_id in new if doc_id in self._problems and doc_id not in told]
        if images or unreadable:
            self._log(task.question_id, "seen", {"images": images, "unreadable": unreadable})
        for doc_id in images:
            if doc_id in task.ticked:
                self._log(task.question_id, "ticked", {"image": doc_id})

    def _tick(self, doc_id: str, clue: bool) -> str:
        if clue and (doc_id not in self._page_images() or doc_id in self._problems):
            return f"not saved: {doc_id} cannot be ticked; it cannot be shown"
        vote = self._vote
        if clue and (vote is None or doc_id not in vote.shown):
            # a click before the page was reported as seen: of this image alone that is certain
            self._log(self._task.question_id, "seen", {"images": [doc_id], "unreadable": []})
        if clue != (vote is not None and doc_id in vote.clues):
            self._log(self._task.question_id, "ticked" if clue else "unticked", {"image": doc_id})
        return ""

    def _changed_texts(self, question_id: str, message: JsonView) -> dict[str, str]:
        """Of what was typed, that which differs from the log: event → text."""
        vote = self._file.log.votes.get(question_id)
        saved = {
            "answer": ("answered", vote.answer if vote else ""),
            "suggestion": ("suggested", vote.suggestion if vote else ""),
        }
        changed = {}
        for name, (event, before) in saved.items():
            if name in message and message[name].strip() != before:
                changed[event] = message[name].strip()
        return changed

    def _decide(self, kind: str) -> str:
        """Done or skipped, if the rules allow it; then on to the next open question."""
        task, vote = self._task, self._vote
        event, why_not = "skipped", task.skip_refused_reason
        if kind == "done":
            event, why_not = "done", task.incomplete_reason
        reason = why_not(vote)
        if reason or vote is None:  # what nobody opened has a reason
            return f"not {event}: {reason}"
        counts = {"shown": len(vote.shown), "clues": len(vote.clues)}
        self._log(task.question_id, event, counts)
        self._turn_to(self._next_open(self._place))
        return ""

    def _log(self, question_id: str, event: str, fields: JsonView | None = None) -> None:
        """Append one action, and the question's words before it if they are not there
        since it was turned to.
        """
        if question_id not in self._announced:
            task = next(task for task in self._tasks if task.question_id == question_id)
            new = question_id not in self._file.log.votes
            words = {
                "species": task.species,
                "folder": task.folder,
                "question": task.question,
                "feature": task.feature,
            }
            self._file.append(question_id, "opened", words)
            self._announced.add(question_id)
            if new and task.proposal:
                self._file.append(question_id, "answered", {"text": task.proposal})
        self._file.append(question_id, event, fields)

    def _decided(self, question_id: str) -> bool:
        vote = self._file.log.votes.get(question_id)
        return vote is not None and vote.status != "open"

    def _next_open(self, start: int) -> int:
        """The first place from `start` on, and then from the beginning, that is neither
        done nor skipped; the last one if there is none.
        """
        for place in chain(range(start, len(self._tasks)), range(start)):
            if not self._decided(self._tasks[place].question_id):
                return place
        return len(self._tasks) - 1

    def _turn_to(self, place: int) -> None:
        self._place = place
        self._announced.discard(self._task.question_id)
        to_see: set[str] = set()
        if not self._decided(self._task.question_id):
            to_see.update(self._task.unseen_images(self._vote))
        pages = enumerate(self._task.pages())
        self._open_page(next((number for number, page in pages if to_see & set(page)), 0))

    def _open_page(self, page: int) -> None:
        """Read the page's pictures."""
        self._page = page
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(self._read, self._page_images()))
        self.thumbnails, self._problems = {}, {}
        for doc_id, found in zip(self._page_images(), read, strict=True):
            if isinstance(found, bytes):
                self.thumbnails[doc_id] = found
            else:
                self._problems[doc_id] = str(found)

    def _page_images(self) -> tuple[str, ...]:
        return self._task.pages()[self._page]

    def _read(self, doc_id: str) -> bytes | VragError:
        try:
            return to_jpeg(ImageFile(self.image_path(doc_id)))
        except VragError as error:
            return error

    def _progress(self) -> str:
        """Where one is, and how much is done."""
        votes = self._file.log.votes
        opened = [task for task in self._tasks if task.question_id in votes]
        status = Counter(votes[task.question_id].status for task in opened)
        shown_now = self._page_images()
        first, last = self._page * PAGE + 1, self._page * PAGE + len(shown_now)
        clues = len(self._vote.clues) if self._vote else 0
        plural = "" if clues == 1 else "s"
        return (
            f"question {self._place + 1} of {len(self._tasks)}, {status['done']} done,"
            f" {status['skipped']} skipped; images {first}–{last} of {len(self._task.images)};"
            f" {clues} clue{plural}; saved in {display_path(self._file.path)}"
        )
