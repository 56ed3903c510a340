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

_PANELS = {"retrieval_score": "Gold image among the five", "accuracy": "Correct answer (accuracy)"}
_KINDS = ("retrievers run here", "retrieved set of the data", "reported by the paper")


def retriever_ranking(ours: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """Plots hit rate and accuracy over all questions, a row for each retriever, that with the best
    hit rate first; below, the retrieved set of the data, with gold images inserted if any, and the
    paper's retrievers. Both are tables of `retrieval_vs_accuracy`.
    """
    both = pd.concat([ours.assign(paper=False), reported.assign(paper=True)], ignore_index=True)
    both = both[(both["scenario"] == OVERALL) & (both["metric"] == "hit@5")]
    both = both.sort_values("retrieval_score", ascending=False)
    listed = is_evaluated_retriever(both["retriever"])
    both["kind"] = np.select([both["paper"], listed], [_KINDS[2], _KINDS[0]], _KINDS[1])
    parts = []
    for name in _PANELS:
        ends = {name: "value", f"{name}_low": "ci_low", f"{name}_high": "ci_high"}
        parts.append(both.rename(columns=ends).assign(panel=name))
    rows = pd.concat(parts, ignore_index=True)
    rows[["value", "ci_low", "ci_high"]] *= 100
    theirs, models = rows["paper"], [*ours["model"], "reported"]
    table = rows.assign(
        value=rows["value"].mask(theirs), model=rows["model"].mask(theirs, models[0])
    )
    names = dict.fromkeys(_KINDS, "") | _PANELS | {"reported": "reported (Figure 5)"}
    names |= {name: _label(name, set(both["retriever"])) for name in both["retriever"]}
    return forest_plot(
        table,
        rows=["kind", "retriever"],
        panels="panel",
        names=names,
        reported=rows[theirs],
        limits=(0, 100),
        unit="",
        xlabel="Percent of questions (n)",
        title=_title(both[both["kind"] == _KINDS[0]]),
        caption="All questions, in the paper's proportions of scenarios. Left: hit@5, which the"
        " paper calls Recall@5.",
    )


def _label(name: str, names: Collection[str]) -> str:
    """A retriever with the part of the query that it is shown: "clip by image", and of a name
    beside both other parts, as in "clip", the third, "clip by text".
    """
    left = [part for part in QUERY_PARTS if f"{name}-by-{part}" not in names]
    if len(left) == 1:
        return f"{name} by {left[0]}"
    if name == "rows":
        return "as shipped"
    name = name.replace("rows, ", "gold inserted in ").replace(" planted", "")
    return name.replace("-by-", " by ")


def _title(listed: pd.DataFrame) -> str:
    """Which retriever finds most, and with which the answers are best."""
    if listed.empty:
        return "No retriever was evaluated here: the paper's numbers alone"
    found, best = listed.iloc[0], listed.sort_values("accuracy").iloc[-1]
    return (
        f"Of {listed['retriever'].nunique()} retrievers run here {found['retriever']} finds a gold"
        f" image most often ({100 * found['retrieval_score']:.0f} %), and accuracy is highest with"
        f" {best['retriever']} ({100 * best['accuracy']:.0f} %)"
    )
