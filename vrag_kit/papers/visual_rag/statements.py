"""Statements of the Visual-RAG paper and their numbers, from the paper's tables or from our
answers.

Where a statement is vague, `STATEMENTS` has the weakest countable interpretation: "few" is at most
one answer in ten, and "reach", with k "close to 20", is the better of k = 15 and 20 within 3
points, the margin within which the notebooks treat two numbers as the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.estimates import estimate
from vrag_kit.analysis.strata import ALL
from vrag_kit.judging.scale import SHARES, Scale, scale_of
from vrag_kit.papers.statements import (
    DataSource,
    Statement,
    load_statements,
    save_statement_checks,
    show_statements,
)
from vrag_kit.papers.visual_rag.gcue import share_of_benefit
from vrag_kit.papers.visual_rag.published import PAPER_NAMES, data_source
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

PAPER = "visual_rag"
STATEMENTS = load_statements(PAPER)
"""The statements, in the order of the paper."""
TABLE_6_K = 10  # images among which Table 6 has several clues


class Number(NamedTuple):
    """A statement's number with its interval; in percent or points, or a ratio."""

    value: float
    ci_low: float
    ci_high: float
    n: int  # queries


@dataclass(frozen=True, slots=True)
class Arms:
    """Scores of models (or retrievers), by their names in the paper: model, setting, place (k; in
    Table 6 the number of clues where they are counted), query_id, group, value; draws are averaged.
    The interval of an `exact` number is the number itself.
    """

    scores: pd.DataFrame
    scale: Scale
    exact: bool = False


def _places(rows: pd.DataFrame, table: int) -> pd.Series:
    return rows["m"].where(rows["m"] > 0, rows["k"]) if table == 6 else rows["k"]


def published_arms(rows: pd.DataFrame, table: int) -> Arms:
    """The published means `rows` of Table 2 (the setting "missed" only), 3, 6, 7 or 8 as arms."""
    if table == 2:
        rows = rows[rows["metric"] == "hit"]
        rows = rows.assign(model=rows["retriever"], setting="missed", value=100 - rows["value"])
    places, shares = _places(rows, table), rows["value"] / 100
    rows = rows.assign(place=places, value=shares, query_id="", group="")
    return Arms(rows, SHARES, exact=True)


def judged_arms(judged: pd.DataFrame, table: int) -> Arms:
    """The arms of Table 3, 6, 7 or 8 in judged answers. As in Table 6, arms with m clues and
    distractors are those with 10 images.
    """
    if table == 6:
        judged = judged[(judged["setting"] != "m_in_k") | (judged["k"] == TABLE_6_K)]
    values = judged["abstained" if table == 8 else "score"]
    named = judged["model"].replace(PAPER_NAMES)
    rows = judged.assign(model=named, place=_places(judged, table), value=values)
    return Arms(rows, SHARES if table == 8 else scale_of(judged))


def retrieval_arms(scores: pd.DataFrame, *, same_data: bool = False) -> Arms:
    """Queries without a clue (the setting "missed") at every k, from the scores of runs
    (`score_runs`). Their share is exact on the paper's own queries (`same_data`): the statements
    are about these, and retrieval is deterministic.
    """
    hits = scores[scores["metric"] == "hit"]
    missed = hits.assign(model=hits["retriever"], setting="missed", place=hits["k"])
    return Arms(missed.assign(value=1 - hits["value"]), SHARES, exact=same_data)


def statement_numbers(statement: Statement, arms: Arms) -> dict[str, Number]:
    """Computes a statement's number, by name, for each of its models that `arms` has.

    Intervals are 95 %, over groups. Those of several numbers of which one is meant hold
    simultaneously (Bonferroni), so the smallest and the largest have a valid interval too. A
    statement about the largest number of all its models needs all of them. gCUE is that at λ = 0.5,
    and NaN unless the interval of A_GT − B is above 0.
    """
    families: dict[str, list[_Sample]] = {}
    models = [name for name in arms.scores["model"].unique() if name in (statement.of or [name])]
    if "{model}" not in statement.label and len(models) < len(statement.of):
        return {}
    cell = ["query_id", "group", "setting", "place"]
    for setting, model in product(np.atleast_1d(statement.setting), models):
        rows = arms.scores[arms.scores["model"] == model]
        scores = rows.groupby(cell)["value"].mean().unstack(cell[2:])
        for k, values, whole in _samples(statement, str(setting), scores):
            label = statement.label.format(model=model, setting=setting, k=k)
            families.setdefault(label, []).append((values, whole))
    return {label: _meant(statement, arms, family) for label, family in families.items()}


_Sample = tuple[pd.Series, pd.Series | None]
"""Values by query, and the benefit of a clue of which they are a share, or None."""


