"""A closed book, of real models or of the shipped ones, with how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.generation.contexts import zero_shot
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.generators import PROBABILITY
from vrag_kit.generation.store import stored_field
from vrag_kit.papers.mrag_suite.closed_book import closed_book_prompts, with_confidence
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE
from vrag_kit.types import Benchmark


def ask_closed_book(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    answers_dir: Path | str,
    *,
    prompt: str,
    decoding: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None,
) -> dict[str, pd.DataFrame]:
    """Data set → answers of models that are shown no evidence, with the column
    confidence, in [0, 1], NaN for none.

    They are asked how sure they are, in the form of `closed_book_prompts`. With the
    `prompt` "field-guide" they are asked in Visual-RAG's words, which the shipped
    answerers know: these cannot say how sure they are, and confidence is measured, as
    the probability of the whole reply (`PROBABILITY`).
    """
    measured = prompt == FIELD_GUIDE
    prompts = PROMPTS if measured else closed_book_prompts()
    found = {}
    for name, benchmark in suite.items():
        what = (models, benchmark, zero_shot(benchmark), answers_dir)
        answers = ask_models(*what, prompts=prompts, decoding=decoding, hardware=hardware)
        if measured:
            sure = stored_field(answers, answers_dir, PROBABILITY).astype(float)
            found[name] = answers.assign(confidence=sure)
        else:
            found[name] = with_confidence(answers)
    return found
