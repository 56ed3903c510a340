"""Coarse filter: a multimodal model decides for each image whether a question's feature is visible
(Visual-RAG, section 4.2, stage 1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.building.species import SpeciesFolder, folder_of
from vrag_kit.config import GREEDY, Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, Task, ask_prompts, load_generator, render
from vrag_kit.generation.prompts import parse_tagged
from vrag_kit.judging.abstention import is_abstention
from vrag_kit.log import logger
from vrag_kit.types import Answer, Document, Failure, Message, Prompt, Query, Status
from vrag_kit.workspace import Workspace

_COLUMNS = ["question_id", "doc_id", "visible", "status", "detail", "answer_id"]
MOST_CLUES = 0.25
"""Maximum share of clues among a species' images; a feature that more images show is not rare
(section 4.2).
"""
_DATA = json.loads((Path(__file__).parent / "presence.json").read_text(encoding="utf-8"))


ImageQuery = tuple[Mapping[Hashable, Any], SpeciesFolder, str]
"""A row of the questions, the folder of its species, and the doc_id of one of its images."""


def detect_feature(
    model: Entry,
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    at: Workspace,
    *,
    prompt: str = "yes_no",
) -> pd.DataFrame:
    """Query a model for each question and image whether the question's feature is visible.
    Returns one row for each question that was not dropped and each image of its species:
    question_id, doc_id, visible (1 or 0, NaN if unknown), status and detail (the reason),
    answer_id.

    `prompt` selects the prompt. "yes_no": is the feature visible, yes or no. "question": the
    question itself, with one image; an answer means visible, an abstention not visible; for models
    that were trained to abstain. With "" as `model` no model is called, and there are no rows.
    `questions` has the columns question_id, folder, question, feature, dropped. Answers are stored
    in the workspace's `answers_dir` and reused; see `ask_prompts` for what is printed and
    raised. Answers are greedy and 16 tokens long at most,
    unless the model's entry says otherwise. Also raises `VragError` for an unknown prompt, for an
    image that cannot be opened, and for a question whose folder is not among `folders`.
    """
    if not model:
        logger.info("no coarse filter: annotators get every question")
        return pd.DataFrame(columns=_COLUMNS).astype({"visible": float})
    if prompt not in PRESENCE_PROMPTS:
        known = ", ".join(map(repr, PRESENCE_PROMPTS))
        raise VragError(f"unknown prompt {prompt!r} of the coarse filter; expected one of {known}.")
    queries: list[ImageQuery] = []
    for row in questions[questions["dropped"] == ""].to_dict("records"):
        folder = folder_of(row, folders)
        queries += [(row, folder, doc_id) for doc_id in folder.images]
    write, read = PRESENCE_PROMPTS[prompt]
    decoding = {**GREEDY, "max_new_tokens": 16}
    generator = load_generator(model, decoding=decoding, at=at)
    with AnswerStore(at.answers_file) as store:
        answers = ask_prompts(
            generator,
            list(starmap(write, queries)),
            store,
            owners=[row["question_id"] for row, _, _ in queries],
            at=at,
            task=Task(what="looks"),
        )
    rows = [
        (row["question_id"], doc_id, *_result(answer, read))
        for (row, _, doc_id), answer in zip(queries, answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _result(answer: Answer, read: Callable[[str], float]) -> tuple[float, str, str, str]:
    """visible, status, detail and answer_id of a row. A dry run's placeholder counts as not
    visible, so that no question is dropped.
    """
    if answer.failure:
        return np.nan, answer.status.value, answer.detail, answer.answer_id
    if answer.is_placeholder:
        return 0.0, Status.OK.value, "", answer.answer_id
    text = str(parse_tagged(answer.raw or "")["answer"])
    visible = read(text)
    if np.isfinite(visible):
        return visible, Status.OK.value, "", answer.answer_id
    return np.nan, Status.UNREADABLE.value, repr(" ".join(text.split())[:60]), answer.answer_id


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
    ids = questions["question_id"].where(questions["dropped"] == "")
    by_question = presence.groupby("question_id")["visible"]
    judged = ids.map(by_question.count()).fillna(0).astype(int)
    images = ids.map(by_question.size()).fillna(0).astype(int)
    rate = ids.map(by_question.mean())
    reasons: dict[str, str] = {}
    for row in presence[presence["visible"].isna()].to_dict("records"):
        failure = Failure(Status(row["status"]), row["detail"])
        reasons.setdefault(row["question_id"], f"no image could be judged: {failure}")
    unjudged = (images > 0) & (judged == 0)
    common = rate * judged > limit * images + 1e-9
    dropped = questions["dropped"].mask(unjudged, ids.map(reasons))
    words = rate.map(lambda share: f"the estimated clue rate {share:.1%} is above {limit:.0%}")
    return questions.assign(
        estimated_clue_rate=rate,
        n_judged=judged,
        n_unjudged=images - judged,
        dropped=dropped.mask(common, words),
    )


def _yes_no(row: Mapping[Hashable, Any], folder: SpeciesFolder, doc_id: str) -> Prompt:
    words = {name: row[name] for name in ("feature", "question")}
    text = _DATA["yes_no"].format(called=folder.called, **words)
    return (Message(role="user", parts=(text, folder.image(doc_id))),)


def _question(row: Mapping[Hashable, Any], folder: SpeciesFolder, doc_id: str) -> Prompt:
    from vrag_kit.papers.visual_rag.judge import PROMPTS

    document = Document(doc_id=doc_id, image=folder.image(doc_id))
    query = Query(query_id=row["question_id"], text=row["question"])
    return render(PROMPTS.template("one_image"), query, [document])


def _read_yes_no(text: str) -> float:
    match = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE)
    return np.nan if match is None else float(match[1].lower() == "yes")


def _read_answer(text: str) -> float:
    return float(not is_abstention(text)) if text else np.nan


PRESENCE_PROMPTS: dict[str, tuple[Callable[..., Prompt], Callable[[str], float]]] = {
    "yes_no": (_yes_no, _read_yes_no),
    "question": (_question, _read_answer),
}
"""Prompt → the function that builds the prompt, and the parser of the answer (NaN: unparsed)."""
