"""Errors of a claim checker against true labels, agreement of annotators, and claim metrics that
are corrected for the checker's errors.

The checker's sheets are compared with sheets of the same claims and items that have true labels: by
people, or by the generator of synthetic data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.estimates import Estimate, estimate
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.prediction_powered import corrected_mean
from vrag_kit.claims.human_labels import (
    PAIR,
    Labels,
    claim_pairs,
    labels_from_verdicts,
    rows_to_label,
    verdict_rows,
)
from vrag_kit.claims.means import METRIC, add_modalities, answer_values, claim_means_by_modality
from vrag_kit.claims.verdicts import LABEL_NAMES, UNPARSED
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale

CHECKER = "checker"
KIND_AND_LABELS = ["evidence_kind", "true_label", "checker_label"]
_CODES = {name: score for score, name in LABEL_NAMES.items()}


def verdict_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per verdict with a true label: query_id, group, of ("claims" or "gold claims"),
    evidence_kind ("image", "text", or "answer" where an answer is the evidence), true_label,
    checker_label (a label, or "unparsed").

    `pairs` has the columns query_id, group, sheet and true_sheet, which is None where no true
    labels are known. What several answers share is counted once for each. Raises `VragError` for
    two sheets of different claims or items.
    """
    both = _labelled(pairs)
    rows, true = verdict_rows(both), verdict_rows(both, "true_sheet")
    rows["true_label"] = true["score"].map(LABEL_NAMES)
    rows["checker_label"] = rows["score"].map(LABEL_NAMES).fillna(UNPARSED)
    columns = ["query_id", "group", "of", *KIND_AND_LABELS]
    return rows.dropna(subset="true_label")[columns].reset_index(drop=True)


