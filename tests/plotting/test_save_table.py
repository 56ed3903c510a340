"""A table that is shown becomes CSV and LaTeX by one call, whatever its cells say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.analysis import load_results
from vrag_kit.config import Workspace
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm, published
from vrag_kit.plotting import save_table, to_latex

SHOWN = pd.DataFrame(
    {
        "model": ["a_b", "c & d"],
        "value": [1.234, np.nan],
        "n": [20, 3],
        "difference": ["−1.0 [-2.5, 0.4]", "–"],
    }
)


def test_it_is_a_tabular_with_the_rules_of_booktabs() -> None:
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


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_breaks_a_row(text: str) -> None:
    lines = to_latex(pd.DataFrame({"said": [text]})).split("\n")
    (row,) = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    bare = re.sub(r"\\[a-zA-Z]+(?:\{\})?|\\[&%$#_{}]", "", row.removesuffix(r" \\"))
    assert not set(bare) & set("&%#_{}~^\\")
    assert bare.count("$") % 2 == 0


def test_signs_that_pdflatex_stops_at_are_commands() -> None:
    latex = to_latex(pd.DataFrame({"κ and λ": ["−1 ± 2 ≤ 3 × 4 … -5"]}))
    lines = latex.splitlines()
    assert lines[2] == r"$\kappa$ and $\lambda$ \\"
    assert lines[4] == r"$-$1 $\pm$ 2 $\le$ 3 $\times$ 4 \dots{} $-$5 \\"


def test_more_than_forty_rows_break_over_pages() -> None:
    rows = pd.DataFrame({"model": ["small"] * 41, "value": 1.0})
    assert to_latex(rows).startswith(r"\begin{longtable}{lr}")
    assert "longtable" not in to_latex(rows[:40])


def compiled(tables: list[pd.DataFrame], folder: Path) -> tuple[str, int]:
    """What pdflatex says of the tables, and on how many pages."""
    packages = "".join(rf"\usepackage{{{name}}}" for name in ("booktabs", "longtable"))
    body = "\n\n".join(map(to_latex, tables))
    text = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (folder / "all.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    for _ in range(2):  # a longtable knows its columns' widths the second time
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = re.search(r"Output written on all.pdf \((\d+) page", done.stdout)
    assert found, done.stdout[-2000:]
    return done.stdout, int(found[1])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_tables_of_all_papers_compile(tmp_path: Path) -> None:
    tables = [
        published("mrag_bench", 3),
        published("mrag_bench", 4),
        crag_mm.results.published_range(8),
        published("crag_mm", 5),
        published("mrag_suite", 9),
        published("mrag_suite", 5),
        SHOWN,
        pd.DataFrame({"said": ["a_b & 100 % of #1 {~^}"] * 41, "n": 1}),
    ]
    said, pages = compiled(tables, tmp_path)
    assert pages > 1
    assert "Overfull \\vbox" not in said


def test_a_styled_table_is_saved_as_its_data_and_is_no_result(tmp_path: Path) -> None:
    save_table(SHOWN.set_index("model").style, Workspace(figures_dir=tmp_path), "03_mine")
    read = pd.read_csv(tmp_path / "03_mine.table.csv")
    pd.testing.assert_frame_equal(read, SHOWN)
    assert (tmp_path / "03_mine.tex").read_text(encoding="utf-8") == to_latex(SHOWN)
    with pytest.raises(VragError, match="holds no results"):
        load_results(tmp_path)


def test_a_forecast_writes_none_and_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path,
) -> None:
    with dry_run(tmp_path):
        save_table(SHOWN, Workspace(figures_dir=tmp_path / "new"), "03_mine")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        save_table(SHOWN, Workspace(figures_dir=tmp_path / "file"), "03_mine")
