"""Means of claim metrics over answers, each with its n, its interval over groups, and counts of
what is left out; over all evidence, and over images or texts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.claims.metrics import (
    GROUPS,
    SHARES_OF_CLAIMS,
    count_missing,
    evidence_metrics,
    ragchecker_metrics,
)
from vrag_kit.claims.verdicts import MODALITIES, ClaimVerdicts, EntailmentLabel
from vrag_kit.judging.scale import require_columns

RAGCHECKER, MM_RAGCHECKER = "ragchecker", "mm_ragchecker"
METRIC = ["family", "metric", "modality"]
"""The columns that name a metric."""
COUNTS = ["n_failed", "n_undefined", "n_unparsed"]
BOUNDS = {"if_neutral": EntailmentLabel.NEUTRAL, "if_entailed": EntailmentLabel.ENTAILMENT}
"""Column → the label in place of every missing verdict."""
_NO_CLAIMS = ClaimVerdicts(
    query_id="", claims=(), gold_claims=(), items=(), verdicts=np.empty((0, 1))
)
_BY_MODALITY = [
    *GROUPS["retriever_metrics"],
    *GROUPS["generator_metrics"],
    *SHARES_OF_CLAIMS,
    "conflicted_share",
]
"""Metrics over all evidence that can be restricted to one modality; others have a modality, or use
no evidence.
"""


def metric_rows(
    sheet: ClaimVerdicts, *, empty: str = "nan"
) -> list[tuple[str, str, str, float, int]]:
    """Every metric of a sheet: (family, metric, modality, value, unknown). The family "ragchecker",
    whose modality is "all", comes before "mm_ragchecker". unknown counts claims or items left out,
    or missing verdicts that a metric of RAGChecker needs. `empty` applies to RAGChecker alone, see
    `ragchecker_metrics`.
    """
    rows = []
    for metric, value in ragchecker_metrics(sheet, empty=empty).items():
        rows.append((RAGCHECKER, metric, "all", value, count_missing(sheet, metric)))
    for (metric, modality), found in evidence_metrics(sheet).items():
        rows.append((MM_RAGCHECKER, metric, modality, found.value, found.unknown))
    return rows


def answer_values(
    checked: pd.DataFrame, keys: Sequence[str], *, empty: str = "nan"
) -> pd.DataFrame:
    """One row per answer and metric: the columns `keys` of `checked`, family, metric, modality,
    value, n_unparsed, if_neutral, if_entailed, n_failed and n_undefined, as in `claim_values`.
    """
    rows: list[tuple[object, ...]] = []
    names = checked[list(keys)].itertuples(index=False, name=None)
    for name, sheet in zip(names, checked["sheet"], strict=True):
        failed = not isinstance(sheet, ClaimVerdicts)
        known, nothing = (_NO_CLAIMS, "nan") if failed else (sheet, empty)
        values = metric_rows(known, empty=nothing)
        filled = map(known.fill_missing, BOUNDS.values() if known.n_missing else ())
        ends = [metric_rows(each, empty=nothing) for each in filled] or [values, values]
        for row, low, high in zip(values, *ends, strict=True):
            rows.append((*name, *row, low[3], high[3], failed))
    columns = [*keys, *METRIC, "value", "n_unparsed", *BOUNDS, "n_failed"]
    table = pd.DataFrame(rows, columns=columns).astype({"n_failed": bool})
    return table.assign(n_undefined=table["value"].isna() & ~table["n_failed"])


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
    require_columns(checked, [*keys, "sheet"], "claim_values")
    table = answer_values(checked, keys, empty=empty)
    queries = table.groupby([*keys, *METRIC], sort=False, dropna=False)
    means = dict.fromkeys(["value", *BOUNDS], "mean")
    values = queries.agg(means | dict.fromkeys(COUNTS, "sum")).reset_index()
    values["score_min"] = -1.0 * values["metric"].str.endswith("_gap")
    values["score_max"] = 1.0
    return values[[*keys, *METRIC, "value", "score_min", "score_max", *BOUNDS, *COUNTS]]


def claim_means(
    checked: pd.DataFrame, *, by: Sequence[str] = ARM, empty: str = "nan"
) -> pd.DataFrame:
    """Mean of every claim metric: `by` (at least one column), family, metric, modality, value,
    ci_low, ci_high, n, n_failed, n_undefined, n_unparsed, if_neutral, if_entailed, n_claims.

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
    sizes = checked["sheet"].map(lambda sheet: len(sheet.claims), na_action="ignore")
    sized = checked[list(by)].assign(n_claims=sizes.astype(float))
    n_claims = sized.groupby(list(by), sort=False, dropna=False).mean()
    return means.merge(more.reset_index(), on=keys).merge(n_claims.reset_index(), on=list(by))


def claim_means_by_modality(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """The table of `claim_means`, with every evidence metric also over images alone and over texts
    alone (modality "image" and "text").

    Over one modality an answer is evaluated as if it had been shown that alone, as MRAG-Suite runs
    RAGChecker once over texts and once over images. Answers without evidence of a modality are left
    out of it, and counted nowhere.
    """
    return add_modalities(claim_means, checked, by=by)


def add_modalities(
    means: Callable[..., pd.DataFrame], *tables: pd.DataFrame, by: Sequence[str]
) -> pd.DataFrame:
    """The table that `means` makes of tables with sheets, and what it makes of the same over each
    modality alone.
    """
    found = [means(*tables, by=by)]
    for modality in MODALITIES:
        parts = [_restricted(table, modality) for table in tables]
        if parts[0]["sheet"].notna().any():
            table = means(*parts, by=by)
            table = table[table["metric"].isin(_BY_MODALITY) & (table["modality"] == "all")]
            found.append(table.assign(modality=modality))
    return pd.concat(found, ignore_index=True).drop_duplicates([*by, *METRIC], ignore_index=True)


def _restricted(table: pd.DataFrame, modality: str) -> pd.DataFrame:
    """The answers that were shown an item of a modality, and failed ones; with sheets over that
    modality alone.
    """
    restrict = methodcaller("restrict_to_modality", modality)
    for name in table.columns.intersection(["sheet", "true_sheet"]):
        table = table.assign(**{name: table[name].map(restrict, na_action="ignore")})
    return table[[pd.isna(sheet) or bool(sheet.items) for sheet in table["sheet"]]]
