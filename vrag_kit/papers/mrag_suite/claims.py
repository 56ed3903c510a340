"""Claim metrics in the modes of evidence: published definitions, confusion of the checker, and
differences between modes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.means import to_percent
from vrag_kit.claims.label_agreement import (
    compare_label_sources,
    verdict_confusion_matrix,
    verdict_pairs,
)
from vrag_kit.claims.means import METRIC, MM_RAGCHECKER, RAGCHECKER, claim_values
from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import GT_ONLY, GT_PLUS_DISTRACTORS, MODES
from vrag_kit.papers.mrag_suite.modes import drop_same_documents, training_strata
from vrag_kit.types import Benchmark

CLAIM_METRICS = {
    (MM_RAGCHECKER, "claim_recall"): "claim recall",
    (MM_RAGCHECKER, "evidence_utilization"): "evidence utilization",
    (MM_RAGCHECKER, "entailed_share"): "faithfulness",
    (RAGCHECKER, "hallucination"): "hallucination (RAGChecker)",
    (MM_RAGCHECKER, "neutral_share"): "hallucination (MM-RAGChecker, eq. 1)",
}
"""Compared metrics: (family, metric) → name. Claim recall and faithfulness are RAGChecker's too;
for an unparsed verdict this family excludes single claims, not answers.
"""


def metric_names(table: pd.DataFrame) -> pd.Series:
    """Returns the name in `CLAIM_METRICS` of each row (family, metric); NaN if it has none."""
    names = pd.MultiIndex.from_frame(table[["family", "metric"]]).map(CLAIM_METRICS)
    return pd.Series(names, table.index, dtype=object)


def example_answer(checked: pd.DataFrame) -> pd.Series:
    """Returns the answer of two to four claims with the most kinds of verdicts, the first with gold
    evidence and distractors if any.
    """
    sheets = checked.dropna(subset="sheet")
    kinds = sheets["sheet"].map(
        lambda sheet: len(np.unique(sheet.on_claims)) if 1 < len(sheet.claims) <= 4 else 0
    )
    mixed = kinds.where(sheets["setting"] == GT_PLUS_DISTRACTORS, 0)
    best = mixed if mixed.any() else kinds
    return sheets.iloc[int(best.to_numpy().argmax())]


_KEYS = ["dataset", "metric", "model"]


def mode_means(
    checked: pd.DataFrame,
    labelled: pd.DataFrame,
    suite: Mapping[str, Benchmark],
    models: Sequence[Entry],
    fixed: pd.DataFrame,
) -> pd.DataFrame:
    """Computes `compare_label_sources` of `checked` and its `labelled` sample, in percent, by mode
    and stratum, with the column measure (`metric_names`) and the column by_construction: whether
    the true labels fix the value for any answer. Then nothing is estimated: the interval is the
    value.

    `fixed` has dataset, setting, family, metric, modality and value, as the synthetic suite's
    `fixed_means` gives them; without rows nothing is fixed. A mean that differs from its row is not
    fixed.
    """
    strata = training_strata(checked, suite, models, every_pool=True)
    known = training_strata(labelled, suite, models, every_pool=True)
    means = compare_label_sources(strata, known, by=["dataset", "model", "setting", "stratum"])
    keys = ["dataset", "setting", *METRIC]
    always = means[keys].merge(fixed, how="left", on=keys)["value"].to_numpy(float)
    is_fixed = (means["label_source"] == "true") & np.isclose(means["value"], always)
    return to_percent(_fix(means.assign(measure=metric_names(means)), is_fixed))


def _fix(table: pd.DataFrame, is_fixed: pd.Series) -> pd.DataFrame:
    """The table with by_construction, and no width of the intervals that are fixed."""
    ends = {end: table[end].mask(is_fixed, table["value"]) for end in ("ci_low", "ci_high")}
    return table.assign(**ends, by_construction=is_fixed)


def confusion_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts verdicts by mode and kind of evidence: setting, evidence_kind, true_label,
    checker_label ("unparsed" too), n, which may be 0. `pairs` are labelled answers with the column
    setting, as from `add_human_verdicts`.
    """
    tables = []
    for mode, kind in product(MODES, ("image", "text", "answer")):
        verdicts = verdict_pairs(pairs[pairs["setting"] == mode])
        matrix = verdict_confusion_matrix(verdicts[verdicts["evidence_kind"] == kind])
        counts = matrix.melt(ignore_index=False, value_name="n").reset_index()
        tables.append(counts.assign(setting=mode, evidence_kind=kind))
    table = pd.concat(tables, ignore_index=True)
    return table[["setting", "evidence_kind", "true_label", "checker_label", "n"]]


