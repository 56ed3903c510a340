"""Figures are saved whole, the same every time, with the numbers behind them; colours
belong to models.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.figure import Figure

from vrag_kit.plotting import model_colors, save_figure
from vrag_kit.workspace import Workspace

NUMBERS = pd.DataFrame(
    {"n": [5], "k": [1], "retriever": ["r"], "unit": ["percent"], "value": [0.123456789]}
)


def test_a_figure_is_saved_with_its_numbers_in_the_papers_order(tmp_path: Path) -> None:
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4])
    save_figure(figure, Workspace(figures_dir=tmp_path / "new"), "02_x", NUMBERS)
    files = sorted((tmp_path / "new").iterdir())
    assert [file.suffixes for file in files] == [[".caption", ".tex"], [".csv"], [".png"], [".svg"]]
    text = "unit,retriever,k,value,n\npercent,r,1,0.123457,5\n"
    assert files[1].read_text(encoding="utf-8") == text
    assert files[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_layout_off_in_the_last_digits_gives_the_same_svg(tmp_path: Path) -> None:
    """As the solver of constrained layouts does from run to run."""
    drawings = []
    for off in (0.0, 3e-14):
        figure = Figure((9.0, 4.8))
        for place in (0, 1):
            axis = figure.add_axes((0.1 + 0.45 * place + off, 0.1, 0.4, 0.8 + off))
            axis.plot([0, 1], [0, 1])
        save_figure(figure, Workspace(figures_dir=tmp_path), "x", NUMBERS)
        drawings.append((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert drawings[0] == drawings[1]
    clips = re.findall(r'<clipPath id="(.*?)"', drawings[0])
    assert len(set(clips)) == 2  # of two panels
    assert set(re.findall(r"clip-path=\"url\(#(.*?)\)", drawings[0])) == set(clips)


def test_a_model_has_the_same_color_everywhere_and_models_of_one_panel_never_share_one() -> None:
    assert model_colors(["CLIP", "x"])["CLIP"] == model_colors(["y", "CLIP"])["CLIP"]
    colors = model_colors(["CLIP", *(f"model {n}" for n in range(6)), "field-guide-vlm-few"])
    assert len(set(colors.values())) == 8
    alone = model_colors(["field-guide-vlm-few"])
    assert colors["field-guide-vlm-few"] == alone["field-guide-vlm-few"]
    many = [f"model {n}" for n in range(60)]  # more than there are colours
    assert len(set(model_colors(many).values())) == 60
    assert model_colors(many) == model_colors(many)
