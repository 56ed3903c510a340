"""Settings of Table 4 with text instead of images, or both, and the published table. The paper does
not describe its ground-truth text; here it is one passage.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench.settings import TOP, gt_rag, retrieved_rag
from vrag_kit.types import Benchmark, Context

TEXT_OR_IMAGE = {
    "retrieved_text": "retrieved text",
    "retrieved_rag": "retrieved images",
    "gt_text": "gold text",
    "gt_rag": "gold images",
    "gt_image_and_text": "gold images and text",
}
"""Maps the settings of Table 4 except "no_rag", in its order, to their names in figures."""


def retrieved_text(texts: Benchmark, run: pd.DataFrame, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the first k passages of a run over `texts`, best first; one where the
    scenario is "incomplete", as for images. Raises `VragError` for a query with fewer.
    """
    contexts = retrieved_rag(texts, run, k=k)
    return [replace(context, setting="retrieved_text") for context in contexts]


def gt_text(texts: Benchmark) -> list[Context]:
    """Returns contexts with each query's first relevant passage; raises `VragError` without one."""
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


def with_passages(benchmark: Benchmark, texts: Benchmark) -> Benchmark:
    """Adds the passages and labels of `texts` to the benchmark, for contexts with images, passages
    or both.
    """
    labels = {each: {**benchmark.qrels[each], **texts.qrels[each]} for each in benchmark.queries}
    return replace(benchmark.with_documents(texts.corpus.values()), qrels=labels)


def gt_image_and_text(benchmark: Benchmark, texts: Benchmark, *, k: int = TOP) -> list[Context]:
    """Returns contexts with the images of `gt_rag`, then the passage of `gt_text`, for
    `with_passages(benchmark, texts)`.
    """
    passages = {context.query_id: context.doc_ids for context in gt_text(texts)}
    contexts = []
    for context in gt_rag(benchmark, k=k):
        both = (*context.doc_ids, *passages[context.query_id])
        contexts.append(replace(context, setting="gt_image_and_text", doc_ids=both))
    return contexts
