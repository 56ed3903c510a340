"""The style of all figures: a colour-blind-safe palette, and the same colour for the same model
everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7A5195",
    "#8C6D31",
    "#332288",
    "#EE3377",
    "#999933",
    "#44AA99",
    "#882255",
    "#117733",
    "#AA4499",
    "#661100",
)
"""Okabe and Ito's colours, then others for long legends, the last ones for models without a fixed
place. Further colours are darker, then lighter ones of these.
"""
GREY = "#8A8A8A"
DARK = "#3B3B3B"
CLUE = "#009E73"
SETTING_MARKERS = {"zero_shot": "o", "gt_clue": "^", "non_clue": "X"}
"""Setting → its fixed marker, whichever others are drawn."""
REFERENCES = {"random order": GREY, "perfect order": DARK}
_LOOK: dict[str, Any] = {  # matplotlib's settings have values of many types
    "axes.titlelocation": "center",
    "figure.dpi": 110,
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "text.color": ".15",
    "axes.axisbelow": True,
    "axes.edgecolor": ".8",
    "axes.labelcolor": ".15",
    "axes.labelsize": 12,
    "axes.linewidth": 1.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 1,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "legend.title_fontsize": 12,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "xtick.bottom": False,
    "xtick.color": ".15",
    "xtick.labelsize": 11,
    "xtick.major.size": 6,
    "xtick.major.width": 1.25,
    "xtick.minor.size": 4,
    "xtick.minor.width": 1,
    "ytick.left": False,
    "ytick.color": ".15",
    "ytick.labelsize": 11,
    "ytick.major.size": 6,
    "ytick.major.width": 1.25,
    "ytick.minor.size": 4,
    "ytick.minor.width": 1,
}
"""The look, as matplotlib's settings: seaborn's white grid, written out so that a figure does
not wait for seaborn.
"""
METRIC_NAMES = {
    "recall": "Recall",
    "ndcg": "nDCG (standard)",
    "ndcg_visual_rag": "nDCG (ideal over retrieved)",
    "hit": "Hit rate",
    "hit_count": "Hit count",
}


def model_colors(models: Iterable[str]) -> dict[str, str]:
    """The colours of the models, retrievers or reference orders that share a panel, all
    different.

    A name in some `colors.json` of the kit (a paper's models, the demo's) has that place in the
    palette everywhere. Any other has a place that none of these has, in any panel: the one that a
    hash of its name gives, or if another in the panel has it, the next that is free; darker and
    lighter colours come last.
    """
    names, places = list(dict.fromkeys(map(str, models))), named_colors()
    chosen = {name: places[name] for name in names if name in places}
    rings = 3 + len(names) // len(PALETTE)
    free = [place for place in range(rings * len(PALETTE)) if place not in set(places.values())]
    nearest = [place for place in free if place < len(PALETTE)]
    taken = set(chosen.values())
    for name in names:
        if name in REFERENCES or name in chosen:
            continue
        first = hashlib.sha256(name.encode()).digest()[0] % len(nearest)
        wheel = [*nearest[first:], *nearest[:first], *free[len(nearest) :]]
        chosen[name] = next(place for place in wheel if place not in taken)
        taken.add(chosen[name])
    return {name: REFERENCES.get(name) or palette_color(chosen[name]) for name in names}


@cache
def named_colors() -> dict[str, int]:
    """The names with a fixed place in the palette, from 0, as in the files `colors.json` of papers
    and of the demo.
    """
    places: dict[str, int] = {}
    kit = Path(__file__).parents[1]
    for file in sorted([*kit.glob("*/colors.json"), *kit.glob("papers/*/colors.json")]):
        places |= json.loads(file.read_text(encoding="utf-8"))
    return places


def palette_color(place: int) -> str:
    """The colour at a place in the palette, from 0. Past its end the colours repeat, darker and
    lighter by turns, and never quite the same.
    """
    ring, at = divmod(place, len(PALETTE))
    if ring == 0:
        return PALETTE[at]
    toward = 0.0 if ring % 2 else 1.0
    share = 1 - 0.6 ** ((ring + 1) // 2)
    mixed = np.array(to_rgb(PALETTE[at])) * (1 - share) + share * toward
    return str(to_hex((mixed[0], mixed[1], mixed[2]))).upper()


def new_figure(
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    sharey: bool | Literal["row"] = False,
    width_ratios: Sequence[float] | None = None,
) -> tuple[Figure, np.ndarray]:
    """Creates a figure of `size` inches in the kit's style, and its axes, shape (rows, columns).

    It is closed in pyplot: a notebook then shows it once, where it is the value of a cell.
    """
    use_style()
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=size,
        layout="constrained",
        squeeze=False,
        sharey=sharey,
        width_ratios=width_ratios,
    )
    plt.close(figure)
    return figure, axes


def grid_shape(panels: int) -> tuple[int, int]:
    """The rows and columns of a grid of panels: side by side, from four on in two columns."""
    columns = panels if panels < 4 else 2
    return -(-panels // columns), columns


def use_style() -> None:
    """Sets the style of all figures drawn from here on."""
    plt.style.use({**_LOOK, "axes.prop_cycle": cycler(color=PALETTE)})
