"""The letter that a language model makes of an answer which the official scorer cannot
read: the prompt of Table 5, and asking it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase
from typing import Any  # a notebook's parameter holds values of any type

import pandas as pd

from vrag_kit.generation import AnswerStore, Asking, Round, ask_prompts, load_generator
from vrag_kit.options import Entry
from vrag_kit.papers.mrag_bench.official_scorer import Outcome, after_asking, official_reading
from vrag_kit.types import Benchmark, Message, Prompt, Query

TABLE_5 = json.loads(
    (files("vrag_kit.papers.mrag_bench") / "extraction.json").read_text(encoding="utf-8")
)
"""The prompt as data, with its source; of the paper's in-context examples none is
printed, and "examples" is empty.
"""

_SHARED = ("device", "batch_size", "retry_failures")
"""What of a notebook's `run_with` counts here too."""


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
    answers: pd.DataFrame,
    model: Entry,
    answers_dir: Path | str,
    *,
    run_with: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The answers that have words, with what the official scorer makes of each when
    `model` stands for its GPT-3.5: extracted ("A" to "D", "wrong" or "crash") and asked
    (whether the model was).

    Only what the scorer would ask about is asked, once, and kept in `answers_dir`. As
    with it, any reply but a bare letter is wrong; a reply that failed ends as it would
    there, as a "hang". Raises `VragError` as `load_generator` does.
    """
    rows = answers[answers["status"] == "ok"]
    found = [official_reading(raw) for raw in rows["answer"]]
    asked = [each.outcome is Outcome.ASKS for each in found]
    prompts = []
    for query_id, raw in rows.loc[asked, ["query_id", "answer"]].itertuples(index=False):
        prompts.append(extraction_prompt(benchmark.queries[query_id], raw))
    replies = iter(_replies(model, prompts, Path(answers_dir), run_with or {}))
    told = []
    for each, is_asked in zip(found, asked, strict=True):
        told.append(str(after_asking(each, next(replies)) if is_asked else each))
    return rows.assign(extracted=told, asked=asked)


def _replies(
    model: Entry, prompts: list[Prompt], answers_dir: Path, run_with: Mapping[str, Any]
) -> list[str | None]:
    """What the model says; None where it failed."""
    if not prompts:
        return []
    ours = {name: value for name, value in run_with.items() if name in _SHARED}
    how = Asking(decoding="greedy", max_new_tokens=TABLE_5["max_new_tokens"])
    how = Asking.of(ours, how)
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
