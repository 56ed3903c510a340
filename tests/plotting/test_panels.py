"""Figures of means draw every number where it belongs, and say what they draw; the committed ones
keep the rules of `figure_rules` too.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from figure_rules import broken_rules
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.plotting import (
    confusion_plot,
    forest_plot,
    line_plot,
    outcome_bars,
    point_plot,
    save_figure,
)
from vrag_kit.plotting.style import MODEL, OUTCOME, PAGE, SETTING
from vrag_kit.workspace import Workspace

# Machado et al. (2009), on linear RGB
DEUTERANOPIA = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)


def seen(color: str) -> np.ndarray:
    """A colour as seen with deuteranopia."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.clip(DEUTERANOPIA @ linear, 0, 1) ** (1 / 2.4)


def means(**columns: object) -> pd.DataFrame:
    """Two models in two settings over k = 1, 5, 20: no two means are equal."""
    rows = [
        {"model": model, "setting": setting, "k": k, "metric": "accuracy", "n": 81, "n_failed": 0}
        for model in ("field-guide-vlm-few", "another")
        for setting in ("top_k", "one_in_k")
        for k in (1, 5, 20)
    ]
    table = pd.DataFrame(rows)
    table["value"] = 20.0 + 5 * np.arange(len(table))
    table["ci_low"], table["ci_high"] = table["value"] - 7, table["value"] + 6
    return table.assign(**columns)


def points(figure: Figure) -> list[Line2D]:
    """The drawn means, as lines with markers."""
    lines = [line for axis in figure.axes for line in axis.lines]
    return [line for line in lines if line.get_marker() in "os^D"]


def drawn(lines: list[Line2D], *, flat: bool = False) -> list[float]:
    """The means that points show, rounded."""
    values = [line.get_xdata() if flat else line.get_ydata() for line in lines]
    return sorted(np.round(np.concatenate(values), 6).tolist())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


LINES = {"x": "k", "xlabel": "images shown, k", "ylabel": "Accuracy (%)", "panels": "setting"}
PLOTS: dict[str, Callable[..., Figure]] = {
    "line_plot": lambda table, **more: line_plot(table, **{**LINES, **more}),
    "point_plot": lambda table, **more: point_plot(
        table, **{"x": "k", "ylabel": "Accuracy (%)", "panels": "setting", **more}
    ),
    "forest_plot": lambda table, **more: forest_plot(
        table, **{"rows": "k", "xlabel": "Accuracy (%)", "panels": "setting", **more}
    ),
}


@pytest.mark.parametrize("plot", PLOTS)
def test_every_mean_is_drawn_once_with_its_interval(plot):
    figure = PLOTS[plot](means())
    flat = plot == "forest_plot"
    assert drawn(points(figure), flat=flat) == sorted(means()["value"])
    drawings = [lines.get_segments() for axis in figure.axes for lines in axis.collections]
    ends = np.concatenate(drawings)[:, :, 0 if flat else 1]
    expected = means()[["ci_low", "ci_high"]].to_numpy()
    assert np.sort(np.sort(ends), axis=0) == pytest.approx(expected)


@pytest.mark.parametrize("plot", PLOTS)
def test_a_point_is_hollow_where_answers_failed_and_the_legend_says_so(plot):
    whole = PLOTS[plot](means())
    assert legend(whole)[-1] == "95 % interval"
    table = means(n=14, n_failed=[1] + [0] * 11, bound_low=10.0, bound_high=90.0)
    figure = PLOTS[plot](table)
    hollow = [line for line in points(figure) if line.get_markerfacecolor() == "white"]
    assert drawn(hollow, flat=plot == "forest_plot") == [20.0]
    *_, interval, failures = legend(figure)
    assert "n below 15" in interval
    assert "failed" in failures


def test_a_difference_names_both_operands_and_a_mean_needs_an_axis():
    differences = means().query("setting == 'top_k'").assign(baseline="zero_shot")
    (axis,) = forest_plot(differences, rows="k", panels="setting").axes
    assert axis.get_title(loc="left") == "top-k − zero-shot (no image)"
    figure = forest_plot(differences, rows="k")
    assert figure.get_supxlabel() == ("Accuracy, top-k − zero-shot (no image) (percentage points)")


def test_the_rows_of_a_forest_have_their_n_and_say_where_there_is_no_value():
    table = means(n=[15, 15, 15, 90, 90, 90] * 2)
    (axis,) = forest_plot(table, rows=["setting", "k"], xlabel="Accuracy (%)").axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [
        *("top-k", "1 (n = 15 questions)", "5 (n = 15)", "20 (n = 15)"),
        *("1-in-k", "1 (n = 90)", "5 (n = 90)", "20 (n = 90)"),
    ]
    table = means(n_label="").query("setting == 'top_k'")
    table = table.assign(value=table["value"].mask(table["k"] == 5))
    (axis,) = forest_plot(table, rows="k", xlabel="Accuracy (%)").axes
    assert [text.get_text() for text in axis.get_yticklabels()] == ["1", "5", "20"]
    assert [(text.get_text(), text.get_position()[1]) for text in axis.texts] == [("no value", 1)]