def mode_contrasts(checked: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """Computes the differences of both other modes from gold evidence alone, for every one of
    `CLAIM_METRICS`, on the questions with a value in both modes, in points. Columns: setting,
    baseline, dataset, metric, model, stratum, value, ci_low, ci_high, n, n_failed (questions
    without a value in one of them), p, by_construction, p_holm, over the rows of a stratum that are
    not fixed, label_source ("true" if `fixed` has rows, else "checker"), unit.

    `checked` is a table of `training_strata`; its column sheet has the verdicts. A question is
    excluded from the change to a mode that shows the same evidence as gold alone, as where there is
    no room for distractors. Rows without any question are dropped.

    A change is fixed if both of its means are, by `fixed` (`mode_means`), which must have no rows
    for labels that are not true: it is no hypothesis, and has no p.
    """
    answers = drop_same_documents(checked, GT_ONLY)
    values = claim_values(answers, by=["dataset", "model", "setting", "stratum"])
    values = values.assign(metric=metric_names(values)).dropna(subset="metric")
    values = values[values["modality"] == "all"]
    by = [*_KEYS, "stratum"]
    changes = paired_differences(values, arm="setting", by=by, baseline=GT_ONLY)
    changes = changes[changes["n"] > 0].drop(columns="p_holm")
    every = fixed[fixed["modality"] == "all"]
    means = every.assign(metric=metric_names(every)).set_index(["dataset", "metric", "setting"])
    change, gold = (
        means["value"].reindex(pd.MultiIndex.from_frame(changes[["dataset", "metric", mode]]))
        for mode in ("setting", "baseline")
    )
    is_fixed = np.isclose(changes["value"], change.to_numpy(float) - gold.to_numpy(float))
    changes = _fix(changes, pd.Series(is_fixed, changes.index))
    changes["p"] = changes["p"].mask(is_fixed)
    changes["label_source"] = "true" if len(fixed) else "checker"
    return to_percent(changes.assign(p_holm=holm_by_family(changes, ["stratum"])))


EQUATIONS = pd.read_csv(
    Path(__file__).with_name("equations.csv"), index_col=["equation", "name"], keep_default_na=False
)
"""Equations 1 to 11 (section 4.2) as text, by number and published name: as printed, what follows,
the metric of `evidence_metrics` that is the same or in its place, and RAGChecker's of that name; ""
if there is none. All but the first are ours.
"""
_EQUATION_OF = {
    "neutral_share": "hallucination",
    "entailed_share": "faithfulness",
    "answer_claim_recall": "claim_recall",
    "evidence_utilization": "context_precision",
}
"""Maps a metric of ours to the published one that is so by the paper's equation."""
PUBLISHED = ["recall", "precision", "f1", "hallucination", "faithfulness", "self_knowledge"]
PUBLISHED += ["claim_recall", "context_precision"]
"""Claim metrics of Tables 3, 14 and 15. RAGChecker has all of them under these names."""
IN_PLACE = {
    "delta_cr": ("claim_recall_gap", "all"),
    "delta_cp": ("evidence_utilization_gap", "all"),
    "vis_hit_at_k": ("evidence_utilization", "image"),
    "cma": ("cross_modal_agreement", "all"),
    "v_hr": ("error_support", "image"),
    "d_hr": ("error_support", "text"),
}
"""Maps a metric of Table 4 to ours: its equation, or a possible meaning where that is always 0."""


def with_published_names(means: pd.DataFrame) -> pd.DataFrame:
    """Returns the means of published metrics under the published names, with the column definition:
    "RAGChecker's" and "the paper's equation" (Tables 3, 14 and 15), "ours" (Table 4). `means` comes
    from `claim_means_by_modality`; other metrics are dropped.
    """
    rows = [(RAGCHECKER, name, name, "RAGChecker's") for name in PUBLISHED]
    rows += [
        (MM_RAGCHECKER, own, name, "the paper's equation") for own, name in _EQUATION_OF.items()
    ]
    names = pd.DataFrame(rows, columns=["family", "metric", "published", "definition"])
    gaps = [(MM_RAGCHECKER, *ours, name, "ours") for name, ours in IN_PLACE.items()]
    of_table_4 = pd.DataFrame(gaps, columns=[*METRIC, "published", "definition"])
    tables = [means.merge(names), means.merge(of_table_4)]
    named = pd.concat(tables, ignore_index=True)
    return named.drop(columns="metric").rename(columns={"published": "metric"})
