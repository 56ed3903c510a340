"""Means of claim metrics over answers, each with its n, its interval over groups, and counts of
what is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.claims.metrics import NEEDS, evidence_metrics, ragchecker_metrics
from vrag_kit.claims.verdicts import ClaimVerdicts, EntailmentLabel
from vrag_kit.errors import VragError

RAGCHECKER, MM_RAGCHECKER = "ragchecker", "mm_ragchecker"
METRIC = ["family", "metric", "modality"]
"""The columns that name a metric."""
COUNTS = ["n_failed", "n_undefined", "n_unparsed"]
BOUNDS = {"if_neutral": EntailmentLabel.NEUTRAL, "if_entailed": EntailmentLabel.ENTAILMENT}
"""Column → the label in place of every missing verdict."""
_ENDS = ["score_min", "score_max"]


def metric_rows(
    sheet: ClaimVerdicts, *, empty: str = "nan"
) -> list[tuple[str, str, str, float, int]]:
    """Every metric of a sheet: (family, metric, modality, value, unknown). The family "ragchecker",
    whose modality is "all", comes before "mm_ragchecker". unknown counts claims or items left out,
    or missing verdicts of RAGChecker's matrices. `empty` applies to RAGChecker alone, see
    `ragchecker_metrics`.
    """
    rows = []
    for metric, value in ragchecker_metrics(sheet, empty=empty).items():
        missing = sum(sheet.n_missing(matrix) for matrix in NEEDS[metric])
        rows.append((RAGCHECKER, metric, "all", value, missing))
    for (metric, modality), found in evidence_metrics(sheet).items():
        rows.append((MM_RAGCHECKER, metric, modality, found.value, found.unknown))
    return rows


def claim_values(
    checked: pd.DataFrame, *, by: Sequence[str] = ARM, empty: str = "nan"
) -> pd.DataFrame:
    """One row per query, arm and metric, in the form of `cluster_means` and `paired_differences`:
    `by`, query_id, group, family, metric, modality, value, score_min, score_max, if_neutral,
    if_entailed, and n_failed, n_undefined, n_unparsed.

    `checked` has the columns `by`, query_id, group and sheet, as from `check_answers`. The
    value is the mean over the draws that have one, NaN when none has. n_failed counts
    answers without a sheet, n_undefined answers whose sheet leaves the metric without a
    value, n_unparsed the claims or items that are left out of it because a verdict is
    missing. if_neutral and if_entailed are the value if every missing verdict were
    NEUTRAL, or ENTAILMENT. They bound it in precision, recall, f1, claim_recall,
    context_precision, faithfulness, hallucination, entailed_share, neutral_share,
    answer_claim_recall and evidence_utilization; other metrics may lie outside of both.
    Differences lie in [−1, 1], all else in [0, 1]. Raises `VragError` for a missing
    column.
    """
    keys = list(dict.fromkeys([*by, "query_id", "group"]))
    if lacking := [name for name in [*keys, "sheet"] if name not in checked]:
        raise VragError(
            f"claim_values: the table has no column {lacking[0]!r}; expected the columns of"
            " `check_answers`."
        )
    none = [(*metric, *[float("nan")] * 3, 0) for metric in _names(empty)]
    rows: list[tuple[object, ...]] = []
    names = checked[keys].itertuples(index=False, name=None)
    for name, sheet in zip(names, checked["sheet"], strict=True):
        failed = not isinstance(sheet, ClaimVerdicts)
        for row in none if failed else _bounded(sheet, empty):
            undefined = not failed and row[3] != row[3]
            rows.append((*name, *row, failed, undefined))
    columns = [*keys, *METRIC, "value", *BOUNDS, "n_unparsed", "n_failed", "n_undefined"]
    table = pd.DataFrame(rows, columns=columns)
    queries = table.groupby([*keys, *METRIC], sort=False, dropna=False)
    means = {name: (name, "mean") for name in ("value", *BOUNDS)}
    sums = {name: (name, "sum") for name in COUNTS}
    values = queries.agg(**means, **sums).reset_index()
    gaps = values["metric"].str.endswith("_gap")
    values = values.assign(score_min=-1.0 * gaps, score_max=1.0)
    return values[[*keys, *METRIC, "value", *_ENDS, *BOUNDS, *COUNTS]]


def claim_means(
    checked: pd.DataFrame, *, by: Sequence[str] = ARM, empty: str = "nan"
) -> pd.DataFrame:
    """Mean of every claim metric: `by`, family, metric, modality, value, ci_low, ci_high, n,
    n_failed, n_undefined, n_unparsed, if_neutral, if_entailed, n_claims.

    The mean is over queries, whose draws are averaged first, the interval over groups; n
    counts queries with a value. The counts are those of `claim_values`, summed, and
    if_neutral and if_entailed its means, over all answers with a sheet; n_claims is the
    mean number of claims in an answer: below two, shares of claims mean little.
    """
    values = claim_values(checked, by=by, empty=empty)
    keys = [*by, *METRIC]
    means = cluster_means(values, keys).drop(columns="n_failed")
    groups = values.groupby(keys, sort=False, dropna=False)
    more = groups.agg(dict.fromkeys(COUNTS, "sum") | dict.fromkeys(BOUNDS, "mean"))
    table = means.merge(more.reset_index(), on=keys)
    sizes = [
        len(each.claims) if isinstance(each, ClaimVerdicts) else None for each in checked["sheet"]
    ]
    sized = checked.assign(n_claims=pd.Series(sizes, index=checked.index, dtype=float))
    if not by:
        return table.assign(n_claims=sized["n_claims"].mean())
    each = sized.groupby(list(by), sort=False, dropna=False)["n_claims"].mean().reset_index()
    return table.merge(each, on=list(by))


def _bounded(sheet: ClaimVerdicts, empty: str) -> list[tuple[object, ...]]:
    """(family, metric, modality, value, if_neutral, if_entailed, unknown)."""
    rows = metric_rows(sheet, empty=empty)
    if not sheet.unread:
        return [(*row[:4], row[3], row[3], row[4]) for row in rows]
    ends = [metric_rows(sheet.fill_missing(relation), empty=empty) for relation in BOUNDS.values()]
    pairs = zip(rows, *ends, strict=True)
    return [(*row[:4], low[3], high[3], row[4]) for row, low, high in pairs]


def _names(empty: str) -> list[tuple[str, str, str]]:
    """Every metric, as an answer without anything has them."""
    nothing = ClaimVerdicts(
        query_id="",
        claims=(),
        gold_claims=(),
        items=(),
        accepted=(),
        recalled=(),
        on_claims=(),
        on_gold=(),
    )
    return [row[:3] for row in metric_rows(nothing, empty=empty)]
