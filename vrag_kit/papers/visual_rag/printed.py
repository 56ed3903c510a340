"""The paper's printed numbers in the form of ours, and whether a benchmark is the
paper's own data.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.cells import interval_cell
from vrag_kit.papers.published import published
from vrag_kit.papers.sources import NO_EDITION, OTHER_DATA, Source, source_in
from vrag_kit.papers.visual_rag.doubt import at_most, with_doubt
from vrag_kit.papers.visual_rag.statistics import printed_statistics
from vrag_kit.types import Benchmark

PAPER_QUERIES = 374
"""Queries behind every number of the Visual-RAG paper."""
EDITIONS = {
    "94b730ac02c6606269bfb430091648549af4f6bd": "Visual-RAG v1, first upload",
    "103cb49bcc545cc7235fc62e5cd8a4e7333fd665": "Visual-RAG v1, second upload",
    "5e01244436de97da8925afbe4773cbc7370a19cf": "Visual-RAG v1, third upload",
}
"""Git's blob id of a released `v1_anno.jsonl` → which of the uploads of April 2025 it is; that
of `v2_anno.jsonl` is not known here.
"""
PAPER_NAMES = {
    "microsoft-Phi-4-multimodal-instruct": "Phi4-MM",
    "Qwen-Qwen2.5-VL-7B-Instruct": "Qwen2.5VL",
    "OpenGVLab-InternVL3-8B-hf": "InternVL3",
    "mistral-community-pixtral-12b": "Pixtral",
    "meta-llama-Llama-3.2-11B-Vision-Instruct": "Llama3.2-V",
    "gpt-4o": "GPT-4o",
    "gemini-2.5-pro": "Gemini",
    "claude-sonnet-4-20250514": "Claude",
}
"""Our name of a model, as `params/visual_rag/paper.yaml` loads it → the name in the paper's
tables.
"""


def printed(table: pd.DataFrame, *, n: int = PAPER_QUERIES) -> pd.DataFrame:
    """A table of answers of the Visual-RAG paper as ours are, in percent, with ci_low and
    ci_high at their widest, and runs_low and runs_high where runs are printed
    (`with_doubt`).

    k of zero-shot is 0, of one image 1, of m clues m, of text passages 10 (appendix
    B.1). m_in_10 becomes m_in_k. `n` is the number of queries behind it, where the
    paper differs from its 374: it does not print 266 for Table 6 and 371 for iNat24 in
    Table 5, but only they fit the printed percentages (see `16_paper_audit`).
    """
    setting = table["setting"].replace("m_in_10", "m_in_k")
    k = table["k"] if "k" in table else pd.Series(np.nan, table.index)
    k = k.fillna(setting.map({"zero_shot": 0, "gt_clue": 1, "non_clue": 1, "text_rag": 10}))
    if "m" in table:
        k = k.fillna(table["m"])
        table = table.assign(m=table["m"].fillna(0).astype(int))
    return with_doubt(table.assign(setting=setting, k=k.astype(int), n=n, unit="percent"))


def printed_retrieval() -> pd.DataFrame:
    """Table 2 as our results are: retriever, metric, k, value, ci_low, ci_high, n, unit.

    Its nDCG stands as `ndcg_visual_rag`, the definition that it fits. Intervals are at
    their widest (`at_most`); a number of images (hit_count) has no bound, and none.
    """
    table = published("visual_rag", table=2).replace({"metric": {"ndcg": "ndcg_visual_rag"}})
    shares = at_most(table.assign(n=PAPER_QUERIES))
    count = shares["metric"] == "hit_count"
    ends = shares[["ci_low", "ci_high"]].mask(count)
    units = count.map({True: "images", False: "percent"})
    return shares.assign(ci_low=ends["ci_low"], ci_high=ends["ci_high"], unit=units)


def is_papers_data(benchmark: Benchmark) -> bool:
    """Whether all annotations are those of one of the `EDITIONS`, byte for byte."""
    return bool(edition_of(benchmark))


def edition_of(benchmark: Benchmark) -> str:
    """Which of the `EDITIONS` its annotations are; "" of others, and of a part of one."""
    return EDITIONS.get(benchmark.blob, "")


def source_of(benchmark: Benchmark) -> Source:
    """What statements and cells of the paper are held against: one of the `EDITIONS`, or
    data on which there is no verdict.

    A file of as many queries and query-image pairs as the paper's section 3 prints, but of
    no known content, is an edition that is not known: v2 changes labels and answers of 61
    rows, and a difference to the paper may be theirs.
    """
    ours = printed_statistics(benchmark)
    theirs = published("visual_rag", "section3").set_index("statistic")["value"]
    alike = all(ours[name] == theirs[name] for name in ("queries", "query-image pairs"))
    otherwise = NO_EDITION if alike else OTHER_DATA
    return source_in(benchmark, edition_of(benchmark), otherwise)


def beside_paper(
    results: pd.DataFrame, paper: pd.DataFrame, *, same_data: bool = False
) -> pd.DataFrame:
    """Our table in the layout of the paper's Table 2, with the paper's rows below,
    marked as on different data unless `same_data` (see `is_papers_data`).

    Rows are (retriever, metric), columns the cut-offs; our cells read "mean [low,
    high]". Both in percent.
    """
    ours = results.assign(cell=[_cell(row) for row in results.to_dict("records")])
    theirs = paper.assign(
        cell=paper["value"].map("{:.2f}".format),
        retriever=paper["retriever"] + (" (paper)" if same_data else " (paper, different data)"),
        metric=paper["metric"].replace("ndcg", "ndcg_visual_rag"),
    )
    both, rows = pd.concat([ours, theirs]), ["retriever", "metric"]
    table = both.pivot_table(
        index=rows, columns="k", values="cell", aggfunc="first", sort=False, observed=True
    )
    return table.rename(columns=lambda k: f"@{k}")


def _cell(row: dict[Hashable, Any]) -> str:  # a row of a table: values of any type
    if row["retriever"].endswith(" order"):  # references are computed, not measured
        return f"{row['value']:.1f}"
    return interval_cell(row["value"], row["ci_low"], row["ci_high"])


def rouge_published() -> pd.DataFrame:
    """Tables 14 and 16 in the form of Table 3: model, setting, k, metric "rouge", value
    in percent; the printed average where there were five runs.
    """
    tables = [published("visual_rag", table=number) for number in (14, 16)]
    both = pd.concat(tables, ignore_index=True)
    single = both["statistic"].isna() & both["run"].isna()
    chosen = both[(both["statistic"] == "avg") | single]
    return chosen[["model", "setting", "k", "value"]].assign(metric="rouge").reset_index(drop=True)
