"""MM-RAGChecker's equations 1 to 11 under the names that the paper prints: their words,
what follows from them, and what they give.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.claims import ClaimSheet
from vrag_kit.analysis.claims_evidence import evidence_metrics, label_of
from vrag_kit.analysis.claims_shares import Share, gap, share, some_entails
from vrag_kit.analysis.intervals import summarise
from vrag_kit.judging.claims import Relation

_EQUATIONS: list[dict[str, str]] = json.loads(
    Path(__file__).with_name("equations.json").read_text(encoding="utf-8")
)["equations"]
IN_PLACE = {
    "delta_cr": ("claim_recall_gap", "all"),
    "v_hr": ("error_support", "image"),
    "d_hr": ("error_support", "text"),
}
"""Printed name of what is 0 by its equation → the metric of ours that it may mean."""
_GAPS = ("delta_cr", "delta_cp")
_ALWAYS_0 = ["self_knowledge", "delta_cr", "v_hr", "d_hr"]
"""Where they have a value."""


def definitions_table() -> pd.DataFrame:
    """The equations in words, one a row (equation, printed name): as printed, what
    follows, the metric of `evidence_metrics` that is the same or in its place, and
    RAGChecker's of that name; "" where there is none.
    """
    table = pd.DataFrame(_EQUATIONS).set_index(["equation", "name"])
    table.columns = pd.Index(["as printed", "what follows", "here", "RAGChecker's of that name"])
    return table


def printed_equations(sheet: ClaimSheet) -> dict[str, Share]:
    """Printed name → what its equation gives for an answer, over all items shown; in
    [0, 1], delta_cr and delta_cp in [−1, 1]. NaN where it divides by 0, and where no
    verdict is known that it needs.

    Three are 0 whatever the sheet holds, and so is delta_cr: see `definitions_table`.
    MRAG-Suite, section 4.2.
    """
    metrics = evidence_metrics(sheet)
    rows = sheet.on_claims if sheet.items else ()
    labelled = [(label_of(row), row) for row in rows]
    entailed = [row for label, row in labelled if label is Relation.ENTAILMENT]
    neutral = [row for label, row in labelled if label is Relation.NEUTRAL]
    images, texts = sheet.shown("image"), sheet.shown("text")
    every = (*images, *texts)
    recall, read = metrics["answer_claim_recall", "all"], metrics["evidence_used", "text"]
    return {
        "hallucination": metrics["neutral_share", "all"],
        "faithfulness": metrics["entailed_share", "all"],
        "claim_recall": recall,
        "context_precision": metrics["evidence_used", "all"],
        "self_knowledge": share([not some_entails(row, every) for row in entailed]),
        "delta_cr": gap(recall, recall),
        "delta_cp": metrics["evidence_used_gap", "all"],
        "vis_hit_at_k": metrics["evidence_used", "image"],
        "txt_miss_rate": Share(1 - read.value, read.n, read.unknown),
        "cma": metrics["cross_modal_agreement", "all"],
        "v_hr": share([some_entails(row, images) for row in neutral]),
        "d_hr": share([some_entails(row, texts) for row in neutral]),
    }


def equation_means(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Mean of every equation over answers that have a value, with its interval over
    groups: `by`, metric (the printed name), value, ci_low, ci_high, n, n_failed (queries
    without a value). What can be nothing but 0 has the interval [0, 0].

    `checked` has the columns `by`, query_id, group and sheet; a query's draws are
    averaged first.
    """
    keys = list(dict.fromkeys([*by, "query_id", "group"]))
    rows: list[tuple[object, ...]] = []
    names = checked[keys].itertuples(index=False, name=None)
    for name, sheet in zip(names, checked["sheet"], strict=True):
        found = printed_equations(sheet) if isinstance(sheet, ClaimSheet) else {}
        rows += [(*name, metric, each.value) for metric, each in found.items()]
    table = pd.DataFrame(rows, columns=[*keys, "metric", "value"])
    values = table.groupby([*keys, "metric"], sort=False)["value"].mean().reset_index()
    lowest = -1.0 * values["metric"].isin(_GAPS)
    means = summarise(values.assign(worst=lowest, best=1.0), [*by, "metric"])
    surely = means["metric"].isin(_ALWAYS_0) & (means["n"] > 0)
    means.loc[surely, ["ci_low", "ci_high"]] = 0.0
    return means
