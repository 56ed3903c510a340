"""MM-RAGChecker's equations 1 to 11 under their published names: their text, what follows from
them, and their values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.claims.metrics import (
    MetricValue,
    any_entails,
    combined_labels,
    difference,
    evidence_metrics,
    share,
)
from vrag_kit.claims.verdicts import VERDICT_SCORES, ClaimVerdicts, EntailmentLabel

_EQUATIONS: list[dict[str, str]] = json.loads(
    Path(__file__).with_name("equations.json").read_text(encoding="utf-8")
)["equations"]
IN_PLACE = {
    "delta_cr": ("claim_recall_gap", "all"),
    "v_hr": ("error_support", "image"),
    "d_hr": ("error_support", "text"),
}
"""Maps the name of a metric that is 0 by its equation to our metric of its possible meaning."""
_GAPS = ("delta_cr", "delta_cp")
_ALWAYS_0 = ["self_knowledge", "delta_cr", "v_hr", "d_hr"]
"""Metrics that are 0 wherever they have a value."""


def definitions_table() -> pd.DataFrame:
    """Returns the equations as text, one per row (equation, published name): as published, what
    follows, the metric of `evidence_metrics` that is the same or in its place, and RAGChecker's of
    that name; "" if there is none.
    """
    table = pd.DataFrame(_EQUATIONS).set_index(["equation", "name"])
    table.columns = pd.Index(["as printed", "what follows", "here", "RAGChecker's of that name"])
    return table


def paper_equations(sheet: ClaimVerdicts) -> dict[str, MetricValue]:
    """Maps each published name to its equation's value for an answer, over all evidence shown.
    Values are in [0, 1], delta_cr and delta_cp in [−1, 1]. NaN for a division by 0, and if no
    verdict that it needs is known.

    Three are 0 for every sheet, and so is delta_cr: see `definitions_table`. MRAG-Suite, section
    4.2.
    """
    metrics = evidence_metrics(sheet)
    images, texts = sheet.is_of("image"), sheet.is_of("text")
    verdicts = sheet.on_claims if sheet.items else sheet.on_claims[:0]
    labels = combined_labels(verdicts)
    entailed = verdicts[labels == VERDICT_SCORES[EntailmentLabel.ENTAILMENT]]
    neutral = verdicts[labels == VERDICT_SCORES[EntailmentLabel.NEUTRAL]]
    recall, read = metrics["answer_claim_recall", "all"], metrics["evidence_utilization", "text"]
    return {
        "hallucination": metrics["neutral_share", "all"],
        "faithfulness": metrics["entailed_share", "all"],
        "claim_recall": recall,
        "context_precision": metrics["evidence_utilization", "all"],
        "self_knowledge": share(1 - any_entails(entailed, axis=1)),
        "delta_cr": difference(recall, recall),
        "delta_cp": metrics["evidence_utilization_gap", "all"],
        "vis_hit_at_k": metrics["evidence_utilization", "image"],
        "txt_miss_rate": MetricValue(1 - read.value, read.unknown),
        "cma": metrics["cross_modal_agreement", "all"],
        "v_hr": share(any_entails(neutral[:, images], axis=1)),
        "d_hr": share(any_entails(neutral[:, texts], axis=1)),
    }


def equation_means(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Averages every equation over answers with a value, with an interval over groups. Columns:
    `by`, metric (the published name), value, ci_low, ci_high, n, n_failed (queries without a
    value). A metric that is always 0 has the interval [0, 0].

    `checked` has the columns `by`, query_id, group and sheet; a query's draws are
    averaged first.
    """
    keys = list(dict.fromkeys([*by, "query_id", "group"]))
    rows: list[tuple[object, ...]] = []
    names = checked[keys].itertuples(index=False, name=None)
    for name, sheet in zip(names, checked["sheet"], strict=True):
        found = paper_equations(sheet) if isinstance(sheet, ClaimVerdicts) else {}
        rows += [(*name, metric, each.value) for metric, each in found.items()]
    table = pd.DataFrame(rows, columns=[*keys, "metric", "value"])
    values = table.groupby([*keys, "metric"], sort=False)["value"].mean().reset_index()
    lowest = -1.0 * values["metric"].isin(_GAPS)
    means = cluster_means(values.assign(score_min=lowest, score_max=1.0), [*by, "metric"])
    surely = means["metric"].isin(_ALWAYS_0) & (means["n"] > 0)
    means.loc[surely, ["ci_low", "ci_high"]] = 0.0
    return means
