"""What an annotator sees and does, without the screen: the view of a page, always made
from what the disk holds, and the rules of the paper's appendix C.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from math import isnan
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.building.assignment import PAGE, Assignment
from vrag_kit.building.log import LogFile, Vote
from vrag_kit.errors import VragError
from vrag_kit.widgets.pictures import jpeg
from vrag_kit.workspace import shown


class Annotating:
    """One annotator at work on some questions.

    `do` takes an action, `view` says what is on the screen then.
    """

    def __init__(self, tasks: list[Assignment], image_root: Path, file: LogFile) -> None:
        """Opens at the first question that is neither done nor skipped, on its first
        page with an image that was not on the screen yet.
        """
        self.image_root = image_root
        self.thumbnails: dict[str, bytes] = {}  # of the page on the screen, by doc_id
        self._tasks, self._file = tasks, file
        self._problems: dict[str, str] = {}  # of those that cannot be read
        self._announced: set[str] = (
            set()
        )  # questions whose words are in the log since they were turned to
        self._turn_to(self._next_open(0))

    def do(self, message: Mapping[str, Any]) -> str:
        """Do what `AnnotationPanel.receive` describes; returns why it was not done, or
        "".
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

    def view(self) -> dict[str, Any]:
        """What is on the screen, in words, numbers and doc_ids."""
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
            "rate": (
                "estimated clue rate unknown"
                if isnan(task.rate)
                else f"estimated clue rate {100 * task.rate:.1f} % (by the coarse filter"
                + (f", which could not judge {task.unjudged} images)" if task.unjudged else ")")
            ),
            "status": vote.status if vote else "open",
            "clues": len(clues),
            "answer": vote.answer if vote else task.proposal,
            "suggestion": vote.suggestion if vote else "",
            "not_done": task.why_not_done(vote),
            "not_skipped": task.why_not_skipped(vote),
            "tiles": [
                {
                    "image": doc_id,
                    "number": number,
                    "clue": doc_id in clues,
                    "problem": self._problems.get(doc_id, ""),
                    "remark": task.remarks.get(doc_id, ""),
                }
                for number, doc_id in enumerate(self._page_images(), start=self._page * PAGE + 1)
            ],
        }

    @property
    def _task(self) -> Assignment:
        return self._tasks[self._place]

    @property
    def _vote(self) -> Vote | None:
        return self._file.log.votes.get(self._task.question_id)

    def finished(self) -> str:
        """What is to be said when all questions are decided; "" before."""
        if any(not self._decided(task.question_id) for task in self._tasks):
            return ""
        return (
            f"All {len(self._tasks)} questions are done or skipped: thank you. What you ticked is"
            f" in {shown(self._file.path)}; name this file among those that count."
        )

    def _do(self, kind: str, question_id: str, message: Mapping[str, Any]) -> str:
        """One action; returns why nothing was done, or ""."""
        decided = self._decided(question_id)
        refused = (
            f"not saved: this question is {self._file.log.votes[question_id].status} already;"
            " reopen it to change it"
            if decided
            else ""
        )
        for event, text in self._changed_texts(
            question_id, message
        ).items():  # also of a question that was just left
            if decided:
                return refused
            self._log(question_id, event, text=text)
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
        new, vote, task = self._page_images(), self._vote, self._task
        images = [
            doc_id
            for doc_id in new
            if doc_id not in self._problems and not (vote and doc_id in vote.shown)
        ]
        unreadable = [
            doc_id
            for doc_id in new
            if doc_id in self._problems
            and not (vote and (doc_id in vote.unreadable or doc_id in vote.shown))
        ]
        if images or unreadable:
            self._log(task.question_id, "seen", images=images, unreadable=unreadable)
        for doc_id in images:
            if doc_id in task.ticked:
                self._log(task.question_id, "ticked", image=doc_id)

    def _tick(self, doc_id: str, clue: bool) -> str:
        if clue and (doc_id not in self._page_images() or doc_id in self._problems):
            return f"not saved: {doc_id} cannot be ticked; it cannot be shown"
        if clue and (
            self._vote is None or doc_id not in self._vote.shown
        ):  # a click before the page was reported as seen: of this image alone that is certain
            self._log(self._task.question_id, "seen", images=[doc_id], unreadable=[])
        if clue != (self._vote is not None and doc_id in self._vote.clues):
            self._log(self._task.question_id, "ticked" if clue else "unticked", image=doc_id)
        return ""

    def _changed_texts(self, question_id: str, message: Mapping[str, Any]) -> dict[str, str]:
        """Of what was typed, that which differs from the log: event → text."""
        vote = self._file.log.votes.get(question_id)
        saved = {
            "answer": ("answered", vote.answer if vote else ""),
            "suggestion": ("suggested", vote.suggestion if vote else ""),
        }
        return {
            event: message[name].strip()
            for name, (event, before) in saved.items()
            if name in message and message[name].strip() != before
        }

    def _decide(self, kind: str) -> str:
        """Done or skipped, if the rules allow it; then on to the next open question."""
        task, event = self._task, "done" if kind == "done" else "skipped"
        if reason := (task.why_not_done if kind == "done" else task.why_not_skipped)(self._vote):
            return f"not {event}: {reason}"
        self._log(task.question_id, event, shown=len(self._vote.shown), clues=len(self._vote.clues))
        self._turn_to(self._next_open(self._place))
        return ""

    def _log(self, question_id: str, event: str, **fields: Any) -> None:
        """Append one action, and the question's words before it if they are not there
        since it was turned to.
        """
        if question_id not in self._announced:
            task = next(task for task in self._tasks if task.question_id == question_id)
            new = question_id not in self._file.log.votes
            self._file.append(
                question_id,
                "opened",
                species=task.species,
                folder=task.folder,
                question=task.question,
                feature=task.feature,
            )
            self._announced.add(question_id)
            if new and task.proposal:
                self._file.append(question_id, "answered", text=task.proposal)
        self._file.append(question_id, event, **fields)

    def _decided(self, question_id: str) -> bool:
        return (
            question_id in self._file.log.votes
            and self._file.log.votes[question_id].status != "open"
        )

    def _next_open(self, start: int) -> int:
        """The first place from `start` on, and then from the beginning, that is neither
        done nor skipped; the last one if there is none.
        """
        places = [*range(start, len(self._tasks)), *range(start)]
        return next(
            (place for place in places if not self._decided(self._tasks[place].question_id)),
            len(self._tasks) - 1,
        )

    def _turn_to(self, place: int) -> None:
        self._place = place
        self._announced.discard(self._task.question_id)
        to_see = (
            set(self._task.to_see(self._vote))
            if not self._decided(self._task.question_id)
            else set()
        )
        self._open_page(
            next(
                (number for number, page in enumerate(self._task.pages()) if to_see & set(page)), 0
            )
        )

    def _open_page(self, page: int) -> None:
        """Read the page's pictures."""
        self._page = page
        with ThreadPoolExecutor(4) as pool:
            read = dict(
                zip(self._page_images(), pool.map(self._read, self._page_images()), strict=True)
            )
        self.thumbnails = {
            doc_id: found for doc_id, found in read.items() if isinstance(found, bytes)
        }
        self._problems = {
            doc_id: str(found) for doc_id, found in read.items() if isinstance(found, VragError)
        }

    def _page_images(self) -> tuple[str, ...]:
        return self._task.pages()[self._page]

    def _read(self, doc_id: str) -> bytes | VragError:
        try:
            return jpeg(ImageFile(self.image_root / doc_id))
        except VragError as error:
            return error

    def _progress(self) -> str:
        """Where one is, and how much is done."""
        votes, task = self._file.log.votes, self._task
        done, skipped = (
            sum(
                each.question_id in votes and votes[each.question_id].status == status
                for each in self._tasks
            )
            for status in ("done", "skipped")
        )
        first, clues = self._page * PAGE + 1, len(self._vote.clues) if self._vote else 0
        return (
            f"question {self._place + 1} of {len(self._tasks)}, {done} done, {skipped} skipped;"
            f" images {first}–{first + len(self._page_images()) - 1} of {len(task.images)}; {clues}"
            f" clue{'' if clues == 1 else 's'}; saved in {shown(self._file.path)}"
        )
