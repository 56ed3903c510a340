"""Does a replication agree with the paper? Only on the paper's own data is that a question, and only beyond its own noise an answer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.analysis.published import PAPER_NAMES, is_papers_data, published
from vrag_kit.analysis.settings_table import settings_table
from vrag_kit.types import Benchmark

_RUNS = 5        # behind a mean of the paper where it averages
_LEVEL = 1.96


def beside_printed(results: pd.DataFrame, paper: pd.DataFrame, benchmark: Benchmark, judged: pd.DataFrame) -> pd.DataFrame:
    """The table that closes a notebook: on the paper's own data (`is_papers_data`) `held_against_paper`, on any other the two side by side, without a verdict."""
    return held_against_paper(results, paper, judged).round(1) if is_papers_data(benchmark) else settings_table(results, paper)


def held_against_paper(results: pd.DataFrame, paper: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Our accuracies less the paper's on the same data, one row a cell that both have: model, setting, k, value, paper, difference, allowed, verdict.

    All in percent and points; `results` as `in_percent(accuracy(judged, …))`, `paper` as `printed(published(…))`. A difference "agrees" when it is at most `allowed`:
    1.96 standard errors of a difference of two such means over the *same* queries. These come from the paper's standard deviation
    between runs (Tables 13 and 15; for a cell without runs, the model's over all its cells), divided by the runs on either side, and from the spread of our judge's
    verdicts where there are several an answer. A larger one is "above the paper" or "below the paper".
    """
    keys = ["setting", "k", *(["m"] if "m" in results and "m" in paper else [])]
    ours = results[results["metric"] == "accuracy"].assign(paper_model=lambda table: table["model"].map(PAPER_NAMES))
    theirs = paper.rename(columns={"model": "paper_model", "value": "paper"})[["paper_model", *keys, "paper"]]
    table = ours.merge(theirs, on=["paper_model", *keys])
    table = table.assign(difference=table["value"] - table["paper"], allowed=[_allowed(row, judged) for row in table.to_dict("records")])
    verdict = np.where(table["difference"].abs() <= table["allowed"], "agrees", np.where(table["difference"] > 0, "above the paper", "below the paper"))
    return table.assign(verdict=verdict)[["model", *keys, "value", "paper", "difference", "allowed", "verdict"]]


def run_to_run() -> pd.DataFrame:
    """The paper's standard deviations between its five runs, from the runs themselves (Tables 13 and 15, ddof = 1): model, setting, k, std in points."""
    runs = pd.concat([published("visual_rag", table=13), published("visual_rag", table=15)]).dropna(subset="run")
    return runs.assign(k=runs["k"].fillna(1).astype(int)).groupby(["model", "setting", "k"], sort=False)["value"].std(ddof=1).rename("std").reset_index()


def _allowed(row: dict[str, object], judged: pd.DataFrame) -> float:
    spreads = run_to_run()
    spreads = spreads[spreads["model"] == row["paper_model"]]
    own = spreads[(spreads["setting"] == row["setting"]) & (spreads["k"] == row["k"])]
    std = float(own["std"].iloc[0]) if len(own) else float(np.sqrt((spreads["std"] ** 2).mean()))
    arm = judged[(judged["model"] == row["model"]) & (judged["setting"] == row["setting"]) & (judged["k"] == row["k"])]
    judge = 1e4 * float((arm["spread"] ** 2).mean()) / len(arm) if arm["spread"].notna().any() else 0.0
    return _LEVEL * float(np.sqrt(std**2 / (_RUNS if len(own) else 1) + std**2 / max(1, arm["draw"].nunique()) + judge))
