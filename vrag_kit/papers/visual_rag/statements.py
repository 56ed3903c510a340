"""What the text of the Visual-RAG paper says of its tables, as data: a number computed
from the tables, and the range in which the statement puts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from vrag_kit.papers.visual_rag.printed import gcue_printed

Tables = Mapping[int | str, pd.DataFrame]
Numbers = Mapping[str, float]
OPEN, PROPRIETARY = (
    ("Phi4-MM", "Qwen2.5VL", "InternVL3", "Pixtral", "Llama3.2-V"),
    (
        "GPT-4o",
        "Gemini",
        "Claude",
    ),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the paper, in our words, and how to look it up."""

    section: str
    table: str  # where its numbers are printed
    says: str
    numbers: Callable[
        [Tables], Numbers
    ]  # which model or setting → the number that the sentence is about
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


def _mixing(tables: Tables) -> Numbers:
    less = (_wide(tables[6], "m_in_10", "m") - _wide(tables[6], "m_gt", "m")).round(6)
    return {f"{model}, m={m}": less.loc[model, m] for m in (1, 2) for model in less.index}


def _largest_idk_step(tables: Tables) -> Numbers:
    return {
        f"{model}, {setting}": step
        for setting in ("top_k", "one_in_k")
        for model, step in (
            _steps(_wide(tables[8], setting)).max(axis=1)[["Qwen2.5VL", *PROPRIETARY]].items()
        )
    }


def _above_it(tables: Tables) -> Numbers:
    rate = _one(tables[8], "zero_shot")
    return {
        model: float((rate > rate[model]).sum()) for model in ("Phi4-MM", "Pixtral", "Llama3.2-V")
    }


STATEMENTS = (
    Statement(
        "5.2",
        "2",
        "17 to 18 % of queries have no clue in the first 30, with all retrievers; number: 100 −"
        " Hit@30",
        lambda t: (
            100
            - t[2][(t[2]["metric"] == "hit") & (t[2]["k"] == 30)].set_index("retriever")["value"]
        ),
        16.5,
        18.5,
    ),
    Statement(
        "1",
        "3",
        "proprietary models reach the GT clue with top-k when k is near 20; number: top-20 less GT"
        " clue",
        lambda t: (_wide(t[3], "top_k")[20] - _one(t[3], "gt_clue"))[list(PROPRIETARY)],
        low=0,
    ),
    Statement(
        "5.3",
        "3",
        "proprietary models improve at every step of 1-in-k; number: smallest step",
        lambda t: _steps(_wide(t[3], "one_in_k")).min(axis=1)[list(PROPRIETARY)],
        low=0,
    ),
    Statement(
        "5.3",
        "3",
        "a clue lifts every model over zero-shot; number: gain in points",
        lambda t: _gain(t, OPEN + PROPRIETARY),
        low=0.01,
    ),
    Statement(
        "5.3",
        "3",
        "a clue lifts open models by up to 15 points; number: largest gain",
        lambda t: {"open models": _gain(t, OPEN).max()},
        14.5,
        15.5,
    ),
    Statement(
        "5.3",
        "3",
        "a clue lifts proprietary models by 2 to 6 points; number: gain",
        lambda t: _gain(t, PROPRIETARY),
        1.5,
        6.5,
    ),
    Statement(
        "5.3",
        "3",
        "Qwen's gCUE(0.5) is above 1 at every k; number: smallest",
        lambda t: _gcue(t, ("Qwen2.5VL",)).min(axis=1),
        low=1,
    ),
    Statement(
        "5.3",
        "3",
        "gCUE(0.5) of the other open models declines; number: at the last k less at the first",
        lambda t: _last_less_first(
            _gcue(t, tuple(model for model in OPEN if model != "Qwen2.5VL"))
        ),
        high=0,
    ),
    Statement(
        "5.3",
        "3",
        "gCUE(0.5) of proprietary models recovers; number: at the last k less at the first",
        lambda t: _last_less_first(_gcue(t, PROPRIETARY)),
        low=0,
    ),
    Statement(
        "B.2",
        "6",
        "few clues are better among non-clues than alone, for both models; number: m-in-10 less"
        " m-GT",
        _mixing,
        low=0,
    ),
    Statement(
        "B.2",
        "6",
        "clues alone serve Qwen best at m = 3; number: the best m",
        lambda t: {"Qwen2.5VL": _wide(t[6], "m_gt", "m").loc["Qwen2.5VL"].idxmax()},
        3,
        3,
    ),
    Statement(
        "B.2",
        "6",
        "clues alone give GPT-4o a U-shaped curve; number: the worst m",
        lambda t: {"GPT-4o": _wide(t[6], "m_gt", "m").loc["GPT-4o"].idxmin()},
        2,
        4,
    ),
    Statement(
        "B.4",
        "8",
        "Phi, Pixtral and Llama seldom say they do not know; number: models with a higher zero-shot"
        " rate",
        _above_it,
        low=1,
    ),
    Statement(
        "B.4",
        "8",
        "Qwen and proprietary models say so less as k grows; number: largest step",
        _largest_idk_step,
        high=0,
    ),
)
"""In the order of the paper.

Where a sentence is vague ("few", "near"), the weakest reading that can be counted is
taken.
"""
