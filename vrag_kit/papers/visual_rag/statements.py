"""What the text of the Visual-RAG paper says of its tables, as data: a number computed
from the tables, and the range in which the statement puts it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.papers.visual_rag.derived import gcue_printed

Tables = Mapping[int | str, pd.DataFrame]
Numbers = pd.Series
"""Which model or setting → the number that a sentence is about."""
OPEN = ("Phi4-MM", "Qwen2.5VL", "InternVL3", "Pixtral", "Llama3.2-V")
PROPRIETARY = ("GPT-4o", "Gemini", "Claude")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the paper, in our words, and how to look it up."""

    section: str
    table: str  # where its numbers are printed
    says: str
    numbers: Callable[[Tables], Numbers]
    low: float = -math.inf  # it holds where the number lies in [low, high]
    high: float = math.inf

    @property
    def expected(self) -> str:
        """The range in words."""
        if math.isinf(self.high) or math.isinf(self.low):
            return f"at least {self.low:g}" if math.isinf(self.high) else f"at most {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


def _wide(table: pd.DataFrame, setting: str, column: str = "k") -> pd.DataFrame:
    """Values of one setting: rows models, columns k (or m)."""
    return table[table["setting"] == setting].pivot(index="model", columns=column, values="value")


def _one(table: pd.DataFrame, setting: str) -> pd.Series:
    """Values of a setting without k, by model."""
    return table[table["setting"] == setting].set_index("model")["value"]


def _steps(wide: pd.DataFrame) -> pd.DataFrame:
    """What changes from each k to the next that is printed, by model."""
    return wide.diff(axis=1).iloc[:, 1:].round(6)


def _gain(tables: Tables, models: tuple[str, ...]) -> pd.Series:
    return (_one(tables[3], "gt_clue") - _one(tables[3], "zero_shot"))[list(models)]


def _gcue(tables: Tables, models: tuple[str, ...]) -> pd.DataFrame:
    """gCUE at λ = 0.5: rows `models`, columns k."""
    return (
        gcue_printed(tables[3], lambdas=[0.5])
        .pivot(index="model", columns="k", values="value")
        .loc[list(models)]
    )


def _last_less_first(wide: pd.DataFrame) -> pd.Series:
    return wide.ffill(axis=1).iloc[:, -1] - wide.iloc[:, 0]


def _no_clue_in_30(tables: Tables) -> Numbers:
    hits = tables[2][(tables[2]["metric"] == "hit") & (tables[2]["k"] == 30)]
    return 100 - hits.set_index("retriever")["value"]


def _top_20_less_clue(tables: Tables) -> Numbers:
    less = _wide(tables[3], "top_k")[20] - _one(tables[3], "gt_clue")
    return less[list(PROPRIETARY)]


def _smallest_step(tables: Tables) -> Numbers:
    return _steps(_wide(tables[3], "one_in_k")).min(axis=1)[list(PROPRIETARY)]


def _gain_of_all(tables: Tables) -> Numbers:
    return _gain(tables, OPEN + PROPRIETARY)


def _largest_gain(tables: Tables) -> Numbers:
    return pd.Series({"open models": _gain(tables, OPEN).max()})


def _gain_of_proprietary(tables: Tables) -> Numbers:
    return _gain(tables, PROPRIETARY)


def _qwens_smallest_gcue(tables: Tables) -> Numbers:
    return _gcue(tables, ("Qwen2.5VL",)).min(axis=1)


def _change_of_other_open(tables: Tables) -> Numbers:
    others = tuple(model for model in OPEN if model != "Qwen2.5VL")
    return _last_less_first(_gcue(tables, others))


def _change_of_proprietary(tables: Tables) -> Numbers:
    return _last_less_first(_gcue(tables, PROPRIETARY))


def _mixing(tables: Tables) -> Numbers:
    less = (_wide(tables[6], "m_in_10", "m") - _wide(tables[6], "m_gt", "m")).round(6)
    few = {f"{model}, m={m}": less.loc[model, m] for m, model in product((1, 2), less.index)}
    return pd.Series(few)


def _best_m(tables: Tables) -> Numbers:
    return pd.Series({"Qwen2.5VL": _wide(tables[6], "m_gt", "m").loc["Qwen2.5VL"].idxmax()})


def _worst_m(tables: Tables) -> Numbers:
    return pd.Series({"GPT-4o": _wide(tables[6], "m_gt", "m").loc["GPT-4o"].idxmin()})


def _higher_rates(tables: Tables) -> Numbers:
    rate = _one(tables[8], "zero_shot")
    models = ("Phi4-MM", "Pixtral", "Llama3.2-V")
    return pd.Series({model: float((rate > rate[model]).sum()) for model in models})


def _largest_idk_step(tables: Tables) -> Numbers:
    largest = {
        setting: _steps(_wide(tables[8], setting)).max(axis=1) for setting in ("top_k", "one_in_k")
    }
    models = ("Qwen2.5VL", *PROPRIETARY)
    return pd.Series(
        {
            f"{model}, {setting}": largest[setting][model]
            for setting, model in product(largest, models)
        }
    )


_NUMBERS: dict[str, Callable[[Tables], Numbers]] = {
    "no_clue_in_30": _no_clue_in_30,
    "top_20_less_clue": _top_20_less_clue,
    "smallest_step": _smallest_step,
    "gain_of_all": _gain_of_all,
    "largest_gain": _largest_gain,
    "gain_of_proprietary": _gain_of_proprietary,
    "qwens_smallest_gcue": _qwens_smallest_gcue,
    "change_of_other_open": _change_of_other_open,
    "change_of_proprietary": _change_of_proprietary,
    "mixing": _mixing,
    "best_m": _best_m,
    "worst_m": _worst_m,
    "higher_rates": _higher_rates,
    "largest_idk_step": _largest_idk_step,
}
"""Name in `statements.json` → how the numbers are computed."""


def _statements() -> tuple[Statement, ...]:
    rows = json.loads((Path(__file__).parent / "statements.json").read_text(encoding="utf-8"))
    return tuple(Statement(**{**row, "numbers": _NUMBERS[row["numbers"]]}) for row in rows)


STATEMENTS = _statements()
"""In the order of the paper.

Where a sentence is vague ("few", "near"), the weakest reading that can be counted is
taken.
"""
