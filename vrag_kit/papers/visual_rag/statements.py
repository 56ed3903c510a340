"""Statements of the Visual-RAG paper about its tables, as data: a number and its expected range, to
be checked on the tables or on our answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.papers.statements import ExpectedRange
from vrag_kit.papers.visual_rag.cells import (
    BASELINE,
    MISSED,
    Arm,
    CellEstimate,
    Cells,
    Pair,
    maximum,
    minimum,
)

Tables = Mapping[int | str, pd.DataFrame]
OPEN = ("Phi4-MM", "Qwen2.5VL", "InternVL3", "Pixtral", "Llama3.2-V")
PROPRIETARY = ("GPT-4o", "Gemini", "Claude")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the paper, paraphrased, and how to compute its number."""

    name: str
    section: str
    table: int  # where its numbers are printed
    notebook: str  # the number of the notebook whose answers it can be looked up in
    says: str
    of: tuple[str, ...]  # the models that it is about, as in the paper; () where any
    numbers: Callable[[Cells, Sequence[str]], dict[str, CellEstimate]]
    measured: tuple[str, str]  # what its number is, and the unit; "" for a ratio's
    low: float = -math.inf  # it holds where the number lies in [low, high]
    high: float = math.inf

    @property
    def expected(self) -> str:
        """The expected range as text."""
        return str(ExpectedRange(self.low, self.high))

    def evaluate(self, cells: Cells) -> dict[str, CellEstimate]:
        """Computes the statement's number for each of its models or settings that `cells` has."""
        there = dict.fromkeys(arm[0] for arm in cells.arms)
        return self.numbers(cells, [name for name in there if not self.of or name in self.of])

    def verdict(self, number: CellEstimate) -> str:
        """Returns the verdict for a number (see `ExpectedRange.verdict`)."""
        return ExpectedRange(self.low, self.high).verdict(number.value, number.low, number.high)


def _places(cells: Cells, model: str, setting: str) -> list[int]:
    """The ks (or numbers of clues) of a model in a setting."""
    return sorted(arm[2] for arm in cells.arms if arm[:2] == (model, setting))


def _differences(cells: Cells, pairs: Mapping[str, Pair]) -> dict[str, CellEstimate]:
    """Each difference by itself, where both its arms are there."""
    there = {name: pair for name, pair in pairs.items() if set(pair) <= set(cells.arms)}
    return {name: cells.differences([pair])[0] for name, pair in there.items()}


def _steps(cells: Cells, model: str, setting: str) -> list[CellEstimate]:
    """What changes from each k to the next."""
    places = _places(cells, model, setting)
    arms: list[Arm] = [(model, setting, place) for place in places]
    return cells.differences(list(zip(arms[1:], arms[:-1], strict=True)))


