"""Pairs the answers of two sides, tests their difference, and finds the answers whose score
differs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family
from vrag_kit.analysis.estimates import cluster_mean, cluster_means, clustered_moments
from vrag_kit.analysis.report_tables import LEVEL, ci_cells, format_p, setting_name
from vrag_kit.analysis.results import NEEDED, portable_path
from vrag_kit.analysis.strata import ALL, LEFT_OUT, NO_STRATUM, sort_strata
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.judging.scale import Scale, require_columns, scale_of

Choice = Mapping[str, Any]  # Any: texts and numbers, as parameters have them
"""Column → the value that a side has: {"model": "field-guide-vlm-few", "k": 5}."""
MOST = 2**22
"""The most distinct sums at once: 32 MiB of them."""
_DECIMALS = 6
"""Sums that differ by less are one sum, added in another order."""
_POWER = 0.8
_REPEATS = ["draw", "sample"]
_COMMON = ["group", "question", "references", "score_min", "score_max"]
"""Columns that are the same on both sides."""
_EACH = (
    *("answer", "status", "score", "verdict", "judge", "judge_id"),
    *("doc_ids", "relevant", "relevant_images", "answer_id", "store"),
)
"""Columns of each side, with the suffix _a or _b."""
_JUDGED = ("judge", "judge_id", "judge_prompt", "served_model")
"""Columns beside those compared whose values are part of the configuration."""
ABSENT = "–"
"""The text for a setting that one side lacks."""
DIFFERENT_JUDGES = "different judges"
"""The verdict where two judges gave the scores: they do not compare the answers."""


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
    sums = _group_sums(differences, groups)
    totals: np.ndarray = np.zeros(1)
    shares: np.ndarray = np.ones(1)
    for size in sums[sums != 0]:
        if 2 * len(totals) > MOST:
            return math.nan
        both = np.concatenate([totals - size, totals + size]).round(_DECIMALS)
        totals, place = np.unique(both, return_inverse=True)
        shares = np.bincount(place, np.tile(shares / 2, 2))
    slack = (len(sums) + 1) * 10.0**-_DECIMALS
    return min(1.0, float(shares[np.abs(totals) >= abs(sums.sum()) - slack].sum()))


def minimum_detectable_difference(
    differences: np.ndarray, groups: np.ndarray | pd.Series, scale: Scale, *, level: float = LEVEL
) -> float:
    """The smallest true difference of two means on `scale` that a two-sided paired t test at
    `level` detects with a power of 80 %, given as many groups, and as much variation, as in
    `differences` (one per query, without NaN, at least one).

    It is the effect size of `statsmodels.stats.power.tt_solve_power` for the number of groups,
    times their standard deviation: √groups times the standard error of the mean (CR2), which is the
    SD of the differences where each query is a group of its own. NaN where no difference on the
    scale is large enough, and where so few groups change that even all changes in one direction,
    one of 2^(changed − 1) equally likely ways, are not significant at `level`.
    """
    changed = np.count_nonzero(_group_sums(differences, groups))
    if 2.0 ** (1 - changed) > level:
        return math.nan
    from statsmodels.stats.power import tt_solve_power

    found = clustered_moments(differences[:, None], groups)
    deviation = math.sqrt(found.clusters * found.covariance[0, 0])
    size = deviation * float(tt_solve_power(nobs=found.clusters, alpha=level, power=_POWER))
    return size if size <= scale.width else math.nan


def _group_sums(values: np.ndarray, groups: np.ndarray | pd.Series) -> np.ndarray:
    """The sum of each group, so rounded that what should be equal is."""
    _, member = np.unique(np.asarray(groups), return_inverse=True)
    return np.bincount(member, values).round(9)


def paired_answers(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> pd.DataFrame:
    """Pairs the answers of two sides to one question under the same condition: the columns of the
    condition, query_id, draw, sample, group, question, references, score_min, score_max, stratum,
    and answer, status, score, verdict, judge, doc_ids … of both sides, with the suffix _a or _b; a
    and b name the sides.

    `a` and `b` are judged answers (of `load_answers`, or `judge_answers`); of them the rows that
    `choose_a` and `choose_b` select. The columns that these name are compared, and name the sides
    ("field-guide-vlm-few"); without any, `names` do. All other columns before query_id that both
    sides have, and benchmark, are the condition, and must be equal; so must draw and sample, unless
    one side has one answer per question, which is then paired with each of the other. Pairs that
    several experiments share are taken once. stratum is that of both sides (`assign_stratum`),
    names both where they differ ("A: in training data, B: not in training data"), and is "" where
    either lacks one. judge_a and judge_b name the judges, with judge_id where only that differs.
    `.attrs["unmatched"]` holds the numbers of answers of A and of B without a counterpart.

    Raises `VragError`, with the values of the columns on both sides, where a column that was named
    has several values left on a side, where nothing is in common, and where a side has two answers
    of one kind.
    """
    sides, by = _select(a, b, choose_a, choose_b)
    (left, right), keys = sides, [*by, "query_id"]
    if not left.duplicated(keys).any():
        left = left.drop(columns=_REPEATS)
    elif not right.duplicated(keys).any():
        right = right.drop(columns=_REPEATS)
    else:
        keys += _REPEATS
        for title, side in (("A", left), ("B", right)):
            if side.duplicated(keys).any():
                reason = f"{title} has two answers to one query_id"
                raise _ambiguous(reason, sides, condition_columns(side))
    right = right.drop(columns=left.columns.intersection(_COMMON))
    pairs = left.merge(right, on=keys, suffixes=("_a", "_b"))
    if pairs.empty:
        raise _ambiguous("A and B have nothing in common", sides, by)
    pairs["stratum"] = _strata(pairs)
    same_name = pairs["judge_a"].eq(pairs["judge_b"]) & pairs["judge_id_a"].ne(pairs["judge_id_b"])
    for letter, side, name in zip("ab", sides, names, strict=True):
        words = [format_setting(column, side[column].iloc[0]) for column in _compared(sides, by)]
        pairs[letter] = ", ".join(filter(None, words)) or name
        judge = pairs[f"judge_{letter}"]
        full = judge + " (" + pairs[f"judge_id_{letter}"] + ")"
        pairs[f"judge_{letter}"] = judge.mask(same_name, full)
    in_a, in_b = ([f"{name}_{side}" for name in _EACH] for side in "ab")
    columns = [*by, "query_id", *_REPEATS, *_COMMON, "stratum", *in_a, *in_b, "a", "b"]
    pairs = _without_repeats(pairs[[name for name in columns if name in pairs]], by)
    index = [pd.MultiIndex.from_frame(side[keys]) for side in sides]
    pairs.attrs["unmatched"] = [
        int((~mine.isin(other)).sum()) for mine, other in (index, index[::-1])
    ]
    return pairs


def _select(
    a: pd.DataFrame, b: pd.DataFrame, choose_a: Choice | None, choose_b: Choice | None
) -> tuple[list[pd.DataFrame], list[str]]:
    """The chosen answers of both sides, and the columns in which they must be equal: those of the
    condition that both have, without the named ones in which they differ.
    """
    sides = [_chosen(a, choose_a or {}, "A"), _chosen(b, choose_b or {}, "B")]
    by = [name for name in condition_columns(sides[0]) if name in condition_columns(sides[1])]
    for name in {*by} & {*(choose_a or {}), *(choose_b or {})} - {"benchmark"}:
        if any(side[name].nunique() > 1 for side in sides):
            raise _ambiguous(f"{name} has several values on one side", sides, [name])
        if sides[0][name].iloc[0] != sides[1][name].iloc[0]:
            by.remove(name)
    return sides, by


def _compared(sides: Sequence[pd.DataFrame], by: Sequence[str]) -> list[str]:
    """The columns of the condition that both sides have, and in which they differ."""
    a, b = map(condition_columns, sides)
    return [name for name in a if name in b and name not in by]


def _chosen(table: pd.DataFrame, choice: Choice, side: str) -> pd.DataFrame:
    """The rows of a choice. In columns of the condition 5.0 is 5, and a missing value ""."""
    require_columns(table, ["benchmark", *_REPEATS, *NEEDED], f"compare: answers of {side}")
    how = condition_columns(table)
    plain = table[how].convert_dtypes().astype(object)
    texts = table.reindex(columns=["judge", "judge_id", "stratum"]).astype(object).fillna("")
    table = table.assign(**plain.where(plain.notna(), ""), **texts)
    for name, value in choice.items():
        if name not in how:
            hint = did_you_mean(name, how)
            raise VragError(
                f"compare: {side} has no column {name!r}; found {', '.join(how)}.{hint}"
            )
        values = table[name].astype(str)
        if str(value) not in set(values):
            found = ", ".join(values.unique())
            raise VragError(f"compare: {side} has no {name} = {value!r}; found {found}.")
        table = table[values == str(value)]
    return table


def _ambiguous(reason: str, sides: Sequence[pd.DataFrame], columns: Sequence[str]) -> VragError:
    """An error that lists which of the columns have more than one value, and what to type."""
    message, example = f"compare: {reason}", ""
    fewest = math.inf
    for name in columns:
        in_a, in_b = (list(map(str, side.get(name, pd.Series()).unique())) for side in sides)
        shared = len({*in_a} & {*in_b})
        if len({*in_a, *in_b}) == 1:
            continue
        message += f"; {name} is {', '.join(in_a)} in A and {', '.join(in_b)} in B"
        if shared < fewest:
            first, fewest = (in_a or in_b)[0], shared
            other = next(value for value in in_b + in_a if value != first)
            example = f" Name one value, as in --a {name}={first} --b {name}={other}."
    return VragError(f"{message}.{example}")


def _strata(pairs: pd.DataFrame) -> pd.Series:
    """The stratum of both sides; `NO_STRATUM` where either lacks one."""
    a, b = (pairs[f"stratum_{side}"].astype(str).str.removesuffix(LEFT_OUT) for side in "ab")
    both = a.where(a == b, "A: " + a + ", B: " + b)
    return both.mask((a == NO_STRATUM) | (b == NO_STRATUM), NO_STRATUM)


def _without_repeats(pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The pairs, by condition, without those whose answers and scores an earlier experiment had."""
    if "experiment" not in by or pairs["experiment"].nunique() == 1:
        return pairs
    content = pairs[["query_id", "answer_a", "answer_b", "score_a", "score_b"]].astype(str)
    hashes = pd.util.hash_pandas_object(content, index=False)
    same = hashes.groupby([pairs[name] for name in by]).transform("sum")
    others = [pairs[name] for name in by if name != "experiment"]
    first = pairs["experiment"].groupby([*others, same]).transform("first")
    order = pairs.groupby(by, sort=False).ngroup().sort_values(kind="stable").index
    return pairs.loc[order[(pairs["experiment"] == first)[order]]].reset_index(drop=True)


