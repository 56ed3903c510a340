"""Accuracy of a judge on correct, missing and incorrect answers, as in Table 7."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import Estimate, estimate

CLASSES = {"correct": "accurate", "incorrect": "hallucinated", "missing": "missing"}
"""Maps a label to its name in Table 7."""
AVERAGE = "average"
QUALITIES = ("accuracy", "precision", "recall", "f1")


def judge_validation(labelled: pd.DataFrame) -> pd.DataFrame:
    """Computes Table 7 for any judge, from the rows of `evaluate_judge`: label ("accurate",
    "hallucinated", "missing", "average"), metric, value, ci_low, ci_high, n, as shares.

    For each class against the other two: accuracy over all answers, precision over those that the
    judge assigns to it, recall over those labelled so, f1 over both. Intervals are over questions,
    each of which has several answers; the average of the three classes has none. A class that never
    occurs has no value (NaN). An answer without a verdict is not assigned to any class.
    """
    rows = []
    for label, name in CLASSES.items():
        of_it, said = labelled["label"] == label, labelled["judged"] == label
        both = of_it & said
        every = pd.Series(True, labelled.index)
        parts = {"accuracy": (of_it == said, every), "precision": (both, said)}
        parts |= {"recall": (both, of_it), "f1": (both, of_it | said)}
        for metric, (hit, among) in parts.items():
            found = _share(labelled, hit, among, twice=metric == "f1")
            rows.append((name, metric, found.value, found.ci_low, found.ci_high, found.n))
    table = pd.DataFrame(rows, columns=["label", "metric", "value", "ci_low", "ci_high", "n"])
    means = table.groupby("metric", sort=False)["value"].mean()  # of the classes that occur
    average = pd.DataFrame({"metric": means.index, "value": means.to_numpy()})
    average = average.assign(label=AVERAGE, ci_low=np.nan, ci_high=np.nan, n=len(labelled))
    return pd.concat([table, average[table.columns]], ignore_index=True)


def _share(labelled: pd.DataFrame, hit: pd.Series, among: pd.Series, *, twice: bool) -> Estimate:
    """The share of hits; with `twice` they count double, which makes it F1."""
    weights = np.where(hit[among], 2.0, 1.0) if twice else None
    values = hit[among].to_numpy(float)
    return estimate(values, labelled["query_id"][among], weights=weights)
