"""Figures by stratum and of small data can be read where strata and models have long names,
and nothing in them is cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from vrag_kit.analysis.strata import KNOWN, LEFT_OUT, UNKNOWN
from vrag_kit.papers.visual_rag import gcue
from vrag_kit.plotting import (
    accuracy_figure,
    baseline_figure,
    gcue_figure,
    old_lines,
)
from vrag_kit.types import Benchmark

MODELS = (
    "Says",
    "field-guide-vlm-many",
    "Qwen2.5-VL-72B-Instruct@our-endpoint-in-the-basement",
    "Contained",
    "Llama-3.2-90B-Vision-Instruct-Turbo",
    "claude-3-7-sonnet-20250219@anthropic",
)
STRATA = (KNOWN + LEFT_OUT, UNKNOWN + LEFT_OUT)


def titles_stand_apart(figure: Figure) -> None:
    """No two titles lie on one another."""
    figure.draw_without_rendering()
    titles = [axis.title for axis in figure.axes if axis.get_title()]
    boxes = [title.get_window_extent() for title in titles]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])


def of_settings(settings: dict[str, list[int]]) -> pd.DataFrame:
    rows = [(setting, k) for setting, ks in settings.items() for k in ks]
    table = pd.DataFrame(rows, columns=["setting", "k"])
    parts = [table.assign(model=f"field-guide-vlm-{name}") for name in ("few", "many")]
    return pd.concat(parts).assign(value=40.0, ci_low=10.0, ci_high=90.0, n=3, n_failed=0)


@pytest.mark.slow
def test_titles_of_long_strata_stand_apart_and_are_whole() -> None:
    shown = of_settings({"gt_clue": [1], "non_clue": [1], "top_k": [1, 12], "one_in_k": [3, 11]})
    for figure in (
        accuracy_figure(dict.fromkeys(STRATA, shown)),
        baseline_figure({**dict.fromkeys(STRATA, shown), "my own pictures": shown}),
    ):
        titles_stand_apart(figure)
        words = [" ".join(axis.get_title().split()) for axis in figure.axes]
        for stratum in STRATA:
            assert any(each.startswith(f"{stratum} (n = 3)") for each in words)


def test_a_setting_has_one_marker_whether_zero_shot_is_drawn_or_not() -> None:
    every = of_settings({"zero_shot": [0], "gt_clue": [1], "non_clue": [1], "top_k": [1, 2]})
    for table in (every, every[every["setting"] != "zero_shot"]):
        beside = accuracy_figure({"mine": table}).axes[0]
        ticks = [text.get_text() for text in beside.get_xticklabels()]
        found = {ticks[round(line.get_xdata()[0])]: line.get_marker() for line in beside.lines}
        assert (found["one\nclue"], found["one\nnon-clue"]) == ("^", "X")


def keeps_its_room(figure: Figure) -> None:
    """The layout is possible, axes are large, and legends lie within the figure, on nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    page = figure.bbox.padded(6)  # what a saved figure has around it
    for axis in figure.axes:
        box = axis.get_window_extent()
        assert box.height / figure.dpi > 2.4
        assert box.width / figure.dpi > 1.2
    boxes = [axis.get_legend().get_window_extent() for axis in figure.axes if axis.get_legend()]
    assert all(page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1) for box in boxes)
    written = [axis.get_window_extent() for axis in figure.axes]
    for axis in figure.axes:
        labels = [axis.xaxis.label, *axis.get_xticklabels()]
        written += [label.get_window_extent() for label in labels if label.get_text()]
    assert not any(box.overlaps(other) for box in boxes for other in written)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def in_four_arms(models: tuple[str, ...], groups: int) -> pd.DataFrame:
    """Judged answers to two questions a group, right with a clue and wrong without."""
    arms = [("zero_shot", 0), ("non_clue", 1), ("gt_clue", 1), ("one_in_k", 3), ("one_in_k", 11)]
    rows = [
        (setting, k, f"q{query}", f"g{query % groups}", float(setting in ("gt_clue", "one_in_k")))
        for setting, k in arms
        for query in range(2 * groups)
    ]
    one = pd.DataFrame(rows, columns=["setting", "k", "query_id", "group", "score"])
    one = one.assign(draw=0, abstained=0.0)
    return pd.concat([one.assign(model=model) for model in models])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "models", "panels"), [(3, 1, 3), (3, 2, 2), (3, 6, 1), (3, 6, 3), (12, 6, 2)]
)
def test_gcue_of_small_data_keeps_its_axes_whatever_the_legend_says(
    groups: int, models: int, panels: int
) -> None:
    curves = gcue(in_four_arms(MODELS[:models], groups))
    assert curves["value"].isna().all() == (groups == 3)  # no ratio: too few groups
    figure = gcue_figure({f"My things {number}": curves for number in range(panels)})
    keeps_its_room(figure)
    legend = figure.axes[0].get_legend()
    words = " ".join(text.get_text() for text in legend.get_texts())
    assert ("too few groups (3)" in " ".join(words.split())) == (groups == 3)
    assert ("A_GT − B = 1.00 [−0.42, 1.00]" in " ".join(words.split())) == (groups == 3)


def over_k() -> pd.DataFrame:
    table = of_settings({"zero_shot": [0], "gt_clue": [1], "non_clue": [1], "one_in_k": [3, 5]})
    one = table[table["model"] == table["model"].iloc[0]]
    return pd.concat([one.assign(model=model) for model in MODELS])


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw",
    [
        lambda guide: baseline_figure({"mine": over_k(), "others": over_k()}),
        lambda guide: baseline_figure({"mine": over_k().query("model in @MODELS[2:4]")}),
        lambda guide: old_lines(
            {"mine": over_k()}, {"one_in_k": "1-in-k"}, by="setting", x="k", xlabel="k"
        ),
    ],
)
def test_long_names_of_models_leave_the_axes_of_other_figures_their_room(
    draw: Callable[[Benchmark], Figure], guide: Benchmark
) -> None:
    figure = draw(guide)
    for axis in [axis for axis in figure.axes if not axis.axison]:
        axis.remove()  # an empty panel
    keeps_its_room(figure)


@pytest.mark.slow
def test_four_panels_stand_two_by_two_with_their_own_axes_names_and_no_empty_one() -> None:
    shown = of_settings({"top_k": [1, 5], "zero_shot": [0]})
    lines = {"by": "setting", "x": "k", "xlabel": "images"}
    panels = [f"stratum {number}" for number in range(4)]
    figure = old_lines(dict.fromkeys(panels, shown), {"top_k": "top"}, **lines)
    titles_stand_apart(figure)
    assert len({round(axis.get_position().y0, 2) for axis in figure.axes}) == 2
    assert all(axis.get_ylabel() for axis in figure.axes)
