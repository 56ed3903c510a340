"""What the text of MRAG-Bench says of models, as data: a difference between two
settings, or a correlation, and the range in which the sentence puts it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from vrag_kit.papers.claim_rows import Range
from vrag_kit.papers.mrag_bench.results import OVERALL, printed_main
from vrag_kit.papers.mrag_bench.text_settings import printed_text_or_image

_TABLES: dict[int | str, Callable[[], pd.DataFrame]] = {
    3: printed_main,
    4: printed_text_or_image,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of the paper, in our words, and how to look it up."""

    name: str
    section: str
    table: int | str
    """Where its numbers are printed, or drawn."""
    notebook: str
    """The number of the notebook whose differences it can be looked up in."""
    of: tuple[str, ...]
    """The models that it is about, as in Table 3; () where any."""
    says: str
    setting: str
    """Also a number of examples; or what is correlated with accuracy."""
    baseline: str
    """The number is the accuracy in `setting` less that in this one, in points; "" where
    it is a correlation.
    """
    low: float = -math.inf
    high: float = math.inf
    told: float | None = None
    """The number of the sentence itself, where no table has it."""

    @property
    def range(self) -> Range:
        """Where it holds."""
        return Range(self.low, self.high)

    @property
    def expected(self) -> str:
        """The range in words."""
        return str(self.range)

    @property
    def measured(self) -> tuple[str, str]:
        """What its number is, and the unit; a correlation has none."""
        if self.baseline:
            return "difference in accuracy", "points"
        return f"correlation of accuracy with {self.setting}", ""

    def is_about(self, model: str) -> bool:
        """Whether it speaks of a model, by the name that tables here give it."""
        return not self.of or paper_name(model) in self.of

    def printed(self) -> list[str]:
        """The verdicts of the paper's own numbers, one a model; they have no interval."""
        if self.told is not None:
            return [self.range.verdict(self.told, self.told, self.told)]
        if self.table not in _TABLES:
            return []
        table = _TABLES[self.table]()
        table = table[(table["scenario"] == OVERALL) & table["model"].isin(models_of_paper())]
        values = table.pivot(index="model", columns="setting", values="value")
        numbers = (values[self.setting] - values[self.baseline]).dropna().round(2)
        about = [value for model, value in numbers.items() if self.is_about(str(model))]
        return [self.range.verdict(value, value, value) for value in about]


@cache
def models_of_paper() -> dict[str, str]:
    """The 14 models as Table 3 calls them → "open_source" or "proprietary"."""
    table = printed_main().drop_duplicates("model").set_index("model")["model_group"]
    models = table[table.isin(["open_source", "proprietary"])]
    return {str(name): str(group) for name, group in models.items()}


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


def paper_name(model: str) -> str:
    """What Table 3 calls a model that tables here name so; itself where it is none."""
    return _names().get(model, model)


def _statements() -> tuple[Statement, ...]:
    data = json.loads(Path(__file__).with_name("statements.json").read_text(encoding="utf-8"))
    groups = models_of_paper()
    statements = []
    for entry in data:
        of = tuple(name for name, group in groups.items() if group == entry["of"])
        statements.append(Statement(**{**entry, "of": of}))
    return tuple(statements)


STATEMENTS = _statements()
"""In the order of the paper.

"Almost all open models decline" is asked of each: it is contradicted by one that gains.
"""
