"""The style of all figures: the width of a journal's column or page, one colour for one role."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from vrag_kit.analysis.report_tables import SETTING_NAMES

COLUMN, PAGE = 89 / 25.4, 183 / 25.4
"""Widths of a journal's column and page, in inches; no figure is higher than `TALLEST`."""
TALLEST = 170 / 25.4
SMALL = 7.0
"""The size of the smallest text, in pt."""
FEW = 15
"""Means of fewer cases have thin intervals."""
DARK, LIGHT = "#3B3B3B", "#D4D4D4"
GREY = REPORTED = "#8A8A8A"
"""`REPORTED`: a paper's numbers, drawn beside ours."""
MODEL = (
    *("#1F6FB4", "#C8501E", "#4DAF7C", "#B8448E"),
    *("#F2C14E", "#8BD3F7", "#332288", "#661100"),
)
"""Models, retrievers and other series: any two stay apart for the colour-blind (a distance of at
least 0.11 in OKLab, seen with deuteranopia).
"""
SETTING = {
    "zero_shot": "#3B3B3B",
    "gt_clue": "#4DAF7C",
    "non_clue": "#C8501E",
    "top_k": "#1F6FB4",
    "one_in_k": "#F2C14E",
    "m_gt": "#4DAF7C",
    "m_in_k": "#F2C14E",
    "rag_best": "#1F6FB4",
}
OUTCOME = {
    "correct": "#1F6FB4",
    "partial": "#8BD3F7",
    "incorrect": "#C8501E",
    "missing": "#D4D4D4",
    "failed": "#FFFFFF",
}
"""What became of an answer; "missing" is an abstention, "failed" an answer that was not judged."""
EVIDENCE = {"gold": "#2E8B57", "other": "#8A8A8A"}
"""Frames of images that show the answer, and of others."""
REFERENCES = {"random order": GREY, "perfect order": DARK}
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Markers of the values of a second column, in order; "X" is only irrelevant evidence, and a
hollow point only a mean that lacks answers.
"""
_JOINED = re.compile(
    r"\[[^][]*\]|[\d.]+ (%|points?\b)|[+−–] ?\S+|(\b[nk] [=≥]|Tasks?|Tables?|Figures?|k =) \d\S*"
)
"""Parts of a text that stand in one line, such as "[2, 11]", "82 %" and "n = 41"."""
_LOOK: dict[str, Any] = {  # matplotlib's settings have values of many types
    "figure.dpi": 120,
    "figure.constrained_layout.h_pad": 0.05,
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.linewidth": 0.8,
    "axes.edgecolor": "0.6",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.92",
    "grid.linewidth": 0.7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
}


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float,
    width: float = PAGE,
    **grid: Any,  # matplotlib's subplots has options of many types
) -> tuple[Figure, np.ndarray]:
    """Creates a figure in the kit's style, `width` × `height` in inches, and its axes, shape
    (rows, columns). `grid` are options of `matplotlib.pyplot.subplots`, such as `sharey`.

    The style, seaborn's white grid, stays set for all later figures. The figure is closed in
    pyplot: a notebook then shows it once, where it is the value of a cell.
    """
    import seaborn as sns  # imported here: tables need no figures

    sns.set_theme(context="paper", style="whitegrid", palette=MODEL, rc=_LOOK)
    size = (width, min(height, TALLEST))
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, **grid
    )
    plt.close(figure)
    return figure, axes


def set_caption(figure: Figure, title: str, caption: str, handles: Sequence[Artist] = ()) -> None:
    """Puts a title above the figure, at the left and wrapped to its width, and below it the legend
    of `handles`, if any. The title, which begins with a capital, and the caption, which is not
    drawn, are the figure's label (`get_label`), one below the other. Without a caption, the texts
    of the legend are that.
    """
    title = title[:1].upper() + title[1:]
    look = {"weight": "bold", "size": 9}
    shown = fit(title, figure.get_figwidth() - 0.3, 9)
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(len(handles), int(figure.get_figwidth() / (0.06 * longest + 0.45))))
        figure.legend(
            handles=handles, title=shown, loc="outside upper left", ncols=columns,
            title_fontproperties=look, alignment="left",
        )  # fmt: skip
    else:
        figure.suptitle(shown, x=0.01, ha="left", fontproperties=look)
    words = caption or "; ".join(str(handle.get_label()) for handle in handles)
    figure.set_label(f"{title}\n{' '.join(words.split())}")


def set_axes_height(figure: Figure, axis: Axes, inches: float) -> None:
    """Sets the height of a figure, at most `TALLEST`, so that `axis` is `inches` high."""
    figure.draw_without_rendering()
    missing = inches - axis.get_window_extent().height / figure.dpi
    figure.set_figheight(min(TALLEST, figure.get_figheight() + missing))


def fit(text: str, inches: float, size: float = SMALL) -> str:
    """Wraps a text of `size` pt to a width in inches; numbers stay with their unit or noun."""
    bold = FontProperties(family="DejaVu Sans", weight="bold", size=size)

    def drawn(line: str) -> float:
        return float(TextPath((0, 0), line, prop=bold).get_extents().width) / 72

    lines = []
    text = _JOINED.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    for line in filter(str.strip, text.splitlines()):
        letters = max(8, int(len(line) * inches / drawn(line)))  # of a line of usual letters
        wrapped = textwrap.wrap(line, letters, break_on_hyphens=False)
        while letters > 8 and any(drawn(each) > inches for each in wrapped):
            letters -= 1
            wrapped = textwrap.wrap(line, letters, break_on_hyphens=False)
        lines += wrapped
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def display_name(value: object, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """The text by which a figure calls a value: that of `names`, else a setting's own name, else
    the value with blanks for underscores.
    """
    raw = str(value)
    return names.get(raw) or SETTING_NAMES.get(raw) or raw.replace("_", " ")


def count_label(counts: Iterable[float], unit: str = "") -> str:
    """The n of a row or panel, as in "n = 374 questions"; of several, the smallest: "n ≥ 60"."""
    each = {int(n) for n in counts if n == n} or {0}
    sign = "≥" if len(each) > 1 else "="
    return f"n {sign} {min(each):,} {unit}".rstrip()


def series_colors(column: str, values: Sequence[str]) -> dict[str, str]:
    """The colours of the values of a column: those of `SETTING` or `OUTCOME` if all are of these,
    else those of models.
    """
    for roles in (SETTING, OUTCOME):
        if values and set(values) <= set(roles):
            return {value: roles[value] for value in values}
    return model_colors(values)


def model_colors(models: Iterable[str]) -> dict[str, str]:
    """The colours of the models, retrievers or reference orders that share a panel, all
    different.

    A name in some `colors.json` of the kit (a paper's models, the demo's) has that place in `MODEL`
    everywhere unless another of the panel took it; any other has the next that is free. Of more
    names than `MODEL` has colours, all have their own from a wheel of hues.
    """
    every = list(dict.fromkeys(map(str, models)))
    names = [name for name in every if name not in REFERENCES]
    places, palette = named_colors(), list(MODEL)
    if len(names) > len(MODEL):
        import seaborn as sns

        places, palette = {}, sns.husl_palette(len(names)).as_hex()
    colors = dict(REFERENCES)
    for name in sorted(names, key=lambda name: name not in places):
        free = [color for color in palette if color not in colors.values()]
        wanted = palette[places[name]] if name in places else free[0]
        colors[name] = wanted if wanted in free else free[0]
    return {name: colors[name] for name in every}


@cache
def named_colors() -> dict[str, int]:
    """The names with a fixed place in `MODEL`, from 0, as in the files `colors.json` of papers
    and of the demo.
    """
    places: dict[str, int] = {}
    kit = Path(__file__).parents[1]
    for file in sorted([*kit.glob("*/colors.json"), *kit.glob("papers/*/colors.json")]):
        places |= json.loads(file.read_text(encoding="utf-8"))
    return places
