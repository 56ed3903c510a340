"""Figures by stratum can be read where strata have long names, and nothing in them is cut."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.figure import Figure

from vrag_kit.analysis.error_budget import PARTS
from vrag_kit.analysis.strata import KNOWN, LEFT_OUT, UNKNOWN
from vrag_kit.papers.visual_rag import printed_retrieval
from vrag_kit.plotting import accuracy_figure, baseline_figure, budget_figure, retriever_figure
from vrag_kit.types import Benchmark

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


def test_sums_at_100_and_whiskers_beyond_are_drawn_whole() -> None:
    rows = [
        (f"field-guide-vlm-few: {stratum}", 1, part, value, -20.0, 95.0, 3)
        for stratum in STRATA
        for part, value in ((PARTS[0], 60.0), (PARTS[2], 40.0))
    ]
    names = ["model", "k", "part", "value", "ci_low", "ci_high", "n"]
    figure = budget_figure(pd.DataFrame(rows, columns=names))
    titles_stand_apart(figure)
    low, high = figure.axes[0].get_ylim()
    assert low <= -20
    assert high >= 60 + 95
    (sums,) = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert (sums.get_ydata()[0], sums.get_clip_on()) == (100, False)


@pytest.mark.parametrize("cutoffs", [[1, 3, 5, 7, 10, 12], [1, 5, 10, 20, 30], [1, 9, 10, 11, 12]])
def test_no_two_cut_offs_below_an_axis_touch(cutoffs: list[int], guide: Benchmark) -> None:
    rows = [("mine", metric, k) for metric in ("recall", "hit") for k in cutoffs]
    results = pd.DataFrame(rows, columns=["retriever", "metric", "k"])
    results = results.assign(value=40.0, ci_low=10.0, ci_high=90.0, n=3)
    paper = printed_retrieval().iloc[:0]
    figure = retriever_figure(results, paper, guide)
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    assert [text.get_text().strip() for text in labels] == [str(k) for k in cutoffs]
    for one, other in pairwise(labels):
        lines = {text.get_text().count("\n") for text in (one, other)}
        apart = other.get_window_extent().x0 - one.get_window_extent().x1
        assert len(lines) == 2 or apart > 2
