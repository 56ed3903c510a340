"""Figure of clue rates: by the coarse filter and by annotators."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.plotting.style import DARK, GREY, MODEL, SMALL, new_figure, set_caption

_STATUSES = {
    "kept": MODEL[0],
    "too_common": MODEL[1],
    "no_clue": MODEL[3],
    "dropped_by_filter": GREY,
}


def clue_rate_figure(decisions: pd.DataFrame, limit: float, annotators: str = "") -> Figure:
    """Draws the clue rate of each annotated question over the coarse filter's estimate, or over
    the number of images where no question has an estimate. `limit`, in [0, 1], is dashed on each
    axis of rates. `decisions` is a `decisions_table`; `annotators` says, in
    the caption, who they are.
    """
    across = "estimated_clue_rate" if decisions["estimated_clue_rate"].notna().any() else "n_images"
    drawn = decisions[decisions["status"].isin(list(_STATUSES))]
    drawn = drawn.dropna(subset=["clue_rate", across])
    figure, ((axis,),) = new_figure(height=3.2)
    handles = []
    for status, color in _STATUSES.items():
        part = drawn[drawn["status"] == status]
        if part.empty:
            continue
        x = part[across] if across == "n_images" else 100 * part[across]
        label = f"{status.replace('_', ' ')} ({len(part)})"
        handles += axis.plot(x, 100 * part["clue_rate"], "o", color=color, label=label)
    axis.set(xlabel="Images", ylabel="Clue rate by annotators (%)")
    named = {"va": "bottom", "ha": "right", "fontsize": SMALL, "color": DARK}
    axis.axhline(100 * limit, color=DARK, linewidth=0.8, linestyle="--")
    words = f"limit {100 * limit:g} %"
    axis.text(1, 100 * limit, words, transform=axis.get_yaxis_transform(), **named)
    if across != "n_images":
        axis.axvline(100 * limit, color=DARK, linewidth=0.8, linestyle="--")
        named |= {"va": "top", "rotation": 90}
        axis.text(100 * limit, 0.85, words, transform=axis.get_xaxis_transform(), **named)
        axis.set_xlabel("Clue rate estimated by the coarse filter (%)")
    axis.set(xlim=(0, None), ylim=(0, None))
    lost = drawn[(drawn["status"] == "dropped_by_filter") & (drawn["clue_rate"] <= limit)]
    title = f"{(decisions['status'] == 'kept').sum()} of {len(decisions)} questions are kept"
    title += f"; the coarse filter drops {len(lost)} that annotators find rare enough"
    caption = "Clue rate: share of a species' images that show the clue."
    caption += f" Annotators: {annotators}." if annotators else ""
    caption += f" n = {len(drawn)} questions with a clue rate. Dashed: the limit."
    set_caption(figure, title, caption, handles)
    return figure
