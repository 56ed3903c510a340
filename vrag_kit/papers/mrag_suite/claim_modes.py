"""Claim metrics in the modes of evidence: their names, strata, and differences between modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.strata import ALL, expand_strata
from vrag_kit.claims.label_agreement import KIND_AND_LABELS, verdict_confusion_matrix, verdict_pairs
from vrag_kit.claims.means import METRIC, claim_values
from vrag_kit.claims.verdicts import ClaimVerdicts
from vrag_kit.config import Entry
from vrag_kit.papers.mrag_suite.modes import ARMS, memorised_in_suite
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.types import Benchmark

POOLED = ALL
CLAIM_METRICS = {
    ("mm_ragchecker", "claim_recall"): "claim recall",
    ("mm_ragchecker", "evidence_utilization"): "evidence utilization",
    ("mm_ragchecker", "entailed_share"): "faithfulness",
    ("ragchecker", "hallucination"): "hallucination (RAGChecker)",
    ("mm_ragchecker", "neutral_share"): "hallucination (MM-RAGChecker, eq. 1)",
}
"""Metrics in figures: (family, metric) → name. Claim recall and faithfulness are RAGChecker's too;
for an unparsed verdict this family excludes single claims, not answers.
"""
MODE_NAMES = {mode: ARMS[mode] for mode in MODES}
MODALITIES = {"image": "image evidence", "text": "text evidence", "all": "all evidence"}
_KINDS = ("image", "text", "answer")


def with_claim_strata(
    checked: pd.DataFrame,
    models: Sequence[Entry],
    answers: Mapping[str, tuple[Benchmark, pd.DataFrame]],
) -> pd.DataFrame:
    """Adds the column stratum to `checked`: whether the question is about something in the model's
    training data (`memorised_in_suite`). All rows follow again as `POOLED`, the only stratum if the
    training data of some model are unknown.

    `checked` has dataset, model and group; `answers` maps each data set to its questions and their
    answers.
    """
    told = memorised_in_suite(models, {name: benchmark for name, (benchmark, _) in answers.items()})
    if not set(checked["model"]) <= set(told):
        return checked.assign(stratum=POOLED)
    parts = [expand_strata(part, told) for _, part in checked.groupby("dataset", sort=False)]
    return pd.concat(parts, ignore_index=True)


def drop_redundant_pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Drops the rows of `POOLED` from `table` (dataset, stratum) for data sets with only one
    stratum, which has the same questions.
    """
    parts = table[table["stratum"] != POOLED].groupby("dataset")["stratum"].nunique()
    return table[(table["stratum"] != POOLED) | (table["dataset"].map(parts) != 1)]


