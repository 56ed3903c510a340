"""A table that is shown becomes CSV and LaTeX by one call, whatever its cells say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_kit.analysis import interval_table, load_results
from vrag_kit.errors import VragError
from vrag_kit.forecast import forecasting
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
    (row,) = as_latex(pd.DataFrame({"said": [text]})).splitlines()[4:-2]
    bare = re.sub(r"\\[a-z]+(?:\{\})?|\\[&%$#_{}]", "", row.removesuffix(r" \\"))
    assert not set(bare) & set("&%#_{}~^\\")
    assert bare.count("$") % 2 == 0


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
