"""Figure 5, left, as a ranking: what each retriever finds, and the accuracy with it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.mrag_bench.results import OVERALL
from vrag_kit.papers.mrag_bench.retrieval import is_evaluated_retriever
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.retrieval.encoders.base import QUERY_PARTS

_FOUND = ["retrieval_score", "retrieval_score_low", "retrieval_score_high"]
_RIGHT = ["accuracy", "accuracy_low", "accuracy_high"]
_KINDS = ("retrievers", "shipped with the data", "reported by the paper")


def retriever_ranking(ours: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """Plots recall, hit rate and accuracy over all questions, a row for each retriever, that with
    the best hit rate first; below, the set shipped with the data, with gold images inserted if
    any, and the paper's retrievers. Both are tables of `retrieval_vs_accuracy`.
    """
    both = pd.concat([ours.assign(paper=False), reported.assign(paper=True)], ignore_index=True)
    both = both[both["scenario"] == OVERALL].sort_values("retrieval_score", ascending=False)
    listed = is_evaluated_retriever(both["retriever"])
    both["kind"] = np.select([both["paper"], listed], [_KINDS[2], _KINDS[0]], _KINDS[1])
    right = both.assign(metric="accuracy").drop_duplicates(["model", "retriever", "kind"])
    right[_FOUND] = right[_RIGHT]
    rows = pd.concat([both, right], ignore_index=True)
    rows[["value", "ci_low", "ci_high"]] = 100 * rows[_FOUND]
    theirs, models = rows["paper"], [*ours["model"], "reported"]
    table = rows.assign(
        value=rows["value"].mask(theirs), model=rows["model"].mask(theirs, models[0])
    )
    names = dict.fromkeys(_KINDS, "")
    names |= {"recall@5": "Recall@5", "hit@5": "Hit rate at 5", "accuracy": "Accuracy"}
    names |= {name: _label(name, set(both["retriever"])) for name in both["retriever"]}
    return forest_plot(
        table,
        rows=["kind", "retriever"],
        panels="metric",
        names=names,
        reported=rows[theirs],
        limits=(0, 100),
        xlabel="Percent of questions, or of their gold images (recall)",
        title=_title(both[both["kind"] == _KINDS[0]]),
        caption="All questions, in the paper's proportions of scenarios."
        " hit@5: a gold image is among the five; the paper calls it Recall@5.",
    )


def _label(name: str, names: Collection[str]) -> str:
    """A retriever with the part of the query that it is shown, where the other parts stand
    beside it by name: "clip (by text)" beside "clip-by-image" and "clip-by-both".
    """
    left = [part for part in QUERY_PARTS if f"{name}-by-{part}" not in names]
    if len(left) == 1:
        return f"{name} (by {left[0]})"
    if name == "rows":
        return "as shipped"
    return name.replace("rows, ", "gold inserted in ").replace(" planted", "")


def _title(listed: pd.DataFrame) -> str:
    """Which retriever finds most, and with which the answers are best."""
    if listed.empty:
        return "No retriever was evaluated here: the paper's numbers alone"
    found = listed[listed["metric"].str.startswith("hit")].iloc[0]
    best = listed.sort_values("accuracy").iloc[-1]
    which = "it" if best["retriever"] == found["retriever"] else best["retriever"]
    return (
        f"Of {listed['retriever'].nunique()} retrievers {found['retriever']} finds a gold image"
        f" most often ({100 * found['retrieval_score']:.0f} %), and accuracy is highest with"
        f" {which} ({100 * best['accuracy']:.0f} %)"
    )
