"""The coarse filter: a multimodal model says of every image whether a question's
feature can be seen in it (Visual-RAG, section 4.2, stage 1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.benchmarks import ImageFile
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.running import how_to_run
from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN
from vrag_kit.generation import AnswerStore, Asking, Round, ask_prompts, load_generator, render
from vrag_kit.generation.reading import read_tagged
from vrag_kit.judging.abstention import declines
from vrag_kit.options import Entry
from vrag_kit.types import Answer, Evidence, Failure, Message, Prompt, Query, Status

_COLUMNS = ["question_id", "doc_id", "visible", "status", "detail", "answer_id"]
MOST_CLUES = 0.25
"""The largest share of clues among a species' images: what more images show is not rare
(section 4.2).
"""
_DATA = json.loads((Path(__file__).parent / "presence.json").read_text(encoding="utf-8"))
_YES_NO: str = _DATA["yes_no"]


def ask_presence(
    model: Entry,
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    answers_dir: Path | str,
    *,
    wording: str = "yes_no",
    run_with: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """One row for each question that was not dropped and each image of its species:
    question_id, doc_id, visible (1 or 0, NaN where it could not be told), status
    and detail (why not), answer_id.

    `wording` is how it is asked. "yes_no": can the feature be seen, yes or no.
    "question": the question itself, with one image; to answer means that it can be
    seen, and to decline that it cannot; for models that were taught to decline. With ""
    as `model` nothing is asked, and there are no rows. `questions` has the columns
    question_id, folder, question, feature, dropped. Images that cannot be opened are
    named, and not asked about. Answers are kept in `answers.sqlite` in `answers_dir`
    and not asked for again; see `ask_prompts` for what is printed and raised. Of
    `run_with` device, batch_size and retry_failures count; answers are greedy and 16
    tokens long at most, unless the model's entry says otherwise. Also raises
    `VragError` for another wording and for a question whose folder is not among
    `folders`.
    """
    if not model:
        print("no coarse filter: every question goes on to the annotators", flush=True)
        return pd.DataFrame(columns=_COLUMNS).astype({"visible": float})
    if wording not in WORDINGS:
        raise VragError(
            f"unknown wording {wording!r} of the coarse filter; expected one of"
            f" {', '.join(map(repr, WORDINGS))}."
        )
    looks = _looks(questions[questions["dropped"] == ""], folders)
    damaged = _damaged({look.doc_id: look.image for look in looks})
    whole = [look for look in looks if look.doc_id not in damaged]
    write, read = WORDINGS[wording]
    prompts = [(look.question_id, write(look)) for look in whole]
    how = how_to_run(run_with, Asking(decoding="greedy", max_new_tokens=16))
    answers = _ask(model, prompts, Path(answers_dir), how)
    told = {look: _told(answer, read) for look, answer in zip(whole, answers, strict=True)}
    rows = []
    for look in looks:
        said = told.get(look) or (np.nan, Status.DAMAGED.value, damaged[look.doc_id], "")
        rows.append((look.question_id, look.doc_id, *said))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ask(
    model: Entry, prompts: Sequence[tuple[str, Prompt]], answers_dir: Path, how: Asking
) -> list[Answer]:
    """The answer to each prompt, which a question_id stands before."""
    generator = load_generator(
        model,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    with AnswerStore(answers_dir / "answers.sqlite") as store:
        return ask_prompts(
            generator,
            [prompt for _, prompt in prompts],
            store,
            owners=[question_id for question_id, _ in prompts],
            how=how,
            this=Round(what="looks"),
        )


@dataclass(frozen=True)
class Look:
    """One image that a question is asked about."""

    question_id: str
    doc_id: str
    question: str
    feature: str
    called: str  # the species, as people say it
    image: ImageFile


def _looks(questions: pd.DataFrame, folders: Sequence[SpeciesFolder]) -> list[Look]:
    """Every question with every image of its folder; raises `VragError` for one whose
    folder is not there.
    """
    by_name = {folder.name: folder for folder in folders}
    if lost := sorted(set(questions["folder"]) - set(by_name)):
        raise VragError(
            f"there is no folder {lost[0]!r} of pictures, which a question is about; found"
            f" {', '.join(list(by_name)[:3])}, …. Mend the questions, or the image root."
        )
    looks = []
    for row in questions.to_dict("records"):
        folder = by_name[row["folder"]]
        words = (row["question"], row["feature"], folder.called)
        for doc_id in folder.images:
            image = ImageFile(folder.root / doc_id)
            looks.append(Look(row["question_id"], doc_id, *words, image))
    return looks


def coarse_filter(
    questions: pd.DataFrame, presence: pd.DataFrame, limit: float = MOST_CLUES
) -> pd.DataFrame:
    """`questions` with the columns rate (the share of judged images that show the
    feature, NaN without any), judged and unjudged (images); too common ones are
    dropped.

    A question gets that as its `dropped` when more than `limit` of all its images seem
    to show the feature, whatever the unjudged ones would be; and so does one of which
    none could be judged. A rate of 0 stays: a person may see what the model did not.
    Images without a verdict are left out of the rate and counted.
    """
    asked = questions["question_id"].where(questions["dropped"] == "")
    by_question = presence.groupby("question_id")["visible"]
    judged = asked.map(by_question.count())
    unjudged = asked.map(by_question.size()) - judged
    table = questions.assign(
        rate=asked.map(by_question.mean()),
        judged=judged.fillna(0).astype(int),
        unjudged=unjudged.fillna(0).astype(int),
    )
    failures = presence[presence["visible"].isna()].drop_duplicates("question_id")
    first = failures.set_index("question_id")[["status", "detail"]].to_dict("index")
    dropped = []
    for row in table.to_dict("records"):
        said = row["dropped"]
        if not said and row["unjudged"] and not row["judged"]:
            why = first[row["question_id"]]
            said = f"no image could be judged: {Failure(Status(why['status']), why['detail'])}"
        seen = row["rate"] * row["judged"]
        if not said and seen > limit * (row["judged"] + row["unjudged"]) + 1e-9:
            said = f"the estimated clue rate {row['rate']:.1%} is above {limit:.0%}"
        dropped.append(said)
    return table.assign(dropped=dropped)


def _damaged(images: Mapping[str, ImageFile]) -> dict[str, str]:
    """The images that cannot be opened → why; printed."""

    def problem(doc_id: str) -> str:
        try:
            images[doc_id].open()
        except VragError as error:
            return str(error)
        return ""

    names = sorted(images)
    with ThreadPoolExecutor(4) as pool:
        problems = zip(names, pool.map(problem, names), strict=True)
        found = {doc_id: words for doc_id, words in problems if words}
    for words in list(found.values())[:20]:
        print(f"left out: {words}", flush=True)
    if len(found) > 20:
        print(f"left out: and {len(found) - 20:,} more images that cannot be opened", flush=True)
    return found


def _yes_no(look: Look) -> Prompt:
    words = _YES_NO.format(called=look.called, feature=look.feature, question=look.question)
    return (Message(role="user", parts=(words, look.image)),)


def _question(look: Look) -> Prompt:
    from vrag_kit.papers.visual_rag.wording import WORDING

    query = Query(query_id=look.question_id, text=look.question)
    shown = Evidence(doc_id=look.doc_id, image=look.image)
    return render(WORDING.template("one_image"), query, [shown])


def _says_yes(said: str) -> float:
    found = re.match(r"\W*(yes|no)\b", said, re.IGNORECASE)
    return np.nan if found is None else float(found[1].lower() == "yes")


def _answers(said: str) -> float:
    return float(not declines(said)) if said else np.nan


WORDINGS: dict[str, tuple[Callable[[Look], Prompt], Callable[[str], float]]] = {
    "yes_no": (_yes_no, _says_yes),
    "question": (_question, _answers),
}
"""How it is asked, and how what was said is read: NaN is unreadable."""


def _told(answer: Answer, read: Callable[[str], float]) -> tuple[float, str, str, str]:
    """visible, status, detail and answer_id of a row. In a forecast nobody has looked, and
    nothing is visible: so no question is dropped, as all would be if words were read.
    """
    if answer.failure:
        return np.nan, answer.status.value, answer.detail, answer.answer_id
    if answer.fields.get(STAND_IN):
        return 0.0, Status.OK.value, "", answer.answer_id
    said = str(read_tagged(answer.raw or "")["answer"])
    visible = read(said)
    if np.isfinite(visible):
        return visible, Status.OK.value, "", answer.answer_id
    words = repr(" ".join(said.split())[:60])
    return np.nan, Status.UNREADABLE.value, words, answer.answer_id