def with_fixed(means: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """Adds the column by_construction to `means` of `compare_label_sources`: whether the true
    labels fix the value for any answer. Then nothing is estimated: the interval is the value.

    `fixed` has dataset, setting, family, metric, modality and value, as the synthetic suite's
    `fixed_means` gives them; without rows nothing is fixed. A mean that differs from its row is not
    fixed.
    """
    keys = ["dataset", "setting", *METRIC]
    always = means[keys].merge(fixed, how="left", on=keys)["value"].to_numpy(float)
    is_fixed = (means["label_source"] == "true") & np.isclose(means["value"], always)
    ends = {end: means[end].mask(is_fixed, means["value"]) for end in ("ci_low", "ci_high")}
    return means.assign(**ends, by_construction=is_fixed)


def best_available_labels(checked: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Returns (the rows with the verdict sheets to use, the source of their labels): true ones if
    the truth about answers is known (true_sheet), else the checker's.
    """
    if checked["true_sheet"].isna().all():
        return checked, "checker"
    return checked.assign(sheet=checked["true_sheet"]), "true"


def confusions_by_mode(pairs: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Maps each mode and kind of evidence to a `verdict_confusion_matrix` of labelled answers with
    the column setting, as from `add_human_verdicts`.
    """
    found = {}
    for mode, name in MODE_NAMES.items():
        verdicts = verdict_pairs(pairs[pairs["setting"] == mode])
        parts = {kind: verdicts[verdicts["evidence_kind"] == kind] for kind in _KINDS}
        found[name] = {title: verdict_confusion_matrix(part) for title, part in parts.items()}
    return found


def confusion_counts(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """Lists `confusions_by_mode` as setting, evidence_kind, true_label, checker_label, n."""
    modes = {name: mode for mode, name in MODE_NAMES.items()}
    truth, checker = KIND_AND_LABELS[1:]
    tables = []
    for name, matrices in confusions.items():
        for kind, matrix in matrices.items():
            long = matrix.reset_index(names=truth).melt(truth, var_name=checker, value_name="n")
            tables.append(long.assign(setting=modes[name], evidence_kind=kind))
    columns = ["setting", "evidence_kind", truth, checker, "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def with_both_modalities(means: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of data sets that show images and texts; all rows if none does."""
    used = means[(means["metric"] == "evidence_utilization") & (means["n"] > 0)]
    counts = used.groupby("dataset")["modality"].nunique()
    both = means[means["dataset"].map(counts) == len(MODALITIES)]
    return both if len(both) else means


def mode_contrasts(checked: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """Computes the differences of both other modes from gold evidence alone, for every one of
    `CLAIM_METRICS`, on the questions with a value in both modes. Columns: setting, baseline,
    dataset, metric, model, stratum, value, ci_low, ci_high, n, n_failed (questions without a value
    in one of them), p, by_construction, p_holm, over the rows of a stratum that are not fixed.

    `checked` is a table of `with_claim_strata`; its column sheet has the verdicts. A question is
    excluded from the change to a mode that shows the same evidence as gold alone, as where there is
    no room for distractors. Rows without any question are dropped.

    A change is fixed if both of its means are, by `fixed` (`with_fixed`), which must have no rows
    for labels that are not true: it is no hypothesis, and has no p.
    """
    values = claim_values(_shown_otherwise(checked), by=["dataset", "model", "setting", "stratum"])
    keys = pd.MultiIndex.from_frame(values[["family", "metric"]])
    values = values.assign(metric=keys.map(CLAIM_METRICS.get))
    values = values[values["metric"].notna() & (values["modality"] == "all")]
    orders = {"dataset": list(checked["dataset"].unique()), "metric": list(CLAIM_METRICS.values())}
    values = values.sort_values(
        list(orders), key=lambda column: column.map(orders[str(column.name)].index), kind="stable"
    )
    changes = paired_differences(
        values,
        arm="setting",
        by=["dataset", "metric", "model", "stratum"],
        baseline=MODES[2],
        repeats=["setting", "dataset", "metric", "model"],
    )
    changes = changes[changes["n"] > 0].drop(columns="p_holm")
    is_fixed = np.isclose(changes["value"], _fixed_changes(changes, fixed))
    ends = {end: changes[end].mask(is_fixed, changes["value"]) for end in ("ci_low", "ci_high")}
    changes = changes.assign(**ends, p=changes["p"].mask(is_fixed), by_construction=is_fixed)
    return changes.assign(p_holm=holm_by_family(changes, ["stratum"]))


def _shown_otherwise(checked: pd.DataFrame) -> pd.DataFrame:
    """The answers over gold evidence alone, and those that were shown anything else."""
    items = [each.items if isinstance(each, ClaimVerdicts) else () for each in checked["sheet"]]
    shown = pd.Series([frozenset(item.doc_id for item in each) for each in items], checked.index)
    keys = pd.MultiIndex.from_frame(checked[["dataset", "model", "query_id"]])
    is_gold = checked["setting"] == MODES[2]
    gold = dict(zip(keys[is_gold], shown[is_gold], strict=True))
    same = [bool(each) and each == gold.get(key) for key, each in zip(keys, shown, strict=True)]
    return checked[is_gold | ~np.array(same, bool)]


def _fixed_changes(changes: pd.DataFrame, fixed: pd.DataFrame) -> np.ndarray:
    """What each change is where both means are fixed; else NaN."""
    names = pd.MultiIndex.from_frame(fixed[["family", "metric"]]).map(CLAIM_METRICS.get)
    every = fixed.assign(metric=names)[fixed["modality"] == "all"]
    means = every.set_index(["dataset", "setting", "metric"])["value"]
    places = (
        pd.MultiIndex.from_frame(changes.assign(setting=mode)[means.index.names])
        for mode in (changes["setting"], MODES[2])
    )
    change, gold = (means.reindex(each).to_numpy(float) for each in places)
    differences: np.ndarray = change - gold
    return differences
