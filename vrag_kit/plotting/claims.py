"""Figures of claim metrics by the evidence shown, and of the errors of the claim checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vrag_kit.plotting.agreement import FEW, draw_confusion_matrix
from vrag_kit.plotting.old_panels import dodge, wrap_title
from vrag_kit.plotting.old_style import DARK, GREY, model_colors, new_figure

Metric = tuple[str, str]
"""Family and metric."""
_MARKS = ("o", "s", "D", "^", "v", "P", "X")
_LABELS = {"checker": "s", "corrected": "o", "true": "D"}
_BY = {
    "checker": "by the checker's labels, uncorrected",
    "corrected": "corrected (prediction-powered)",
    "true": "true labels",
}
_SHORT = {"ENTAILMENT": "entails", "NEUTRAL": "neutral", "CONTRADICTION": "contradicts"}
_FAINT = 0.4


def claims_figure(
    means: pd.DataFrame,
    metrics: Mapping[Metric, str],
    settings: Mapping[str, str],
    *,
    column: str,
    marks: Mapping[str, str],
) -> Figure:
    """Draws a row per data set and a column per metric ((family, metric) → its name). Above each
    setting (setting → its name) is a mean for each of `marks` (value of `column` → its name), side
    by side, with 95 % intervals.

    `means` is `to_percent(compare_label_sources(…))` with the columns dataset, model, setting and
    `column`. Means by true labels, or else corrected ones, are filled; the checker's, right of
    them, are hollow, with a grey line from the mean if all its unparsed verdicts were NEUTRAL to
    that if all were ENTAILMENT. A mean of fewer than `FEW` questions is faint; one without an
    interval is not drawn. Where a column by_construction is true (`with_fixed`), it is a grey mark
    without a bar. A panel without any value says so.
    """
    wanted = pd.MultiIndex.from_frame(means[["family", "metric"]]).isin(list(metrics))
    drawn = means[wanted & means[column].isin(list(marks))]
    filled = [name for name in ("true", "corrected") if (drawn["label_source"] == name).any()][:1]
    drawn = drawn[drawn["label_source"].isin([*filled, "checker"])]
    datasets = list(dict.fromkeys(drawn["dataset"]))
    size = (3.3 * len(metrics) + 0.6, 2.6 * len(datasets) + 1.6)
    figure, axes = new_figure(len(datasets), len(metrics), size, sharey=True)
    colors = model_colors(drawn["model"])
    for row, dataset in zip(axes, datasets, strict=True):
        part = drawn[drawn["dataset"] == dataset]
        for axis, (metric, name) in zip(row, metrics.items(), strict=True):
            own = part[(part["family"] == metric[0]) & (part["metric"] == metric[1])]
            _levels(axis, own, settings, [column, *marks], colors)
            axis.set_title(name if dataset == datasets[0] else "")
        row[0].set(ylabel=f"{dataset}\nmean (%)", ylim=(-4, 104))
    shapes = dict(zip(marks.values(), cycle(_MARKS), strict=False)) if len(marks) > 1 else {}
    _legend(figure, axes[0][0], colors, shapes, [*filled, "checker"])
    drawn = drawn[drawn["ci_low"].notna()]
    words = f"n = {_range(drawn['n'])} questions a mark (each in the CSV)"
    if (drawn["if_neutral"] != drawn["if_entailed"]).any():
        words += ". Grey line: if all unparsed verdicts were NEUTRAL, or ENTAILMENT"
    figure.suptitle(f"Bars: 95 % intervals. {words}{_kinds_of_marks(drawn)}", fontsize=9)
    return figure


def checker_confusion_figure(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Draws confusion matrices of the checker: a column per mode of evidence, a row per kind of
    verdict (mode → title → `verdict_confusion_matrix`).
    """
    titles = list(next(iter(confusions.values())))
    size = (4.9 * len(confusions), 3.8 * len(titles) + 0.5)
    figure, axes = new_figure(len(titles), len(confusions), size)
    for column, (mode, matrices) in enumerate(confusions.items()):
        for row, (title, matrix) in enumerate(matrices.items()):
            short = matrix.rename(index=_SHORT, columns=_SHORT)
            name = f"{mode}: {title}"
            draw_confusion_matrix(
                axes[row][column],
                name,
                short,
                counted="verdicts",
                truth="truth",
                predicted="predicted (checker)",
            )
    figure.suptitle(
        "Verdicts by their true label (rows) and the checker's (columns); unparsed: without a"
        " verdict that could be read",
        fontsize=9,
    )
    return figure


