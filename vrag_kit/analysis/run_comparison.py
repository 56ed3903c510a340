"""Pairs the answers of two arms or experiment runs, and finds those whose score differs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm
from vrag_kit.analysis.estimates import cluster_mean
from vrag_kit.analysis.report_tables import LEVEL, ci_cells, format_p, setting_name
from vrag_kit.analysis.results import NEEDED
from vrag_kit.analysis.strata import ALL, LEFT_OUT, NO_STRATUM, sort_strata
from vrag_kit.errors import VragError
from vrag_kit.generation.ask import quote_with_counts
from vrag_kit.judging.scale import Scale, scale_of
from vrag_kit.types import Json
from vrag_kit.workspace import portable_path

MOST = 2**22
"""The most distinct sums at once: 32 MiB of them."""
_DECIMALS = 6
"""Sums that differ by less are one sum, added in another order."""


def sign_flip_test(differences: np.ndarray, groups: np.ndarray | pd.Series) -> float:
    """Exact two-sided p-value, in (0, 1], of the sign-flip test of `differences` (one per query,
    without NaN). The null hypothesis is that the two arms are exchangeable.

    The sum of each group then has either sign with probability 1/2, whatever its size; p is the
    share of all signs under which the total is at least as far from 0 as observed. Where scores are
    0 or 1 and each query is a group of its own, this is McNemar's exact test: 2 · P(Binomial(flips,
    1/2) ≥ the more frequent direction), at most 1. Without differences p is 1. NaN where sums take
    more than `MOST` values, as with many groups of arbitrary real scores.

    Fisher (1935), The Design of Experiments, section 21; McNemar (1947), Psychometrika
    12(2).
    """
    from scipy.stats import binom

    sums = _sums(differences, groups)
    sizes, counts = np.unique(np.abs(sums)[np.abs(sums) > 0], return_counts=True)
    totals: np.ndarray = np.zeros(1)
    shares: np.ndarray = np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        if len(totals) * (count + 1) > MOST:
            return math.nan
        positive = np.arange(count + 1)
        moved = totals[:, None] + size * (2 * positive - count)
        totals, place = np.unique(moved.round(_DECIMALS).ravel(), return_inverse=True)
        weights = shares[:, None] * binom.pmf(positive, count, 0.5)
        shares = np.bincount(place, weights.ravel())
    slack = (len(sums) + 1) * 10.0**-_DECIMALS
    return min(1.0, float(shares[np.abs(totals) >= abs(sums.sum()) - slack].sum()))


_POWER = 0.8


def minimum_detectable_difference(
    differences: np.ndarray,
    groups: np.ndarray | pd.Series,
    scale: Scale,
    *,
    level: float = 0.05,
) -> float:
    """The smallest true difference of two means on `scale` that a two-sided paired test at `level`
    detects with a power of 80 %. It assumes as many queries, and as much variation, as in
    `differences` (one per query, without NaN, at least one).

    It is the δ that solves Connor's formula for McNemar's test, n = (z_α √ψ + z_β √(ψ − δ²))² / δ²,
    where ψ is the share of queries that flip; here the mean squared difference, which is the same
    for scores of 0 and 1, as a share of the scale. δ cannot be larger than ψ: where so few flip
    that none would be found, ψ = δ, the smallest δ of flips in one direction alone. n is divided by
    the design effect Σ (sum of a group)² / Σ difference² where that is above 1; without any
    difference, n is the number of groups. NaN where no difference could be found: n below 4, or so
    few groups that even all signs alike, one of 2^(groups − 1) equally likely ways, are not
    significant at `level`.

    Connor (1987), "Sample size for testing differences in proportions for the
    paired-sample design", Biometrics 43(1); Kish (1965), Survey Sampling, section 8.2.
    """
    flips = float(np.mean((differences / scale.width) ** 2))
    sums = _sums(differences / scale.width, groups)
    if 2.0 ** (1 - len(sums)) > level:
        return math.nan
    n = float(len(sums))
    if flips > 0:
        n = len(differences) / max(1.0, float((sums**2).sum()) / (flips * len(differences)))
    of_test = NormalDist().inv_cdf(1 - level / 2)
    of_power = NormalDist().inv_cdf(_POWER)
    rest = n + of_power**2 - of_test**2
    if rest < 0:
        return math.nan
    root = (of_test * math.sqrt(n) + of_power * math.sqrt(rest)) / (n + of_power**2)
    found = root * max(math.sqrt(flips), root)
    return scale.width * found if found <= 1 else math.nan


def _sums(values: np.ndarray, groups: np.ndarray | pd.Series) -> np.ndarray:
    """The sum of each group, so rounded that what should be equal is."""
    _, member = np.unique(np.asarray(groups), return_inverse=True)
    return np.bincount(member, values).round(9)


_MOST = 8
"""Things of a side that are named; of more the number."""


def unmatched_counts(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> list[str]:
    """Describes the answers that `paired_answers` leaves out because the other side lacks them, one
    line per side: "only in A: moody (03, 04); steady in 04". Whole data sets and models come first,
    then models in an experiment, then conditions, then the number of single answers; [] where each
    has its counterpart. Raises as `match_answers`.
    """
    matched = match_answers(a, b, choose_a=choose_a, choose_b=choose_b)
    lines = []
    for side, mine, other in zip("AB", matched.sides, matched.sides[::-1], strict=True):
        left = mine[_lacking(mine, other, matched.keys)]
        if told := list(_descriptions(left, other, matched.by)):
            more = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
            lines.append(f"only in {side}: {'; '.join([*told[:_MOST], *more])}")
    return lines


def _descriptions(left: pd.DataFrame, other: pd.DataFrame, by: Sequence[str]) -> Iterator[str]:
    """The widest first, each answer once."""
    for columns in (["benchmark"], ["model"], ["model", "experiment"], by):
        names = [name for name in columns if name in by]
        if names:
            lacking = _lacking(left, other, names)
            yield from _groups(left[lacking], names, by)
            left = left[~lacking]
    if len(left):
        asked = left["query_id"].nunique()
        yield f"{len(left):,} more, to {asked:,} question{'s' * (asked > 1)}"


def _groups(lacking: pd.DataFrame, names: Sequence[str], by: Sequence[str]) -> Iterator[str]:
    """In words: "moody (03, 04)", "steady in 04", "steady, top-k, k = 20 in 04"."""
    whole = len(names) == 1
    what = [name for name in names if name != "experiment" and (whole or name != "benchmark")]
    for _, part in lacking.groupby(what or list(names), sort=False, dropna=False):
        values = part[what].to_dict("records")[0] if what else {}
        words = ", ".join(
            filter(None, (format_setting(str(name), each) for name, each in values.items()))
        )
        where = ", ".join(map(_short, part["experiment"].unique())) if "experiment" in by else ""
        if words and where:
            yield f"{words} ({where})" if whole else f"{words} in {where}"
        else:
            yield words or where


def _short(experiment: object) -> str:
    """The number of a notebook, as 03 of "visual_rag/03_baselines"; else its name."""
    name = Path(str(experiment)).name
    number = name.partition("_")[0]
    return number if number.isdigit() else name


def _lacking(table: pd.DataFrame, other: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Which rows have no counterpart in these columns: bool."""
    mine, others = (pd.MultiIndex.from_frame(each[list(names)]) for each in (table, other))
    return ~mine.isin(others)


