"""The probability that a model assigns to its own reply, as recorded in the answer store."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.generator import PROBABILITY


def reply_probabilities(answers: pd.DataFrame, answers_dir: Path | str) -> pd.Series:
    """Return each reply's probability under its model, in [0, 1], for each row of answers.

    It is the product over the reply's tokens, including the end token. NaN if it was not recorded:
    for models behind endpoints, sampled answers, and answers stored by an earlier version of the
    kit. `answers` come from `ask_models` with the same `answers_dir`.
    """
    with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
        stored = store.read(list(answers["answer_id"].dropna().unique()))
    noted = {name: answer.fields.get(PROBABILITY) for name, answer in stored.items()}
    return answers["answer_id"].map(noted).astype(float).rename(PROBABILITY)