def corrected_claims_figure(
    means: pd.DataFrame, names: Mapping[Metric, str], settings: Mapping[str, str]
) -> Figure:
    """Draws a row per data set and a column per setting (setting → its name). Each metric ((family,
    metric) → its name) has means by the checker's labels, corrected by those of a sample, and by
    true ones, with 95 % intervals.

    `means` is `to_percent(compare_label_sources(…))` with dataset, model and setting, of which the
    modality "all" is drawn. A corrected mean of fewer than `FEW` labelled answers is faint, as is
    any of fewer questions, and a fixed one grey. One without an interval is not drawn; the caption
    counts the corrected ones.
    """
    wanted = pd.MultiIndex.from_frame(means[["family", "metric"]]).isin(list(names))
    drawn = means[wanted & (means["modality"] == "all")]
    datasets = list(dict.fromkeys(drawn["dataset"]))
    height = 0.55 * len(names) * drawn["model"].nunique() + 0.9
    size = (4.2 * len(settings) + 1.6, height * len(datasets) + 1.2)
    figure, axes = new_figure(len(datasets), len(settings), size, sharey=True)
    for row, dataset in zip(axes, datasets, strict=True):
        for axis, (setting, name) in zip(row, settings.items(), strict=True):
            part = drawn[(drawn["dataset"] == dataset) & (drawn["setting"] == setting)]
            _three_means(axis, part, names, model_colors(drawn["model"]))
            axis.set(title=f"{dataset}: {name}", xlim=(-4, 104))
    for axis in axes[-1]:
        axis.set_xlabel("mean (%)")
    _legend(figure, axes[0][0], model_colors(drawn["model"]), {}, list(_LABELS), shaped=True)
    told = drawn[drawn["n"] > 0]
    labelled = told[told["label_source"] == "corrected"]["n_labelled"].astype(int)
    words = f"n = {_range(told['n'])} answers a mark, {_range(labelled)} of them labelled"
    if lost := int(((told["label_source"] == "corrected") & told["ci_low"].isna()).sum()):
        words += f". {lost} corrected without a mark: too few labels for an interval"
    figure.suptitle(f"Bars: 95 % intervals. {words}{_kinds_of_marks(told)}", fontsize=9)
    return figure


def _levels(
    axis: Axes,
    table: pd.DataFrame,
    settings: Mapping[str, str],
    marks: list[str],
    colors: Mapping[str, str],
) -> None:
    """Means above each setting: models and marks side by side, and of each the filled
    mean left of the checker's. `marks` is a column, and its values.
    """
    column, *values = marks
    arms = list(product(colors, zip(values, cycle(_MARKS), strict=False)))
    places = {setting: place for place, setting in enumerate(settings)}
    for step, (model, (value, marker)) in zip(
        dodge(len(arms), 0.84 / len(arms)), arms, strict=True
    ):
        own = table[(table["model"] == model) & (table[column] == value)]
        own = own[own["ci_low"].notna() & own["setting"].isin(list(places))]
        for by_checker, shift in ((False, -0.18), (True, 0.18)):
            rows = own[(own["label_source"] == "checker") == by_checker]
            x = rows["setting"].map(places).to_numpy(float) + step + shift * 0.84 / len(arms)
            if by_checker:
                axis.vlines(x, rows["if_neutral"], rows["if_entailed"], color=GREY, linewidth=3.5)
            _mark(axis, x, rows, colors[model], marker)
    if table["value"].isna().all():
        axis.text(0.5, 0.5, "undefined", transform=axis.transAxes, ha="center", color=DARK)
    axis.set_xticks(
        range(len(settings)), [wrap_title(name, 0) for name in settings.values()], fontsize=9
    )
    axis.set_xlim(-0.55, len(settings) - 0.45)
    axis.grid(axis="x", visible=False)


