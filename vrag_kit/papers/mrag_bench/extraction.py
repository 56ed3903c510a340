"""The letter that a language model makes of an answer which the official scorer cannot
read: the prompt of Table 5, asking it, and what it makes beside our reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase
from typing import Any  # a notebook's parameter holds values of any type

import pandas as pd

from vrag_kit.generation import AnswerStore, Asking, Round, ask_prompts, load_generator
from vrag_kit.judging.choice_reader import right_letters
from vrag_kit.options import Entry
from vrag_kit.papers.mrag_bench.official_scorer import Outcome, after_asking, official_reading
from vrag_kit.papers.mrag_bench.readers import RIGHT, outcome_of
from vrag_kit.types import Benchmark, Message, Prompt, Query

TABLE_5 = json.loads(
    (files("vrag_kit.papers.mrag_bench") / "extraction.json").read_text(encoding="utf-8")
)
"""The prompt as data, with its source; of the paper's in-context examples none is
printed, and "examples" is empty.
"""

NOT_ASKED = "not asked: `extractor` names no model"
"""What becomes of an answer that nobody was asked about."""


def extraction_prompt(query: Query, response: str) -> Prompt:
    """What is asked about an answer to a question with options."""
    options = []
    for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
        options.append(_filled(TABLE_5["choice"], {"letter": letter, "choice": choice}))
    words = {
        "examples": TABLE_5["examples"],
        "question": query.text,
        "choices": TABLE_5["between"].join(options),
        "response": response,
    }
    return (Message(role="user", parts=(_filled(TABLE_5["prompt"], words),)),)


def with_extracted(
    benchmark: Benchmark,
    read: pd.DataFrame,
    extractor: Entry,
    answers_dir: Path | str,
    *,
    run_with: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The answers of `with_official`, with what the official scorer makes of each when
    `extractor` stands for its GPT-3.5: extracted (as `official_is`), and
    official_extracted, its score; what crashes it earns nothing.

    Only what the scorer would ask about is asked, once, and kept in `answers_dir`. As
    with it, any reply but a bare letter is wrong; a reply that failed ends as it would
    there, as a "hang", and has no score. Calls that failed have neither. With "" for the
    extractor nobody is asked, which `extracted` then says, and there are no scores.
    Raises `VragError` as `load_generator` does.
    """
    rows = read[read["official"].notna()]
    asked = rows[rows["official"] == str(Outcome.ASKS)]
    prompts = []
    for query_id, raw in asked[["query_id", "answer"]].itertuples(index=False):
        prompts.append(extraction_prompt(benchmark.queries[query_id], raw))
    replies: dict[Hashable, str | None] = {}
    if extractor and prompts:
        told = _replies(extractor, prompts, Path(answers_dir), run_with or {})
        replies = dict(zip(asked.index, told, strict=True))
    extracted: dict[Hashable, str] = {}
    scores: dict[Hashable, float] = {}
    for place, query_id, raw in rows[["query_id", "answer"]].itertuples(name=None):
        found = official_reading(raw)
        if found.outcome is Outcome.ASKS and not extractor:
            extracted[place] = NOT_ASKED
            continue
        found = after_asking(found, replies.get(place))
        right = right_letters(benchmark.queries[query_id])
        extracted[place] = outcome_of(found, right)
        if extractor and found.outcome is not Outcome.HANG:
            scores[place] = float(extracted[place] == RIGHT)
    columns = {
        "extracted": pd.Series(extracted, read.index, dtype=object),
        "official_extracted": pd.Series(scores, read.index, dtype=float),
    }
    return read.assign(**columns)


def extracted_beside_ours(read: pd.DataFrame) -> pd.DataFrame:
    """Of the answers about which the official scorer asks a model: how many end how with
    it (rows: model, extracted) and with our reader (columns); without rows where it asks
    about none.
    """
    asked = read[read["official"] == str(Outcome.ASKS)]
    counts = asked.groupby(["model", "extracted"], sort=False)["ours_is"].value_counts()
    return counts.unstack("ours_is", fill_value=0).rename_axis(columns="ours")


def _replies(
    model: Entry, prompts: list[Prompt], answers_dir: Path, run_with: Mapping[str, Any]
) -> list[str | None]:
    """What the model says; None where it failed."""
    default = Asking(decoding="greedy", max_new_tokens=TABLE_5["max_new_tokens"])
    how = Asking.beside_answerers(run_with, default)
    generator = load_generator(
        model,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    this = Round(what="extracted letters", read=lambda raw: {})
    with AnswerStore(answers_dir / "answers.sqlite") as store:
        answers = ask_prompts(generator, prompts, store, how=how, this=this)
    return [answer.raw for answer in answers]


def _filled(template: str, words: Mapping[str, str]) -> str:
    """The template with its fields filled in one pass: braces in an answer stay."""
    return re.sub(r"\{(\w+)\}", lambda place: words[place[1]], template)
