"""Agreement of two raters: a judge with human labels, two detectors, two measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import Estimate, cluster_bootstrap, estimate
from vrag_kit.analysis.report_tables import ci_cells, report_table
from vrag_kit.judging.human_labels import LABEL_SCORES, score_of_label
from vrag_kit.judging.scale import scale_of

_RANK_MEASURES = {"spearman": "spearmanr", "kendall": "kendalltau"}
"""Measure → its function in scipy.stats."""
_RESAMPLES = 1000
STRICT = "strict"
AS_THEY_ARE = {STRICT: "tt tp tf  pt pp pf  ft fp ff"}
METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "kappa": "kappa (linear)",
    "bias": "judge's bias",
}


def association(
    x: Sequence[float] | np.ndarray | pd.Series,
    y: Sequence[float] | np.ndarray | pd.Series,
    groups: Sequence[str] | pd.Series,
    *,
    measure: str,
    seed: int = 0,
) -> Estimate:
    """Association of two paired columns in [−1, 1], with a 95 % percentile
    bootstrap interval over `groups`.

    `measure` is "kappa" (Cohen's, for categories), "spearman" (rank correlation, ties share their
    mean rank) or "kendall" (tau-b). A pair with a NaN is left out and counted in n_failed. The
    value is NaN when a column never changes (for kappa: when both hold one and the same value).
    Whole groups are resampled with replacement, 1,000 times (`cluster_bootstrap`); the interval is
    NaN for one group, and when all draws have the same value.
    """
    columns = {"x": np.asarray(x, float), "y": np.asarray(y, float), "group": np.asarray(groups)}
    every = pd.DataFrame(columns)
    pairs = every.dropna(subset=["x", "y"])
    failed = len(every) - len(pairs)
    if pairs.empty:
        return Estimate(np.nan, np.nan, np.nan, 0, failed)
    counts = pd.crosstab(pairs["group"], [pairs["x"], pairs["y"]])
    cells = {name: counts.columns.get_level_values(name).to_numpy() for name in ("x", "y")}
    if measure == "kappa":
        statistic = partial(_kappa, **cells, linear=False)
    else:
        statistic = partial(_rank_correlations, **cells, measure=measure)
    numbers = cluster_bootstrap(counts.to_numpy(), statistic, seed=seed, resamples=_RESAMPLES)
    return Estimate(*numbers, len(pairs), failed)


def associations(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    measures: Sequence[str],
    by: Sequence[str] = ("model",),
    seed: int = 0,
) -> pd.DataFrame:
    """`association` of two columns of `table`, by each of `measures`, in each group: `by`, measure,
    value, ci_low, ci_high, n, n_failed. Intervals are over the column group.
    """
    rows = []
    for (key, part), measure in product(table.groupby(list(by), sort=False), measures):
        found = association(part[x], part[y], part["group"], measure=measure, seed=seed)
        rows.append((*key, measure, *found))
    columns = [*by, "measure", "value", "ci_low", "ci_high", "n", "n_failed"]
    return pd.DataFrame(rows, columns=columns)


def _kappa(tables: np.ndarray, x: np.ndarray, y: np.ndarray, *, linear: bool) -> np.ndarray:
    """Cohen's kappa, 1 − observed / expected distance, of each row of `tables`, shape (tables,
    cells): how often the values `x` and `y` of each cell meet. With `linear` weights two values are
    |x − y| apart, otherwise 1 if they differ. NaN where nothing could differ.

    Cohen (1968), Psychol. Bull. 70(4).
    """
    values = np.union1d(x, y)
    of_x, of_y = (tables @ np.equal.outer(side, values) for side in (x, y))
    apart = np.abs(np.subtract.outer(values, values)) if linear else 1 - np.eye(len(values))
    expected = np.einsum("ti,ij,tj->t", of_x, apart, of_y)
    observed = tables @ apart[np.searchsorted(values, x), np.searchsorted(values, y)]
    with np.errstate(invalid="ignore"):
        kappa: np.ndarray = 1 - tables.sum(axis=1) * observed / expected
    return kappa


def _rank_correlations(
    tables: np.ndarray, x: np.ndarray, y: np.ndarray, measure: str
) -> np.ndarray:
    """Rank correlations of rows of `tables`, as in `_kappa`; NaN where a side is constant."""
    from scipy import stats

    correlate = getattr(stats, _RANK_MEASURES[measure])
    found = np.full(len(tables), np.nan)
    for number, table in enumerate(tables):
        one, other = np.repeat(x, table), np.repeat(y, table)
        if np.ptp(one) and np.ptp(other):
            found[number] = correlate(one, other).statistic
    return found


def confusion_matrix(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts answers by the human's label (rows) and the judge's (columns). Both are in the order
    true, partial, false; 0 where there is none.
    """
    return pd.crosstab(pairs["human_label"], pairs["judge_label"]).reindex(
        index=list(LABEL_SCORES), columns=list(LABEL_SCORES), fill_value=0
    )