def verdict_confusion_matrix(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Counts verdicts by their true label (rows) and the checker's (columns, with "unparsed"); 0
    where there is none.
    """
    counts = pd.crosstab(verdicts["true_label"], verdicts["checker_label"])
    return counts.reindex(index=list(_CODES), columns=[*_CODES, UNPARSED], fill_value=0)


def verdict_agreement(verdicts: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the checker with true labels, for images, texts and answers and then for "all":
    evidence_kind, metric ("accuracy" or "kappa"), value, ci_low, ci_high, n, n_failed.

    accuracy is the share of verdicts with the true label, kappa Cohen's, in [−1, 1]. Intervals are
    over groups: `estimate`'s, and the bootstrap of `association`. Unparsed verdicts are in neither,
    and counted in n_failed.
    """
    rows: list[tuple[object, ...]] = []
    for kind in [*dict.fromkeys(verdicts["evidence_kind"]), "all"]:
        part = verdicts if kind == "all" else verdicts[verdicts["evidence_kind"] == kind]
        true, checker = (part[name].map(_CODES).astype(float) for name in KIND_AND_LABELS[1:])
        equal = (true == checker).astype(float).where(checker.notna())
        kappa = association(true, checker, part["group"], measure="kappa", seed=seed)
        rows.append((kind, "accuracy", *estimate(equal.to_numpy(), part["group"])))
        rows.append((kind, "kappa", *kappa))
    return pd.DataFrame(rows, columns=["evidence_kind", "metric", *Estimate._fields])


def annotator_agreement(
    sample: pd.DataFrame, annotators: Mapping[str, Labels], *, seed: int = 0
) -> pd.DataFrame:
    """Agreement of every two annotators, and of each with the checker, on the claims and items that
    both labelled: first, second, and the columns of `verdict_agreement`, evidence_kind "image",
    "text", "answer" and "all".

    `annotators` maps names (at least one) to labels, as from `read_annotator_labels`; the checker
    is called "checker", and its verdicts are those of `sample` (group, sheet, answer), each claim
    and item counted once. Where nothing has two labels, n is 0. Unparsed verdicts of the checker
    are in n_failed.
    """
    rows = rows_to_label(sample).drop_duplicates(PAIR)
    known = {**annotators, CHECKER: labels_from_verdicts(sample, sheets="sheet")}
    labels = {
        name: pd.Series([known[name].get(pair) for pair in claim_pairs(rows)], rows.index, object)
        for name in known
    }
    tables = {}
    for first, second in combinations(known, 2):
        other = labels[second].fillna(UNPARSED) if second == CHECKER else labels[second]
        both = rows.assign(true_label=labels[first], checker_label=other)
        both = both.dropna(subset=KIND_AND_LABELS)
        tables[first, second] = verdict_agreement(both, seed=seed)
    table = pd.concat(tables, names=["first", "second"])
    return table.reset_index(["first", "second"]).reset_index(drop=True)


def corrected_claim_means(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Mean of every claim metric, corrected by true labels, with the checker's error in its
    interval: `by`, family, metric, modality, value, ci_low, ci_high, n, n_labelled.

    `checked` holds all answers with their sheet, `pairs` those that also have a true_sheet, a
    random sample within each model, setting and k, as `annotation_sample` draws. The corrected mean
    is the checker's over all answers plus the mean of (true − checker) over the sample:
    prediction-powered inference, as in `corrected_accuracy`, which describes the interval. It is
    valid whatever the checker says, so an unparsed verdict is taken for NEUTRAL and corrected like
    any other: no answer is left out for it. An answer is one value of a metric, so errors of its
    verdicts may be correlated. n and n_labelled count answers. Answers for which either sheet
    leaves the metric undefined are left out, as are labelled answers whose true sheet lacks a
    verdict.
    """
    keys = [*by, *METRIC]
    both = _labelled(pairs)
    both = both[[sheet.n_missing == 0 for sheet in both["true_sheet"]]]
    true = _scores(both.assign(sheet=both["true_sheet"]), by)
    labelled = _scores(both, by)
    labelled["off"] = true["score"] - labelled["score"]
    labelled = labelled.dropna(subset="off")
    labels = dict(list(labelled.groupby(keys, sort=False)))
    rows: list[tuple[object, ...]] = []
    for key, part in _scores(checked.dropna(subset="sheet"), by).groupby(keys, sort=False):
        sample = labels.get(key, labelled.iloc[:0])
        scale = Scale(-1.0 if str(part["metric"].iloc[0]).endswith("_gap") else 0.0, 1.0)
        checker = estimate(part["score"].to_numpy(), part["group"], scale=scale)
        numbers = corrected_mean(part, sample, checker, scale) if checker.n else (np.nan,) * 3
        rows.append((*key, *numbers, checker.n, len(sample)))
    return pd.DataFrame(rows, columns=[*keys, "value", "ci_low", "ci_high", "n", "n_labelled"])


def compare_label_sources(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Means of claim metrics by label_source: "checker", "corrected" and "true", each also over
    images alone and over texts alone as in `claim_means_by_modality`. The first are its means; the
    second are corrected by the true labels in `pairs` (`corrected_claim_means`, with n_labelled).
    The third, which the second estimate from `pairs` alone, exist where true labels of all answers
    are known (true_sheet in `checked`).
    """
    corrected = add_modalities(corrected_claim_means, checked, pairs, by=by)
    found = {CHECKER: claim_means_by_modality(checked, by=by), "corrected": corrected}
    if checked["true_sheet"].notna().any():
        true = checked.assign(sheet=checked["true_sheet"])
        found["true"] = claim_means_by_modality(true, by=by)
    tables = [table.assign(label_source=source) for source, table in found.items()]
    return pd.concat(tables, ignore_index=True)


def _scores(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row per answer and metric: `by`, `ARM`, group, `METRIC`, score, status; missing verdicts
    count as NEUTRAL.
    """
    keys = list(dict.fromkeys([*by, *ARM, "group"]))
    values = answer_values(table, keys)
    return values.assign(score=values["if_neutral"], status="ok")


def _labelled(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows with both sheets, which must be of the same claims and items."""
    both = pairs.dropna(subset=["sheet", "true_sheet"])
    for one, two in zip(both["sheet"], both["true_sheet"], strict=True):
        if one.subject != two.subject:
            raise VragError(
                f"claims of query {one.query_id!r}: the true labels are of other claims or items."
            )
    return both
