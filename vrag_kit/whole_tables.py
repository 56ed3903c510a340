"""What each notebook begins with, behind its parameters: tables are shown whole, no text
cut and no column left out; and a number is no list.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.options import check_list

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MOST_ROWS = 500
"""Of a longer table the first and last rows are shown, and how many it has."""
NUMBERS = ("company_ks", "company_numbers", "cutoffs", "example_numbers", "ks")
"""Parameters of notebooks that are lists of numbers."""


def whole_tables() -> None:
    """From here on this notebook shows its tables whole; elsewhere nothing happens.

    Raises `VragError` where one of the notebook's `NUMBERS` is a single one.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    for name in NUMBERS:
        check_list(shell.user_ns.get(name, []), name)
    for option in ("max_colwidth", "max_columns"):
        pd.set_option(f"display.{option}", None)
    for option in ("max_rows", "min_rows"):
        pd.set_option(f"display.{option}", MOST_ROWS)
    pd.set_option("display.show_dimensions", "truncate")


def styled(table: pd.DataFrame, *, caption: str = "", **how: Any) -> Styler:  # Any: pandas'
    """`table.style.format(**how)`, in which texts, labels and the caption show as they are:
    pandas' own takes a name such as "<img …>" for HTML.
    """
    style = table.style.format(escape="html", **how)
    for axis in (0, 1):
        style.format_index(escape="html", axis=axis)
        style.format_index_names(escape="html", axis=axis)
    return style.set_caption(escape(caption)) if caption else style
