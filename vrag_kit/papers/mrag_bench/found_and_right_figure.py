"""Figure 5, left, with every scenario: retrieval score and accuracy."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.analysis.report_tables import format_p
from vrag_kit.papers.mrag_bench.found_and_right import retrieval_accuracy_correlations
from vrag_kit.papers.mrag_bench.results import OVERALL
from vrag_kit.papers.mrag_bench.retrieval import has_inserted_gold, is_evaluated_retriever
from vrag_kit.plotting.old_style import model_colors, new_figure
from vrag_kit.retrieval.encoders.base import QUERY_PARTS

_X, _Y = "retrieval_score", "accuracy"
_NUMBERS = [*(_X, f"{_X}_low", f"{_X}_high"), *(_Y, f"{_Y}_low", f"{_Y}_high")]


def retrieval_vs_accuracy_figure(sources: Mapping[str, pd.DataFrame]) -> Figure:
    """Plots accuracy over retrieval score, a panel for each source, model and metric. `sources`
    maps a title to `retrieval_vs_accuracy`. Small points: a retriever and scenario; large ones,
    with 95 % intervals: a retriever overall; hollow where gold images are inserted.

    The panel's title gives the correlation of the retrievers' large points.
    """
    panels = []
    for title, table in sources.items():
        for (model, metric), part in table.groupby(["model", "metric"], sort=False):
            panels.append((f"{title}, {model}".replace("field-guide-", ""), str(metric), part))
    figure, (axes,) = new_figure(1, len(panels), (4.5 * len(panels) + 0.6, 5.2), sharey=True)
    names = pd.concat(sources.values())["retriever"]
    colors = model_colors(names)
    planted = set(names[has_inserted_gold(names)])
    fills = {name: "none" if name in planted else color for name, color in colors.items()}
    for axis, (title, metric, part) in zip(axes, panels, strict=True):
        for retriever, color in colors.items():
            _points(axis, part[part["retriever"] == retriever], color, fills[retriever])
        axis.set(title=f"{title}\n{_in_words(part)}", xlabel=f"{metric} (%), n = {part['n'].max()}")
        axis.set(xlim=(-4, 104), ylim=(-4, 104))
        axis.title.set_fontsize(9.5)
        axis.tick_params(labelleft=True)
    axes[0].set_ylabel("accuracy (%)")
    handles = [
        axes[0].plot([], [], "o", color=color, mfc=fills[name], label=_label(name, colors))[0]
        for name, color in colors.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=9)
    caption = (
        "Large: overall, with 95 % intervals where there are any; small: a scenario each."
        " r: of the large ones, in brackets its 95 % interval."
    )
    if not is_evaluated_retriever(names).all():
        caption += "\nExcluded from r: the retrieved set shipped with the data"
        caption += ", and, hollow, where gold images were planted." if planted else "."
    figure.supxlabel(caption, fontsize=9)
    return figure


def _points(axis: Axes, table: pd.DataFrame, color: str, fill: str) -> None:
    """One ranking: its scenarios, then overall with its intervals."""
    whole = table["scenario"] == OVERALL
    each = 100 * table.loc[~whole, [_X, _Y]]
    axis.plot(each[_X], each[_Y], "o", color=color, mfc=fill, markersize=3.5, alpha=0.6)
    for row in (100 * table.loc[whole, _NUMBERS]).to_dict("records"):
        axis.hlines(row[_Y], row[f"{_X}_low"], row[f"{_X}_high"], color=color, linewidth=1.4)
        axis.vlines(row[_X], row[f"{_Y}_low"], row[f"{_Y}_high"], color=color, linewidth=1.4)
        axis.plot(row[_X], row[_Y], "o", color=color, mfc=fill, markersize=9, zorder=3)


def _label(name: str, names: Collection[str]) -> str:
    """A retriever with the part of the query that it is shown, where the other parts stand
    beside it by name: "clip (by text)" beside "clip-by-image" and "clip-by-both".
    """
    left = [part for part in QUERY_PARTS if f"{name}-by-{part}" not in names]
    return f"{name} (by {left[0]})" if len(left) == 1 else name


def _in_words(table: pd.DataFrame) -> str:
    """How the overall points go together."""
    rows = retrieval_accuracy_correlations(table).query("scenario == @OVERALL")
    if rows.empty:
        return "no listed retriever"
    row = rows.iloc[0]
    told = f"overall r = {row['pearson']:.2f}"
    if pd.notna(row["ci_low"]):
        told += f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    told += f", {int(row['n'])} retrievers"
    return told + (f", p = {format_p(row['p'])}" if pd.notna(row["p"]) else "")
