"""Figures are saved whole, the same every time, with the numbers behind them; colours
belong to models.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from vrag_kit.dry_run import dry_run
from vrag_kit.plotting import contact_sheet, model_colors, save_figure
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


@pytest.mark.slow
@pytest.mark.parametrize("size", [9.0, 11.0])
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
    with pytest.raises(OSError, match="figures"):
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


def test_a_contact_sheet_frames_exactly_the_clues(guide: Benchmark) -> None:
    query_id = next(q for q in guide.queries if len(guide.relevant(q)) >= 4)
    figure = contact_sheet(guide, query_id)
    assert [axis.get_title() for axis in figure.axes] == ["gold"] * 4 + [""] * 8
    framed = [to_hex(axis.spines["left"].get_edgecolor()) for axis in figure.axes]
    assert framed == [EVIDENCE["gold"].lower()] * 4 + [EVIDENCE["other"].lower()] * 8
