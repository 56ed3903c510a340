"""What each notebook begins with, behind its parameters: tables are shown whole, no text
cut, no column left out, and none of it taken for HTML; and a number is no list.
"""

from __future__ import annotations

import re
from html import escape
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from vrag_kit.options import check_list

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter
    from pandas.io.formats.style import Styler

MOST_ROWS = 500
"""Of a longer table the first and last rows are shown, and how many it has."""
NUMBERS = ("company_ks", "company_numbers", "cutoffs", "example_numbers", "ks")
"""Parameters of notebooks that are lists of numbers."""
_CELL = re.compile("<td>")


def whole_tables() -> None:
    """From here on this notebook shows its tables whole (`as_html`, `as_text`).

    It tells this kernel how to display frames and series; pandas' own options stay as
    they are, and outside of a notebook nothing happens. Raises `VragError` where one of
    the notebook's `NUMBERS` is a single one.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or shell.display_formatter is None:
        return
    for name in NUMBERS:
        check_list(shell.user_ns.get(name, []), name)
    forms = shell.display_formatter.formatters
    forms["text/html"].for_type(pd.DataFrame, as_html)
    for kind in (pd.DataFrame, pd.Series):
        forms["text/plain"].for_type(kind, _print)


def as_html(table: pd.DataFrame) -> str:
    """A table as HTML: every text whole and flush left, so that a long one wraps."""
    with pd.option_context("display.max_colwidth", None):
        html = table.to_html(
            notebook=True, max_rows=MOST_ROWS, show_dimensions=len(table) > MOST_ROWS
        )
    numbers = [is_numeric_dtype(dtype) for dtype in table.dtypes]
    cells = cycle("<td>" if number else '<td style="text-align: left">' for number in numbers)
    return _CELL.sub(lambda _: next(cells), html) if numbers else html


def styled(table: pd.DataFrame, *, caption: str = "", **how: Any) -> Styler:  # Any: pandas'
    """`table.style.format(**how)`, in which texts, labels and the caption show as they are:
    pandas' own takes a name such as "<img …>" for HTML.
    """
    style = table.style.format(escape="html", **how)
    for axis in (0, 1):
        style.format_index(escape="html", axis=axis)
        style.format_index_names(escape="html", axis=axis)
    return style.set_caption(escape(caption)) if caption else style


def as_text(table: pd.DataFrame | pd.Series) -> str:
    """The same without HTML."""
    rows = ("display.max_rows", MOST_ROWS)
    with pd.option_context("display.max_colwidth", None, "display.max_columns", None, *rows):
        return str(table)


def _print(table: pd.DataFrame | pd.Series, printer: RepresentationPrinter, _: bool) -> None:
    printer.text(as_text(table))  # type: ignore[no-untyped-call]  # IPython's has no types