def test_a_point_outside_a_fixed_axis_is_an_arrow_at_its_edge():
    table = means().query("model == 'another' and setting == 'top_k'")
    (axis,) = line_plot(table, **LINES, limits=(0, 52)).axes  # 50, 55, 60
    arrows = [
        line for line in axis.lines if line.get_marker() == "^" and len(line.get_xdata()) == 2
    ]
    assert [list(line.get_ydata()) for line in arrows] == [[52, 52]]


def test_levels_are_lines_named_at_the_right_and_reported_means_grey_ones():
    levels = means().query("k == 1").assign(setting=["zero_shot", "gt_clue"] * 2)
    reported = means().query("model == 'another'").drop(columns=["ci_low", "ci_high"])
    figure = line_plot(
        means(),
        **{**LINES, "panels": "model", "color": "setting"},
        levels=levels,
        reported=reported,
    )
    named = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert sorted(named) == ["clue (1 image)"] * 2 + ["zero-shot (no image)"] * 2
    named = ["top-k", "1-in-k", "reported (the paper's data)", "95 % interval"]
    assert legend(figure) == named


def test_means_that_share_an_x_are_apart_however_near_the_next_x_is():
    looks = {**LINES, "panels": "", "color": "setting", "style": "model"}
    figure = line_plot(means().replace({"k": {5: 2}}), **looks)
    places = np.sort(np.concatenate([line.get_xdata() for line in points(figure)]))
    assert np.round(places).tolist() == [1] * 4 + [2] * 4 + [20] * 4
    assert np.diff(places).min() > 0.1


def test_a_panel_without_points_says_why():
    table = means()
    table.loc[table["setting"] == "top_k", ["value", "ci_low", "ci_high"]] = np.nan
    figure = line_plot(table, **LINES, empty="undefined")
    assert [[text.get_text() for text in axis.texts] for axis in figure.axes] == [["undefined"], []]


@pytest.mark.parametrize("roles", [MODEL, SETTING.values(), OUTCOME.values()])
def test_colours_of_a_panel_stay_apart_with_deuteranopia(roles):
    for one, other in combinations(dict.fromkeys(roles), 2):
        assert float(np.linalg.norm(seen(one) - seen(other))) >= 0.15, (one, other)


names = st.text("abcdefgh ", min_size=1, max_size=40).filter(str.strip)


@settings(max_examples=3, deadline=None)
@given(st.lists(names, min_size=3, max_size=3, unique_by=str.strip), st.data())
def test_no_names_however_long_break_the_rules_of_a_figure(tmp_path_factory, three, data):
    plot = data.draw(st.sampled_from(sorted(PLOTS)))
    table = means(setting=[three[0], three[1]] * 6, model=[three[2], "m"] * 6)
    figure = PLOTS[plot](table, title="What was found")
    folder = tmp_path_factory.mktemp("figures")
    save_figure(figure, Workspace(figures_dir=folder), "x", table, mark="synthetic data")
    assert broken_rules(folder / "x.svg") == []


def test_a_figure_has_its_title_caption_and_mark_in_its_svg_and_for_latex(at, tmp_path):
    figure = line_plot(means(), **LINES, title="A & B differ", caption="Mean of 5 %.")
    save_figure(figure, at, "x", means(), mark="synthetic data")
    drawing = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<title>A &amp; B differ</title>" in drawing
    assert "<desc>Mean of 5 %.</desc>" in drawing
    assert ">synthetic data</text>" in drawing
    latex = (tmp_path / "x.caption.tex").read_text(encoding="utf-8")
    assert latex == "A \\& B differ. Mean of 5 \\%.\n"
    assert math.isclose(figure.get_figwidth(), PAGE)


def test_bars_of_outcomes_fill_their_shares_and_name_the_mean_at_their_end():
    shares = pd.DataFrame(
        {
            "setting": ["zero_shot"] * 4,
            "metric": ["correct", "missing", "incorrect", "truthfulness"],
            "value": [50.0, 20.0, 30.0, 20.0],
            "ci_low": [40.0, 10.0, 20.0, 5.0],
            "ci_high": [60.0, 30.0, 40.0, 35.0],
            "n": 240,
        }
    )
    outcomes = {"correct": "correct", "missing": "missing", "incorrect": "incorrect"}
    (axis,) = outcome_bars(shares, rows="setting", outcomes=outcomes, beside="truthfulness").axes
    assert [(bar.get_x(), bar.get_width()) for bar in axis.patches] == [(0, 50), (50, 20), (70, 30)]
    assert [text.get_text() for text in axis.texts] == [
        *("20 [5, 35]", "truthfulness\n[95 % interval]")
    ]
    assert axis.get_title(loc="left") == "n = 240 answers"


def test_a_confusion_matrix_shows_counts_and_shades_shares_of_their_row():
    matrix = pd.DataFrame([[21, 7], [0, 400]], index=["yes", "no"], columns=["yes", "no"])
    (axis,) = confusion_plot({"judge": matrix}, truth="human", predicted="judge").axes
    assert [text.get_text() for text in axis.texts] == ["21", "7", "0", "400"]
    np.testing.assert_allclose(axis.images[0].get_array(), [[0.75, 0.25], [0.0, 1.0]])


FIGURES = ROOT / "figures"


@pytest.mark.parametrize(
    "file", sorted(FIGURES.rglob("*.svg")), ids=lambda file: str(file.relative_to(FIGURES))
)
def test_a_committed_figure_fits_a_page_and_can_be_read(file):
    assert broken_rules(file) == []
