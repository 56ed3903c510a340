"""Write questions about features that photographs rarely show, with a language model and the
paper's instructions (Table 10), or with the template writer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.knowledge_base import Page
from vrag_kit.benchmarks.visual_rag import make_query_id
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.species import description_text
from vrag_kit.building.structured import ParsedQuestion, read_questions_json
from vrag_kit.building.template_writer import NAME, write_template_questions
from vrag_kit.config import hardware_of
from vrag_kit.generation.ask import Task, ask_prompts
from vrag_kit.generation.generators import load_generator
from vrag_kit.generation.store import AnswerStore
from vrag_kit.log import logger
from vrag_kit.options import Entry
from vrag_kit.plain import JsonView
from vrag_kit.types import Answer, Message, Prompt

CANDIDATE_COLUMNS = [
    "question_id",
    "species",
    "common",
    "folder",
    "question",
    "explanation",
    "feature",
    "writer",
    "dropped",
]
"""Columns of a table of candidate questions.
`dropped` is "" or the reason why one is dropped.
"""
PAPER = json.loads((Path(__file__).parent / "question_writer.json").read_text(encoding="utf-8"))
"""The instructions, verbatim, with their source; our additions are marked."""

_UNKNOWN = (
    "the template writer knows no parts of {}; give a model as `writer`, or fill in question and"
    " feature here and empty this cell"
)


def write_questions(
    writer: Entry,
    folders: Sequence[SpeciesFolder],
    pages: Mapping[str, Page],
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # Any: as a notebook's parameters have it
) -> pd.DataFrame:
    """Write candidate questions about each species; returns a table with `CANDIDATE_COLUMNS`.
    Rows are in the order of `folders`; no folders give no rows.

    `writer` is "template", which knows parts of iNaturalist's ranks and calls no model, or any
    model that `load_generator` takes. A model receives names and, from `pages`, the summary and
    description, and answers as JSON. Its replies are stored in `answers.sqlite` in `answers_dir`
    and parsed at each use: no species is requested twice. A species whose call failed, or whose
    answer holds no question, has one row without a question and the reason in `dropped`. A question
    that is unusable or a duplicate has its reason there too. The number of usable questions is
    printed. `hardware` names fields of `Hardware`; answers have 1,024 tokens at most, unless the
    writer's entry says otherwise. Raises `VragError` as `load_generator` and the generator do.
    """
    paragraphs = {}
    for folder in folders:
        if folder.scientific in pages:
            paragraphs[folder.scientific] = description_text(pages[folder.scientific].article)
    if writer == NAME:
        name, written = NAME, [write_template_questions(folder) for folder in folders]
        failures = [_UNKNOWN.format(folder.scientific) for folder in folders]
    else:
        told = [paragraphs.get(folder.scientific, "") for folder in folders]
        prompts = [question_prompt(*each) for each in zip(folders, told, strict=True)]
        name, answers = _ask(writer, prompts, Path(answers_dir), hardware)
        written = [read_questions_json(answer.raw or "") for answer in answers]
        failures = [_failure(answer) for answer in answers]
    rows: list[tuple[str, ...]] = []
    for folder, questions, failure in zip(folders, written, failures, strict=True):
        rows += _rows(folder, name, questions, failure)
    candidates = pd.DataFrame(rows, columns=CANDIDATE_COLUMNS, dtype=object)
    usable = candidates[candidates["dropped"] == ""]
    candidates.loc[usable.index[usable.duplicated("question_id")], "dropped"] = "asked before"
    _tell(name, candidates, len(folders))
    return candidates


def _ask(
    writer: Entry, prompts: Sequence[Prompt], answers_dir: Path, hardware: JsonView | None
) -> tuple[str, list[Answer]]:
    """The writer's name, and what it answers."""
    generator = load_generator(writer, decoding={"max_new_tokens": 1024}, hardware=hardware)
    if not prompts:
        return generator.name, []
    with AnswerStore(answers_dir / "answers.sqlite") as store:
        answers = ask_prompts(
            generator,
            prompts,
            store,
            hardware=hardware_of(hardware),
            task=Task(what="questions", read=lambda raw: {}),
        )
    return generator.name, answers


def question_prompt(folder: SpeciesFolder, paragraph: str) -> Prompt:
    """Return the prompt for questions about one species.
    It has instructions, examples, names, and the paragraph on one line (or that there is none).

    They are the paper's, except the last instruction: JSON is requested, not prose.
    """
    instructions = [*PAPER["instructions"][:-1], PAPER["json_ours"]["instruction"]]
    examples = []
    for each in (*PAPER["examples"], *PAPER["examples_ours"]["examples"]):
        names = _named(PAPER["example"], each["scientific"], each["common"])
        shown = json.dumps({"questions": each["questions"]}, ensure_ascii=False)
        examples.append("\n".join([*names, PAPER["example"]["question"], shown]))
    told = PAPER["no_paragraph_ours"]["text"]
    if paragraph.strip():
        told = PAPER["query"]["paragraph"].format(paragraph=" ".join(paragraph.split()))
    names = _named(PAPER["query"], folder.scientific, folder.common)
    asked = "\n".join([*names, told, PAPER["query"]["question"]])
    around = (PAPER["closing"], PAPER["json_ours"]["text"], PAPER["request"], asked)
    text = "\n\n".join([*instructions, PAPER["opening"], *examples, *around])
    return (Message(role="user", parts=(text,)),)


def _named(words: Mapping[str, str], scientific: str, common: str) -> list[str]:
    """The lines with a species' names; the common name's only where there is one."""
    names = [words["scientific"].format(scientific=scientific)]
    if common:
        names.append(words["common"].format(common=common))
    return names


def _failure(answer: Answer) -> str:
    """Why words without a question hold none."""
    if answer.failure:
        return f"no answer: {answer.failure}"
    said = " ".join((answer.raw or "").split())
    more = "…" if len(said) > 60 else ""
    return f"unreadable: no question in “{said[:60]}{more}”"


def _rows(
    folder: SpeciesFolder, writer: str, questions: Sequence[ParsedQuestion], failure: str
) -> Iterator[tuple[str, ...]]:
    """The rows of one species; one that says `failure` when there is no question."""
    who = folder.scientific, folder.common, folder.name
    for each in questions:
        question_id = make_query_id(folder.scientific, each.question) if each.question else ""
        words = (each.question, each.explanation, each.feature)
        yield (question_id, *who, *words, writer, each.problem)
    if not questions:
        yield ("", *who, "", "", "", writer, failure)


def _tell(writer: str, candidates: pd.DataFrame, species: int) -> None:
    good = candidates[candidates["dropped"] == ""]
    logger.info(
        f"questions by {writer}: {len(good):,} of {len(candidates):,} go on, about"
        f" {good['species'].nunique():,} of {species:,} species",
    )
    reasons = Counter(reason.split(":")[0] for reason in candidates["dropped"] if reason)
    for reason, count in reasons.most_common():
        logger.info(f"  dropped {count:,} times: {reason}")