def _no_clue_in_30(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    there = [name for name in models if (name, MISSED, 30) in cells.arms]
    return {name: cells.means([(name, MISSED, 30)])[0] for name in there}


def _top_k_near_20_less_clue(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    found = {}
    for name in models:
        clue: Arm = (name, "gt_clue", 1)
        near: list[Arm] = [(name, "top_k", k) for k in (15, 20)]
        pairs = [(arm, clue) for arm in near if {arm, clue} <= set(cells.arms)]
        if pairs:
            found[name] = maximum(cells.differences(pairs))
    return found


def _smallest_step(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    steps = {name: _steps(cells, name, "one_in_k") for name in models}
    return {name: minimum(each) for name, each in steps.items() if each}


def _gain(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    pairs = {name: ((name, "gt_clue", 1), (name, "zero_shot", 0)) for name in models}
    return _differences(cells, pairs)


def _largest_gain(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    pairs: list[Pair] = [((name, "gt_clue", 1), (name, "zero_shot", 0)) for name in models]
    if set(models) < set(OPEN) or any(set(pair) - set(cells.arms) for pair in pairs):
        return {}
    return {"open models": maximum(cells.differences(pairs))}


def _gcue_parts(cells: Cells, models: Sequence[str]) -> dict[str, tuple[list[Arm], Pair]]:
    """Model → its arms with one clue in k, and what one clue alone adds to the baseline."""
    parts = {}
    for name in models:
        whole: Pair = ((name, "gt_clue", 1), (name, BASELINE, 0))
        arms: list[Arm] = [(name, "one_in_k", k) for k in _places(cells, name, "one_in_k")]
        if arms and set(whole) <= set(cells.arms):
            parts[name] = arms, whole
    return parts


def _smallest_gcue(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    return {
        name: minimum(cells.ratios([(arm, whole[1]) for arm in arms], whole))
        for name, (arms, whole) in _gcue_parts(cells, models).items()
    }


def _change_of_gcue(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    return {
        name: cells.ratios([(arms[-1], arms[0])], whole)[0]
        for name, (arms, whole) in _gcue_parts(cells, models).items()
        if len(arms) > 1
    }


def _mixing(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    pairs = {}
    for m in (1, 2):
        for name in models:
            pairs[f"{name}, m={m}"] = ((name, "m_in_k", m), (name, "m_gt", m))
    return _differences(cells, pairs)


def _three_less_best_other(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    found = {}
    for name in models:
        places = _places(cells, name, "m_gt")
        pairs: list[Pair] = [((name, "m_gt", 3), (name, "m_gt", m)) for m in places if m != 3]
        if {3, 5} <= set(places):
            found[name] = minimum(cells.differences(pairs))
    return found


def _dip(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    """The lower end of a curve over m less its lowest point between."""
    found = {}
    for name in models:
        places = _places(cells, name, "m_gt")
        ends, middle = places[:1] + places[-1:], places[1:-1]
        if 5 not in places or not middle:
            continue
        pairs: list[Pair] = [
            ((name, "m_gt", end), (name, "m_gt", m)) for m, end in product(middle, ends)
        ]
        numbers = cells.differences(pairs)
        found[name] = maximum([minimum(numbers[2 * i : 2 * i + 2]) for i in range(len(middle))])
    return found


def _same_less_other_species(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    pairs: dict[str, Pair] = {}
    for name in models:
        if places := _places(cells, name, "one_in_k_easy"):
            k = places[-1]
            pairs[name] = ((name, "one_in_k", k), (name, "one_in_k_easy", k))
    return _differences(cells, pairs)


def _highest_rate(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    asked = [arm for arm in cells.arms if arm[1] != BASELINE]
    own = {name: [arm for arm in asked if arm[0] == name] for name in models}
    return {name: maximum(cells.means(arms)) for name, arms in own.items() if arms}


def _largest_idk_step(cells: Cells, models: Sequence[str]) -> dict[str, CellEstimate]:
    found = {}
    for setting in ("top_k", "one_in_k"):
        for name in models:
            if steps := _steps(cells, name, setting):
                found[f"{name}, {setting}"] = maximum(steps)
    return found


_NUMBERS: dict[str, Callable[[Cells, Sequence[str]], dict[str, CellEstimate]]] = {
    "no_clue_in_30": _no_clue_in_30,
    "top_k_near_20_less_clue": _top_k_near_20_less_clue,
    "smallest_step": _smallest_step,
    "gain": _gain,
    "largest_gain": _largest_gain,
    "smallest_gcue": _smallest_gcue,
    "change_of_gcue": _change_of_gcue,
    "mixing": _mixing,
    "three_less_best_other": _three_less_best_other,
    "dip": _dip,
    "same_less_other_species": _same_less_other_species,
    "highest_rate": _highest_rate,
    "largest_idk_step": _largest_idk_step,
}
_GAIN = ("difference in accuracy", "points")
_MEASURED = {
    **dict.fromkeys(_NUMBERS, _GAIN),
    "no_clue_in_30": ("share of queries without a clue", "percent"),
    "smallest_gcue": ("gcue", ""),
    "change_of_gcue": ("difference in gcue", ""),
    "highest_rate": ("abstention", "percent"),
    "largest_idk_step": ("difference in abstention", "points"),
}
"""Metric and unit of each number."""
_CLASSES = {"any": (), "open": OPEN, "proprietary": PROPRIETARY}


def _statements() -> tuple[Statement, ...]:
    data = json.loads(Path(__file__).with_name("statements.json").read_text(encoding="utf-8"))
    statements = []
    for entry in data:
        of = entry.pop("of")
        names = _CLASSES[of] if isinstance(of, str) else tuple(of)
        measured = _MEASURED[entry["numbers"]]
        entry |= {"of": names, "numbers": _NUMBERS[entry["numbers"]], "measured": measured}
        statements.append(Statement(**entry))
    return tuple(statements)


STATEMENTS = _statements()
"""The statements, in the order of the paper.

Where a statement is vague, the weakest countable interpretation is used: "few" is at most one
answer in ten, and "reach", with k "close to 20", is the better of k = 15 and 20 within 3 points,
the margin within which the notebooks treat two numbers as the same.
"""
