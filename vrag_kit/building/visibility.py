"""Coarse filter: a multimodal model decides for each image whether a question's feature is visible
(Visual-RAG, section 4.2, stage 1).
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
from vrag_kit.config import GREEDY, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, Task, ask_prompts, load_generator, render
from vrag_kit.generation.prompts import parse_tagged
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.log import logger
from vrag_kit.options import Entry
from vrag_kit.plain import JsonView
from vrag_kit.types import Answer, Document, Failure, Message, Prompt, Query, Status

_COLUMNS = ["question_id", "doc_id", "visible", "status", "detail", "answer_id"]
MOST_CLUES = 0.25
"""Maximum share of clues among a species' images; a feature that more images show is not rare
(section 4.2).
"""
_DATA = json.loads((Path(__file__).parent / "presence.json").read_text(encoding="utf-8"))
_YES_NO: str = _DATA["yes_no"]


def detect_feature(
    model: Entry,
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    answers_dir: Path | str,
    *,
    prompt: str = "yes_no",
    hardware: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """Query a model for each question and image whether the question's feature is visible.
    Returns one row for each question that was not dropped and each image of its species:
    question_id, doc_id, visible (1 or 0, NaN if unknown), status and detail (the reason),
    answer_id.

    `prompt` selects the prompt. "yes_no": is the feature visible, yes or no. "question": the
    question itself, with one image; an answer means visible, an abstention not visible; for models
    that were trained to abstain. With "" as `model` no model is called, and there are no rows.
    `questions` has the columns question_id, folder, question, feature, dropped. Images that cannot
    be opened are printed and left out. Answers are stored in `answers.sqlite` in `answers_dir` and
    reused; see `ask_prompts` for what is printed and raised. `hardware` names fields of `Hardware`;
    answers are greedy and 16 tokens long at most, unless the model's entry says otherwise. Also
    raises `VragError` for an unknown prompt and for a question whose folder is not among
    `folders`.
    """
    if not model:
        logger.info("no coarse filter: every question goes on to the annotators")
        return pd.DataFrame(columns=_COLUMNS).astype({"visible": float})
    if prompt not in PRESENCE_PROMPTS:
        raise VragError(
            f"unknown prompt {prompt!r} of the coarse filter; expected one of"
            f" {', '.join(map(repr, PRESENCE_PROMPTS))}."
        )
    looks = _looks(questions[questions["dropped"] == ""], folders)
    damaged = _damaged({look.doc_id: look.image for look in looks})
    whole = [look for look in looks if look.doc_id not in damaged]
    write, read = PRESENCE_PROMPTS[prompt]
    prompts = [(look.question_id, write(look)) for look in whole]
    answers = _ask(model, prompts, Path(answers_dir), hardware)
    told = {look: _scored(answer, read) for look, answer in zip(whole, answers, strict=True)}
    rows = []
    for look in looks:
        said = told.get(look) or (np.nan, Status.DAMAGED.value, damaged[look.doc_id], "")
        rows.append((look.question_id, look.doc_id, *said))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _ask(
    model: Entry,
    prompts: Sequence[tuple[str, Prompt]],
    answers_dir: Path,
    hardware: JsonView | None,
) -> list[Answer]:
    """The answer to each prompt, which a question_id stands before."""
    decoding = {**GREEDY, "max_new_tokens": 16}
    generator = load_generator(model, decoding=decoding, hardware=hardware)
    with AnswerStore(answers_dir / "answers.sqlite") as store:
        return ask_prompts(
            generator,
            [prompt for _, prompt in prompts],
            store,
            owners=[question_id for question_id, _ in prompts],
            hardware=hardware_of(hardware),
            task=Task(what="looks"),
        )


@dataclass(frozen=True)
class ImageQuery:
    """A question about one image."""

    question_id: str
    doc_id: str
    question: str
    feature: str
    called: str  # the species, as people say it
    image: ImageFile


def _looks(questions: pd.DataFrame, folders: Sequence[SpeciesFolder]) -> list[ImageQuery]:
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
            looks.append(ImageQuery(row["question_id"], doc_id, *words, image))
    return looks


def coarse_filter(
    questions: pd.DataFrame, presence: pd.DataFrame, limit: float = MOST_CLUES
) -> pd.DataFrame:
    """Estimate each question's clue rate, and drop questions whose features are too common.
    Adds to `questions` the columns estimated_clue_rate (the share of judged images that show the
    feature, NaN without any), n_judged and n_unjudged (images).

    A question is dropped, with the reason in `dropped`, when more than `limit` of all its images
    seem to show the feature, whatever the unjudged ones show, or when none could be judged. A rate
    of 0 stays: a person may see what the model did not. Images without a verdict are left out of
    the rate and counted.
    """
    asked = questions["question_id"].where(questions["dropped"] == "")
    by_question = presence.groupby("question_id")["visible"]
    judged = asked.map(by_question.count())
    unjudged = asked.map(by_question.size()) - judged
    table = questions.assign(
        estimated_clue_rate=asked.map(by_question.mean()),
        n_judged=judged.fillna(0).astype(int),
        n_unjudged=unjudged.fillna(0).astype(int),
    )
    failures = presence[presence["visible"].isna()].drop_duplicates("question_id")
    first = failures.set_index("question_id")[["status", "detail"]].to_dict("index")
    dropped = []
    for row in table.to_dict("records"):
        said = row["dropped"]
        if not said and row["n_unjudged"] and not row["n_judged"]:
            why = first[row["question_id"]]
            said = f"no image could be judged: {Failure(Status(why['status']), why['detail'])}"
        seen = row["estimated_clue_rate"] * row["n_judged"]
        if not said and seen > limit * (row["n_judged"] + row["n_unjudged"]) + 1e-9:
            said = f"the estimated clue rate {row['estimated_clue_rate']:.1%} is above {limit:.0%}"
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
        logger.info(f"left out: {words}")
    if len(found) > 20:
        logger.info(f"left out: and {len(found) - 20:,} more images that cannot be opened")
    return found


def _yes_no(look: ImageQuery) -> Prompt:
    words = _YES_NO.format(called=look.called, feature=look.feature, question=look.question)
    return (Message(role="user", parts=(words, look.image)),)


def _question(look: ImageQuery) -> Prompt:
    from vrag_kit.papers.visual_rag.prompts import PROMPTS

    query = Query(query_id=look.question_id, text=look.question)
    shown = Document(doc_id=look.doc_id, image=look.image)
    return render(PROMPTS.template("one_image"), query, [shown])


def _says_yes(text: str) -> float:
    found = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE)
    return np.nan if found is None else float(found[1].lower() == "yes")


def _answers(text: str) -> float:
    return float(not is_abstention(text)) if text else np.nan


PRESENCE_PROMPTS: dict[str, tuple[Callable[[ImageQuery], Prompt], Callable[[str], float]]] = {
    "yes_no": (_yes_no, _says_yes),
    "question": (_question, _answers),
}
"""Prompt → the function that builds the prompt, and the parser of the reply (NaN: unparsed)."""


def _scored(answer: Answer, read: Callable[[str], float]) -> tuple[float, str, str, str]:
    """visible, status, detail and answer_id of a row. In a forecast nobody has looked, and
    nothing is visible: so no question is dropped, as all would be if words were read.
    """
    if answer.failure:
        return np.nan, answer.status.value, answer.detail, answer.answer_id
    if answer.is_placeholder:
        return 0.0, Status.OK.value, "", answer.answer_id
    said = str(parse_tagged(answer.raw or "")["answer"])
    visible = read(said)
    if np.isfinite(visible):
        return visible, Status.OK.value, "", answer.answer_id
    words = repr(" ".join(said.split())[:60])
    return np.nan, Status.UNREADABLE.value, words, answer.answer_id
