"""Display of whole tables in a notebook, without truncated text or hidden columns. Parameters that
are lists of numbers are checked too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.options import check_list

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MOST_ROWS = 500
"""Maximum number of rows shown; of a longer table the first and last rows and its size."""
NUMBERS = ("distractor_ks", "cutoffs", "example_counts", "ks")
"""Notebook parameters that are lists of numbers."""


def show_full_tables() -> None:
    """Make this notebook show its tables in full; outside a notebook nothing happens.

    Raises `VragError` if one of the notebook's `NUMBERS` is a single number.
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


def style_table(table: pd.DataFrame, *, caption: str = "", **how: Any) -> Styler:  # Any: pandas'
    """Return `table.style.format(**how)` with HTML escaped in cells, labels and the caption. By
    default pandas takes a name such as "<img …>" for HTML.
    """
    style = table.style.format(escape="html", **how)
    for axis in (0, 1):
        style.format_index(escape="html", axis=axis)
        style.format_index_names(escape="html", axis=axis)
    return style.set_caption(escape(caption)) if caption else style
