"""Statements of the MRAG-Bench paper about models, as data: a difference between two settings, or a
correlation, and its expected range.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from vrag_kit.papers.mrag_bench.results import MODEL_GROUPS, OVERALL
from vrag_kit.papers.published import published
from vrag_kit.papers.statements import ExpectedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of the paper, paraphrased, and how to compute its number."""

    name: str
    section: str
    table: int | str
    """Table or figure with its numbers."""
    notebook: str
    """Number of the notebook whose differences can test it."""
    of: tuple[str, ...]
    """Models that it is about, as in Table 3; () for any model."""
    says: str
    setting: str
    """Setting, or a number of examples, or the quantity correlated with accuracy."""
    baseline: str
    """Setting that is subtracted: the number is the difference of accuracies, in points; "" for a
    correlation.
    """
    low: float = -math.inf
    high: float = math.inf
    told: float | None = None
    """The number in the statement itself, where no table has it."""

    @property
    def range(self) -> ExpectedRange:
        """The expected range."""
        return ExpectedRange(self.low, self.high)

    @property
    def expected(self) -> str:
        """The expected range as text."""
        return str(self.range)

    @property
    def measured(self) -> tuple[str, str]:
        """Metric of its number, and the unit; a correlation has none."""
        if self.baseline:
            return "difference in accuracy", "points"
        return f"correlation of accuracy with {self.setting}", ""

    def applies_to(self, model: str) -> bool:
        """Whether it is about a model, by the name used in our tables."""
        return not self.of or published_name(model) in self.of

    def published_verdicts(self) -> list[str]:
        """Returns the verdicts on the paper's own numbers, one per model, without intervals."""
        if self.told is not None:
            return [self.range.verdict(self.told, self.told, self.told)]
        if self.table not in (3, 4):
            return []
        overall = published("mrag_bench", self.table, scenario=OVERALL, model_group=MODEL_GROUPS)
        values = overall.pivot(index="model", columns="setting", values="value")
        numbers = (values[self.setting] - values[self.baseline]).dropna().round(2)
        about = [value for model, value in numbers.items() if self.applies_to(str(model))]
        return [self.range.verdict(value, value, value) for value in about]


@cache
def published_models() -> dict[str, str]:
    """Maps the 14 models of Table 3 to "open_source" or "proprietary"."""
    models = published("mrag_bench", 3, scenario=OVERALL, setting="no_rag")
    models = models[models["model_group"].isin(MODEL_GROUPS)]
    return dict(zip(models["model"], models["model_group"], strict=True))


@cache
def _names() -> dict[str, str]:
    """A checkpoint's name in tables → what Table 3 calls it."""
    table = pd.read_csv(Path(__file__).with_name("models.csv"), keep_default_na=False)
    names = {}
    for row in table.to_dict("records"):
        for checkpoint in (row["checkpoint"], row["instead"].split(" (")[0]):
            if checkpoint:
                names[checkpoint.partition("@")[0].strip().replace("/", "-")] = str(row["model"])
    return names


def published_name(model: str) -> str:
    """Returns the Table 3 name of a model in our tables; the same name if it has none."""
    return _names().get(model, model)


def _statements() -> tuple[Statement, ...]:
    data = json.loads(Path(__file__).with_name("statements.json").read_text(encoding="utf-8"))
    groups = published_models()
    statements = []
    for entry in data:
        of = tuple(name for name, group in groups.items() if group == entry["of"])
        statements.append(Statement(**{**entry, "of": of}))
    return tuple(statements)


STATEMENTS = _statements()
"""The statements, in the order of the paper.

"Almost all open models decline" is tested for each: a model that gains contradicts it.
"""
