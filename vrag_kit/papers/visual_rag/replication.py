"""A replication held against the paper, on the paper's own data only.

Whether the two agree is a question only there, and what differs is told only beyond the
paper's own noise.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparison import holm
from vrag_kit.analysis.settings_table import settings_table
from vrag_kit.papers.visual_rag.doubt import run_to_run
from vrag_kit.papers.visual_rag.printed import PAPER_NAMES, is_papers_data
from vrag_kit.types import Benchmark

PAPERS_JUDGE = "o4-mini"
_RUNS = 5  # behind a mean of the paper where it averages


def beside_printed(
    results: pd.DataFrame,
    paper: pd.DataFrame,
    benchmark: Benchmark,
    judged: pd.DataFrame,
    *,
    judge: str,
) -> pd.DataFrame:
    """The table that closes a notebook: on the paper's own data, judged by its judge,
    `held_against_paper`, otherwise the two side by side, without a verdict.

    Which data they are, `is_papers_data` tells; `judge` is the judge's name. That the
    retriever, the clue's position and the models are the paper's is the caller's to see
    to.
    """
    same = is_papers_data(benchmark)
    if same and judge == PAPERS_JUDGE:
        return held_against_paper(results, paper, judged).round(3)
    return settings_table(results, paper, same_data=same)


def held_against_paper(
    results: pd.DataFrame, paper: pd.DataFrame, judged: pd.DataFrame
) -> pd.DataFrame:
    """Our accuracies less the paper's on the same data, one row a cell that both have:
    model, setting, k, value, paper, difference, allowed, p, p_holm, verdict.

    All in percent and points; `results` as `in_percent(accuracy(judged, …))`, `paper`
    as `printed(published(…))`. The question is whether two means over the *same*
    queries differ by more than runs do. Their noise is the paper's standard deviation
    between runs (Tables 13 and 15), pooled over all cells of the model, divided by the
    runs on either side; to that comes the noise of our judge where there are several
    verdicts an answer. The latter is partly in the former: verdicts err toward
    agreement. `allowed` is the difference that a t test would let pass at 5 %, p its
    p-value, p_holm that corrected for all rows; the verdict, "agrees", "above the
    paper" or "below the paper", goes by p_holm < 0.05. A bias that the paper's judge
    and ours share is in neither. The best top-k is compared whatever its k.
    """
    from scipy.special import stdtr, stdtrit  # Student's t

    keys = ["setting", "place", *(["m"] if "m" in results and "m" in paper else [])]
    ours, theirs = _placed(results[results["metric"] == "accuracy"]), _placed(paper)
    theirs = theirs.rename(columns={"model": "paper_model", "value": "paper"})
    theirs = theirs[["paper_model", *keys, "paper"]]
    named = ours.assign(paper_model=ours["model"].map(PAPER_NAMES))
    table = named.merge(theirs, on=["paper_model", *keys])
    spreads = run_to_run()
    noise = [_noise(row, judged, spreads) for row in table.to_dict("records")]
    error = np.array([each[0] for each in noise], float)
    freedom = np.array([each[1] for each in noise], float)
    difference = table["value"] - table["paper"]
    p = 2 * stdtr(freedom, -difference.abs() / error)
    table = table.assign(
        difference=difference, allowed=stdtrit(freedom, 0.975) * error, p=p, p_holm=holm(p)
    )
    apart = np.where(table["difference"] > 0, "above the paper", "below the paper")
    verdict = np.where(table["p_holm"] >= 0.05, "agrees", apart)
    numbers = ["value", "paper", "difference", "allowed", "p", "p_holm"]
    return table.assign(verdict=verdict)[["model", "setting", "k", *keys[2:], *numbers, "verdict"]]


def _placed(table: pd.DataFrame) -> pd.DataFrame:
    """With the column place: k, or −1 for the best top-k, whatever its k."""
    return table.assign(place=table["k"].mask(table["setting"] == "rag_best", -1))


def _noise(
    row: dict[Hashable, Any],  # any cells
    judged: pd.DataFrame,
    spreads: pd.DataFrame,
) -> tuple[float, int]:
    """(standard error of our mean less the paper's in points, degrees of freedom)."""
    own = spreads[spreads["model"] == row["paper_model"]]
    averaged = ((own["setting"] == row["setting"]) & (own["k"] == row["k"])).any()
    same = pd.Series(True, judged.index)
    for name in ["model", "setting", "k", *(["m"] if "m" in row and "m" in judged else [])]:
        same &= judged[name] == row[name]
    arm = judged[same]
    runs = 1 / (_RUNS if averaged else 1) + 1 / max(1, arm["draw"].nunique())
    variance = float((own["std"] ** 2).mean()) * runs
    return float(np.sqrt(variance + 1e4 * _of_the_judge(arm))), (_RUNS - 1) * len(own)


def _of_the_judge(arm: pd.DataFrame) -> float:
    """Variance that the judge's own noise gives to the difference of two means: ours
    over two verdicts an answer or more, the paper's over one. 0 where it is not known.

    Equal answers to a query share their verdicts, so they count as one, with their
    weight.
    """
    known = arm[arm["score"].notna() & arm["spread"].notna()]
    if known.empty or "answer" not in known:
        return 0.0
    answers = known.groupby(["query_id", "answer"], sort=False)
    each = answers.agg(weight=("score", "size"), spread=("spread", "first"))
    squares = float((each["weight"] ** 2 * each["spread"] ** 2).sum())
    return 1.5 * squares / float(each["weight"].sum()) ** 2
