"""Text in the place of pictures, or beside them: the settings that Table 4 adds, and the
table as printed. The paper does not tell what its ground-truth text was; here it is one
passage.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.papers.mrag_bench.results import OVERALL, gains_as_ours
from vrag_kit.papers.mrag_bench.settings import TOP, gt_rag, retrieved_rag
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Context

TEXT_OR_IMAGE = {
    "retrieved_text": "retrieved text",
    "retrieved_rag": "retrieved pictures",
    "gt_text": "GT text",
    "gt_rag": "GT pictures",
    "gt_image_and_text": "GT pictures & text",
}
"""The settings of Table 4 beside "no_rag", in its order → what figures call them."""
_PRINTED = {
    ("no_rag", "none"): "no_rag",
    ("retrieved_rag", "text"): "retrieved_text",
    ("retrieved_rag", "image"): "retrieved_rag",
    ("gt_rag", "text"): "gt_text",
    ("gt_rag", "image"): "gt_rag",
    ("gt_rag", "image_text"): "gt_image_and_text",
}
"""(setting, modality) as Table 4 is stored → our setting."""


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


def with_passages(benchmark: Benchmark, texts: Benchmark) -> Benchmark:
    """The benchmark with the passages of `texts` in its corpus and their labels beside its
    own, to be asked what shows pictures, passages or both.
    """
    labels = {each: {**benchmark.qrels[each], **texts.qrels[each]} for each in benchmark.queries}
    return replace(benchmark.with_documents(texts.corpus.values()), qrels=labels)


def gt_image_and_text(benchmark: Benchmark, texts: Benchmark, *, k: int = TOP) -> list[Context]:
    """The pictures of `gt_rag`, then the passage of `gt_text`: to be asked over
    `with_passages(benchmark, texts)`.
    """
    passages = {context.query_id: context.doc_ids for context in gt_text(texts)}
    contexts = []
    for context in gt_rag(benchmark, k=k):
        both = (*context.doc_ids, *passages[context.query_id])
        contexts.append(replace(context, setting="gt_image_and_text", doc_ids=both))
    return contexts


def printed_text_or_image() -> pd.DataFrame:
    """Table 4 as printed, under our names of its settings: model, level ("overall" or
    "scenario"), setting, scenario, value and gain over "no_rag", in percent and points.

    `gain` is computed from the table. How GPT-4-Turbo's cells come from counts of
    questions, nine of them do not tell (`audit`).
    """
    table = published("mrag_bench", 4)
    key = ["model", "scenario"]
    alone = table[table["setting"] == "no_rag"].set_index(key)["value"].rename("alone")
    both = table.join(alone, on=key)
    arms = list(zip(both["setting"], both["modality"], strict=True))
    level = both["scenario"].where(both["scenario"] == OVERALL, "scenario")
    both = both.assign(
        level=level, setting=[_PRINTED[arm] for arm in arms], gain=both["value"] - both["alone"]
    )
    return both[["model", "level", "setting", "scenario", "value", "gain"]]


def printed_text_or_image_gains() -> pd.DataFrame:
    """The gains of Table 4 in the columns of `printed_gains`, in points."""
    return gains_as_ours(printed_text_or_image())
