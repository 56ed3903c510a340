"""Table 2 held against the paper: retrieval has no runs, so differences are counted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.equivalence import MARGIN, with_verdict
from vrag_kit.papers.visual_rag.printed import (
    PAPER_QUERIES,
    beside_paper,
    edition_of,
    is_papers_data,
)
from vrag_kit.types import Benchmark

PAPER_RETRIEVERS = {
    "ViT-L-14-336-quickgelu-openai": "CLIP",
    "BAAI-BGE-VL-large": "BGE",
    "TIGER-Lab-VLM2Vec-Qwen2VL-2B": "VLM2Vec",
}
"""Our name of a retriever, as `params/visual_rag/paper.yaml` loads it → the paper's."""
_HALF_UNIT = 0.005  # of the last printed digit


def retrieval_beside_printed(
    results: pd.DataFrame, benchmark: Benchmark, *, margin: float = MARGIN
) -> pd.DataFrame:
    """The table that closes `02_retriever_comparison`: on the paper's own data
    `retrieval_held_against_paper`, otherwise the two side by side, without a verdict.
    """
    if is_papers_data(benchmark):
        held = retrieval_held_against_paper(results, margin=margin).round(2)
        return held.assign(edition=edition_of(benchmark))
    return beside_paper(results, published("visual_rag", table=2))


def retrieval_held_against_paper(results: pd.DataFrame, *, margin: float = MARGIN) -> pd.DataFrame:
    """Our retrieval less that of Table 2, one row a cell that both have: retriever,
    metric, k, value, paper, difference, queries, ci_low, ci_high, verdict.

    In percent and points, hit_count in images. The same retriever finds the same images
    again, so the interval is the rounding of print alone, and any other difference is
    one of the retriever, its images, or its precision. `queries` says how large it is:
    by how many queries the numbers of hits differ; for the other metrics (NaN) no such
    count follows. The margin in points is for hit_count one of precision, hits a k
    images. The paper's nDCG is our `ndcg_visual_rag`.
    """
    paper = published("visual_rag", table=2).replace({"metric": {"ndcg": "ndcg_visual_rag"}})
    paper = paper.rename(columns={"value": "paper", "retriever": "paper_retriever"})
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
    table = with_verdict(table, allowed)
    numbers = ["value", "paper", "difference", "queries", "ci_low", "ci_high"]
    return table[["retriever", "metric", "k", *numbers, "verdict"]]
