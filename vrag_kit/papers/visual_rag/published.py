"""Published numbers of the paper in our result format, and tests of whether a benchmark is the
paper's own data.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.report_tables import ci_cells, report_table
from vrag_kit.papers.published import Filter, published
from vrag_kit.papers.statements import NO_EDITION, OTHER_DATA, DataSource, make_data_source
from vrag_kit.papers.visual_rag.abstention import with_binomial_interval, with_uncertainty
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


def reported(table: int | Sequence[int], **filters: Filter) -> pd.DataFrame:
    """Returns published tables of the paper (`published`), in percent, with the intervals that its
    numbers allow: ci_low and ci_high over its queries (`with_binomial_interval`) and, for answers,
    ci_low_runs and ci_high_runs over its five runs (`with_uncertainty`).
    """
    rows = published("visual_rag", table, **filters)
    return with_uncertainty(rows) if "model" in rows else with_binomial_interval(rows)


def data_source(benchmark: Benchmark) -> DataSource:
    """Returns the data source of statement checks: one of the `EDITIONS`, or data without a
    verdict.

    A file with as many queries and query-image pairs as in the paper's section 3, but of unknown
    content, is an unknown edition: v2 changes labels and answers of 61 rows, which could explain a
    difference from the paper.
    """
    theirs = published("visual_rag", "section3").set_index("statistic")["value"]
    alike = len(benchmark.queries) == theirs["queries"]
    alike &= sum(map(len, benchmark.qrels.values())) == theirs["query-image pairs"]
    edition = EDITIONS.get(benchmark.blob, "")
    return make_data_source(benchmark, edition, NO_EDITION if alike else OTHER_DATA)


def retrieval_table_with_published(results: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Formats our results in the layout of the paper's Table 2, with the paper's rows below, which
    are labelled as other data.

    Rows are (retriever, metric), columns the cutoffs; our cells read "mean [low, high]". Both in
    percent.
    """
    computed = results["retriever"].str.endswith(" order")  # references, which have no interval
    cells = ci_cells(results).mask(computed, results["value"].map("{:.1f}".format))
    theirs = paper.assign(
        cell=paper["value"].map("{:.2f}".format),
        retriever=paper["retriever"] + " (reported, other data)",
    )
    both, rows = pd.concat([results.assign(cell=cells), theirs]), ["retriever", "metric"]
    table = report_table(both, rows=rows, columns=["k"], cells=both["cell"])
    return table.rename(columns="@{}".format)
