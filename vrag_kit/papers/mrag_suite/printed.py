"""Published numbers of the paper in our result format, each data set under one name."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.report_tables import NOTHING
from vrag_kit.papers.published import format_spread, published

DATASETS = (
    "WebQA",
    "Chart-MRAG",
    "Visual-RAG",
    "MRAG-Bench",
    "VisRAG-ArXiv",
    "VisRAG-Plot",
    "VisRAG-Slide",
    "VisRAG-Doc",
)
"""The eight data sets, by their names in Table 2."""
MODELS = (
    "Qwen2.5-VL-72B",
    "LLaVa-v1.6-34B",
    "Claude 3.5",
    "Phi-4",
    "Pixtral-12B-2409",
    "InternVL3-8B",
)
"""The six models of Tables 2, 5, 13, 14 and 15; Table 3 has the first three."""
MODES = ("distractors_only", "gt_plus_distractors", "gt_only")
"""The settings of Tables 5, 14 and 15."""
_NAMES = {
    "Chart-RAG": "Chart-MRAG",
    "ChartMRAG-Bench": "Chart-MRAG",
    "VisRAG-Arxiv": "VisRAG-ArXiv",
}
_MODALITIES = {"img": "image", "txt": "text", "single": "all"}


def published_dataset_statistics() -> pd.DataFrame:
    """Returns Table 1: dataset, domain, metric, value; counts, pixels, and lengths in a unit that
    the paper does not state.
    """
    return _named(1)


def published_accuracy(table: int = 2) -> pd.DataFrame:
    """Returns EM/Accuracy in percent: dataset, model, split ("filtered", "full"), metric, value.

    `table` is 2, or 13 for the same cells as whole numbers. The paper does not say which
    data set is scored by exact match.
    """
    return _named(table)


def published_modes() -> pd.DataFrame:
    """Returns Table 5, EM/Accuracy in percent: dataset, model, setting (of `MODES`), metric, value,
    unit.
    """
    return _named(5).assign(unit="percent")


def published_claims(*tables: int) -> pd.DataFrame:
    """Returns Tables 3, 14 and 15, or the given ones, in percent: table, dataset, model, setting
    (of `MODES`; "" in Table 3, which states none), modality, metric, value.

    modality is "image" or "text" if a pair is published (in one row of VisRAG-ArXiv for the
    hallucination alone, "41.4/0"), and "all" if one value is. The metrics have RAGChecker's names;
    the paper's own equations differ.
    """
    parts = []
    for number in tables or (3, 14, 15):
        part = _named(number).assign(table=number)
        parts.append(part if "setting" in part else part.assign(setting=""))
    table = pd.concat(parts, ignore_index=True)
    table["modality"] = table["modality"].map(_MODALITIES)
    return table[["table", "dataset", "model", "setting", "modality", "metric", "value"]]


def published_gaps() -> pd.DataFrame:
    """Returns Table 4, differences across modalities, in percent and points: dataset, model,
    setting, metric ("delta_cr", "delta_cp", "vis_hit_at_k", "txt_miss_rate", "cma", "v_hr",
    "d_hr"), value.
    """
    return _named(4)


def published_best_prompts() -> pd.DataFrame:
    """Returns Table 6, the best of twelve prompts and its mean over six models in percent: dataset,
    nickname, prompt, prompt_of_table_11, value.

    `prompt` interprets the digit of the nickname as the exemplar style, as section 5.5 does
    ("expert-ex3-direct"); `prompt_of_table_11` looks the nickname up there, where expert3 is ex6,
    and is "" for those not in it.
    """
    table = _named(6).rename(columns={"prompt": "nickname"})
    styles = published("mrag_suite", 11).set_index("prompt")["example_style"]
    prompts, looked_up = [], []
    for nickname in table["nickname"]:
        short = nickname.split()[0]
        init, digit = short[:-1], short[-1]
        reasoning = "direct" if nickname.endswith("direct") else "retrieve_then_reason"
        prompts.append(f"{init}-ex{digit}-{reasoning}")
        known = short in styles.index
        looked_up.append(f"{init}-{styles[short]}-{reasoning}" if known else "")
    named = table.assign(prompt=prompts, prompt_of_table_11=looked_up)
    return named[["dataset", "nickname", "prompt", "prompt_of_table_11", "value"]]


def published_retrievers() -> pd.DataFrame:
    """Returns Table 9, the retrievers by data set: dataset, text, image; "–" where none is named.
    No table has their retrieval scores.
    """
    table = _named(9).rename(columns={"text_retriever": "text", "image_retriever": "image"})
    return table.replace({"": NOTHING}).fillna(NOTHING)


def published_ambiguous() -> pd.DataFrame:
    """Returns the number of questions marked as ambiguous: dataset, n_flagged, asked, share (in
    percent), from Table 1, with Table 7's totals as "text-only", "image-conditioned" and "all".
    final is how many of these Table 7 keeps (NaN for a data set).
    """
    of_sets = _named(1).pivot(index="dataset", columns="metric", values="value")
    counts = of_sets.loc[list(DATASETS), ["n_ambiguous", "n_full"]]
    counts = counts.set_axis(["n_flagged", "asked"], axis=1)
    totals = published("mrag_suite", 7).pivot(index="modality", columns="metric", values="count")
    totals = totals.loc[["text_only", "image_conditioned", "total"]]
    totals = totals[["marked_ambiguous", "candidates", "final_set"]]
    totals = totals.set_axis(["n_flagged", "asked", "final"], axis=1)
    totals.index = pd.Index(["text-only", "image-conditioned", "all"])
    both = pd.concat([counts, totals]).rename_axis("dataset").reset_index()
    return both.assign(share=100 * both["n_flagged"] / both["asked"])


def published_clear_and_ambiguous() -> pd.DataFrame:
    """Returns Table 8 in percent: split ("clear", "ambiguous"; 200 questions each), metric, value,
    and published differences as the split "difference", in points.
    """
    table = published("mrag_suite", 8)
    return table.replace({"split": {"delta_ambiguous_minus_clear": "difference"}})


def published_range(paper: pd.DataFrame, by: Sequence[str] = ("dataset",)) -> pd.Series:
    """Formats the range of the paper's models by `by`, "13.4 to 28.7, median 19.7 (6 models)";
    `paper` is a table of one metric, in percent.
    """
    models = paper.groupby(list(by), sort=False).size().map(" ({} models)".format)
    return (format_spread(paper, by) + models).rename("reported, other data")


def _named(number: int) -> pd.DataFrame:
    """A table with the data sets under the names of `DATASETS`."""
    return published("mrag_suite", number).replace({"dataset": _NAMES})
