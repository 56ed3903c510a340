"""Figures are saved whole, the same every time, with the numbers behind them; colours
belong to models.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import binomtest

from vrag_kit.building import clue_rate_figure
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.papers import published, visual_rag
from vrag_kit.papers.visual_rag.abstention import with_uncertainty
from vrag_kit.papers.visual_rag.error_budget import JUDGE_NOISE, PARTS, error_budget_figure
from vrag_kit.plotting import (
    concat_sources,
    contact_sheet,
    model_colors,
    save_figure,
)
from vrag_kit.plotting.style import EVIDENCE
from vrag_kit.types import Benchmark


def simple() -> tuple[plt.Figure, pd.DataFrame]:
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4])
    return figure, pd.DataFrame(
        {"n": [5], "k": [1], "retriever": ["r"], "unit": ["percent"], "value": [0.123456789]}
    )


def test_in_a_forecast_no_figure_is_drawn(tmp_path: Path) -> None:
    with dry_run(tmp_path):
        save_figure(simple()[0], tmp_path / "new", "02_x", simple()[1])
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_saved_as_png_svg_and_csv_with_columns_in_the_papers_order(
    tmp_path: Path,
) -> None:
    save_figure(simple()[0], tmp_path / "new", "02_x", simple()[1])
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "02_x.caption.tex",
        "02_x.csv",
        "02_x.png",
        "02_x.svg",
    ]
    assert (tmp_path / "new" / "02_x.csv").read_text(
        encoding="utf-8"
    ) == "unit,retriever,k,value,n\npercent,r,1,0.123457,5\n"
    assert (tmp_path / "new" / "02_x.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_figure(simple()[0], tmp_path / name, "x", simple()[1])
    for suffix in ("png", "svg", "csv"):
        assert (tmp_path / "a" / f"x.{suffix}").read_bytes() == (
            tmp_path / "b" / f"x.{suffix}"
        ).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("size", [9.0, 10.0, 11.0])
def test_a_layout_that_differs_in_the_last_digits_gives_the_same_svg(
    size: float, tmp_path: Path
) -> None:
    """As the solver of constrained layouts does from run to run."""
    drawings = []
    for off in (0.0, 3e-14):
        figure = Figure((size, 4.8))
        for place in (0, 1):
            axis = figure.add_axes((0.1 + 0.45 * place + off, 0.1, 0.4, 0.8 + off))
            axis.plot([0, 1], [0, 1])
        save_figure(figure, tmp_path, "x", simple()[1])
        drawings.append((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert drawings[0] == drawings[1]
    clips = re.findall(r'<clipPath id="(.*?)"', drawings[0])
    assert len(set(clips)) == 2  # of two panels
    assert set(re.findall(r"clip-path=\"url\(#(.*?)\)", drawings[0])) == set(clips)


def test_a_folder_that_cannot_be_written_is_an_error_and_older_figures_stay(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(VragError, match=r"cannot be saved.*figures_dir"):
        save_figure(*simple()[:1], tmp_path / "figures", "x", simple()[1])
    assert (tmp_path / "figures").read_text(encoding="utf-8") == "a file in the way"


def test_a_model_has_the_same_color_everywhere_and_models_of_one_panel_never_share_one() -> None:
    assert model_colors(["CLIP", "x"])["CLIP"] == model_colors(["y", "CLIP"])["CLIP"]
    strangers = [f"model {n}" for n in range(6)]
    colors = model_colors(["CLIP", *strangers, "field-guide-vlm-few"])
    assert len(set(colors.values())) == 8
    assert (
        colors["field-guide-vlm-few"]
        == model_colors(["field-guide-vlm-few"])["field-guide-vlm-few"]
    )
    many = [f"model {n}" for n in range(60)]  # more than there are colours
    assert len(set(model_colors(many).values())) == 60
    assert model_colors(many) == model_colors(many)


def test_figure_2_draws_one_bar_a_category_as_long_as_its_share(guide: Benchmark) -> None:
    shares = visual_rag.statistics.distribution(guide)
    figure = visual_rag.figures.benchmark_figure(shares, visual_rag.statistics.query_table(guide))
    for axis, facet in zip(figure.axes, ("organism", "question"), strict=False):
        widths = [bar.get_width() for bar in axis.patches]
        part = shares[shares["facet"] == facet]
        assert widths == pytest.approx(list(part["share"]))
        labels = [text.get_text().strip() for text in axis.texts]
        first = part.iloc[0]
        assert labels[0] == f"{first['share']:.0f}\u00a0% ({first['n']})"
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert sum(bar.get_height() for bar in figure.axes[2].patches) == len(guide.queries)


def test_a_contact_sheet_frames_exactly_the_clues(guide: Benchmark) -> None:
    query_id = next(q for q in guide.queries if len(guide.relevant(q)) >= 4)
    figure = contact_sheet(guide, query_id)
    assert [axis.get_title() for axis in figure.axes] == ["gold"] * 4 + [""] * 8
    framed = [to_hex(axis.spines["left"].get_edgecolor()) for axis in figure.axes]
    assert framed == [EVIDENCE["gold"].lower()] * 4 + [EVIDENCE["other"].lower()] * 8


PAPER = visual_rag.abstention.with_uncertainty(published("visual_rag", table=3))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 500), st.floats(0, 1))
def test_a_printed_mean_is_as_doubtful_as_a_binomial_one(n: int, share: float) -> None:
    right = round(share * n)
    table = PAPER.head(1).assign(value=100 * right / n, n=n, model="m")
    found = with_uncertainty(table).iloc[0]
    exact = binomtest(right, n).proportion_ci()
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((100 * exact.low, 100 * exact.high))


def test_only_what_the_paper_ran_five_times_has_an_interval_over_runs() -> None:
    known = PAPER.set_index(["model", "setting", "k"])
    runs = published("visual_rag", 15, model="GPT-4o", k=5, statistic="run")
    exact = scipy.stats.t.interval(0.95, 4, runs["value"].mean(), scipy.stats.sem(runs["value"]))
    cell = known.loc[("GPT-4o", "one_in_k", 5)]
    assert (cell["ci_low_runs"], cell["ci_high_runs"]) == pytest.approx(exact)
    assert set(PAPER.dropna(subset="ci_low_runs")["setting"]) == {"gt_clue", "one_in_k"}
    abstention = visual_rag.abstention.with_uncertainty(
        published("visual_rag", table=8)
    )  # of other numbers, not of these runs
    assert abstention["ci_low_runs"].isna().all()


def test_the_numbers_behind_a_figure_say_whose_they_are() -> None:
    table = concat_sources({"a": PAPER, "b": PAPER}, ["zero_shot"])
    assert list(table["source"]) == ["a"] * 8 + ["b"] * 8
    assert set(table["setting"]) == {"zero_shot"}


def test_every_model_of_the_paper_has_its_own_colour() -> None:
    assert len(set(model_colors(PAPER["model"]).values())) == 8


def test_the_budget_figure_has_a_panel_a_part_that_is_lost_and_names_the_largest_loss() -> None:
    parts = (PARTS[0], PARTS[2], PARTS[3], PARTS[4], JUDGE_NOISE)
    table = pd.DataFrame(
        [
            ("m", stratum, k, part, value, value - 2, value + 3, 9)
            for stratum in ("told", "not told", "all questions")
            for k, values in {1: (40, 10, 0, -4, 7), 5: (-5, 12, 0, -6, 7)}.items()
            for part, value in zip(parts, values, strict=True)
        ],
        columns=["model", "stratum", "k", "part", "value", "ci_low", "ci_high", "n"],
    )
    figure = error_budget_figure(table)
    title, _, caption = str(figure.get_label()).partition("\n")
    assert "k = 5 is 12 points [10, 15]" in title
    assert "Not drawn, 0 at every k: clue retrieved, lost by the prompt" in caption
    drawn = [
        [y for line in axis.lines if line.get_marker() == "o" for y in line.get_ydata()]
        for axis in figure.axes
    ]
    assert drawn == [[40, -5], [10, 12], [-4, -6]]


def test_the_building_figure_has_a_point_for_each_annotated_question() -> None:
    rows = [("kept", 0.1, 0.05), ("too_common", 0.2, 0.3), ("no_clue", None, 0.0)]
    decisions = pd.DataFrame(rows, columns=["status", "estimated_clue_rate", "clue_rate"])
    decisions = decisions.assign(n_images=50)

    def points(table: pd.DataFrame) -> set[tuple[float, ...]]:
        (axis,) = clue_rate_figure(table, 0.25).axes
        marks = [line for line in axis.lines if line.get_marker() == "o"]
        return {tuple(map(float, point)) for line in marks for point in line.get_xydata()}

    assert points(decisions) == {(10.0, 5.0), (20.0, 30.0)}
    without_filter = decisions.assign(estimated_clue_rate=np.nan)
    assert points(without_filter) == {(50.0, 5.0), (50.0, 30.0), (50.0, 0.0)}
