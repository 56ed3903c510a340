"""Errors of a claim checker against true labels, and claim metrics corrected for them.

The checker's sheets are compared with sheets of the same claims and items that have true labels: by
people, or by the generator of synthetic data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.estimates import estimate
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.prediction_powered import corrected_mean
from vrag_kit.claims.means import METRIC, metric_rows
from vrag_kit.claims.verdicts import ClaimVerdicts, EntailmentLabel, Label
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import Scale

UNREADABLE = "unparsed"
KIND_AND_LABELS = ["evidence_kind", "true_label", "checker_label"]
_LABELS = [relation.value for relation in EntailmentLabel]
_CODES = {name: code for code, name in enumerate(_LABELS)}


def verdict_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row per verdict with a true label: query_id, group, of ("claims" or "gold claims"),
    evidence_kind ("image", "text", or "answer" where an answer is the evidence), true_label,
    checker_label (a label, or "unparsed").

    `pairs` has the columns query_id, group, sheet and true_sheet, which is None where no true
    labels are known. What several answers share is counted once for each. Raises `VragError` for
    two sheets of different claims or items.
    """
    rows: list[tuple[object, ...]] = []
    for row in _both(pairs).to_dict("records"):
        judged, true = row["sheet"], row["true_sheet"]
        kinds = _kinds(judged)
        for kind, said, is_so in zip(kinds, judged.verdicts, true.verdicts, strict=True):
            if is_so is not None:
                rows.append((row["query_id"], row["group"], *kind, is_so.value, _word(said)))
    return pd.DataFrame(rows, columns=["query_id", "group", "of", *KIND_AND_LABELS])


def verdict_confusion_matrix(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Counts verdicts by their true label (rows) and the checker's (columns, with "unparsed"); 0
    where there is none.
    """
    counts = pd.crosstab(verdicts["true_label"], verdicts["checker_label"])
    return counts.reindex(index=_LABELS, columns=[*_LABELS, UNREADABLE], fill_value=0)


def verdict_agreement(verdicts: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the checker with true labels, for images, texts and answers and then for "all":
    evidence_kind, metric ("accuracy" or "kappa"), value, ci_low, ci_high, n, n_failed.

    accuracy is the share of verdicts with the true label, kappa Cohen's, in [−1, 1]. Intervals are
    over groups: `estimate`'s, and the bootstrap of `association`. Unparsed verdicts are in neither,
    and counted in n_failed.
    """
    rows: list[tuple[object, ...]] = []
    kinds = [*dict.fromkeys(verdicts["evidence_kind"]), "all"]
    for kind in kinds:
        part = verdicts if kind == "all" else verdicts[verdicts["evidence_kind"] == kind]
        true, said = (part[name].map(_CODES).astype(float) for name in KIND_AND_LABELS[1:])
        right = (true == said).astype(float).where(said.notna())
        for metric, found in (
            ("accuracy", estimate(right.to_numpy(), part["group"])),
            ("kappa", association(true, said, part["group"], measure="kappa", seed=seed)),
        ):
            numbers = (found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
            rows.append((kind, metric, *numbers))
    columns = ["evidence_kind", "metric", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


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
    arm = list(by)
    known = _by_metric(checked, "sheet", arm)
    both = _both(pairs)
    both = both.loc[[not sheet.unread for sheet in both["true_sheet"]]]
    true = _by_metric(both, "true_sheet", arm)
    said = _by_metric(both, "sheet", arm)
    off = said.assign(off=true["score"] - said["score"]).dropna(subset="off")
    labels = dict(list(off.groupby([*arm, *METRIC], sort=False)))
    rows: list[tuple[object, ...]] = []
    for key, part in known.groupby([*arm, *METRIC], sort=False):
        own = labels.get(key, off.iloc[:0])
        scale = Scale(-1.0 if str(part["metric"].iloc[0]).endswith("_gap") else 0.0, 1.0)
        checker = estimate(part["score"].to_numpy(), part["group"], scale=scale)
        numbers = corrected_mean(part, own, checker, scale) if checker.n else (np.nan,) * 3
        rows.append((*key, *numbers, checker.n, len(own)))
    columns = [*arm, *METRIC, "value", "ci_low", "ci_high", "n", "n_labelled"]
    return pd.DataFrame(rows, columns=columns)


def _by_metric(table: pd.DataFrame, column: str, arm: list[str]) -> pd.DataFrame:
    """One row an answer and metric of the sheets in a column, whose missing verdicts are
    taken for NEUTRAL: `arm`, `ARM`, group, `METRIC`, score, status.
    """
    keys = list(dict.fromkeys([*arm, *ARM, "group"]))
    rows: list[tuple[object, ...]] = []
    names = table[keys].itertuples(index=False, name=None)
    for name, sheet in zip(names, table[column], strict=True):
        if isinstance(sheet, ClaimVerdicts):
            found = metric_rows(sheet.fill_missing(EntailmentLabel.NEUTRAL), empty="nan")
            rows += [(*name, *row[:4]) for row in found]
    return pd.DataFrame(rows, columns=[*keys, *METRIC, "score"]).assign(status="ok")


def _both(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows with both sheets, which must be of the same claims and items."""
    sheets = zip(pairs["sheet"], pairs["true_sheet"], strict=True)
    known = [
        isinstance(one, ClaimVerdicts) and isinstance(two, ClaimVerdicts) for one, two in sheets
    ]
    both = pairs.loc[known]
    for one, two in zip(both["sheet"], both["true_sheet"], strict=True):
        if _about(one) != _about(two):
            raise VragError(
                f"claims of query {one.query_id!r}: the sheet with true labels is of other claims"
                " or items. Make both with the same extractor, of the same answer."
            )
    return both


def _about(sheet: ClaimVerdicts) -> tuple[object, ...]:
    return sheet.query_id, sheet.claims, sheet.gold_claims, sheet.items


def _kinds(sheet: ClaimVerdicts) -> list[tuple[str, str]]:
    """(of, evidence_kind) of each of a sheet's verdicts, in their order."""
    shown = [item.modality for item in sheet.items]
    kinds = [("claims", "answer")] * len(sheet.claims)
    kinds += [("gold claims", "answer")] * len(sheet.gold_claims)
    kinds += [("claims", modality) for modality in shown * len(sheet.claims)]
    return [*kinds, *(("gold claims", modality) for modality in shown * len(sheet.gold_claims))]


def _word(label: Label) -> str:
    return UNREADABLE if label is None else label.value
