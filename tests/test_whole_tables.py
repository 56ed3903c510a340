"""Tables in notebooks are shown whole."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.runner.parameters import declared
from vrag_kit.whole_tables import MOST_ROWS, as_html, as_text, whole_tables

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))
BOUNDS = "43.2 [29.8, 56.6] (1 failed; 40.1 if all of those were wrong, 46.3 if all were right)"
SHELL = f"""
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("from vrag_kit.whole_tables import whole_tables; whole_tables()")
table = pd.DataFrame({{"cell": [{BOUNDS!r}]}})
for shown in (table, table["cell"]):
    forms, _ = shell.display_formatter.format(shown)
    print({BOUNDS!r} in forms["text/plain"], {BOUNDS!r} in forms.get("text/html", {BOUNDS!r}))
print(pd.get_option("display.max_colwidth"))
"""


def cells(table: pd.DataFrame) -> list[str]:
    return [cell.get_text() for cell in BeautifulSoup(as_html(table), "html.parser")("td")]


def test_a_kernel_that_is_told_shows_texts_whole_and_pandas_options_stay() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SHELL], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[-3:] == ["True True", "True True", "50"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_number_where_a_notebook_has_a_list_is_named_before_it_works(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `ks = 5`, typed into the cell of parameters."""
    known = declared(notebook)
    shell = SimpleNamespace(user_ns={**known}, display_formatter=None)
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    shell.display_formatter = SimpleNamespace(formatters=defaultdict(Forms))
    whole_tables()
    lists = {name: value for name, value in known.items() if isinstance(value, list)}
    for name in [name for name, value in lists.items() if any(type(each) is int for each in value)]:
        shell.user_ns = {**known, name: 5}
        with pytest.raises(VragError, match=rf"{name} is 5; expected a list, such as \[5\]"):
            whole_tables()


class Forms:
    def for_type(self, *_: object) -> None:
        """As IPython's formatters take it."""


def test_no_cell_ends_in_dots_and_no_column_is_left_out() -> None:
    wide = pd.DataFrame([[BOUNDS] * 40] * 100)
    assert BOUNDS not in wide._repr_html_()  # pandas alone cuts it
    assert cells(wide) == [BOUNDS] * 4000
    assert as_text(wide[0]).count(BOUNDS) == 100


def test_texts_stand_left_and_numbers_where_they_are() -> None:
    page = BeautifulSoup(as_html(pd.DataFrame({"n": [1], "says": ["a < b"]})), "html.parser")
    assert [cell.get("style") for cell in page("td")] == [None, "text-align: left"]
    assert [cell.get_text() for cell in page("td")] == ["1", "a < b"]


def test_a_table_longer_than_anybody_reads_says_how_long_it_is() -> None:
    page = as_html(pd.DataFrame({"n": range(MOST_ROWS + 1)}))
    assert f"{MOST_ROWS + 1} rows × 1 columns" in page
    assert "rows ×" not in as_html(pd.DataFrame({"n": range(MOST_ROWS)}))


def test_outside_of_a_notebook_nothing_happens() -> None:
    whole_tables()
    assert pd.get_option("display.max_colwidth") == 50