def _samples(
    statement: Statement, setting: str, scores: pd.DataFrame
) -> Iterator[tuple[int, pd.Series, pd.Series | None]]:
    """k, values by query and benefit of each number (a score or a difference) of a model in
    `setting`.
    """
    whole, first = None, statement.baseline or setting
    if statement.metric == "gcue":
        if not {("zero_shot", 0), ("non_clue", 1), ("gt_clue", 1)} <= set(scores):
            return
        scores = scores.sub((scores["zero_shot", 0] + scores["non_clue", 1]) / 2, axis=0)
        whole = scores["gt_clue", 1]
    ks, others = (sorted(scores.get(arm, pd.DataFrame())) for arm in (setting, first))
    if not set(statement.needs) <= set(ks):
        return
    for k in _chosen(statement.k, ks):
        if not statement.is_difference:
            yield k, scores[setting, k], whole
            continue
        for other in _chosen(statement.baseline_k or "same", others, k):
            if (first, other) != (setting, k):
                yield k, scores[setting, k] - scores[first, other], whole


def _chosen(which: str | Sequence[int], ks: list[int], k: int = 0) -> list[int]:
    """The values of k in `ks` that a statement names, some of them relative to `k`."""
    if not isinstance(which, str):
        return [each for each in which if each in ks]
    named = {"all": ks, "first": ks[:1], "last": ks[-1:], "same": [k] if k in ks else []}
    return {**named, "previous": [each for each in ks if each < k][-1:]}[which]


def _meant(statement: Statement, arms: Arms, family: Sequence[_Sample]) -> Number:
    """The smallest or largest number of a family."""
    scale = arms.scale.differences if statement.is_difference else arms.scale
    level = 1 - 0.05 / len(family)  # Bonferroni
    rows = np.array([_estimate(*sample, arms, scale, level) for sample in family])
    values, n = rows[:, :3], int(rows[:, 3].min())
    if statement.over == "max of min":
        values = values.reshape(len(statement.k), -1, 3).min(axis=0)
    meant = values.min(axis=0) if statement.over == "min" else values.max(axis=0)
    return Number(float(meant[0]), float(meant[1]), float(meant[2]), n)


def _estimate(
    values: pd.Series, whole: pd.Series | None, arms: Arms, scale: Scale, level: float
) -> tuple[float, float, float, float]:
    """(mean, ends of its interval, n) of `values`, in percent, or of their share of `whole`."""
    if arms.exact:
        share = 100 * values.mean()
        if whole is not None:
            share = values.mean() / whole.mean() if whole.mean() > 0 else np.nan
        return share, share, share, len(values)
    if whole is not None:
        both = pd.DataFrame({"gained": values, "benefit": whole}).dropna()
        differences = arms.scale.differences
        ratio, benefit = share_of_benefit(both["gained"], both["benefit"], differences, level=level)
        return *ratio, benefit.n
    known = values.dropna()
    groups = known.index.get_level_values("group").to_numpy()
    found = estimate(known, groups, scale=scale, level=level)
    return 100 * found.value, 100 * found.ci_low, 100 * found.ci_high, found.n


def check_statements(
    notebook: str, table: pd.DataFrame, benchmark: Benchmark, at: Workspace
) -> Styler:
    """Checks the paper's statements that a notebook can test, saves them (`save_checks`) below
    `folder`, its `figures_dir`, and formats them for display.
    """
    return show_statements(save_checks(notebook, table, data_source(benchmark), at))


def save_checks(
    notebook: str, table: pd.DataFrame, source: DataSource, at: Workspace
) -> pd.DataFrame:
    """Saves one row per statement and model (or retriever) as NN_claims.csv below `folder`, and
    returns them. Columns are `STATEMENT_COLUMNS` of `papers.statements`.

    `notebook` is its number ("03"), `table` its judged answers, or in 02 the scores of its runs.
    Numbers and ranges are those of `STATEMENTS`, in points; see `statement_numbers`. A statement
    about named models is checked for those in `table`. Results are by stratum and pooled if `table`
    is from `expand_strata`, which matters where effects are opposite. Verdicts are given on the
    paper's own data only (see `save_statement_checks`), where retrieval is exact, not a sample.
    Raises `VragError` if the folder cannot be written.
    """
    strata = table if "stratum" in table else table.assign(stratum=ALL)
    statements = [each for each in STATEMENTS if each.notebook == notebook]
    rows = []
    for statement, (stratum, part) in product(statements, strata.groupby("stratum", sort=False)):
        if statement.table == 2:
            arms = retrieval_arms(part, same_data=bool(source.edition))
        else:
            arms = judged_arms(part, int(statement.table))
        for system, number in statement_numbers(statement, arms).items():
            row = {"statement_id": statement.name, "system": system, "stratum": stratum}
            rows.append(row | number._asdict())
    return save_statement_checks(PAPER, notebook, pd.DataFrame(rows), source, at)
