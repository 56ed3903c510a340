"""Figures are saved whole, the same every time, with the numbers behind them; colours belong to models."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from vrag_kit.benchmarks import distribution, query_table
from vrag_kit.errors import VragError
from vrag_kit.plotting import benchmark_figure, color_of, contact_sheet, save_figure
from vrag_kit.plotting.style import CLUE
from vrag_kit.types import Benchmark


def simple() -> tuple[plt.Figure, pd.DataFrame]:
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4])
    return figure, pd.DataFrame({"n": [5], "k": [1], "retriever": ["r"], "unit": ["percent"], "value": [0.123456789]})


def test_a_figure_is_saved_as_png_svg_and_csv_with_columns_in_the_papers_order(tmp_path: Path) -> None:
    save_figure(simple()[0], tmp_path / "new", "02_x", simple()[1])
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["02_x.csv", "02_x.png", "02_x.svg"]
    assert (tmp_path / "new" / "02_x.csv").read_text(encoding="utf-8") == "unit,retriever,k,value,n\npercent,r,1,0.123457,5\n"
    assert (tmp_path / "new" / "02_x.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_figure(simple()[0], tmp_path / name, "x", simple()[1])
    for suffix in ("png", "svg", "csv"):
        assert (tmp_path / "a" / f"x.{suffix}").read_bytes() == (tmp_path / "b" / f"x.{suffix}").read_bytes()


def test_a_folder_that_cannot_be_written_is_an_error_and_older_figures_stay(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(VragError, match=r"cannot be saved.*figures_dir"):
        save_figure(*simple()[:1], tmp_path / "figures", "x", simple()[1])
    assert (tmp_path / "figures").read_text(encoding="utf-8") == "a file in the way"


def test_a_model_has_the_same_color_everywhere_and_unknown_ones_get_one_too() -> None:
    assert color_of("CLIP") == color_of("CLIP")
    assert color_of("field-guide-clip-64") != color_of("field-guide-clip-32")
    assert color_of("something new").startswith("#")


def test_figure_2_draws_one_bar_a_category_as_long_as_its_share(guide: Benchmark) -> None:
    shares = distribution(guide)
    figure = benchmark_figure(shares, query_table(guide), "small guide")
    for axis, facet in zip(figure.axes, ("organism", "question"), strict=False):
        widths = [bar.get_width() for bar in axis.patches]
        assert widths == pytest.approx(list(shares[shares["facet"] == facet]["share"]))
    assert sum(bar.get_height() for bar in figure.axes[2].patches) == len(guide.queries)


def test_a_contact_sheet_frames_exactly_the_clues(guide: Benchmark) -> None:
    query_id = next(q for q in guide.queries if len(guide.relevant(q)) >= 3)
    figure = contact_sheet(guide, query_id, clues=3, others=5)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["clue"] * 3 + ["not a clue"] * 5
    assert plt.matplotlib.colors.to_hex(figure.axes[0].spines["left"].get_edgecolor()).upper() == CLUE