def _mark(
    axis: Axes, at: np.ndarray, rows: pd.DataFrame, color: str, marker: str, *, flat: bool = False
) -> None:
    """Means with their intervals, hollow if the checker's, faint if of few, grey if fixed;
    `flat`: along the x axis.
    """
    lines = axis.hlines if flat else axis.vlines
    numbers = rows[["value", "ci_low", "ci_high"]].to_numpy(float)
    edges = np.where(_fixed(rows), GREY, color)
    faces = np.where(rows["label_source"] == "checker", "white", edges)
    looks = zip(edges, faces, _few(rows) & ~_fixed(rows), strict=True)
    for place, (value, low, high), (edge, face, faint) in zip(at, numbers, looks, strict=True):
        alpha = _FAINT if faint else 1.0
        lines(place, low, high, color=edge, linewidth=1.3, alpha=alpha)
        xy = (value, place) if flat else (place, value)
        (drawn,) = axis.plot(*xy, marker, color=edge, markersize=6, alpha=alpha, clip_on=False)
        drawn.set(markerfacecolor=face, zorder=3)


def _few(rows: pd.DataFrame) -> pd.Series:
    few = rows["n"] < FEW
    if "n_labelled" in rows:
        few |= (rows["label_source"] == "corrected") & (rows["n_labelled"] < FEW)
    return few


def _fixed(rows: pd.DataFrame) -> pd.Series:
    return rows["by_construction"] if "by_construction" in rows else pd.Series(False, rows.index)


def _kinds_of_marks(drawn: pd.DataFrame) -> str:
    """What a caption says of faint and grey marks, if there are any."""
    fixed = _fixed(drawn)
    words = f". Faint: fewer than {FEW}" if (_few(drawn) & ~fixed).any() else ""
    return words + (". Grey: fixed by construction" if fixed.any() else "")


def _three_means(
    axis: Axes, table: pd.DataFrame, names: Mapping[Metric, str], colors: Mapping[str, str]
) -> None:
    """A line a metric and model, with its three means one below the other."""
    lines = list(product(names, colors))
    for place, (metric, model) in enumerate(lines):
        own = table[(table["family"] == metric[0]) & (table["metric"] == metric[1])]
        for shift, (labels, marker) in zip(dodge(3, 0.24), _LABELS.items(), strict=True):
            rows = own[(own["model"] == model) & (own["label_source"] == labels)].dropna(
                subset="ci_low"
            )
            _mark(axis, np.full(len(rows), place + shift), rows, colors[model], marker, flat=True)
    said = [", ".join(each) for each in product(names.values(), colors)]
    if len(colors) == 1:
        said = list(names.values())
    axis.set_yticks(range(len(lines)), said, fontsize=9)
    axis.set_ylim(len(lines) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def _legend(
    figure: Figure,
    axis: Axes,
    colors: Mapping[str, str],
    shapes: Mapping[str, str],
    labels: Sequence[str],
    *,
    shaped: bool = False,
) -> None:
    """Models by color, `shapes` (name → marker), and whose labels: by marker if `shaped`."""
    for model, color in colors.items():
        axis.plot([], [], color=color, linewidth=4, label=model)
    for name, marker in shapes.items():
        axis.plot([], [], marker, color=DARK, label=name)
    for name in labels:
        face = "white" if name == "checker" else DARK
        marker = _LABELS[name] if shaped else "o"
        kind = "hollow: " if name == "checker" else "filled: "
        kind = "" if shaped or len(labels) == 1 else kind
        axis.plot([], [], marker, color=DARK, markerfacecolor=face, label=f"{kind}{_BY[name]}")
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)


def _range(counts: pd.Series) -> str:
    if not len(counts):
        return "0"
    fewest, most = int(counts.min()), int(counts.max())
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"
