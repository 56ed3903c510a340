"""Write questions about what photographs rarely show, by a language model with the
paper's instructions (Table 10) or by the template writer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks.knowledge import Page
from vrag_kit.benchmarks.visual_rag import query_id_of
from vrag_kit.building.folders import SpeciesFolder
from vrag_kit.building.parsing import parse_questions
from vrag_kit.building.screening import screen_questions
from vrag_kit.building.species import described
from vrag_kit.building.template_writer import NAME, write_by_template
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.asking import ask_prompts
from vrag_kit.generation.loading import load_generator
from vrag_kit.options import Entry
from vrag_kit.types import Answer, Message, Prompt

COLUMNS = [
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
"""Of a table of candidate questions; `dropped` is "" or the reason why not to go on
with one.
"""
PAPER = json.loads((Path(__file__).parent / "question_writer.json").read_text(encoding="utf-8"))
"""The instructions, verbatim, with their source; what is ours in them is marked."""

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
    device: str = "cpu",
    decoding: str | Mapping[str, Any] = "checkpoint",
    max_new_tokens: int = 1024,
    retry_failures: bool = False,
) -> pd.DataFrame:
    """Candidate questions about each species, screened: a table with `COLUMNS`, in the
    order of `folders`; no folders give no rows.

    `writer` is "template", which knows parts of iNaturalist's ranks and asks no model,
    or any model that `load_generator` takes. A model is told names and, from `pages`,
    the summary and description. Its words are kept in `answers.sqlite` in `answers_dir`
    and read anew each time, so that no species is asked about twice. A species whose
    call failed, or whose answer holds no question, has one row without a question that
    says so in `dropped`; so has each question that cannot be used or that
    `screen_questions` finds fault with. How many go on is printed. Raises `VragError`
    as `load_generator` and the generator do.
    """
    paragraphs = {
        folder.scientific: described(pages[folder.scientific].article)
        for folder in folders
        if folder.scientific in pages
    }
    if writer == NAME:
        name, replies = (
            NAME,
            [(write_by_template(folder), _UNKNOWN.format(folder.scientific)) for folder in folders],
        )
    else:
        generator = load_generator(
            writer, device=device, decoding=decoding, max_new_tokens=max_new_tokens
        )
        prompts = [
            question_prompt(folder, paragraphs.get(folder.scientific, "")) for folder in folders
        ]
        with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
            answers = (
                ask_prompts(
                    generator,
                    prompts,
                    store,
                    retry_failures=retry_failures,
                    what="questions",
                    read=lambda raw: {},
                )
                if prompts
                else []
            )
        name, replies = generator.name, [(answer.raw or "", _failure(answer)) for answer in answers]
    rows = [
        row
        for folder, reply in zip(folders, replies, strict=True)
        for row in _rows(folder, name, *reply)
    ]
    candidates = screen_questions(pd.DataFrame(rows, columns=COLUMNS, dtype=object), paragraphs)
    _tell(name, candidates, len(folders))
    return candidates


def question_prompt(folder: SpeciesFolder, paragraph: str) -> Prompt:
    """What a model is asked about one species: instructions, examples, its names, and
    the paragraph on one line (or that there is none).
    """
    examples = [
        "\n".join(
            [
                *_named(PAPER["example"], each["scientific"], each["common"]),
                PAPER["example"]["question"],
                *(
                    f"{number}. {question}"
                    for number, question in enumerate(each["questions"], start=1)
                ),
            ]
        )
        for each in [*PAPER["examples"], *PAPER["examples_ours"]["examples"]]
    ]
    told = (
        PAPER["query"]["paragraph"].format(paragraph=" ".join(paragraph.split()))
        if paragraph.strip()
        else PAPER["no_paragraph_ours"]["text"]
    )
    asked = "\n".join(
        [
            *_named(PAPER["query"], folder.scientific, folder.common),
            told,
            PAPER["query"]["question"],
        ]
    )
    text = "\n\n".join(
        [
            *PAPER["instructions"],
            PAPER["opening"],
            *examples,
            PAPER["closing"],
            PAPER["form_ours"]["text"],
            PAPER["request"],
            asked,
        ]
    )
    return (Message(role="user", parts=(text,)),)


def _named(words: Mapping[str, str], scientific: str, common: str) -> list[str]:
    """The lines with a species' names; the common name's only where there is one."""
    return [
        words["scientific"].format(scientific=scientific),
        *([words["common"].format(common=common)] if common else []),
    ]


def _failure(answer: Answer) -> str:
    """Why words without a question hold none."""
    said = " ".join((answer.raw or "").split())
    return (
        f"no answer: {answer.failure}"
        if answer.failure
        else f"unreadable: no question in “{said[:60]}{'…' if len(said) > 60 else ''}”"
    )


def _rows(
    folder: SpeciesFolder, writer: str, words: str, failure: str
) -> Iterator[tuple[str, ...]]:
    """The rows of one species; one that says `failure` when its words hold no question."""
    who = folder.scientific, folder.common, folder.name
    parsed = parse_questions(words)
    for each in parsed:
        yield (
            query_id_of(folder.scientific, each.question) if each.question else "",
            *who,
            each.question,
            each.explanation,
            each.feature,
            writer,
            each.problem,
        )
    if not parsed:
        yield "", *who, "", "", "", writer, failure


def _tell(writer: str, candidates: pd.DataFrame, species: int) -> None:
    good = candidates[candidates["dropped"] == ""]
    print(
        f"questions by {writer}: {len(good):,} of {len(candidates):,} go on, about"
        f" {good['species'].nunique():,} of {species:,} species",
        flush=True,
    )
    for reason, count in Counter(
        reason.split(":")[0] for reason in candidates["dropped"] if reason
    ).most_common():
        print(f"  dropped {count:,} times: {reason}", flush=True)
