"""Comparison of gCUE with the paper's Figure 3, with the noise of the four underlying means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.derived import published_gcue
from vrag_kit.papers.visual_rag.equivalence import MARGIN, NOT_COMPARABLE, with_equivalence_verdict
from vrag_kit.papers.visual_rag.gcue import format_gcue, gcue_from_means
from vrag_kit.papers.visual_rag.printed import (
    PAPER_NAMES,
    PAPER_QUERIES,
    is_paper_data,
    release_of,
)
from vrag_kit.papers.visual_rag.replication import PAPERS_JUDGE, answers_of_cell
from vrag_kit.papers.visual_rag.run_noise import RunNoise, run_noise
from vrag_kit.types import Benchmark

LAMBDA = 0.5  # the paper's
_MEANS = ["a_k", "a_gt", "a_zero_shot", "a_non_clue"]
_ARMS = {"gt_clue": 1, "zero_shot": 0, "non_clue": 1}  # setting → k


def compare_gcue_to_paper(
    curves: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    judge: str,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Builds the last table of `05_gcue_curves`: gCUE at λ = 0.5 compared with the paper. On the
    paper's own data, with its judge, it is `gcue_differences_from_published`. Otherwise both sets
    of results: rows k, columns models.
    """
    same = is_paper_data(benchmark)
    if same and judge == PAPERS_JUDGE:
        held = gcue_differences_from_published(curves, judged, margin=margin).round(2)
        return held.assign(edition=release_of(benchmark))
    mark = "reported" if same else "reported, other data"
    paper = published_gcue(published("visual_rag", table=3), lambdas=[LAMBDA])
    paper = paper.assign(
        model=paper["model"] + f" ({mark})", cell=paper["value"].map("{:.2f}".format)
    )
    ours = curves[curves["lambda"] == LAMBDA]
    both = pd.concat([ours.assign(cell=format_gcue(ours)), paper])
    wide = both.pivot_table(index="k", columns="model", values="cell", aggfunc="first", sort=False)
    return wide.sort_index().fillna("")


def gcue_differences_from_published(
    curves: pd.DataFrame, judged: pd.DataFrame, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Computes the difference of our gCUE at λ = 0.5 from that of Table 3, one row per model and k.
    Columns: model, k, value, paper, difference, ci_low, ci_high, margin, n, verdict.

    To first order the difference is (e_k − g e_GT − (1 − g) e_B) / (A_GT − B), with g
    and A_GT − B the paper's and e what our means differ by from its means; each e has
    the noise of its cell in Table 3 (`run_noise`). Where A_GT − B is not clearly above
    that noise there is no interval, and the verdict is "inconclusive". The margin in
    points of A_k is here divided by the paper's A_GT − B, and so given in each row.
    """
    paper = published_gcue(published("visual_rag", table=3), lambdas=[LAMBDA])
    ours = curves[curves["lambda"] == LAMBDA][["model", "k", *_MEANS]]
    values = [
        gcue_from_means(a_k, a_gt, a_zero_shot, a_non_clue, LAMBDA)
        for a_k, a_gt, a_zero_shot, a_non_clue in ours[_MEANS].itertuples(index=False)
    ]
    ours = ours.assign(value=values)  # also where other queries might give no ratio
    named = ours.assign(paper_model=ours["model"].map(PAPER_NAMES))
    theirs = paper[["model", "k", "value", "denominator"]]
    theirs = theirs.rename(columns={"model": "paper_model", "value": "paper"})
    table = named.merge(theirs, on=["paper_model", "k"])
    rows = [_half_width(row, judged) for _, row in table.iterrows()]
    ends = pd.DataFrame(rows, columns=["half", "n"], index=table.index)
    difference = table["value"] - table["paper"]
    table = table.assign(
        difference=difference,
        ci_low=difference - ends["half"],
        ci_high=difference + ends["half"],
        margin=margin / (100 * table["denominator"]),
        n=ends["n"],
    )
    table = with_equivalence_verdict(table, table["margin"])
    other = table["n"] != PAPER_QUERIES
    table = table.assign(verdict=table["verdict"].mask(other, NOT_COMPARABLE))
    numbers = ["value", "paper", "difference", "ci_low", "ci_high", "margin", "n"]
    return table[["model", "k", *numbers, "verdict"]]


def _half_width(row: pd.Series, judged: pd.DataFrame) -> tuple[float, int]:
    """(half the width of a row's interval, the fewest queries asked in its arms)."""
    noises: dict[str, RunNoise] = {}
    asked = []
    for setting, k in {**_ARMS, "one_in_k": int(row["k"])}.items():
        arm = answers_of_cell(judged, {"model": row["model"], "setting": setting, "k": k})
        noises[setting] = run_noise((row["paper_model"], setting, k), arm, "accuracy", np.nan)
        asked.append(arm["query_id"].nunique())
    baseline = {"zero_shot": LAMBDA, "non_clue": 1 - LAMBDA}
    g = row["paper"]
    weights = {"one_in_k": 1.0, "gt_clue": -g}
    weights |= {name: -(1 - g) * weight for name, weight in baseline.items()}
    denominator = 100 * row["denominator"]
    if denominator <= _combined(noises, {"gt_clue": 1.0, **baseline}):
        return np.nan, min(asked)
    return _combined(noises, weights) / denominator, min(asked)


def _combined(noises: Mapping[str, RunNoise], weights: Mapping[str, float]) -> float:
    """Half the width of a weighted sum's interval, with all that missing verdicts could
    change.
    """
    allowed = sum((weight * noises[name].allowed) ** 2 for name, weight in weights.items())
    missing = [abs(weight) * _most(noises[name]) for name, weight in weights.items()]
    return float(np.sqrt(allowed)) + sum(missing)


def _most(noise: RunNoise) -> float:
    """The most that missing verdicts could change a mean, in points."""
    return max(-noise.missing[0], noise.missing[1])
