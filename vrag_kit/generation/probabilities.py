"""How probable models hold their own words, where that was noted when they were asked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.generator import PROBABILITY


def reply_probabilities(answers: pd.DataFrame, answers_dir: Path | str) -> pd.Series:
    """Of each row of answers how probable its model holds the whole reply, in [0, 1]: the
    product over its tokens, the end among them.

    NaN where that was not noted: models behind endpoints, sampled answers, and those that
    an earlier version of the kit stored. `answers` come from `ask_models` with the same
    `answers_dir`.
    """
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        stored = store.read(list(answers["answer_id"].dropna().unique()))
    noted = {name: answer.fields.get(PROBABILITY) for name, answer in stored.items()}
    return answers["answer_id"].map(noted).astype(float).rename(PROBABILITY)
