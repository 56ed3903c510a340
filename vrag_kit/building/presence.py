"""The coarse filter: a multimodal model says of every image whether a question's
feature can be seen in it (Visual-RAG, section 4.2, stage 1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.benchmarks import ImageFile
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator, render
from vrag_kit.generation.generator import read_answer
from vrag_kit.judging.abstention import declines
from vrag_kit.options import Entry
from vrag_kit.types import Answer, Failure, LazyImage, Message, Prompt, Status

_COLUMNS = ["question_id", "doc_id", "visible", "status", "detail", "answer_id"]
MOST_CLUES = 0.25
"""The largest share of clues among a species' images: what more images show is not rare
(section 4.2).
"""
_YES_NO = json.loads((Path(__file__).parent / "presence.json").read_text(encoding="utf-8"))[
    "yes_no"
]


def ask_presence(
    model: Entry,
    questions: pd.DataFrame,
    folders: Sequence[SpeciesFolder],
    image_root: Path | str,
    answers_dir: Path | str,
    *,
    wording: str = "yes_no",
    device: str = "cpu",
    decoding: str = "greedy",
    max_new_tokens: int = 16,
    batch_size: int = 16,
    retry_failures: bool = False,
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
    and not asked for again; see `ask_prompts` for what is printed and raised. Also
    raises `VragError` for another wording and for a question whose folder is not among
    `folders`.
    """
    if not model:
        print("no coarse filter: every question goes on to the annotators", flush=True)
        return pd.DataFrame(columns=_COLUMNS).astype({"visible": float})
    if wording not in _WORDINGS:
        raise VragError(
            f"unknown wording {wording!r} of the coarse filter; expected one of"
            f" {', '.join(map(repr, _WORDINGS))}."
        )
    write, read = _WORDINGS[wording]
    by_name = {folder.name: folder for folder in folders}
    asked = questions[questions["dropped"] == ""]
    if lost := sorted(set(asked["folder"]) - set(by_name)):
        raise VragError(
            f"there is no folder {lost[0]!r} of pictures, which a question is about; found"
            f" {', '.join(list(by_name)[:3])}, …. Mend the questions, or the image root."
        )
    damaged = _damaged(
        Path(image_root), {doc_id for name in asked["folder"] for doc_id in by_name[name].images}
    )
    pairs = [(row, doc_id) for row in asked.itertuples() for doc_id in by_name[row.folder].images]
    rows = [
        (
            row.question_id,
            doc_id,
            write(
                by_name[row.folder], row.feature, row.question, ImageFile(Path(image_root) / doc_id)
            ),
        )
        for row, doc_id in pairs
        if doc_id not in damaged
    ]
    generator = load_generator(
        model,
        device=device,
        decoding=decoding,
        max_new_tokens=max_new_tokens,
        concurrency=batch_size,
    )
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        answers = ask_prompts(
            generator,
            [prompt for *_, prompt in rows],
            store,
            owners=[question_id for question_id, *_ in rows],
            batch_size=batch_size,
            retry_failures=retry_failures,
            what="looks",
        )
    told = {
        (question_id, doc_id): (*_told(answer, read), answer.answer_id)
        for (question_id, doc_id, _), answer in zip(rows, answers, strict=True)
    }
    lost = {doc_id: (np.nan, Status.DAMAGED.value, words, "") for doc_id, words in damaged.items()}
    return pd.DataFrame(
        [
            (row.question_id, doc_id, *(lost.get(doc_id) or told[row.question_id, doc_id]))
            for row, doc_id in pairs
        ],
        columns=_COLUMNS,
    )


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
    by_question, asked = presence.groupby("question_id")["visible"], questions["dropped"] == ""
    rate, judged, every = (
        questions["question_id"].where(asked).map(column)
        for column in (by_question.mean(), by_question.count(), by_question.size())
    )
    table = questions.assign(
        rate=rate,
        judged=judged.fillna(0).astype(int),
        unjudged=(every - judged).fillna(0).astype(int),
    )
    first = {
        row.question_id: Failure(Status(row.status), row.detail)
        for row in presence[presence["visible"].isna()][::-1].itertuples()
    }
    dropped = [
        said
        or (
            f"no image could be judged: {first[question_id]}"
            if unjudged and not judged
            else (
                f"the estimated clue rate {rate:.1%} is above {limit:.0%}"
                if rate * judged > limit * (judged + unjudged) + 1e-9
                else ""
            )
        )
        for question_id, said, rate, judged, unjudged in table[
            ["question_id", "dropped", "rate", "judged", "unjudged"]
        ].itertuples(index=False)
    ]
    return table.assign(dropped=dropped)


def _damaged(root: Path, doc_ids: Collection[str]) -> dict[str, str]:
    """The images that cannot be opened → why; printed."""

    def problem(doc_id: str) -> str:
        try:
            ImageFile(root / doc_id).open()
        except VragError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(4) as pool:
        found = {
            doc_id: words
            for doc_id, words in zip(
                sorted(doc_ids), pool.map(problem, sorted(doc_ids)), strict=True
            )
            if words
        }
    for words in list(found.values())[:20]:
        print(f"left out: {words}", flush=True)
    if len(found) > 20:
        print(f"left out: and {len(found) - 20:,} more images that cannot be opened", flush=True)
    return found


def _yes_no(folder: SpeciesFolder, feature: str, question: str, image: LazyImage) -> Prompt:
    return (
        Message(
            role="user",
            parts=(_YES_NO.format(called=folder.called, feature=feature, question=question), image),
        ),
    )


def _question(folder: SpeciesFolder, feature: str, question: str, image: LazyImage) -> Prompt:
    return render("one_image", question, [image])


def _says_yes(said: str) -> float:
    found = re.match(r"\W*(yes|no)\b", said, re.IGNORECASE)
    return np.nan if found is None else float(found[1].lower() == "yes")


def _answers(said: str) -> float:
    return float(not declines(said)) if said else np.nan


_WORDINGS: dict[
    str, tuple[Callable[[SpeciesFolder, str, str, LazyImage], Prompt], Callable[[str], float]]
] = {"yes_no": (_yes_no, _says_yes), "question": (_question, _answers)}
"""How it is asked, and how what was said is read: NaN is unreadable."""


def _told(answer: Answer, read: Callable[[str], float]) -> tuple[float, str, str]:
    if answer.failure:
        return np.nan, answer.status.value, answer.detail
    said = read_answer(answer.raw or "")["answer"]
    visible = read(said)
    if np.isfinite(visible):
        return visible, Status.OK.value, ""
    return np.nan, Status.UNREADABLE.value, repr(" ".join(said.split())[:60])
