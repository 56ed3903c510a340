"""Metrics of claims in the modes of evidence: what they are called, by stratum, and what
a mode changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.claims import ClaimSheet
from vrag_kit.analysis.claims_error import verdict_confusion, verdict_pairs
from vrag_kit.analysis.claims_means import METRIC, claim_values
from vrag_kit.analysis.comparison import by_question, compare
from vrag_kit.analysis.strata import ALL, with_strata
from vrag_kit.options import Entry
from vrag_kit.papers.mrag_suite.modes import ARMS, told_in_suite
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.types import Benchmark

POOLED = ALL
CLAIM_METRICS = {
    ("mm_ragchecker", "claim_recall"): "claim recall",
    ("mm_ragchecker", "evidence_used"): "evidence used",
    ("mm_ragchecker", "entailed_share"): "faithfulness",
    ("ragchecker", "hallucination"): "hallucination (RAGChecker)",
    ("mm_ragchecker", "neutral_share"): "hallucination (equation 1)",
}
"""Those that figures show: (family, metric) → name. Claim recall and faithfulness are
RAGChecker's too; this family leaves out single claims, not answers, for a verdict that
could not be read.
"""
MODE_NAMES = {mode: ARMS[mode] for mode in MODES}
CHANGES = {mode: f"{ARMS[mode]} − {ARMS[MODES[2]]}" for mode in MODES[:2]}
"""Mode → its difference to gold evidence alone."""
MODALITIES = {"image": "images alone", "text": "texts alone", "all": "all that was shown"}
_ABOUT = {"image": "about images", "text": "about texts", "answer": "about answers"}


def claim_strata(
    checked: pd.DataFrame,
    models: Sequence[Entry],
    answers: Mapping[str, tuple[Benchmark, pd.DataFrame]],
) -> pd.DataFrame:
    """The rows of `checked` with the column stratum: by whether the question is about
    something in the model's training data (`told_in_suite`), then all again as `POOLED`,
    which alone there is where that is not known of every model.

    `checked` has dataset, model and group; `answers` is data set → its questions, and
    their answers.
    """
    told = told_in_suite(models, {name: benchmark for name, (benchmark, _) in answers.items()})
    if not set(checked["model"]) <= set(told):
        return checked.assign(stratum=POOLED)
    parts = [with_strata(part, told) for _, part in checked.groupby("dataset", sort=False)]
    return pd.concat(parts, ignore_index=True)


def stratified(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `table` (dataset, stratum), without `POOLED` of a data set that has but
    one stratum: it would be the same questions again.
    """
    parts = table[table["stratum"] != POOLED].groupby("dataset")["stratum"].nunique()
    return table[(table["stratum"] != POOLED) | (table["dataset"].map(parts) != 1)]


def with_fixed(means: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """`means`, as `beside_truth` gives them, with the column fixed: whether true labels
    say so of any answer. There is nothing to estimate then: the interval is the value.

    `fixed` has dataset, setting, family, metric, modality and value, as the synthetic
    suite's `fixed_means` gives them; without rows nothing is fixed. A mean that differs
    from its row is not fixed.
    """
    keys = ["dataset", "setting", *METRIC]
    always = means[keys].merge(fixed, how="left", on=keys)["value"].to_numpy(float)
    is_fixed = (means["labels"] == "true") & np.isclose(means["value"], always)
    ends = {end: means[end].mask(is_fixed, means["value"]) for end in ("ci_low", "ci_high")}
    return means.assign(**ends, fixed=is_fixed)


def best_labels(checked: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """(the rows with the sheets to go by, whose labels these are): true ones, where the
    truth about answers is known (true_sheet), else the checker's.
    """
    if checked["true_sheet"].isna().all():
        return checked, "the checker's labels, uncorrected"
    return checked.assign(sheet=checked["true_sheet"]), "true labels"


def mode_confusions(pairs: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Mode → what verdicts are about → `verdict_confusion`, of labelled answers with the
    column setting, as `with_true_sheets` gives them.
    """
    found = {}
    for mode, name in MODE_NAMES.items():
        verdicts = verdict_pairs(pairs[pairs["setting"] == mode])
        parts = {title: verdicts[verdicts["by"] == by] for by, title in _ABOUT.items()}
        found[name] = {title: verdict_confusion(part) for title, part in parts.items()}
    return found


def confusion_counts(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """`mode_confusions` as rows: mode, about, true, checker, n."""
    tables = []
    for mode, matrices in confusions.items():
        for about, matrix in matrices.items():
            long = matrix.reset_index(names="true").melt("true", var_name="checker", value_name="n")
            tables.append(long.assign(mode=mode, about=about))
    return pd.concat(tables, ignore_index=True)[["mode", "about", "true", "checker", "n"]]


def with_both(means: pd.DataFrame) -> pd.DataFrame:
    """The rows of data sets that show images and texts; all rows where none does."""
    used = means[(means["metric"] == "evidence_used") & (means["n"] > 0)]
    counts = used.groupby("dataset")["modality"].nunique()
    both = means[means["dataset"].map(counts) == len(MODALITIES)]
    return both if len(both) else means


def mode_changes(checked: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """`CHANGES` of every one of `CLAIM_METRICS`, on the questions that have a value in both
    modes: setting, baseline (in words), dataset, metric, model, stratum, value, ci_low,
    ci_high, n, n_failed (questions that lack a value in one of them), p, fixed, p_holm, over
    the rows of a stratum that are not fixed.

    `checked` is a table of `claim_strata`, whose column sheet is gone by. A question is
    left out of the change to a mode that shows what gold evidence alone shows, as where
    this leaves no room for distractors. Rows without any question are left out.

    A change is fixed where both of its means are, by `fixed` (`with_fixed`), which must
    have no rows for labels that are not true: it is no hypothesis, and has no p.
    """
    values = claim_values(_shown_otherwise(checked), by=["dataset", "model", "setting", "stratum"])
    keys = pd.MultiIndex.from_frame(values[["family", "metric"]])
    values = values.assign(metric=keys.map(CLAIM_METRICS.get))
    values = values[values["metric"].notna() & (values["modality"] == "all")]
    orders = {"dataset": list(checked["dataset"].unique()), "metric": list(CLAIM_METRICS.values())}
    values = values.sort_values(
        list(orders), key=lambda column: column.map(orders[str(column.name)].index), kind="stable"
    )
    changes = compare(
        values,
        arm="setting",
        by=["dataset", "metric", "model", "stratum"],
        baseline=MODES[2],
        repeats=["setting", "dataset", "metric", "model"],
    )
    changes = changes[changes["n"] > 0].drop(columns="p_holm").assign(baseline=ARMS[MODES[2]])
    is_fixed = np.isclose(changes["value"], _fixed_changes(changes, fixed))
    ends = {end: changes[end].mask(is_fixed, changes["value"]) for end in ("ci_low", "ci_high")}
    changes = changes.assign(**ends, p=changes["p"].mask(is_fixed), fixed=is_fixed)
    return changes.assign(p_holm=by_question(changes, ["stratum"]))


def _shown_otherwise(checked: pd.DataFrame) -> pd.DataFrame:
    """The answers over gold evidence alone, and those that were shown anything else."""
    items = [each.items if isinstance(each, ClaimSheet) else () for each in checked["sheet"]]
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
