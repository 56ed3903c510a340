"""Agreement of a judge with human labels under every reading of "partial". Includes linear-weighted
kappa and the judge's signed bias, each with an interval.

Visual-RAG compares 200 answers (Table 9) and reports "partially correct as wildcard match, macro-F1
0.92", which can be read in many ways. A reading gives, for each pair of labels, what it counts as.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.estimates import RESAMPLES, Estimate, bootstrap_counts, estimate
from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.errors import VragError
from vrag_kit.judging.human_labels import LABEL_SCORES, score_of_label
from vrag_kit.judging.scale import scale_of

_RESAMPLES = 1000
_LEVEL = 0.95


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
    Whole groups are resampled with replacement, 1,000 times; draws without a value are left out.
    The interval is NaN for one group, and when all draws have the same value: a bootstrap of
    perfect agreement has no variance. Raises `VragError` for an unknown measure and for different
    lengths.
    """
    if measure not in MEASURES:
        raise VragError(f"there is no measure {measure!r}; expected one of {', '.join(MEASURES)}.")
    first, second = np.asarray(x, float), np.asarray(y, float)
    names = np.asarray(groups)
    if not len(first) == len(second) == len(names):
        raise VragError(
            f"{len(first)} and {len(second)} values but {len(names)} groups; expected pairs of"
            " values, and one group a pair."
        )
    known = np.isfinite(first) & np.isfinite(second)
    failed = int((~known).sum())
    if not known.any():
        return Estimate(np.nan, np.nan, np.nan, 0, failed)
    counts = _counts(first[known], second[known], names[known], square=measure == "kappa")
    value = float(MEASURES[measure](counts.sum(axis=0)[None])[0])
    resamples = bootstrap_counts(len(counts), seed, _RESAMPLES)
    drawn = np.concatenate([_drawn(measure, times, counts) for times in resamples])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) == 0 or np.ptp(drawn) < 1e-12:
        low, high = np.nan, np.nan
    else:
        low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(value, float(low), float(high), int(known.sum()), failed)


