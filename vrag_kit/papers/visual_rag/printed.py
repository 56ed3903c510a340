"""Published numbers of the paper in our result format, and tests of whether a benchmark is the
paper's own data.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.papers.published import published
from vrag_kit.papers.sources import NO_EDITION, OTHER_DATA, DataSource, make_data_source
from vrag_kit.papers.visual_rag.statistics import published_statistics
from vrag_kit.papers.visual_rag.uncertainty import with_binomial_interval, with_uncertainty
from vrag_kit.types import Benchmark

PAPER_QUERIES = 374
"""Number of queries behind every number of the Visual-RAG paper."""
EDITIONS = {
    "94b730ac02c6606269bfb430091648549af4f6bd": "Visual-RAG v1, first upload",
    "103cb49bcc545cc7235fc62e5cd8a4e7333fd665": "Visual-RAG v1, second upload",
    "5e01244436de97da8925afbe4773cbc7370a19cf": "Visual-RAG v1, third upload",
}
"""Maps git's blob id of a released `v1_anno.jsonl` to its upload in April 2025. The blob id of
`v2_anno.jsonl` is unknown here.
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
"""Maps a model's name, as `params/visual_rag/paper.yaml` loads it, to its name in the paper's
tables.
"""


def published_results(table: pd.DataFrame, *, n: int = PAPER_QUERIES) -> pd.DataFrame:
    """Converts a published table of answers to our result format, in percent. ci_low and ci_high
    are the widest interval; ci_low_runs and ci_high_runs are given where runs are published
    (`with_uncertainty`).

    k is 0 for zero-shot, 1 for one image, m for m clues, and 10 for text passages (appendix B.1).
    m_in_10 becomes m_in_k. `n` is the number of queries, where it differs from the paper's 374: the
    paper does not publish 266 for Table 6 and 371 for iNat24 in Table 5, but only these fit the
    published percentages (see `16_paper_audit`).
    """
    setting = table["setting"].replace("m_in_10", "m_in_k")
    k = table["k"] if "k" in table else pd.Series(np.nan, table.index)
    k = k.fillna(setting.map({"zero_shot": 0, "gt_clue": 1, "non_clue": 1, "text_rag": 10}))
    if "m" in table:
        k = k.fillna(table["m"])
        table = table.assign(m=table["m"].fillna(0).astype(int))
    return with_uncertainty(table.assign(setting=setting, k=k.astype(int), n=n, unit="percent"))


def published_retrieval() -> pd.DataFrame:
    """Returns Table 2 in our result format: retriever, metric, k, value, ci_low, ci_high, n, unit.

    Its nDCG is named `ndcg_visual_rag`, the definition that fits. Intervals are the widest possible
    (`with_binomial_interval`); hit_count, a number of images without a bound, has none.
    """
    table = published("visual_rag", table=2).replace({"metric": {"ndcg": "ndcg_visual_rag"}})
    shares = with_binomial_interval(table.assign(n=PAPER_QUERIES))
    count = shares["metric"] == "hit_count"
    ends = shares[["ci_low", "ci_high"]].mask(count)
    units = count.map({True: "images", False: "percent"})
    return shares.assign(ci_low=ends["ci_low"], ci_high=ends["ci_high"], unit=units)


def is_paper_data(benchmark: Benchmark) -> bool:
    """Whether all annotations equal those of one of the `EDITIONS`, byte for byte."""
    return bool(release_of(benchmark))


def release_of(benchmark: Benchmark) -> str:
    """Returns which of the `EDITIONS` the annotations are; "" for other data, or part of one."""
    return EDITIONS.get(benchmark.blob, "")


def data_source(benchmark: Benchmark) -> DataSource:
    """Returns the data source of statement checks: one of the `EDITIONS`, or data without a
    verdict.

    A file with as many queries and query-image pairs as in the paper's section 3, but of unknown
    content, is an unknown edition: v2 changes labels and answers of 61 rows, which could explain a
    difference from the paper.
    """
    ours = published_statistics(benchmark)
    theirs = published("visual_rag", "section3").set_index("statistic")["value"]
    alike = all(ours[name] == theirs[name] for name in ("queries", "query-image pairs"))
    otherwise = NO_EDITION if alike else OTHER_DATA
    return make_data_source(benchmark, release_of(benchmark), otherwise)


def retrieval_table_with_published(
    results: pd.DataFrame, paper: pd.DataFrame, *, same_data: bool = False
) -> pd.DataFrame:
    """Formats our results in the layout of the paper's Table 2, with the paper's rows below. These
    are labelled as other data unless `same_data` (see `is_paper_data`).

    Rows are (retriever, metric), columns the cutoffs; our cells read "mean [low, high]". Both in
    percent.
    """
    ours = results.assign(cell=[_cell(row) for row in results.to_dict("records")])
    theirs = paper.assign(
        cell=paper["value"].map("{:.2f}".format),
        retriever=paper["retriever"] + (" (reported)" if same_data else " (reported, other data)"),
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
    return format_ci(row["value"], row["ci_low"], row["ci_high"])


def published_rouge() -> pd.DataFrame:
    """Returns Tables 14 and 16 in the form of Table 3: model, setting, k, metric "rouge", value in
    percent; the published average where there are five runs.
    """
    tables = [published("visual_rag", table=number) for number in (14, 16)]
    both = pd.concat(tables, ignore_index=True)
    single = both["statistic"].isna() & both["run"].isna()
    chosen = both[(both["statistic"] == "avg") | single]
    return chosen[["model", "setting", "k", "value"]].assign(metric="rouge").reset_index(drop=True)
