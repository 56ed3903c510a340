"""Option extraction by a language model from answers that the official scorer cannot parse: the
prompt of Table 5, the model call, and a comparison with our parser.
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

from vrag_kit.config import GREEDY, Entry, hardware_of
from vrag_kit.generation import AnswerStore, Task, ask_prompts, load_generator
from vrag_kit.judging.multiple_choice import correct_letters
from vrag_kit.papers.mrag_bench.official_scorer import (
    ScorerOutcome,
    after_model_call,
    extract_officially,
)
from vrag_kit.papers.mrag_bench.readers import RIGHT, extraction_outcome
from vrag_kit.types import Benchmark, Message, Prompt, Query

TABLE_5 = json.loads(
    (files("vrag_kit.papers.mrag_bench") / "extraction.json").read_text(encoding="utf-8")
)
"""The prompt as data, with its source; "examples" is empty, as the paper's in-context examples are
unpublished.
"""

NOT_ASKED = "not asked: `extractor` names no model"
"""Value of extracted for an answer without a model call."""


def extraction_prompt(query: Query, response: str) -> Prompt:
    """Builds the extraction prompt for an answer to a question with options."""
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


def with_extracted_options(
    benchmark: Benchmark,
    read: pd.DataFrame,
    extractor: Entry,
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Adds the official scorer's outcome, with `extractor` in place of its GPT-3.5, to the answers
    of `with_official_score`. Columns: extracted (as `official_is`), and official_extracted, its
    score; answers that crash the scorer score 0.

    The model is called once for each answer that the scorer would send to it; replies are stored in
    `answers_dir`. As in the scorer, any reply but a bare letter is incorrect; a failed reply ends
    as it would there, as a "hang", and has no score. Calls that failed have neither. With "" for
    the extractor no model is called; `extracted` then says so, and there are no scores. Raises
    `VragError` as `load_generator` does.
    """
    rows = read[read["official"].notna()]
    asked = rows[rows["official"] == str(ScorerOutcome.ASKS)]
    prompts = []
    for query_id, raw in asked[["query_id", "answer"]].itertuples(index=False):
        prompts.append(extraction_prompt(benchmark.queries[query_id], raw))
    replies: dict[Hashable, str | None] = {}
    if extractor and prompts:
        told = _replies(extractor, prompts, Path(answers_dir), hardware or {})
        replies = dict(zip(asked.index, told, strict=True))
    extracted: dict[Hashable, str] = {}
    scores: dict[Hashable, float] = {}
    for place, query_id, raw in rows[["query_id", "answer"]].itertuples(name=None):
        found = extract_officially(raw)
        if found.outcome is ScorerOutcome.ASKS and not extractor:
            extracted[place] = NOT_ASKED
            continue
        found = after_model_call(found, replies.get(place))
        right = correct_letters(benchmark.queries[query_id])
        extracted[place] = extraction_outcome(found, right)
        if extractor and found.outcome is not ScorerOutcome.HANG:
            scores[place] = float(extracted[place] == RIGHT)
    columns = {
        "extracted": pd.Series(extracted, read.index, dtype=object),
        "official_extracted": pd.Series(scores, read.index, dtype=float),
    }
    return read.assign(**columns)


def compare_extractors(read: pd.DataFrame) -> pd.DataFrame:
    """Counts outcomes of the answers that the official scorer sends to a model: by the model (rows:
    model, extracted) and by our parser (columns). No rows if there are no such answers.
    """
    asked = read[read["official"] == str(ScorerOutcome.ASKS)]
    counts = asked.groupby(["model", "extracted"], sort=False)["ours_is"].value_counts()
    return counts.unstack("ours_is", fill_value=0).rename_axis(columns="ours")


def _replies(
    model: Entry, prompts: list[Prompt], answers_dir: Path, hardware: Mapping[str, Any]
) -> list[str | None]:
    """What the model says; None where it failed."""
    decoding = {**GREEDY, "max_new_tokens": TABLE_5["max_new_tokens"]}
    generator = load_generator(model, decoding=decoding, hardware=hardware)
    how = hardware_of(hardware)
    task = Task(what="extracted letters", read=lambda raw: {})
    with AnswerStore(answers_dir / "answers.sqlite") as store:
        answers = ask_prompts(generator, prompts, store, hardware=how, task=task)
    return [answer.raw for answer in answers]


def _filled(template: str, words: Mapping[str, str]) -> str:
    """The template with its fields filled in one pass: braces in an answer stay."""
    return re.sub(r"\{(\w+)\}", lambda place: words[place[1]], template)
