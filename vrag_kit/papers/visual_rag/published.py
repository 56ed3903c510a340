"""Published numbers of the paper in our result format, and tests of whether a benchmark is the
paper's own data.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from vrag_kit.analysis.report_tables import format_ci
from vrag_kit.papers.published import published
from vrag_kit.papers.sources import NO_EDITION, OTHER_DATA, DataSource, make_data_source
from vrag_kit.papers.visual_rag.gcue import LAMBDAS, gcue_from_means
from vrag_kit.papers.visual_rag.statistics import published_statistics
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


_GCUE = [
    *("model", "k", "lambda", "value", "ci_low", "ci_high", "interval", "half_width"),
    *("a_k", "a_gt", "a_zero_shot", "a_non_clue"),
    *("denominator", "denominator_low", "denominator_high", "n", "n_failed"),
]
"""Columns of `gcue`."""


def published_gcue(table: pd.DataFrame, *, lambdas: Sequence[float] = LAMBDAS) -> pd.DataFrame:
    """Computes gCUE from published accuracies, `published("visual_rag", table=3)`. Columns are
    those of `gcue`, without intervals, which the paper's means do not allow.
    """
    rows = []
    for model, part in table.groupby("model", sort=False):
        base = part.drop_duplicates("setting").set_index("setting")["value"] / 100
        a_gt, a_z = base["gt_clue"], base["zero_shot"]
        a_nc = base["non_clue"]
        given = {"a_gt": a_gt, "a_zero_shot": a_z, "a_non_clue": a_nc}
        for k, value in part[part["setting"] == "one_in_k"][["k", "value"]].itertuples(index=False):
            for lam in lambdas:
                row = {"model": model, "k": int(k), "lambda": lam, "a_k": value / 100, **given}
                row["value"] = gcue_from_means(value / 100, a_gt, a_z, a_nc, lam)
                benefit = a_gt - (lam * a_z + (1 - lam) * a_nc)
                rows.append({**row, "denominator": benefit})
    gcue = pd.DataFrame(rows).assign(interval="", n=PAPER_QUERIES, n_failed=0)
    return gcue.reindex(columns=_GCUE)


def published_selective_accuracy(
    accuracies: pd.DataFrame, abstentions: pd.DataFrame
) -> pd.DataFrame:
    """Computes selective accuracy from the published Tables 3 and 8, each with its
    columns k and n. Columns: model, setting, k, value in percent, n; NaN where all answers abstain.

    Accuracy / (1 − abstention): exact where an abstention scores 0, as the rubric demands, and both
    tables count the same answers.
    """
    both = accuracies.merge(
        abstentions[["model", "setting", "k", "value"]],
        on=["model", "setting", "k"],
        suffixes=("", "_declined"),
    )
    given = 100 - both["value_declined"]
    value = (100 * both["value"] / given).where(given > 0)
    return both.assign(value=value)[["model", "setting", "k", "value", "n"]]


def gains_vs_judge_bias(paper: pd.DataFrame, bias: float) -> pd.DataFrame:
    """Compares each model's gain from the clue over zero-shot with the judge's bias, smallest gain
    first. `paper` is `published("visual_rag", table=3)`. Columns: model, gain in points;
    cancelled_by, the differential bias that would cancel the gain (equal to it); smaller_than_bias,
    whether the gain is below `bias` (in [−1, 1], over all answers).
    """
    value = paper[paper["setting"].isin(["zero_shot", "gt_clue"])].pivot(
        index="model", columns="setting", values="value"
    )
    gains = (value["gt_clue"] - value["zero_shot"]).rename("gain").sort_values().reset_index()
    gains = gains.assign(cancelled_by=gains["gain"])
    return gains.assign(smaller_than_bias=gains["gain"].abs() < 100 * abs(bias))
