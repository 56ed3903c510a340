"""Pairs the answers of two arms or experiment runs, and finds those whose score differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.saved_answers import NEEDED
from vrag_kit.analysis.settings_table import setting_name
from vrag_kit.analysis.strata import LEFT_OUT, NO_STRATUM, sort_strata
from vrag_kit.errors import VragError

Choice = Mapping[str, Any]  # Any: texts and numbers, as parameters have them
"""Column → the value that is selected: {"model": "field-guide-vlm-few", "k": 5}."""
EACH = (
    *("answer", "status", "score", "verdict", "judge", "judge_id"),
    *("doc_ids", "relevant", "relevant_pixel_hashes", "answer_id", "store"),
)
"""Columns of each side, with the suffix _a or _b."""
ASKED = ("group", "question", "references", "score_min", "score_max")
"""Columns that are the same on both sides."""
_REPEATS = ["draw", "sample"]
_NEEDED = ("benchmark", *_REPEATS)


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the answers of two sides are matched."""

    sides: list[pd.DataFrame]
    """The selected answers of A and of B."""
    values: Mapping[str, list[list[object]]]
    """Column of the condition → its values in A and in B."""
    by: list[str]
    """The columns of the condition that must be equal; the others are compared."""
    keys: list[str]
    """All columns that must be equal."""
    single: list[bool]
    """For each side, whether it has one answer per question."""


