"""Statements of the Visual-RAG paper and their numbers, from the paper's tables or from our
answers.

Where a statement is vague, `STATEMENTS` has the weakest countable interpretation: "few" is at most
one answer in ten, and "reach", with k "close to 20", is the better of k = 15 and 20 within 3
points, the margin within which the notebooks treat two numbers as the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.estimates import Estimate, estimate
from vrag_kit.analysis.strata import ALL
from vrag_kit.judging.scale import Scale, scale_of
from vrag_kit.papers import statements
from vrag_kit.papers.statements import Statement, load_statements
from vrag_kit.papers.visual_rag.gcue import share_of_benefit
from vrag_kit.papers.visual_rag.published import PAPER_NAMES, data_source
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

STATEMENTS = load_statements("visual_rag")
"""The statements, in the order of the paper."""
TABLE_6_K = 10  # images among which Table 6 has several clues


def statement_scores(results: pd.DataFrame, table: int) -> pd.DataFrame:
    """The scores that statements about a table are checked with, from judged answers or, for Table
    2, from the scores of runs (`score_runs`): the setting "missed" are queries without a clue.

    Names the models as the paper does, and adds value and place: k, or in Table 6 the number of
    clues where they are counted. As there, arms with m clues and distractors are those with 10
    images.
    """
    shares = {"score_min": 0.0, "score_max": 1.0}
    if table == 2:
        hits = results[results["metric"] == "hit"]
        missed = hits.assign(model=hits["retriever"], setting="missed", place=hits["k"])
        return missed.assign(value=(100 - 100 * hits["value"]) / 100, **shares)
    rows = results.assign(place=results["k"], model=results["model"].replace(PAPER_NAMES))
    if table == 6:
        rows["place"] = rows["m"].where(rows["m"] > 0, rows["k"])
        rows = rows[(rows["setting"] != "m_in_k") | (rows["k"] == TABLE_6_K)]
    if table == 8:
        return rows.assign(value=rows["abstained"], **shares)
    return rows.assign(value=rows["score"])


def published_scores(rows: pd.DataFrame, table: int) -> pd.DataFrame:
    """`statement_scores` of the published means of a table, as if of one query."""
    shares = rows["value"] / 100
    rows = rows.assign(value=shares, score=shares, abstained=shares, query_id="", group="")
    return statement_scores(rows, table)


def statement_numbers(statement: Statement, scores: pd.DataFrame) -> dict[str, Estimate]:
    """Computes a statement's number, by name, for each of its models that `scores` has (columns of
    `statement_scores`; draws are averaged): in percent or points, or a ratio.

    Intervals are 95 %, over groups; a single query has none. Those of several numbers of which one
    is meant hold simultaneously (Bonferroni), so the smallest and the largest have a valid interval
    too. A statement about the largest number of all its models needs all of them. gCUE is that at
    λ = 0.5, and NaN unless the interval of A_GT − B is above 0.
    """
    families: dict[str, list[pd.DataFrame]] = {}
    models = [name for name in scores["model"].unique() if name in (statement.of or [name])]
    if "{model}" not in statement.label and len(models) < len(statement.of):
        return {}
    cell = ["query_id", "group", "setting", "place"]
    for setting, model in product(np.atleast_1d(statement.setting), models):
        rows = scores[scores["model"] == model]
        by_query = rows.groupby(cell)["value"].mean().unstack(cell[2:])
        for k, sample in _samples(statement, str(setting), by_query):
            label = statement.label.format(model=model, setting=setting, k=k)
            families.setdefault(label, []).append(sample)
    scale = scale_of(scores)
    if statement.is_difference or statement.metric == "gcue":
        scale = scale.differences
    return {label: _meant(statement, scale, family) for label, family in families.items()}


def _samples(
    statement: Statement, setting: str, scores: pd.DataFrame
) -> Iterator[tuple[int, pd.DataFrame]]:
    """The numbers of a model in `setting`: k, and by query the column value (a score or a
    difference), for gCUE also benefit, that of a clue, of which it is a share.
    """
    first = statement.baseline or setting
    whole: dict[str, pd.Series] = {}
    if statement.metric == "gcue":
        if not {("zero_shot", 0), ("non_clue", 1), ("gt_clue", 1)} <= set(scores):
            return
        scores = scores.sub((scores["zero_shot", 0] + scores["non_clue", 1]) / 2, axis=0)
        whole = {"benefit": scores["gt_clue", 1]}
    ks, others = (sorted(scores.get(arm, pd.DataFrame())) for arm in (setting, first))
    for k in _chosen(statement.k, ks):
        starts: list[float | pd.Series] = [0.0]
        if statement.is_difference:
            among = _chosen(statement.baseline_k or "same", others, k)
            starts = [scores[first, other] for other in among if (first, other) != (setting, k)]
        for start in starts:
            yield k, pd.DataFrame({"value": scores[setting, k] - start, **whole}).dropna()


def _chosen(which: str | Sequence[int], ks: list[int], k: int = 0) -> list[int]:
    """The values of k in `ks` that a statement names, some of them relative to `k`; of a list all,
    or none.
    """
    if not isinstance(which, str):
        return list(which) if set(which) <= set(ks) else []
    named = {"all": ks, "first": ks[:1], "last": ks[-1:], "same": [k] if k in ks else []}
    return {**named, "previous": [each for each in ks if each < k][-1:]}[which]


def _meant(statement: Statement, scale: Scale, family: Sequence[pd.DataFrame]) -> Estimate:
    """The smallest or largest number of a family."""
    level = 1 - 0.05 / len(family)  # Bonferroni
    values = np.array([_estimate(sample, scale, level) for sample in family])
    n = min(map(len, family))
    if statement.over == "max of min":
        values = values.reshape(len(statement.k), -1, 3).min(axis=0)
    meant = values.min(axis=0) if statement.over == "min" else values.max(axis=0)
    return Estimate(float(meant[0]), float(meant[1]), float(meant[2]), n, 0)


def _estimate(sample: pd.DataFrame, scale: Scale, level: float) -> tuple[float, float, float]:
    """The mean, in percent, or the share of the benefit, and the ends of its interval."""
    if "benefit" not in sample:
        groups = sample.index.get_level_values("group").to_numpy()
        found = estimate(sample["value"], groups, scale=scale, level=level)
        return 100 * found.value, 100 * found.ci_low, 100 * found.ci_high
    gained, benefit = sample["value"].mean(), sample["benefit"].mean()
    if len(sample) == 1 and benefit > 0:
        return gained / benefit, np.nan, np.nan
    ratio, _ = share_of_benefit(sample["value"], sample["benefit"], scale, level=level)
    return ratio.value, ratio.ci_low, ratio.ci_high


def check_statements(
    notebook: str, table: pd.DataFrame, benchmark: Benchmark, at: Workspace
) -> Styler:
    """Checks the paper's statements that a notebook can test, one row per statement and model (or
    retriever), by `check_statements` of `papers.statements`.

    `notebook` is its number ("03"), `table` its judged answers, or in 02 the scores of its runs.
    Numbers and ranges are those of `STATEMENTS`, in points; see `statement_numbers`. A statement
    about named models is checked for those in `table`. Results are by stratum and pooled if `table`
    is from `expand_strata`, which matters where effects are opposite. Verdicts are given on the
    paper's own data only, where retrieval is exact, not a sample: the statements are about these
    queries, and retrieval is deterministic. Raises `VragError` if the folder cannot be written.
    """
    strata = table if "stratum" in table else table.assign(stratum=ALL)
    source = data_source(benchmark)
    rows = []
    about = [each for each in STATEMENTS if each.notebook == notebook]
    for statement, (stratum, part) in product(about, strata.groupby("stratum", sort=False)):
        scores = statement_scores(part, int(statement.table))
        for system, number in statement_numbers(statement, scores).items():
            if statement.table == 2 and source["data_version"]:
                number = number._replace(ci_low=number.value, ci_high=number.value)
            row = {"statement_id": statement.name, "system": system, "stratum": stratum}
            rows.append(row | source | number._asdict())
    return statements.check_statements("visual_rag", notebook, pd.DataFrame(rows), at)