def _drawn(measure: str, times: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The measure in each of some resamples, whose groups were drawn so many `times`."""
    tables = times @ counts.reshape(len(counts), -1)
    return MEASURES[measure](tables.reshape(-1, *counts.shape[1:]))


def _counts(x: np.ndarray, y: np.ndarray, names: np.ndarray, *, square: bool) -> np.ndarray:
    """Number of pairs by group, value of x and value of y, ascending; shape (groups,
    values of x, values of y). `square`: both sides list the values of x and y.
    """
    of_x = np.unique(np.concatenate([x, y]) if square else x)
    of_y = of_x if square else np.unique(y)
    clusters, member = np.unique(names, return_inverse=True)
    counts = np.zeros((len(clusters), len(of_x), len(of_y)))
    np.add.at(counts, (member, np.searchsorted(of_x, x), np.searchsorted(of_y, y)), 1)
    return counts


# Each measure takes counts of shape (tables, values of x, values of y) and gives one number a
# table.


def _kappa(counts: np.ndarray) -> np.ndarray:
    n = counts.sum(axis=(1, 2))
    agreed = np.trace(counts, axis1=1, axis2=2) / n
    by_chance = (counts.sum(axis=2) * counts.sum(axis=1)).sum(axis=1) / n**2
    return _ratio(agreed - by_chance, 1 - by_chance)


def _spearman(counts: np.ndarray) -> np.ndarray:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    of_x, of_y = _centred_ranks(rows), _centred_ranks(columns)
    together = np.einsum("tij,ti,tj->t", counts, of_x, of_y, optimize=True)
    return _ratio(together, np.sqrt((rows * of_x**2).sum(axis=1) * (columns * of_y**2).sum(axis=1)))


def _centred_ranks(totals: np.ndarray) -> np.ndarray:
    """Mean rank of each value, less the mean of all ranks."""
    middle: np.ndarray = totals.sum(axis=1, keepdims=True) / 2
    ranks: np.ndarray = totals.cumsum(axis=1) - totals / 2 - middle
    return ranks


def _kendall(counts: np.ndarray) -> np.ndarray:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    n = counts.sum(axis=(1, 2))
    smaller_x = counts.cumsum(axis=1) - counts  # pairs with a smaller x, by y
    smaller_both = smaller_x.cumsum(axis=2) - smaller_x
    smaller_x_larger_y = smaller_x.sum(axis=2, keepdims=True) - smaller_x.cumsum(axis=2)
    in_order = (counts * (smaller_both - smaller_x_larger_y)).sum(axis=(1, 2))
    untied = [(n**2 - (totals**2).sum(axis=1)) / 2 for totals in (rows, columns)]
    return _ratio(in_order, np.sqrt(untied[0] * untied[1]))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """NaN where the denominator is 0 but for rounding."""
    ratios = np.full(len(above), np.nan)
    np.divide(above, below, out=ratios, where=below > 1e-12)
    return ratios


MEASURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "kappa": _kappa,
    "spearman": _spearman,
    "kendall": _kendall,
}


STRICT = "strict"
READINGS = {
    STRICT: "tt tp tf  pt pp pf  ft fp ff",
    "any partial matches; kept as the labeller's label": "tt tt tf  pp pp pp  ft ff ff",
    "any partial matches; kept as the judge's label": "tt pp tf  tt pp ff  ft pp ff",
    "any partial matches; kept as the other label": "tt tt tf  tt pp ff  ft ff ff",
    "any partial matches; both partial left out": "tt tt tf  tt -- ff  ft ff ff",
    "any partial left out": "tt -- tf  -- -- --  ft -- ff",
    "the judge's partial matches": "tt tt tf  pt pp pf  ft ff ff",
    "the labeller's partial matches": "tt tp tf  tt pp ff  ft fp ff",
    "the judge's partial matches; the labeller's left out": "tt tt tf  -- -- --  ft ff ff",
    "the labeller's partial matches; the judge's left out": "tt -- tf  tt -- ff  ft -- ff",
    "partial is true": "tt tt tf  tt tt tf  ft ft ff",
    "partial is false": "tt tf tf  ft ff ff  ft ff ff",
}
"""Reading → what each pair counts as, (human, judge) in initials; "--" is left out.

Groups of three: the human label is true, partial, false; within a group, the judge's is.
"""
METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "kappa": "kappa (linear)",
    "bias": "judge's bias",
}
_INITIALS = "tpf"
_APART = np.abs(np.subtract.outer(range(3), range(3)))  # steps between two labels


def expand_confusion(counts: pd.DataFrame) -> pd.DataFrame:
    """Expands a confusion matrix (human, judge, count) to one row per answer: human_label,
    judge_label, score, group.

    The matrix does not record groups, so each answer is its own group. The judge's score is that of
    its label, in [0, 1]. Raises `VragError` for an unknown label.
    """
    if unknown := sorted({*counts["human"], *counts["judge"]} - set(LABEL_SCORES)):
        raise VragError(
            f"found the label {unknown[0]!r} in the confusion matrix, expected"
            f" {', '.join(LABEL_SCORES)}."
        )
    rows = counts.loc[counts.index.repeat(counts["count"]), ["human", "judge"]]
    rows = rows.reset_index(drop=True).add_suffix("_label")
    scores = rows["judge_label"].map(score_of_label)
    return rows.assign(score=scores, group=[f"answer {n}" for n in rows.index])


def confusion_matrix(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts answers by the human's label (rows) and the judge's (columns). Both are in the order
    true, partial, false; 0 where there is none.
    """
    return pd.crosstab(pairs["human_label"], pairs["judge_label"]).reindex(
        index=list(LABEL_SCORES), columns=list(LABEL_SCORES), fill_value=0
    )


def agreement(pairs: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Agreement of the judge with human labels: label_mapping, metric, value, ci_low, ci_high, n.
    Accuracy and macro-F1 use every reading, linear-weighted kappa and bias the labels as they are.

    `pairs` has one row per answer: human_label, judge_label, score (the judge's), group and,
    optionally, weight: how many answers a row stands for. Macro-F1 is the mean over the labels that
    a reading uses and that occur; kappa is in [−1, 1], NaN when both give only one and the same
    label; bias is the mean of the judge's score minus the human's, at most the width of the judge's
    scale. n counts the answers that a reading keeps; without any, values are NaN. Intervals of
    accuracy and bias are those of `estimate`, of macro-F1 and kappa percentile bootstraps over
    groups, NaN where nothing varies.
    """
    human = pairs["human_label"].map(list(LABEL_SCORES).index).to_numpy(int)
    judge = pairs["judge_label"].map(list(LABEL_SCORES).index).to_numpy(int)
    cells = 3 * human + judge
    weights = pairs["weight"].to_numpy(float) if "weight" in pairs else np.ones(len(pairs))
    counts = np.bincount(cells, weights=weights, minlength=9).reshape(1, 9)
    resampled = _resampled_counts(cells, weights, pairs["group"].to_numpy(), seed)
    rows: list[tuple[object, ...]] = []
    for reading, text in READINGS.items():
        codes = text.split()
        right = _right(codes)[cells]
        share, kept = estimate(right, pairs["group"], weights=weights), np.isfinite(right).sum()
        rows.append((reading, "accuracy", share.value, share.ci_low, share.ci_high, int(kept)))
        low, high = _interval(_macro_f1(resampled, codes))
        rows.append((reading, "macro_f1", _macro_f1(counts, codes)[0], low, high, int(kept)))
    low, high = _interval(_confusion_kappa(resampled))
    rows.append((STRICT, "kappa", _confusion_kappa(counts)[0], low, high, len(pairs)))
    bias = _bias(pairs, weights)
    rows.append((STRICT, "bias", bias.value, bias.ci_low, bias.ci_high, len(pairs)))
    columns = ["label_mapping", "metric", "value", "ci_low", "ci_high", "n"]
    return pd.DataFrame(rows, columns=columns)


def agreement_table(sources: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Formats `agreement` of each source as a table: rows (source, label_mapping), columns n and
    the metrics, cells "0.920 [0.880, 0.955]".
    """
    table = pd.concat(sources, names=["source"]).reset_index("source")
    numbers = table[["value", "ci_low", "ci_high"]].itertuples(index=False)
    cells = [_cell(value, low, high) for value, low, high in numbers]
    table = table.assign(cell=cells, metric=table["metric"].map(METRICS))
    rows = ["source", "label_mapping", "n"]
    wide = table.pivot_table(
        index=rows, columns="metric", values="cell", aggfunc="first", sort=False
    )
    return wide.fillna("").reset_index("n")[["n", *METRICS.values()]]


def _cell(value: float, low: float, high: float) -> str:
    if not np.isfinite(value):
        return "undefined"
    return format_ci(value, low, high, decimals=3)


def _right(codes: list[str]) -> np.ndarray:
    """For each of the nine pairs of labels 1 where they count as one, else 0; NaN where
    a reading leaves the pair out.
    """
    return np.array([np.nan if code == "--" else float(code[0] == code[1]) for code in codes])


def _resampled_counts(
    cells: np.ndarray, weights: np.ndarray, groups: np.ndarray, seed: int
) -> np.ndarray:
    """Weighted counts of the nine pairs of labels in every resample of whole groups,
    shape (resamples, 9).
    """
    names, member = np.unique(groups, return_inverse=True)
    if len(names) == 0:
        return np.zeros((RESAMPLES, 9))
    by_group = np.zeros((len(names), 9))
    np.add.at(by_group, (member, cells), weights)
    return np.concatenate([times @ by_group for times in bootstrap_counts(len(names), seed)])


def _macro_f1(counts: np.ndarray, codes: list[str]) -> np.ndarray:
    """Mean F1 over the labels of a reading, for counts of shape (resamples, 9); a label
    that neither gives has no F1, and is left out.
    """
    scores = []
    for initial in _INITIALS:
        as_human = np.array([code[0] == initial for code in codes])
        as_judge = np.array([code[1] == initial for code in codes])
        given = counts @ as_human + counts @ as_judge
        scores.append(_kappa_ratio(2 * (counts @ (as_human & as_judge)), given))
    known = np.isfinite(scores).sum(axis=0)
    return _kappa_ratio(np.nansum(scores, axis=0), known)


def _confusion_kappa(counts: np.ndarray) -> np.ndarray:
    """Cohen's kappa with linear weights, for counts of shape (resamples, 9): 1 −
    observed / expected distance. Cohen (1968), Psychol. Bull. 70(4).
    """
    matrices = counts.reshape(-1, 3, 3)
    human, judge = matrices.sum(axis=2), matrices.sum(axis=1)
    observed = matrices.sum(axis=(1, 2)) * (matrices * _APART).sum(axis=(1, 2))
    expected = np.einsum("ri,ij,rj->r", human, _APART, judge)
    return 1 - _kappa_ratio(observed, expected)


def _kappa_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to divide by."""
    ratios = np.full(len(above), np.nan)
    np.divide(above, below, out=ratios, where=below > 0)
    return ratios


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of a statistic over resamples, without those where it is
    undefined; NaN where it never varies, since a bootstrap then knows no doubt.
    """
    known = values[np.isfinite(values)]
    if len(known) == 0 or np.ptp(known) == 0:
        return np.nan, np.nan
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _bias(pairs: pd.DataFrame, weights: np.ndarray) -> Estimate:
    """Mean of the judge's score less the human's, and its interval."""
    scale = scale_of(pairs)
    human = pairs["human_label"].map(lambda label: score_of_label(label, scale)).astype(float)
    off = pairs["score"].astype(float) - human
    return estimate(off.to_numpy(), pairs["group"], scale=scale.differences, weights=weights)