def paired_answers(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> pd.DataFrame:
    """Pairs the answers of two sides to one question under the same condition: the columns of the
    condition, query_id, draw, sample, `ASKED`, stratum, and `EACH` of both sides; a and b name the
    sides.

    `a` and `b` are judged answers (of `load_answers`, or `judge_answers`); of them the rows that
    `choose_a` and `choose_b` select. The columns before query_id are the condition of a row. One in
    which each side has a single, different value is what is compared, and names the side
    ("field-guide-vlm-few"); where there is none, `names` do. So is one that follows from it, such
    as the number of documents shown by data set: the sides share none of its values, and without it
    no answer is duplicated. All others must be equal, and so must draw and sample, unless one side
    has one answer per question, which is then paired with each of the other. Pairs that several
    experiments share are taken once. stratum is that of both sides (`assign_stratum`), names both
    where they differ ("A: in training data, B: not in training data"), is only A's where they
    differ and so do the judges ("A: right without an image"), and "" where either lacks one. Raises
    `VragError` where nothing is in common, with what each side has, and where two answers of a side
    match one of the other.
    """
    matched = match_answers(a, b, choose_a=choose_a, choose_b=choose_b)
    sides, by = matched.sides, matched.by
    values = matched.values
    pairs = sides[0].merge(sides[1], on=matched.keys, suffixes=("_a", "_b"))
    if pairs.empty:
        raise VragError(f"compare: A and B have nothing in common. {_apart(values, by)}")
    numbered = "b" if matched.single[0] else "a"
    pairs = pairs.rename(columns={f"{name}_a": name for name in ASKED})
    pairs = pairs.rename(columns={f"{name}_{numbered}": name for name in _REPEATS})
    pairs["stratum"] = _strata(pairs)
    both = [*(f"{name}_a" for name in EACH), *(f"{name}_b" for name in EACH)]
    shown = [*by, "query_id", *_REPEATS, *ASKED, "stratum", *both]
    compared = [name for name in values if name not in by]
    called = [_called(values, compared, side) or names[side] for side in (0, 1)]
    pairs = pairs[[name for name in shown if name in pairs]]
    return _once(pairs, by).assign(a=called[0], b=called[1])


def match_answers(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> Pairing:
    """Finds the columns by which the answers of both sides are matched, as in `paired_answers`.
    Raises `VragError` for a choice that does not exist, and where two answers of a side match one
    of the other.
    """
    sides = [_chosen(a, choose_a or {}, "A"), _chosen(b, choose_b or {}, "B")]
    how = [name for name in _how(sides[0]) if name in _how(sides[1])]
    values = {name: [list(dict.fromkeys(side[name])) for side in sides] for name in how}
    compared = [name for name in how if name != "benchmark" and _differ(*values[name])]
    compared += _follow(sides, values, compared)
    by = [name for name in how if name not in compared]
    single = [not side.duplicated([*by, "query_id"]).any() for side in sides]
    keys = [*by, "query_id", *([] if any(single) else _REPEATS)]
    if not any(single):
        _check_single(sides[0], keys, "A")
        _check_single(sides[1], keys, "B")
    return Pairing(sides, values, by, keys, single)


def judges_differ(pairs: pd.DataFrame) -> pd.Series:
    """Whether the scores of each row of `paired_answers` are of two judges, by name or, where that
    is one, by judge_id: bool. False where a side was saved without its judge.
    """
    apart = pd.Series(False, pairs.index)
    for name in ("judge", "judge_id"):
        if {f"{name}_a", f"{name}_b"} <= set(pairs):
            a, b = pairs[f"{name}_a"], pairs[f"{name}_b"]
            apart |= a.fillna("").ne("") & b.fillna("").ne("") & (a != b)
    return apart


def judge_names(pairs: pd.DataFrame, side: str) -> pd.Series:
    """The judge of each answer of a side, "a" or "b", of `paired_answers`: "rule", or with its key,
    "o4-mini (1f0c2a9b7d34)", where only that distinguishes the two sides.
    """
    if not {"judge_a", "judge_b"} <= set(pairs):
        return pairs.get(f"judge_{side}", pd.Series(index=pairs.index, dtype=object))
    names = pairs[f"judge_{side}"]
    alike = judges_differ(pairs) & (pairs["judge_a"] == pairs["judge_b"])
    if not alike.any():
        return names
    return names.mask(alike, names.astype(str) + " (" + pairs[f"judge_id_{side}"] + ")")


def flips(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `paired_answers` whose score differs, with direction ("n_improved" where it is
    higher in b, "n_worsened" where it is lower). Improved ones come first; each are sorted by
    stratum, then from the largest difference. Two answers that are paired in several draws, since
    their prompts were the same, are one row.
    """
    difference = pairs["score_b"].astype(float) - pairs["score_a"].astype(float)
    direction = np.where(difference > 0, "n_improved", "n_worsened")
    place = pairs["stratum"].map(sort_strata(pairs["stratum"]).index)
    changed = pairs.assign(direction=direction, _place=place, _size=-difference.abs())
    order = ["direction", "_place", "_size"]
    changed = changed[difference.fillna(0) != 0].sort_values(order, kind="stable")
    ids = [name for name in ("answer_id_a", "answer_id_b") if name in changed]
    if ids:
        changed = changed.drop_duplicates([*condition_columns(pairs), "query_id", *ids])
    return changed.drop(columns=["_place", "_size"]).reset_index(drop=True)


def format_setting(name: str, value: object) -> str:
    """Formats one value of a condition: "k = 5", "zero-shot (no image)"."""
    if isinstance(value, int):
        return f"{name} = {value}"
    return setting_name(str(value)) if name == "setting" else str(value)


def side_name(side: str, name: str) -> str:
    """The title of a side's column: "A: field-guide-vlm-few"; "A" without a name."""
    return side if name == side else f"{side}: {name}"


def condition_columns(pairs: pd.DataFrame) -> list[str]:
    """The columns of `paired_answers` that give the condition of both sides."""
    return list(pairs.columns[: pairs.columns.get_loc("query_id")])


def _how(table: pd.DataFrame) -> list[str]:
    before = table.columns[: table.columns.get_loc("query_id")]
    return [name for name in before if name not in _REPEATS]


def _chosen(table: pd.DataFrame, choice: Choice, side: str) -> pd.DataFrame:
    """The rows that a side's choice names, with plain values in what says how."""
    if missing := [name for name in (*_NEEDED, *NEEDED) if name not in table]:
        raise VragError(
            f"compare: the answers of {side} have no column {missing[0]!r}; found"
            f" {', '.join(map(str, table.columns))}. Expected a table of `judge_answers`."
        )
    how = _how(table)
    table = table.assign(**{name: table[name].astype(object).map(_plain) for name in how})
    for name, value in choice.items():
        if name not in how:
            raise VragError(
                f"compare: {side} has no column {name!r} to choose by; expected one of"
                f" {', '.join(how)}."
            )
        fits = table[name].astype(str) == str(value)
        if not fits.any():
            found = ", ".join(map(str, dict.fromkeys(table[name])))
            raise VragError(f"compare: {side} has no {name} = {value!r}; found {found}.")
        table = table[fits]
    return table


def _plain(value: object) -> object:
    """A value as it is matched and shown: 5 for 5.0, "" for nothing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _differ(a: Sequence[object], b: Sequence[object]) -> bool:
    """Whether each side has one value, and they are two."""
    return len(a) == 1 and len(b) == 1 and a != b


def _follow(
    sides: Sequence[pd.DataFrame], values: Mapping[str, list[list[object]]], compared: list[str]
) -> list[str]:
    """The columns that have no value in common and tell no two answers of a side apart."""
    found: list[str] = []
    for name in values:
        a, b = values[name]
        if name in ("benchmark", *compared) or set(a) & set(b):
            continue
        keys = [each for each in values if each not in (name, *compared, *found)]
        keys += ["query_id", *_REPEATS]
        if not any(side.duplicated(keys).any() for side in sides):
            found.append(name)
    return found


def _called(values: Mapping[str, list[list[object]]], compared: list[str], side: int) -> str:
    """What a side is called after what is compared: "top_k, k = 5"."""
    single = [name for name in compared if len(values[name][side]) == 1]
    told = [(name, values[name][side][0]) for name in single if name != "experiment"]
    words = [format_setting(name, value) for name, value in told]
    experiment = str(values["experiment"][side][0]) if compared == ["experiment"] else ""
    return ", ".join(word for word in words if word) or experiment


def _strata(pairs: pd.DataFrame) -> list[str]:
    """What both sides of each pair knew, in one name; `NO_STRATUM` where either lacks one.
    Another judge's verdict on B says nothing of what B knew: A's stratum is then both's.
    """
    if not {"stratum_a", "stratum_b"} <= set(pairs):
        return [NO_STRATUM] * len(pairs)
    sides = [pairs[f"stratum_{side}"].fillna(NO_STRATUM).astype(str) for side in "ab"]
    a, b = (side.str.removesuffix(LEFT_OUT) for side in sides)
    names = ("A: " + a + ", B: " + b).where(a != b, a)
    if (a != b)[judges_differ(pairs)].any():
        names = names.mask(judges_differ(pairs), "A: " + a)
    return list(names.mask((a == NO_STRATUM) | (b == NO_STRATUM), NO_STRATUM))


def _check_single(side: pd.DataFrame, keys: list[str], title: str) -> None:
    twice = side[side.duplicated(keys)]
    if len(twice):
        where = ", ".join(f"{name} = {twice[name].iloc[0]}" for name in keys)
        raise VragError(
            f"compare: {title} has two answers of {where}; expected one. Put the column that tells"
            " them apart before query_id when they are saved, or choose one experiment."
        )


def _apart(values: Mapping[str, list[list[object]]], by: list[str]) -> str:
    """Why nothing fits: columns in which no value is on both sides."""
    for name in by:
        a, b = values[name]
        if not set(a) & set(b):
            told = [", ".join(map(str, side)) for side in (a, b)]
            return (
                f"{name} is {told[0]} in A and {told[1]} in B. Choose one on either side, as by"
                f" --a {name}={a[0]} --b {name}={b[0]}, and it is what is compared."
            )
    return "No question was asked on both sides in the same way."


def _once(pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The pairs without ways of asking that an earlier experiment had, answer by answer."""
    if "experiment" not in by or pairs["experiment"].nunique() == 1:
        return pairs
    others = [name for name in by if name != "experiment"]
    seen: set[tuple[object, ...]] = set()
    kept = []
    for _, part in pairs.groupby(by, sort=False, dropna=False):
        told = part[["query_id", "answer_a", "answer_b", "score_a", "score_b"]].astype(str)
        mark = (*part[others].iloc[0], *sorted(told.itertuples(index=False, name=None)))
        if mark not in seen:
            kept.append(part)
        seen.add(mark)
    return pd.concat(kept, ignore_index=True)
