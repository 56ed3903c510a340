"""Text in the place of pictures, or beside them: the settings that Table 4 adds. The
paper does not tell what its ground-truth text was; here it is one passage.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench.settings import TOP, gt_rag, retrieved_rag
from vrag_kit.types import Benchmark, Context


def retrieved_text(texts: Benchmark, run: pd.DataFrame, *, k: int = TOP) -> list[Context]:
    """The first k passages of a run over `texts`, best first; one where the scenario is
    "incomplete", as of pictures. Raises `VragError` for a query with fewer.
    """
    contexts = retrieved_rag(texts, run, k=k)
    return [replace(context, setting="retrieved_text") for context in contexts]


def gt_text(texts: Benchmark) -> list[Context]:
    """The first passage that answers each query. Raises `VragError` for queries without."""
    without = [query_id for query_id in texts.queries if not texts.relevant(query_id)]
    if without:
        raise VragError(
            f"{len(without)} of {len(texts.queries)} queries have no passage that answers them, the"
            f" first {without[0]!r}. Write it, or leave them out of all settings with"
            " `benchmark.subset(query_ids)`."
        )
    return [
        Context(query_id=each, setting="gt_text", k=1, doc_ids=texts.relevant(each)[:1])
        for each in texts.queries
    ]


def gt_image_and_text(benchmark: Benchmark, texts: Benchmark, *, k: int = TOP) -> list[Context]:
    """The pictures of `gt_rag`, then the passage of `gt_text`: to be asked over
    `benchmark.with_documents(texts.corpus.values())`.
    """
    passages = {context.query_id: context.doc_ids for context in gt_text(texts)}
    contexts = []
    for context in gt_rag(benchmark, k=k):
        both = (*context.doc_ids, *passages[context.query_id])
        contexts.append(replace(context, setting="gt_image_and_text", doc_ids=both))
    return contexts