def agreement(
    pairs: pd.DataFrame, readings: Mapping[str, str] = AS_THEY_ARE, *, seed: int = 0
) -> pd.DataFrame:
    """Agreement of the judge with human labels: label_mapping, metric, value, ci_low, ci_high, n.
    Accuracy and macro-F1 use each of `readings`, linear-weighted kappa and bias the labels as they
    are.

    `pairs` has one row per answer: human_label, judge_label, score (the judge's), group and,
    optionally, weight: how many answers a row stands for. A reading of "partial" tells what each
    pair of labels counts as, (human, judge) in initials, or "--" where it is left out: nine codes
    in groups of three, the human label true, partial, false, within a group the judge's. Macro-F1
    is the mean over the labels that a reading uses and that occur; kappa is in [−1, 1], NaN when
    both give only one and the same label; bias is the mean of the judge's score minus the human's,
    at most the width of the judge's scale. n counts the answers that a reading keeps; without any,
    values are NaN. Intervals of accuracy and bias are those of `estimate`, of macro-F1 and kappa
    those of `cluster_bootstrap`, NaN where nothing varies.
    """
    labels = list(LABEL_SCORES)
    human, judge = (pairs[f"{side}_label"].map(labels.index) for side in ("human", "judge"))
    cells = (3 * human + judge).to_numpy(int)
    weights = pairs["weight"].to_numpy(float) if "weight" in pairs else np.ones(len(pairs))
    names, member = np.unique(pairs["group"].to_numpy(), return_inverse=True)
    counts = np.zeros((max(1, len(names)), 9))
    np.add.at(counts, (member, cells), weights)
    rows: list[tuple[object, ...]] = []
    for reading, text in readings.items():
        codes = np.array([list(code) for code in text.split()])
        equal = np.where(codes[:, 0] == "-", np.nan, codes[:, 0] == codes[:, 1])[cells]
        share = estimate(equal, pairs["group"], weights=weights)
        rows.append((reading, "accuracy", *share[:4]))
        macro_f1 = cluster_bootstrap(counts, partial(_macro_f1, codes=codes), seed=seed)
        rows.append((reading, "macro_f1", *macro_f1, share.n))
    x, y = np.divmod(np.arange(9), 3)
    kappa = cluster_bootstrap(counts, partial(_kappa, x=x, y=y, linear=True), seed=seed)
    rows.append((STRICT, "kappa", *kappa, len(pairs)))
    scale = scale_of(pairs)
    true = pairs["human_label"].map(lambda label: score_of_label(label, scale)).astype(float)
    off = (pairs["score"].astype(float) - true).to_numpy()
    bias = estimate(off, pairs["group"], scale=scale.differences, weights=weights)
    rows.append((STRICT, "bias", *bias[:3], len(pairs)))
    columns = ["label_mapping", "metric", "value", "ci_low", "ci_high", "n"]
    return pd.DataFrame(rows, columns=columns)


def _macro_f1(tables: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Mean F1 over the labels of a reading, for counts of shape (tables, 9); a label that neither
    gives has no F1, and is left out.
    """
    scores = []
    with np.errstate(invalid="ignore"):
        for initial in "tpf":
            given = codes == initial
            scores.append(2 * (tables @ given.all(axis=1)) / (tables @ given.sum(axis=1)))
        mean: np.ndarray = np.nansum(scores, axis=0) / np.isfinite(scores).sum(axis=0)
    return mean


def agreement_table(sources: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Formats `agreement` of each source as a table: rows (source, label_mapping), columns n and
    the metrics, cells "0.920 [0.880, 0.955]".
    """
    table = pd.concat(sources, names=["source"]).reset_index("source")
    cells, table["metric"] = ci_cells(table, decimals=3), table["metric"].map(METRICS)
    wide = report_table(table, rows=["source", "label_mapping", "n"], cells=cells, empty="")
    return wide.reset_index("n")[["n", *METRICS.values()]]