def format_setting(name: str, value: object) -> str:
    """Formats one value of a condition: "k = 5", "zero-shot (no image)"."""
    if isinstance(value, int):
        return f"{name} = {value}"
    return setting_name(str(value)) if name == "setting" else str(value)


def side_name(side: str, name: str) -> str:
    """The title of a side's column: "A: field-guide-vlm-few"; "A" without a name."""
    return side if name == side else f"{side}: {name}"


def condition_columns(table: pd.DataFrame) -> list[str]:
    """The columns of answers, or of `paired_answers`, that give their condition: those before
    query_id, without draw and sample.
    """
    before = table.columns[: table.columns.get_loc("query_id")]
    return [name for name in before if name not in _REPEATS]


def flips(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `paired_answers` whose score differs, with direction ("n_improved" where it is
    higher in b, "n_worsened" where it is lower). Improved ones come first; each are sorted by
    stratum, then from the largest difference. Two answers that are paired in several draws, since
    their prompts were the same, are one row.
    """
    difference = (pairs["score_b"].astype(float) - pairs["score_a"].astype(float)).fillna(0)
    strata = pairs["stratum"].map(sort_strata(pairs["stratum"]).index)
    order = np.lexsort([-difference.abs(), strata, difference < 0])
    direction = np.where(difference > 0, "n_improved", "n_worsened")
    changed = pairs.assign(direction=direction).iloc[order]
    changed = changed[difference.iloc[order] != 0]
    if {"answer_id_a", "answer_id_b"} <= set(changed):
        by = condition_columns(pairs)
        changed = changed.drop_duplicates([*by, "query_id", "answer_id_a", "answer_id_b"])
    return changed.reset_index(drop=True)


def config_diff(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    choose_a: Choice | None = None,
    choose_b: Choice | None = None,
) -> pd.DataFrame:
    """Compares the configurations of two sides of answers (of `load_answers`, or `add_questions`),
    selected as in `paired_answers`. There is one row per difference: setting, A, B, with full
    texts, and experiment, those that differ so ("" for all); no row where nothing differs.

    Settings are the columns that are compared, the judge and its prompt, the models that endpoints
    report, and the parameters of the notebooks that saved the answers, key by key where they are
    mappings ("decoding.max_new_tokens"). "–" stands for one that a side lacks. Raises as
    `paired_answers`.
    """
    sides, by = _select(a, b, choose_a, choose_b)
    compared = _compared(sides, by)
    if "experiment" in by:
        shared = {*sides[0]["experiment"]} & {*sides[1]["experiment"]}
        sides = [side[side["experiment"].isin(shared)] for side in sides]
    else:
        sides = [side.assign(experiment="") for side in sides]
    configs = [_config(side, compared) for side in sides]
    both = pd.concat(configs, axis=1, keys=["A", "B"]).fillna(ABSENT).replace("", ABSENT)
    differ = both[both["A"] != both["B"]].reset_index()
    rows = differ.groupby(["setting", "A", "B"], sort=False)["experiment"].agg(", ".join)
    every = ", ".join(sides[0]["experiment"].unique())
    return rows.reset_index().replace({"experiment": {every: ""}})


def _config(side: pd.DataFrame, named: Sequence[str]) -> pd.Series:
    """(setting, experiment) → its value as text."""
    found: dict[tuple[str, str], str] = {}
    columns = [name for name in (*named, *_JUDGED) if name in side]
    for experiment, rows in side.groupby("experiment", sort=False):
        texts = {name: sorted({*map(str, rows[name].dropna())} - {""}) for name in columns}
        known = {name: ", ".join(texts[name]) for name in columns}
        saved = rows["parameters"].iloc[0] if "parameters" in rows else ""
        for given in pd.json_normalize(json.loads(saved or "{}")).to_dict("records"):
            known = {str(name): _text(value) for name, value in given.items()} | known
        found |= {(name, str(experiment)): text for name, text in known.items()}
    return pd.Series(found, dtype=object).rename_axis(["setting", "experiment"])


def _text(value: object) -> str:
    if isinstance(value, str):
        return portable_path(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def paired_tests(pairs: pd.DataFrame) -> pd.DataFrame:
    """Paired tests on `paired_answers`, for each condition by stratum and then over all questions.
    Columns: those of the condition, stratum, metric, judge_a, judge_b, a and b (names of the
    sides), baseline (that of a), value_a, value_b (with ci_low_a … ci_high_b), value (b − a),
    ci_low, ci_high, n, n_groups, n_failed, n_improved, n_worsened, p, test, mde, p_holm, verdict.

    Means are over the n questions, in n_groups groups, with a score on both sides; a question's
    draws are averaged first. n_failed counts questions without a score on one side. n_improved and
    n_worsened count questions with a higher and a lower score in b. 95 % intervals are those of
    `ClusterMean` over groups. p is exact (`sign_flip_test`: McNemar's where scores are 0 or 1 and
    questions independent), or that of the interval where test is "t"; p_holm corrects it for all
    rows of the same stratum, as `paired_differences` does: each stratum and all questions are
    families of their own. mde is the minimum detectable difference
    (`minimum_detectable_difference`) at 5 % ÷ rows of the family with a power of 80 %. verdict is
    "higher" or "lower" where the interval excludes 0 and p_holm is below 0.05, else "not
    significant"; "no score" for n = 0; `DIFFERENT_JUDGES` where different judges scored the two
    sides. A stratum that holds all pairs of a condition has no row of its own.
    """
    names, scale = [*condition_columns(pairs), "stratum"], scale_of(pairs)
    cells, both = _by_stratum(pairs, names[:-1]), ["score_a", "score_b"]
    scores = cells[both].astype(float)
    cells[both] = scores.where(scores.notna().all(axis=1))
    queries = cells.groupby([*names, "query_id", "group"], sort=False, dropna=False)
    means = queries[both].mean().reset_index()
    means["score"] = (means["score_b"] - means["score_a"]).round(12)
    rows = cells.assign(different=judges_differ(cells)).groupby(names, sort=False, dropna=False)
    judges = {name: rows[name].unique().str.join(" | ") for name in ("judge_a", "judge_b")}
    table = pd.DataFrame(judges).reset_index()
    table.insert(len(names), "metric", "score")
    a, b = pairs["a"].iloc[0], pairs["b"].iloc[0]
    table = table.assign(a=a, b=b, baseline=a)
    for suffix, ends in (("_a", scale), ("_b", scale), ("", scale.differences)):
        values = means.assign(value=means[f"score{suffix}"])
        values = values.assign(score_min=ends.worst, score_max=ends.best)
        numbers = cluster_means(values, names)[["value", "ci_low", "ci_high"]]
        table = table.join(numbers.add_suffix(suffix))
    family = table.groupby("stratum")["metric"].transform("size")
    parts = means.groupby(names, sort=False, dropna=False)
    levels = zip(parts, LEVEL / family, strict=True)
    table = table.join(pd.DataFrame([_test(part, scale, level) for (_, part), level in levels]))
    table["p_holm"] = holm_by_family(table, ["stratum"])
    outside = (table["ci_low"] > 0) | (table["ci_high"] < 0)
    lasts = outside & (table["p_holm"] < LEVEL)
    table["verdict"] = np.select(
        [rows["different"].any().to_numpy(), table["n"] == 0, ~lasts, table["value"] > 0],
        [DIFFERENT_JUDGES, "no score", "not significant", "higher"],
        "lower",
    )
    return table


def _by_stratum(pairs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The pairs of each condition by stratum, unless one holds all of them, and all of them."""
    parts = []
    for _, rows in pairs.groupby(by, sort=False, dropna=False):
        strata = sort_strata(set(rows["stratum"]) - {NO_STRATUM})
        if len(set(rows["stratum"])) > 1:
            parts += [rows[rows["stratum"] == name] for name in strata]
        parts.append(rows.assign(stratum=ALL))
    return pd.concat(parts, ignore_index=True)


def _test(part: pd.DataFrame, scale: Scale, level: float) -> dict[str, object]:
    """The columns of `paired_tests` from n to mde for the questions of one row, with tests at
    `level`.
    """
    known = part.dropna(subset="score")
    difference, groups = known["score"].to_numpy(float), known["group"]
    test, p = "", math.nan
    mde = p
    if len(known):
        p, test = sign_flip_test(difference, groups), "exact sign-flip test"
        if math.isnan(p):
            p, test = cluster_mean(difference, groups, scale.differences).p_value(), "t"
        mde = minimum_detectable_difference(difference, groups, scale, level=level)
    counts = {"n": len(known), "n_groups": groups.nunique(), "n_failed": len(part) - len(known)}
    changed = {"n_improved": (difference > 0).sum(), "n_worsened": (difference < 0).sum()}
    return {**counts, **changed, "p": p, "test": test, "mde": mde}


def judges_differ(pairs: pd.DataFrame) -> pd.Series:
    """Whether two judges, both known, scored the two answers of each row of `paired_answers`:
    bool.
    """
    a, b = pairs["judge_a"], pairs["judge_b"]
    return (a != "") & (b != "") & (a != b)


def name_paired_tests(differences: pd.DataFrame) -> pd.DataFrame:
    """Adds to `paired_tests` the condition in words, as in "top-k, k = 5" (`condition`), and the
    stratum with the questions that score higher and lower in b, as in "all questions: +8 −3"
    (`changed`).
    """
    names = list(differences.columns[: differences.columns.get_loc("metric")].drop("stratum"))
    varying = [name for name in names if differences[name].nunique() > 1] or names[:1]
    words = [
        ", ".join(filter(None, map(format_setting, varying, row)))
        for row in differences[varying].itertuples(index=False)
    ]
    changed = differences["stratum"] + ": " + _changed(differences)
    return differences.assign(condition=words, changed=changed)


def _changed(differences: pd.DataFrame) -> pd.Series:
    gained, lost = (differences[name].astype(str) for name in ("n_improved", "n_worsened"))
    changed: pd.Series = "+" + gained + " −" + lost
    return changed


def paired_tests_table(differences: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Formats `to_percent(paired_tests(pairs))` as a table, without columns of the condition that
    are the same in all rows.
    """
    names = [*condition_columns(pairs), "stratum"]
    varying = [name for name in names if differences[name].nunique() > 1] or ["stratum"]
    table = differences[varying]
    if "setting" in table:
        table = table.assign(setting=table["setting"].map(setting_name))
    a, b = (side_name(side, pairs[side.lower()].iloc[0]) for side in "AB")
    smallest = differences["mde"].map("{:.1f}".format).replace("nan", ABSENT)
    failed = {"failed": differences["n_failed"]} if differences["n_failed"].any() else {}
    columns = {
        a: ci_cells(differences, suffix="_a"),
        b: ci_cells(differences, suffix="_b"),
        "B − A (percentage points)": ci_cells(differences),
        "n": differences["n"],
        "n_groups": differences["n_groups"],
        **failed,
        "changed (+ / −)": _changed(differences),
        "p": differences["p"].map(format_p) + differences["test"].map({"t": " (t)"}).fillna(""),
        "p (Holm)": differences["p_holm"].map(format_p),
        "minimum detectable difference": smallest,
        "verdict (B against A)": differences["verdict"],
    }
    return table.assign(**columns)