_COLUMNS = ("setting", "A", "B")
ABSENT = "–"
"""The text for a parameter that one side lacks."""
NOT_KEPT = "not recorded"
Line = tuple[str, str, str]


def config_diff(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> pd.DataFrame:
    """Compares the configurations of two sides of answers (of `load_answers`, or `add_questions`),
    selected as in `paired_answers`. There is one row per difference (setting, A, B), with full
    texts; no row where nothing differs.

    First come the columns that are compared, then the models that endpoints report, then the judges
    where they are not the same (`judge_id`), and their prompts where these are known and differ,
    then parameters of the notebooks that saved the answers, key by key where they are mappings
    ("decoding.max_new_tokens"), with the experiment after the name where not all of them differ so.
    Where a side's parameters were not recorded, a row says so. Raises as `match_answers`.
    """
    matched = match_answers(a, b, choose_a=choose_a, choose_b=choose_b)
    compared = [name for name in matched.values if name not in matched.by]
    lines = [_line(name, *matched.values[name]) for name in compared]
    sides = matched.sides
    if apart := "experiment" in matched.by:
        one, other = sides
        sides = [
            one[one["experiment"].isin(set(other["experiment"]))],
            other[other["experiment"].isin(set(one["experiment"]))],
        ]
    lines += [*_served(*sides), *_judges(*sides), *_parameters(*sides, apart=apart)]
    return pd.DataFrame(lines, columns=list(_COLUMNS))


def _line(name: str, a: object, b: object) -> Line:
    """A line of the table: paths from the project, where that leaves them apart."""
    told = _in_words(_named(a)), _in_words(_named(b))
    return (name, *told) if told[0] != told[1] else (name, _in_words(a), _in_words(b))


def _in_words(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_in_words, value)) or "[]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _named(value: Any) -> Any:  # Any: of a parameter
    if isinstance(value, str):
        return portable_path(value)
    if isinstance(value, list):
        return [_named(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _named(each) for name, each in value.items()}
    return value


def _served(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Line]:
    """The models that endpoints say answered, where both sides have some, and others."""
    names = [Counter(side.get("served_model", pd.Series(dtype=object)).dropna()) for side in (a, b)]
    for each in names:
        each.pop("", None)
    if all(names) and set(names[0]) != set(names[1]):
        yield "served model", quote_with_counts(names[0]), quote_with_counts(names[1])


def _judges(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Line]:
    """The judges of both sides, and their words, where they are not the same."""
    judges = [_single(side, "judge", "judge_id") for side in (a, b)]
    names = [[name for name, _ in told] for told in judges]
    if names[0] == names[1]:
        known = all(key for _, key in [*judges[0], *judges[1]])
        if judges[0] == judges[1] or not known:
            return
        names = [[f"{name} ({key})" for name, key in told] for told in judges]
    if not all(judges):
        return
    yield _line("judge", *names)
    words = [[each for (each,) in _single(side, "judge_prompt")] for side in (a, b)]
    if words[0] != words[1]:
        yield _line("what the judge is asked", *("\n\n".join(each) or ABSENT for each in words))


def _single(side: pd.DataFrame, *names: str) -> list[tuple[str, ...]]:
    """The different rows of some columns, "" where one is missing; [] without the first."""
    if names[0] not in side:
        return []
    columns = side.reindex(columns=list(names)).astype(object).fillna("").astype(str)
    return list(columns.drop_duplicates().itertuples(index=False, name=None))


def _parameters(a: pd.DataFrame, b: pd.DataFrame, *, apart: bool) -> list[Line]:
    """The parameters that differ, each once; experiments `apart` where both sides have the
    same ones.
    """
    kept = [_kept(side, apart=apart) for side in (a, b)]
    missing = [not any(told.values()) for told in kept]
    if any(missing):
        said = [NOT_KEPT if none else "kept" for none in missing]
        return [("parameters of the notebook", said[0], said[1])]
    found: dict[Line, list[str]] = {}
    having: dict[str, int] = {}
    for experiment, one in kept[0].items():
        other = kept[1][experiment]
        for name in {**one, **other}:
            for line in _differing(name, one.get(name, ABSENT), other.get(name, ABSENT)):
                found.setdefault(line, []).append(experiment)
            having[name] = having.get(name, 0) + 1
    lines = []
    for (name, in_a, in_b), where in found.items():
        everywhere = len(where) == having[name.partition(".")[0]]
        lines.append((name if everywhere else f"{name} ({', '.join(where)})", in_a, in_b))
    return lines


def _kept(side: pd.DataFrame, *, apart: bool) -> dict[str, Json]:
    """Experiment → its parameters; all in one, called "", unless they are `apart`."""
    if "parameters" not in side:
        return {"": {}}
    found: dict[str, Json] = {}
    names = side["experiment"] if apart else [""] * len(side)
    for name, text in dict.fromkeys(zip(names, side["parameters"], strict=True)):
        found.setdefault(name, {}).update(
            json.loads(text) if isinstance(text, str) and text else {}
        )
    return found


def _differing(name: str, a: Any, b: Any) -> Iterator[Line]:  # Any: of a parameter
    """The lines of one parameter: none where it is the same."""
    if a == b:
        return
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        one, other = _keys(a), _keys(b)
        for key in {**one, **other}:
            yield from _differing(f"{name}.{key}", one.get(key, ABSENT), other.get(key, ABSENT))
    else:
        yield _line(name, a, b)


def _keys(value: Any) -> Mapping[str, Any]:  # Any: of a parameter
    """A mapping as it is; a name alone is the entry of that model."""
    if isinstance(value, Mapping):
        return value
    return {} if value == ABSENT else {"model": value}


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


_SIDES = ["value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b"]
_MEANS = [*_SIDES, "value", "ci_low", "ci_high", "n", "n_groups", "n_failed"]
OTHERWISE = "different judges"
"""The verdict where two judges gave the scores: they do not compare the answers."""
_TESTS = [
    *("n_improved", "n_worsened", "p", "p_holm", "test", "mde", "mde_is_lower_bound", "verdict")
]


def paired_tests(pairs: pd.DataFrame) -> pd.DataFrame:
    """Paired tests on `paired_answers`, for each condition by stratum and then over all questions.
    Columns: those of the condition, stratum, metric, a and b (names of the sides), baseline (that
    of a), value_a, value_b (with ci_low_a … ci_high_b), value (b − a), ci_low, ci_high, n,
    n_groups, n_failed, n_improved, n_worsened, p, p_holm, test, mde, mde_is_lower_bound, verdict.

    Means are over the n questions, in n_groups groups, with a score on both sides; a question's
    draws are averaged first. n_failed counts questions without a score on one side. n_improved and
    n_worsened count questions with a higher and a lower score in b. 95 % intervals are those of
    `ClusterMean` over groups. p is exact (`sign_flip_test`: McNemar's where scores are 0 or 1 and
    questions independent), or that of the interval where test is "t"; p_holm corrects it for all
    rows of the same stratum, as `paired_differences` does: each stratum and all questions are
    families of their own. mde is the minimum detectable difference
    (`minimum_detectable_difference`) at 5 % ÷ rows of the family with a power of 80 %; where
    mde_is_lower_bound is True fewer questions change than it takes, and mde is what changes in one
    direction alone would need. verdict is "higher" or "lower" where the interval excludes 0 and
    p_holm is below 0.05, else "not significant"; "no score" for n = 0; `OTHERWISE` where different
    judges scored the two sides. judge_a and judge_b name the judges, where both are known. A
    stratum that holds all pairs of a condition has no row of its own.
    """
    by = condition_columns(pairs)
    cells: list[tuple[tuple[object, ...], pd.DataFrame]] = []
    for key, part in pairs.groupby(by, sort=False, dropna=False):
        cells += [((*key, name, "score"), some) for name, some in _separate(part)]
    family = Counter(key[len(by)] for key, _ in cells)  # by the stratum
    rows = [(*key, *_row(part, LEVEL / family[key[len(by)]])) for key, part in cells]
    before = [*by, "stratum", "metric"]
    table = pd.DataFrame(rows, columns=[*before, *_MEANS, *_TESTS[:3], *_TESTS[4:7]])
    a, b = str(pairs["a"].iloc[0]), str(pairs["b"].iloc[0])
    table = table.assign(a=a, b=b, baseline=a)
    table["p_holm"] = table.groupby("stratum")["p"].transform(lambda p: holm(p.to_numpy(float)))
    parts = [part for _, part in cells]
    apart = [bool(judges_differ(part).any()) for part in parts]
    known = {"judge_a", "judge_b"} <= set(pairs)
    judges = {
        f"judge_{side}": [judge_label(part, side) for part in parts] for side in "ab" if known
    }
    told = zip(table.to_dict("records"), apart, strict=True)
    table["verdict"] = [OTHERWISE if other else _verdict(row) for row, other in told]
    table = table.assign(**judges)
    return table[[*before, "a", "b", "baseline", *judges, *_MEANS, *_TESTS]]


def judge_label(pairs: pd.DataFrame, side: str) -> str:
    """The judge of a side, "a" or "b", of `paired_answers` (`judge_names`), such as "rule"; ""
    where the answers were saved without it.
    """
    return " | ".join(map(str, judge_names(pairs, side).dropna().unique()))


def paired_tests_table(differences: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Formats `to_percent(paired_tests(pairs))` as a table, without columns that are the same in
    all rows and do not describe the arms.
    """
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    asked = [name for name in condition_columns(pairs) if (differences[name] != "").any()]
    names = [*asked, "stratum"]
    table = differences[[name for name in names if differences[name].nunique() > 1] or names[:1]]
    if "setting" in table:
        table = table.assign(setting=table["setting"].map(setting_name))
    changed = differences["n_improved"].map("+{}".format) + differences["n_worsened"].map(
        " −{}".format
    )
    return table.assign(
        **{
            a: _side_cells(differences, "a"),
            b: _side_cells(differences, "b"),
            "B − A (percentage points)": ci_cells(differences),
            "n": differences["n"],
            "n_groups": differences["n_groups"],
            **({"failed": differences["n_failed"]} if differences["n_failed"].any() else {}),
            "changed (+ / −)": changed,
            "p": differences["p"].map(format_p) + differences["test"].map({"t": " (t)"}).fillna(""),
            "p (Holm)": differences["p_holm"].map(format_p),
            "minimum detectable difference": _smallest_cells(differences),
            "verdict (B against A)": differences["verdict"],
        }
    )


def _smallest_cells(differences: pd.DataFrame) -> pd.Series:
    """ "16.3", "≥ 16.3" where that is a lower bound, "–" where nothing could be found."""
    numbers = differences["mde"].map("{:.1f}".format).replace("nan", "–")
    return differences["mde_is_lower_bound"].map({True: "≥ ", False: ""}) + numbers


def _side_cells(differences: pd.DataFrame, side: str) -> pd.Series:
    """The mean of a side with its interval."""
    names = ["value", "ci_low", "ci_high"]
    columns = {f"{name}_{side}": name for name in names}
    return ci_cells(differences[list(columns)].rename(columns=columns))


def _separate(part: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each stratum of the pairs, unless it holds all of them, and all of them."""
    for name in sort_strata(part["stratum"]):
        inside = part["stratum"] == name
        if name != NO_STRATUM and not inside.all():
            yield name, part[inside]
    yield ALL, part


def _row(part: pd.DataFrame, level: float) -> tuple[object, ...]:
    """The numbers of one way of asking, in one stratum."""
    scores = part[["query_id", "group", "score_a", "score_b"]].astype(
        {"score_a": float, "score_b": float}
    )
    known = scores.dropna(subset=["score_a", "score_b"])
    n_failed = scores["query_id"].nunique() - known["query_id"].nunique()
    if known.empty:
        nothing = [math.nan] * 9
        return (*nothing, 0, 0, n_failed, 0, 0, math.nan, "", math.nan, False)
    means = known.groupby(["query_id", "group"], sort=False)[["score_a", "score_b"]].mean()
    difference = (means["score_b"] - means["score_a"]).round(12).to_numpy(float)
    groups = means.index.get_level_values("group").to_numpy()
    scale = scale_of(part)
    found = cluster_mean(difference, groups, scale.differences)
    p, test = sign_flip_test(difference, groups), "exact sign-flip test"
    if math.isnan(p):
        p, test = found.p_value(), "t"
    smallest = minimum_detectable_difference(difference, groups, scale, level=level)
    floor = smallest / scale.width > float(np.mean((difference / scale.width) ** 2))
    gained, lost = int((difference > 0).sum()), int((difference < 0).sum())
    sides: list[float] = []
    for name in ("score_a", "score_b"):
        mean = cluster_mean(means[name].to_numpy(float), groups, scale)
        sides += [mean.value, *mean.interval()]
    counts = (len(means), len(set(groups)), n_failed)
    known_of = (*sides, found.value, *found.interval(), *counts)
    return (*known_of, gained, lost, p, test, smallest, floor)


def _verdict(row: Mapping[Hashable, Any]) -> str:  # Any: a row of a table
    if not row["n"]:
        return "no score"
    outside = row["ci_low"] > 0 or row["ci_high"] < 0
    if not (outside and row["p_holm"] < LEVEL):
        return "not significant"
    return "higher" if row["value"] > 0 else "lower"
