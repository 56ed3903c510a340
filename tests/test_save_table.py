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

from vrag_kit.analysis import interval_table, load_results
from vrag_kit.errors import VragError
from vrag_kit.forecast import forecasting
from vrag_kit.papers import crag_mm, mrag_bench, mrag_suite
from vrag_kit.plotting import as_latex, save_table

SHOWN = pd.DataFrame(
    {
        "model": ["a_b", "c & d"],
        "value": [1.234, np.nan],
        "n": [20, 3],
        "difference": ["−1.0 [-2.5, 0.4]", "–"],
    }
)


def test_it_is_a_tabular_with_the_rules_of_booktabs() -> None:
    assert as_latex(SHOWN).splitlines() == [
        r"\begin{tabular}{lrrl}",
        r"\toprule",
        r"model & value & n & difference \\",
        r"\midrule",
        r"a\_b & 1.23 & 20 & $-$1.0 [$-$2.5, 0.4] \\",
        r"c \& d & -- & 3 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_labels_of_rows_come_first_and_names_stand_over_several_columns() -> None:
    rows = [(setting, model) for setting in ("s", "t") for model in ("a", "b")]
    table = pd.DataFrame(rows, columns=["setting", "model"]).assign(
        metric=["x", "y"] * 2, value=0.5, ci_low=0.4, ci_high=0.6, n=9
    )
    wide = interval_table(table, rows=["setting"], columns=["model", "metric"])
    lines = as_latex(wide).splitlines()
    assert lines[2] == r"setting & a & b \\"
    spanned = pd.concat({"ours": SHOWN[["value", "n"]], "theirs": SHOWN[["n"]]}, axis=1)
    lines = as_latex(spanned).splitlines()
    assert lines[2:4] == [r"\multicolumn{2}{c}{ours} & theirs \\", r"value & n & n \\"]


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_breaks_a_row(text: str) -> None:
    lines = as_latex(pd.DataFrame({"said": [text]})).split("\n")
    (row,) = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    bare = re.sub(r"\\[a-zA-Z]+(?:\{\})?|\\[&%$#_{}]", "", row.removesuffix(r" \\"))
    assert not set(bare) & set("&%#_{}~^\\")
    assert bare.count("$") % 2 == 0


def test_signs_that_pdflatex_stops_at_are_commands_and_other_letters_are_told() -> None:
    latex = as_latex(pd.DataFrame({"said": ["✓ Σ β ∼ √ ≠ κ ≥ é ç"]}))
    row = r"$\surd$ $\Sigma$ $\beta$ $\sim$ $\surd$ $\ne$ $\kappa$ $\ge$ é ç \\"
    assert latex.splitlines()[4] == row
    latex = as_latex(pd.DataFrame({"said": ["答案 ą"]}))
    assert latex.splitlines()[0] == "% holds ą 案 答: compile with lualatex or xelatex"


def test_what_is_wider_than_the_line_is_set_smaller_and_then_breaks_into_lines() -> None:
    narrow = pd.DataFrame({"model": ["small"], "value": [1.0]})
    assert as_latex(narrow).startswith(r"\begin{tabular}{lr}")
    wider = pd.DataFrame({"said": ["x" * 60], "value": [1.0]})
    assert as_latex(wider).splitlines()[:2] == [r"{\footnotesize", r"\begin{tabular}{lr}"]
    words = pd.DataFrame({"said": [40 * "word "], "a/very_long/name": ["mean"], "value": [1.0]})
    size, columns, _, _, _, row, *_ = as_latex(words).splitlines()
    assert size == r"{\footnotesize"
    widths = [float(width) for width in re.findall(r"p\{([\d.]+)\\linewidth\}", columns)]
    assert len(widths) == 1
    assert 0.4 < widths[0] < 1
    assert row.startswith(r"\raggedright word word")
    assert row.endswith(r"word & mean & 1.00 \\")


def test_names_break_behind_underscores_and_what_never_fits_is_told() -> None:
    names = {f"column_{number}": ["a_long_name/of_a_setting"] for number in range(6)}
    latex = as_latex(pd.DataFrame(names))
    assert r"\raggedright a\_\allowbreak long\_\allowbreak name/\allowbreak of" in latex
    never = pd.DataFrame({f"c{number}": ["unbreakable" * 2] for number in range(9)})
    assert as_latex(never).startswith("% wider than a page of article: choose fewer columns")
    assert "% wider" not in latex
    assert latex.splitlines()[3].endswith(r"\tabularnewline")


def test_what_is_longer_than_a_page_breaks_over_pages_under_its_names() -> None:
    rows = pd.DataFrame({"model": ["small"] * 41, "value": 1.0})
    latex = as_latex(rows)
    first, begin, *head = latex.splitlines()
    assert first == r"% longer than a page: \usepackage{longtable}, outside of a table"
    assert begin == r"\begin{longtable}{lr}"
    rules = [r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
    assert head[:6] == [r"\toprule", r"model & value \\", *rules]
    assert latex.endswith("\\end{longtable}\n")
    assert "longtable" not in as_latex(rows[:39])
    # fewer rows whose cells take several lines
    assert "longtable" in as_latex(pd.DataFrame({"said": [60 * "word "] * 14, "n": 1}))


def compiled(tables: list[pd.DataFrame], folder: Path) -> tuple[str, int]:
    """What pdflatex says of the tables, and on how many pages."""
    packages = "".join(rf"\usepackage{{{name}}}" for name in ("booktabs", "longtable"))
    body = "\n\n".join(map(as_latex, tables))
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
        mrag_bench.printed_range(),
        mrag_bench.printed_range("gain"),
        mrag_bench.printed_main(),
        mrag_bench.printed_text_or_image(),
        crag_mm.printed_range("single_turn"),
        crag_mm.printed_systems("multi_turn"),
        mrag_suite.printed_retrievers(),
        mrag_suite.printed_modes(),
        SHOWN,
        pd.DataFrame({"said": ["a_b & 100 % of #1 {~^} " + 60 * "word "] * 40, "n": 1}),
    ]
    # 24 rows of two lines each fit a page, if a row takes no third
    tables.append(pd.DataFrame({"said": [13 * "word "] * 24, "so": [13 * "word "] * 24, "n": 1}))
    assert "longtable" not in as_latex(tables[-1])
    said, pages = compiled(tables, tmp_path)
    assert pages > len(tables) / 3
    assert "Overfull \\vbox" not in said


def test_a_styled_table_is_saved_as_its_data_and_is_no_result(tmp_path: Path) -> None:
    save_table(SHOWN.set_index("model").style, tmp_path, "03_mine")
    read = pd.read_csv(tmp_path / "03_mine.table.csv")
    pd.testing.assert_frame_equal(read, SHOWN)
    assert (tmp_path / "03_mine.tex").read_text(encoding="utf-8") == as_latex(SHOWN)
    with pytest.raises(VragError, match="holds no results"):
        load_results(tmp_path)


def test_a_forecast_writes_none_and_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path,
) -> None:
    with forecasting(tmp_path):
        save_table(SHOWN, tmp_path / "new", "03_mine")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(VragError, match="the table cannot be saved"):
        save_table(SHOWN, tmp_path / "file", "03_mine")


def test_a_name_in_the_place_of_the_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="found '01_mine' where the table should be; expected a t"):
        save_table("01_mine", tmp_path, "01_mine")  # type: ignore[arg-type]  # the fault
