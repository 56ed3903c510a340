"""Tables in notebooks are shown whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

BOUNDS = "43.2 [29.8, 56.6] (1 failed; 40.1 if all of those were wrong, 46.3 if all were right)"
SHELL = f"""
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "vrag_kit")
table = pd.DataFrame([[{BOUNDS!r}] * 40] * 100)
forms, _ = shell.display_formatter.format(table)
print(forms["text/html"].count({BOUNDS!r}), forms["text/plain"].count({BOUNDS!r}))
forms, _ = shell.display_formatter.format(table[0])
print(forms["text/plain"].count({BOUNDS!r}))
for rows in (500, 501):
    forms, _ = shell.display_formatter.format(pd.DataFrame({{"n": range(rows)}}))
    print(f"{{rows}} rows × 1 columns" in forms["text/html"])
"""


@pytest.mark.slow
def test_a_notebook_shows_texts_columns_and_rows_whole_and_says_how_long_a_table_is() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SHELL], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[-4:] == ["4000 4000", "100", "False", "True"]
