"""What the text of the Visual-RAG paper says of its tables, as data: a number, and the
range in which the statement puts it, to be looked up in the tables or in answers of ours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from vrag_kit.papers.claim_rows import Range
from vrag_kit.papers.visual_rag.cells import (
    BASELINE,
    MISSED,
    Arm,
    Cells,
    Number,
    Pair,
    least,
    most,
)

Tables = Mapping[int | str, pd.DataFrame]
OPEN = ("Phi4-MM", "Qwen2.5VL", "InternVL3", "Pixtral", "Llama3.2-V")
PROPRIETARY = ("GPT-4o", "Gemini", "Claude")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the paper, in our words, and how to look it up."""

    name: str
    section: str
    table: int  # where its numbers are printed
    notebook: str  # the number of the notebook whose answers it can be looked up in
    says: str
    of: tuple[str, ...]  # the models that it is about, as in the paper; () where any
    numbers: Callable[[Cells, Sequence[str]], dict[str, Number]]
    measured: tuple[str, str]  # what its number is, and the unit; "" for a ratio's
    low: float = -math.inf  # it holds where the number lies in [low, high]
    high: float = math.inf

    @property
    def expected(self) -> str:
        """The range in words."""
        return str(Range(self.low, self.high))

    def on(self, cells: Cells) -> dict[str, Number]:
        """Which model or setting → the number, for those that the statement is about and
        that `cells` has.
        """
        there = dict.fromkeys(arm[0] for arm in cells.arms)
        return self.numbers(cells, [name for name in there if not self.of or name in self.of])

    def verdict(self, number: Number) -> str:
        """What the number says of it (see `Range.verdict`)."""
        return Range(self.low, self.high).verdict(number.value, number.low, number.high)


def _places(cells: Cells, model: str, setting: str) -> list[int]:
    """The ks (or numbers of clues) of a model in a setting."""
    return sorted(arm[2] for arm in cells.arms if arm[:2] == (model, setting))


def _differences(cells: Cells, pairs: Mapping[str, Pair]) -> dict[str, Number]:
    """Each difference by itself, where both its arms are there."""
    there = {name: pair for name, pair in pairs.items() if set(pair) <= set(cells.arms)}
    return {name: cells.differences([pair])[0] for name, pair in there.items()}


def _steps(cells: Cells, model: str, setting: str) -> list[Number]:
    """What changes from each k to the next."""
    places = _places(cells, model, setting)
    arms: list[Arm] = [(model, setting, place) for place in places]
    return cells.differences(list(zip(arms[1:], arms[:-1], strict=True)))


def _no_clue_in_30(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    there = [name for name in models if (name, MISSED, 30) in cells.arms]
    return {name: cells.means([(name, MISSED, 30)])[0] for name in there}


def _top_k_near_20_less_clue(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    found = {}
    for name in models:
        clue: Arm = (name, "gt_clue", 1)
        near: list[Arm] = [(name, "top_k", k) for k in (15, 20)]
        pairs = [(arm, clue) for arm in near if {arm, clue} <= set(cells.arms)]
        if pairs:
            found[name] = most(cells.differences(pairs))
    return found


def _smallest_step(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    steps = {name: _steps(cells, name, "one_in_k") for name in models}
    return {name: least(each) for name, each in steps.items() if each}


def _gain(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    pairs = {name: ((name, "gt_clue", 1), (name, "zero_shot", 0)) for name in models}
    return _differences(cells, pairs)


def _largest_gain(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    pairs: list[Pair] = [((name, "gt_clue", 1), (name, "zero_shot", 0)) for name in models]
    if set(models) < set(OPEN) or any(set(pair) - set(cells.arms) for pair in pairs):
        return {}
    return {"open models": most(cells.differences(pairs))}


def _gcue_parts(cells: Cells, models: Sequence[str]) -> dict[str, tuple[list[Arm], Pair]]:
    """Model → its arms with one clue in k, and what one clue alone adds to the baseline."""
    parts = {}
    for name in models:
        whole: Pair = ((name, "gt_clue", 1), (name, BASELINE, 0))
        arms: list[Arm] = [(name, "one_in_k", k) for k in _places(cells, name, "one_in_k")]
        if arms and set(whole) <= set(cells.arms):
            parts[name] = arms, whole
    return parts


def _smallest_gcue(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    return {
        name: least(cells.ratios([(arm, whole[1]) for arm in arms], whole))
        for name, (arms, whole) in _gcue_parts(cells, models).items()
    }


def _change_of_gcue(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    return {
        name: cells.ratios([(arms[-1], arms[0])], whole)[0]
        for name, (arms, whole) in _gcue_parts(cells, models).items()
        if len(arms) > 1
    }


def _mixing(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    pairs = {}
    for m in (1, 2):
        for name in models:
            pairs[f"{name}, m={m}"] = ((name, "m_in_k", m), (name, "m_gt", m))
    return _differences(cells, pairs)


def _three_less_best_other(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    found = {}
    for name in models:
        places = _places(cells, name, "m_gt")
        pairs: list[Pair] = [((name, "m_gt", 3), (name, "m_gt", m)) for m in places if m != 3]
        if {3, 5} <= set(places):
            found[name] = least(cells.differences(pairs))
    return found


def _dip(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
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
        found[name] = most([least(numbers[2 * i : 2 * i + 2]) for i in range(len(middle))])
    return found


def _same_less_other_species(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    pairs: dict[str, Pair] = {}
    for name in models:
        if places := _places(cells, name, "one_in_k_easy"):
            k = places[-1]
            pairs[name] = ((name, "one_in_k", k), (name, "one_in_k_easy", k))
    return _differences(cells, pairs)


def _highest_rate(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    asked = [arm for arm in cells.arms if arm[1] != BASELINE]
    own = {name: [arm for arm in asked if arm[0] == name] for name in models}
    return {name: most(cells.means(arms)) for name, arms in own.items() if arms}


def _largest_idk_step(cells: Cells, models: Sequence[str]) -> dict[str, Number]:
    found = {}
    for setting in ("top_k", "one_in_k"):
        for name in models:
            if steps := _steps(cells, name, setting):
                found[f"{name}, {setting}"] = most(steps)
    return found


_NUMBERS: dict[str, Callable[[Cells, Sequence[str]], dict[str, Number]]] = {
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
"""What each of these numbers is, and its unit."""
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
"""In the order of the paper.

Where a sentence is vague, a weak reading that can be counted is taken: "few" are at
most one answer in ten, and "reach", with k "close to 20", is the better of k = 15 and
20 within 3 points, the margin within which the notebooks count two numbers as the same.
"""
