"""How far a checker of claims errs, and what its error does to the metrics.

Beside the checker's sheets stand sheets of the same claims and items with labels that are
true: by people, or by a drawing that knows what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.association import association
from vrag_kit.analysis.claims import ClaimSheet, Label
from vrag_kit.analysis.claims_means import METRIC, sheet_rows
from vrag_kit.analysis.intervals import estimate
from vrag_kit.analysis.prediction_powered import corrected_mean
from vrag_kit.errors import VragError
from vrag_kit.judging.claims import Relation
from vrag_kit.judging.scale import Scale

UNREADABLE = "unreadable"
LABELS = [relation.value for relation in Relation]
_CODES = {name: code for code, name in enumerate(LABELS)}


def verdict_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row a verdict that has a true label: query_id, group, of ("claims" or "gold
    claims"), by ("image", "text", or "answer" where an answer is the evidence), true,
    checker (a label, or "unreadable").

    `pairs` has the columns query_id, group, sheet and true_sheet, which is None where
    nothing is known. What several answers have in common is there once for each. Raises
    `VragError` for two sheets of different claims or items.
    """
    rows: list[tuple[object, ...]] = []
    for row in _both(pairs).to_dict("records"):
        judged, true = row["sheet"], row["true_sheet"]
        kinds = _kinds(judged)
        for kind, said, is_so in zip(kinds, judged.verdicts, true.verdicts, strict=True):
            if is_so is not None:
                rows.append((row["query_id"], row["group"], *kind, is_so.value, _word(said)))
    return pd.DataFrame(rows, columns=["query_id", "group", "of", "by", "true", "checker"])


def verdict_confusion(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Verdicts by their true label (rows) and the checker's (columns, with
    "unreadable"); 0 where there is none.
    """
    counts = pd.crosstab(verdicts["true"], verdicts["checker"])
    return counts.reindex(index=LABELS, columns=[*LABELS, UNREADABLE], fill_value=0)


def verdict_agreement(verdicts: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """How far the checker agrees with true labels, of pictures, texts and answers apart,
    then "all": by, metric ("accuracy" or "kappa"), value, ci_low, ci_high, n, n_failed.

    accuracy is the share of verdicts with the true label, kappa Cohen's, in [−1, 1].
    Intervals are over groups: `estimate`'s, and the bootstrap of `association`. Verdicts
    that could not be read are in neither, and counted in n_failed.
    """
    rows: list[tuple[object, ...]] = []
    kinds = [*dict.fromkeys(verdicts["by"]), "all"]
    for kind in kinds:
        part = verdicts if kind == "all" else verdicts[verdicts["by"] == kind]
        true, said = (part[name].map(_CODES).astype(float) for name in ("true", "checker"))
        right = (true == said).astype(float).where(said.notna())
        for metric, found in (
            ("accuracy", estimate(right.to_numpy(), part["group"])),
            ("kappa", association(true, said, part["group"], measure="kappa", seed=seed)),
        ):
            numbers = (found.value, found.ci_low, found.ci_high, found.n, found.n_failed)
            rows.append((kind, metric, *numbers))
    columns = ["by", "metric", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def corrected_claims(
    checked: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Every metric corrected by true labels, the checker's error in its interval: `by`,
    family, metric, modality, value, ci_low, ci_high, n, n_labelled.

    `checked` holds all answers with their sheet, `pairs` those with a true_sheet beside
    it, a random sample within each model, setting and k, as `sample_to_label` draws. The
    corrected mean is the checker's over all answers plus the mean of (true − checker) over
    the sample: prediction-powered inference, as in `corrected_accuracy`, which says what
    the interval holds. It is right whatever the checker says, so a verdict that could
    not be read is taken for NEUTRAL, and corrected like any other: no answer is left out
    for it. An answer is one value of a metric, so that errors of its verdicts may go
    together as they like. n and n_labelled count answers; those where either sheet
    leaves the metric without a value tell nothing about it, nor do labelled answers
    whose true sheet lacks a verdict; these are left out.
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
        if isinstance(sheet, ClaimSheet):
            found = sheet_rows(sheet.filled(Relation.NEUTRAL), empty="nan")
            rows += [(*name, *row[:4]) for row in found]
    return pd.DataFrame(rows, columns=[*keys, *METRIC, "score"]).assign(status="ok")


def _both(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows with both sheets, which must be of the same claims and items."""
    sheets = zip(pairs["sheet"], pairs["true_sheet"], strict=True)
    known = [isinstance(one, ClaimSheet) and isinstance(two, ClaimSheet) for one, two in sheets]
    both = pairs.loc[known]
    for one, two in zip(both["sheet"], both["true_sheet"], strict=True):
        if _about(one) != _about(two):
            raise VragError(
                f"claims of query {one.query_id!r}: the sheet with true labels is of other claims"
                " or items. Make both with the same extractor, of the same answer."
            )
    return both


def _about(sheet: ClaimSheet) -> tuple[object, ...]:
    return sheet.query_id, sheet.claims, sheet.gold_claims, sheet.items


def _kinds(sheet: ClaimSheet) -> list[tuple[str, str]]:
    """(of, by) of each of a sheet's verdicts, in their order."""
    shown = [item.modality for item in sheet.items]
    kinds = [("claims", "answer")] * len(sheet.claims)
    kinds += [("gold claims", "answer")] * len(sheet.gold_claims)
    kinds += [("claims", modality) for modality in shown * len(sheet.claims)]
    return [*kinds, *(("gold claims", modality) for modality in shown * len(sheet.gold_claims))]


def _word(label: Label) -> str:
    return UNREADABLE if label is None else label.value
