"""The numbers that the papers print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.benchmarks import statistics
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark

PAPER_QUERIES = 374
"""Queries behind every number of the Visual-RAG paper."""
PAPER_NAMES = {
    "microsoft-Phi-4-multimodal-instruct": "Phi4-MM", "Qwen-Qwen2.5-VL-7B-Instruct": "Qwen2.5VL", "OpenGVLab-InternVL3-8B-hf": "InternVL3",
    "mistral-community-pixtral-12b": "Pixtral", "meta-llama-Llama-3.2-11B-Vision-Instruct": "Llama3.2-V", "gpt-4o": "GPT-4o", "gemini-2.5-pro": "Gemini",
    "claude-sonnet-4-20250514": "Claude",
}
"""Our name of a model, as `params/paper.yaml` loads it → the name in the paper's tables."""
_SHARES = ("value", "ci_low", "ci_high", "std", "if_all_wrong", "if_all_right", "if_refusals_wrong")
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


def printed(table: pd.DataFrame, *, n: int = PAPER_QUERIES) -> pd.DataFrame:
    """A table of answers of the Visual-RAG paper as ours are, without intervals.

    k of zero-shot is 0, of one image 1, of m clues m, of text passages 10 (appendix B.1). m_in_10 becomes m_in_k. `n` is the number of queries behind it, where the paper
    differs from its 374: it does not print 266 for Table 6 and 371 for iNat24 in Table 5, but only they fit the printed percentages (see `16_paper_audit`).
    """
    setting = table["setting"].replace("m_in_10", "m_in_k")
    k = table["k"] if "k" in table else pd.Series(np.nan, table.index)
    k = k.fillna(setting.map({"zero_shot": 0, "gt_clue": 1, "non_clue": 1, "text_rag": 10}))
    if "m" in table:
        k = k.fillna(table["m"])
        table = table.assign(m=table["m"].fillna(0).astype(int))
    return table.assign(setting=setting, k=k.astype(int), ci_low=np.nan, ci_high=np.nan, n=n)


def is_papers_data(benchmark: Benchmark) -> bool:
    """Whether the annotations agree with all that the Visual-RAG paper prints about its own (section 3): queries, query-image pairs, clues a query, and share of clues.

    These four numbers stand for the fingerprint of the paper's annotation file, which this kit does not carry.
    """
    ours, theirs = statistics(benchmark).set_index("statistic")["value"], published("visual_rag", "section3").set_index("statistic")["value"]
    return all(ours[name] == value for name, value in theirs.items())


def in_percent(results: pd.DataFrame) -> pd.DataFrame:
    """Shares in [0, 1] as percent, as the papers print them; hit_count stays a number of images. A column `unit` says which."""
    counts = results["metric"] == "hit_count"
    scaled = {column: results[column] * np.where(counts, 1.0, 100.0) for column in _SHARES if column in results}
    return results.assign(**scaled, unit=np.where(counts, "images", "percent"))


def beside_paper(results: pd.DataFrame, paper: pd.DataFrame, *, same_data: bool = False) -> pd.DataFrame:
    """Our table in the layout of the paper's Table 2, with the paper's rows below, marked as on different data unless `same_data` (see `is_papers_data`).

    Rows are (retriever, metric), columns the cut-offs; our cells read "mean [low, high]". Both in percent.
    """
    exact = results["retriever"].str.endswith(" order")  # references are computed, not measured
    ours = results.assign(cell=[f"{value:.1f}" if reference else f"{value:.1f} [{low:.1f}, {high:.1f}]"
                                for reference, value, low, high in zip(exact, results["value"], results["ci_low"], results["ci_high"], strict=True)])
    theirs = paper.assign(cell=paper["value"].map("{:.2f}".format), retriever=paper["retriever"] + (" (paper)" if same_data else " (paper, different data)"),
                          metric=paper["metric"].replace("ndcg", "ndcg_visual_rag"))
    both = pd.concat([ours, theirs])
    table = both.pivot_table(index=["retriever", "metric"], columns="k", values="cell", aggfunc="first", sort=False, observed=True)
    return table.rename(columns=lambda k: f"@{k}")
