"""The numbers that the papers print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError

PAPER_QUERIES = 374
"""Queries behind every number of the Visual-RAG paper."""
_FOLDER = Path(__file__).parent / "tables"


def published(paper: str, table: int | str) -> pd.DataFrame:
    """A published table as a tidy DataFrame: `published("visual_rag", table=3)`; one observation a row, values as printed (percent for shares).

    `paper` is one of visual_rag, mrag_bench, mrag_suite, crag_mm. `table` is a table's number, or the name of one of the files, such as "figure02"
    or "section3" (`tables/README.md` lists them). Where a table prints runs beside their summary, all are given: single values have neither `run` nor `statistic`, runs
    have a `run`, printed means and deviations a `statistic` ("avg", "std"). Raises `VragError` with the list of tables for an unknown name.
    """
    stem = f"table{table:02d}" if isinstance(table, int) else table
    files = sorted(file for file in _FOLDER.glob("*/*.csv") if file.parent.name == paper and (file.stem == stem or file.stem.startswith(f"{stem}_")))
    if not files:
        known = sorted(f"{file.parent.name}/{file.stem}" for file in _FOLDER.glob("*/*.csv"))
        raise VragError(f"no published table {paper}/{stem}; expected one of {', '.join(known)}.")
    return pd.concat([pd.read_csv(file) for file in files], ignore_index=True)


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of answers of the Visual-RAG paper as ours are: k of zero-shot 0, of one image 1; its 374 queries; without intervals."""
    k = table["k"].fillna(table["setting"].map({"zero_shot": 0, "gt_clue": 1, "non_clue": 1}))
    return table.assign(k=k.astype(int), ci_low=np.nan, ci_high=np.nan, n=PAPER_QUERIES)


def in_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Shares in [0, 1] as percent, as the papers print them; hit_count stays a number of images. A column `unit` says which."""
    counts = results["metric"] == "hit_count"
    scaled = {column: results[column] * np.where(counts, 1.0, 100.0) for column in ("value", "ci_low", "ci_high") if column in results}
    return results.assign(**scaled, unit=np.where(counts, "images", "percent"))


def beside_paper(results: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Our table in the layout of the paper's Table 2, with the paper's rows below, marked as on other data.

    Rows are (retriever, metric), columns the cut-offs; our cells read "mean [low, high]". Both in percent.
    """
    exact = results["retriever"].str.endswith(" order")  # references are computed, not measured
    ours = results.assign(cell=[f"{value:.1f}" if reference else f"{value:.1f} [{low:.1f}, {high:.1f}]"
                                for reference, value, low, high in zip(exact, results["value"], results["ci_low"], results["ci_high"], strict=True)])
    theirs = paper.assign(cell=paper["value"].map("{:.2f}".format), retriever=paper["retriever"] + " (paper, other data)",
                          metric=paper["metric"].replace("ndcg", "ndcg_visual_rag"))
    both = pd.concat([ours, theirs])
    table = both.pivot_table(index=["retriever", "metric"], columns="k", values="cell", aggfunc="first", sort=False, observed=True)
    return table.rename(columns=lambda k: f"@{k}")
