"""One look for all figures: a colour-blind-safe palette, and the same colour for the
same model everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
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
)  # Okabe-Ito, with two added for long legends
GREY, CLUE = "#8A8A8A", "#009E73"
_FIXED = {
    "random order": GREY,
    "perfect order": "#3B3B3B",
    "field-guide-clip-64": PALETTE[0],
    "field-guide-clip-32": PALETTE[1],
    "field-guide-vlm-many": PALETTE[0],
    "field-guide-vlm-few": PALETTE[1],
    **dict(
        zip(
            (
                "Phi4-MM",
                "Qwen2.5VL",
                "InternVL3",
                "Pixtral",
                "Llama3.2-V",
                "GPT-4o",
                "Gemini",
                "Claude",
            ),
            PALETTE,
            strict=True,
        )
    ),
    **dict(
        zip(
            (
                "microsoft-Phi-4-multimodal-instruct",
                "Qwen-Qwen2.5-VL-7B-Instruct",
                "OpenGVLab-InternVL3-8B-hf",
                "mistral-community-pixtral-12b",
                "meta-llama-Llama-3.2-11B-Vision-Instruct",
                "gpt-4o",
                "gemini-2.5-pro",
                "claude-sonnet-4-20250514",
            ),
            PALETTE,
            strict=True,
        )
    ),
    "BAAI-BGE-VL-large": PALETTE[3],
    "TIGER-Lab-VLM2Vec-Qwen2VL-2B": PALETTE[4],
    "CLIP": PALETTE[2],
    "BGE": PALETTE[3],
    "VLM2Vec": PALETTE[4],
    "ViT-L-14-336-quickgelu-openai": PALETTE[2],
    "clip-vit-large-patch14-336": PALETTE[2],
}
_LOOK = {
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
    "ndcg": "nDCG",
    "ndcg_visual_rag": "nDCG (visual-rag)",
    "hit": "Hit rate",
    "hit_count": "Hit count",
}


def colors_of(models: Iterable[str]) -> dict[str, str]:
    """The colours of the models, retrievers or reference orders that share a panel.

    A known one has its own everywhere. An unknown one has that of the palette which a
    hash of its name says, or if another in the panel has it, the next that is free.
    """
    names = list(dict.fromkeys(map(str, models)))
    colors = {name: _FIXED[name] for name in names if name in _FIXED}
    for name in names:
        start = hashlib.sha256(name.encode()).digest()[0] % len(PALETTE)
        wheel = PALETTE[start:] + PALETTE[:start]
        colors.setdefault(
            name, next((color for color in wheel if color not in colors.values()), wheel[0])
        )
    return colors


def new_figure(
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    sharey: bool | str = False,
    width_ratios: Sequence[float] | None = None,
) -> tuple[Figure, np.ndarray]:
    """A figure of `size` inches in the kit's look, and its axes, shape (rows, columns).

    It is closed for pyplot, so that a notebook shows it once: where it is the value of
    a cell.
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


def use_style() -> None:
    """Set the look of all figures drawn from here on."""
    mpl.rcParams.update(_LOOK)
    mpl.rcParams["axes.prop_cycle"] = mpl.cycler(color=PALETTE)
