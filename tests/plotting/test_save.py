"""Figures and tables are saved whole, the same every time, with the numbers behind them, whatever
their cells say; colours belong to models.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from vrag_kit.analysis import load_results
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.plotting import model_colors, save_figure, save_table, to_latex
from vrag_kit.workspace import Workspace

NUMBERS = pd.DataFrame(
    {"n": [5], "k": [1], "retriever": ["r"], "unit": ["percent"], "value": [0.123456789]}
)


def test_a_figure_is_saved_with_its_numbers_in_the_papers_order(tmp_path):
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4])
    save_figure(figure, Workspace(figures_dir=tmp_path / "new"), "02_x", NUMBERS)
    files = sorted((tmp_path / "new").iterdir())
    assert [file.suffixes for file in files] == [[".caption", ".tex"], [".csv"], [".png"], [".svg"]]
    text = "unit,retriever,k,value,n\npercent,r,1,0.123457,5\n"
    assert files[1].read_text(encoding="utf-8") == text
    assert files[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_layout_off_in_the_last_digits_gives_the_same_svg(at, tmp_path):
    """As the solver of constrained layouts does from run to run."""
    drawings = []
    for off in (0.0, 3e-14):
        figure = Figure((9.0, 4.8))
        for place in (0, 1):
            axis = figure.add_axes((0.1 + 0.45 * place + off, 0.1, 0.4, 0.8 + off))
            axis.plot([0, 1], [0, 1])
        save_figure(figure, at, "x", NUMBERS)
        drawings.append((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert drawings[0] == drawings[1]
    clips = re.findall(r'<clipPath id="(.*?)"', drawings[0])
    assert len(set(clips)) == 2  # of two panels
    assert set(re.findall(r"clip-path=\"url\(#(.*?)\)", drawings[0])) == set(clips)


def test_a_model_has_the_same_color_everywhere_and_models_of_one_panel_never_share_one():
    assert model_colors(["CLIP", "x"])["CLIP"] == model_colors(["y", "CLIP"])["CLIP"]
    colors = model_colors(["CLIP", *(f"model {n}" for n in range(6)), "field-guide-vlm-few"])
    assert len(set(colors.values())) == 8
    alone = model_colors(["field-guide-vlm-few"])
    assert colors["field-guide-vlm-few"] == alone["field-guide-vlm-few"]
    many = [f"model {n}" for n in range(60)]  # more than there are colours
    assert len(set(model_colors(many).values())) == 60
    assert model_colors(many) == model_colors(many)


SHOWN = pd.DataFrame(
    {
        "model": ["a_b", "c & d"],
        "value": [1.234, np.nan],
        "n": [20, 3],
        "difference": ["−1.0 [-2.5, 0.4]", "–"],
    }
)


def test_it_is_a_tabular_with_the_rules_of_booktabs_and_over_forty_rows_a_longtable():
    assert to_latex(SHOWN).splitlines() == [
        r"\begin{tabular}{lrrl}",
        r"\toprule",
        r"model & value & n & difference \\",
        r"\midrule",
        r"a\_b & 1.23 & 20 & $-$1.0 [$-$2.5, 0.4] \\",
        r"c \& d & -- & 3 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    rows = pd.DataFrame({"model": ["small"] * 41, "value": 1.0})
    assert to_latex(rows).startswith(r"\begin{longtable}{lr}")
    assert "longtable" not in to_latex(rows[:40])


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_breaks_a_row(text):
    lines = to_latex(pd.DataFrame({"said": [text]})).split("\n")
    (row,) = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    bare = re.sub(r"\\[a-zA-Z]+(?:\{\})?|\\[&%$#_{}]", "", row.removesuffix(r" \\"))
    assert not set(bare) & set("&%#_{}~^\\")
    assert bare.count("$") % 2 == 0


def test_signs_that_pdflatex_stops_at_are_commands():
    latex = to_latex(pd.DataFrame({"κ and λ": ["−1 ± 2 ≤ 3 × 4 … -5"]}))
    lines = latex.splitlines()
    assert lines[2] == r"$\kappa$ and $\lambda$ \\"
    assert lines[4] == r"$-$1 $\pm$ 2 $\le$ 3 $\times$ 4 \dots{} $-$5 \\"


def test_a_styled_table_is_saved_as_its_data_and_is_no_result(at, tmp_path):
    save_table(SHOWN.set_index("model").style, at, "03_mine")
    read = pd.read_csv(tmp_path / "03_mine.table.csv")
    pd.testing.assert_frame_equal(read, SHOWN)
    assert (tmp_path / "03_mine.tex").read_text(encoding="utf-8") == to_latex(SHOWN)
    with pytest.raises(VragError, match="holds no results"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    "save",
    [
        lambda folder: save_table(SHOWN, Workspace(figures_dir=folder), "03_mine"),
        lambda folder: save_figure(Figure(), Workspace(figures_dir=folder), "03_mine", SHOWN),
    ],
)
def test_a_dry_run_writes_nothing(save, tmp_path):
    with dry_run(tmp_path / "scratch"):
        save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        save(tmp_path / "file")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "a file in the way"
