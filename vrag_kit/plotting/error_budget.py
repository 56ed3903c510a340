"""Figure of the error budget of top-k answers over k; net parts can be below 0."""

from __future__ import annotations

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vrag_kit.analysis.error_budget import DISTRACTORS, LOST_TOO, MISREAD, PARTS, WON_BACK
from vrag_kit.plotting.answering import panel_title
from vrag_kit.plotting.panels import wrap_title
from vrag_kit.plotting.style import DARK, PALETTE, new_figure

_COLORS = dict(zip(PARTS, (PALETTE[0], "#BFD9EC", PALETTE[4], PALETTE[2], PALETTE[3]), strict=True))
_NAMES = {
    WON_BACK: "clue missed, recoverable (net)",
    LOST_TOO: "clue missed, still wrong with one",
    MISREAD: "clue shown, still wrong with the clue alone",
    DISTRACTORS: "clue shown, lost among distractors (net)",
}
_COLUMNS = 2
_PANEL = 5.2  # inches from a panel to the next
_HIGHEST = 100.0
_WIDTH = 0.8


def error_budget_figure(budget: pd.DataFrame) -> Figure:
    """Draws one panel per model: for each k the accuracy lost in each part, in percent. Losses are
    stacked upwards from 0, negative net parts downwards; a diamond is their sum. Takes
    `to_percent(mean_error_budget(…))`, whose judge noise is not drawn.

    A whisker is the 95 % interval of its own segment, counted from the segment's base.
    Parts that are 0 everywhere are not drawn.
    """
    models = list(dict.fromkeys(budget["model"]))
    largest = budget["value"].abs().groupby(budget["part"]).max()
    parts = [part for part in _COLORS if largest.get(part, 0.0) > 0]
    columns = min(_COLUMNS, len(models))
    rows = -(-len(models) // columns)
    figure, axes = new_figure(
        rows, columns, (max(7.0, _PANEL * columns), 4.2 * rows + 1.3), sharey=True
    )
    for axis in axes.flat[len(models) :]:
        axis.axis("off")
    lowest, highest = 0.0, _HIGHEST
    for axis, model in zip(axes.flat, models, strict=False):
        table = budget[(budget["model"] == model) & budget["part"].isin(PARTS)]
        low, high = _bars(axis, table, parts)
        lowest, highest = min(lowest, low), max(highest, high)
        axis.set(
            title=wrap_title(panel_title(model, table), _PANEL - 1),
            xlabel="images shown, k (top-k)",
            ylabel="accuracy lost (points)",
        )
        axis.grid(axis="x", visible=False)
        axis.yaxis.set_tick_params(labelleft=True)
    axes.flat[0].set_ylim(1.05 * lowest, highest)  # below 0, so that its end is seen
    handles: list[Artist] = [
        Patch(color=_COLORS[part], label=_NAMES.get(part, part)) for part in parts
    ]
    handles += axes.flat[0].get_legend_handles_labels()[0]  # that of the sum
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=9)
    note = (
        "A whisker is the 95 % interval of its own segment, counted from the segment's base.\n"
        "Below 0: the answer earns more than the clue alone that it is held against."
    )
    if not_drawn := [
        _NAMES.get(part, part) for part in PARTS if part in largest and part not in parts
    ]:
        note += f"\nNot shown (0 at every k): {'; '.join(not_drawn)}."
    figure.supxlabel(note, fontsize=9)
    return figure


def _bars(axis: Axes, table: pd.DataFrame, parts: list[str]) -> tuple[float, float]:
    """One model's bars, the parts one upon the other on their side of 0, each with its
    whisker, and their sum; the lowest and the highest end of what is drawn.
    """
    ticks = sorted(table["k"].unique())
    places = pd.Series(range(len(ticks)), ticks, dtype=float)
    above, below = pd.Series(0.0, ticks), pd.Series(0.0, ticks)
    ends: list[float] = []
    for number, name in enumerate(parts):
        part = table[table["part"] == name].set_index("k").reindex(ticks)
        values = part["value"].fillna(0.0)
        bottom = above.where(values >= 0, below)
        axis.bar(places, part["value"], _WIDTH, bottom, color=_COLORS[name])
        drawn = values != 0
        low, high = (bottom + part["ci_low"])[drawn], (bottom + part["ci_high"])[drawn]
        across = places + _WIDTH * ((number + 0.5) / len(parts) - 0.5)
        axis.vlines(across[drawn], low, high, color=DARK, linewidth=1.3)
        above, below = above + values.clip(lower=0.0), below + values.clip(upper=0.0)
        ends += [*low.dropna(), *high.dropna()]
    total = table.groupby("k")["value"].sum(min_count=1).reindex(ticks)
    (sums,) = axis.plot(places, total, "D", color=DARK, label="total lost")
    sums.set(markeredgecolor="white", clip_on=False, zorder=3)
    axis.axhline(0, color=DARK, linewidth=0.8)
    axis.set_xticks(places, [str(k) for k in ticks])
    return min([*ends, float(below.min())]), max([*ends, float(above.max())])
