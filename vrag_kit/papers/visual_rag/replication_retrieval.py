"""Comparison of retrieval with the paper's Table 2: there are no runs, so queries are counted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.equivalence import MARGIN, with_equivalence_verdict
from vrag_kit.papers.visual_rag.printed import (
    PAPER_QUERIES,
    is_paper_data,
    release_of,
    retrieval_table_with_published,
)
from vrag_kit.types import Benchmark

PAPER_RETRIEVERS = {
    "ViT-L-14-336-quickgelu-openai": "CLIP",
    "BAAI-BGE-VL-large": "BGE",
    "TIGER-Lab-VLM2Vec-Qwen2VL-2B": "VLM2Vec",
}
"""Maps a retriever's name, as `params/visual_rag/paper.yaml` loads it, to the paper's name."""
_HALF_UNIT = 0.005  # of the last printed digit


def compare_retrieval_to_paper(
    results: pd.DataFrame, benchmark: Benchmark, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Builds the last table of `02_retriever_comparison`. On the paper's own data it is
    `retrieval_differences_from_published`, otherwise both sets of results without a verdict.
    """
    if is_paper_data(benchmark):
        held = retrieval_differences_from_published(results, margin=margin).round(2)
        return held.assign(edition=release_of(benchmark))
    return retrieval_table_with_published(results, published("visual_rag", table=2))


def retrieval_differences_from_published(
    results: pd.DataFrame, *, margin: float = MARGIN
) -> pd.DataFrame:
    """Computes the difference of our retrieval results from Table 2 for each cell that both have.
    Columns: retriever, metric, k, value, paper, difference, queries, ci_low, ci_high, verdict.

    In percent and points, hit_count in images. The same retriever returns the same images, so the
    interval only covers the rounding of the published numbers; any other difference is due to the
    retriever, its images, or its precision. `queries` is the number of queries by which the numbers
    of hits differ; it is NaN for the other metrics, which do not determine it. The margin in points
    is for hit_count one of precision, hits per k images. The paper's nDCG is our `ndcg_visual_rag`.
    """
    paper = published("visual_rag", table=2).rename(
        columns={"value": "paper", "retriever": "paper_retriever"}
    )
    named = results.assign(paper_retriever=results["retriever"].map(PAPER_RETRIEVERS))
    table = named.merge(paper, on=["paper_retriever", "metric", "k"])
    difference = table["value"] - table["paper"]
    hits = (difference * PAPER_QUERIES / 100).round().where(table["metric"] == "hit")
    images = table["metric"] == "hit_count"
    table = table.assign(
        difference=difference,
        queries=hits,
        ci_low=difference - _HALF_UNIT,
        ci_high=difference + _HALF_UNIT,
    )
    allowed = pd.Series(np.where(images, margin * table["k"] / 100, margin), table.index)
    table = with_equivalence_verdict(table, allowed)
    numbers = ["value", "paper", "difference", "queries", "ci_low", "ci_high"]
    return table[["retriever", "metric", "k", *numbers, "verdict"]]
