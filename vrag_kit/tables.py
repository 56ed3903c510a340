"""Tables: CSV files that people edit, required columns, and display in notebooks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vrag_kit.config import check_list
from vrag_kit.errors import SetupError, VragError
from vrag_kit.files import write_file

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MOST_ROWS = 500
"""Maximum number of rows shown; of a longer table the first and last rows and its size."""
NUMBERS = ("distractor_ks", "cutoffs", "example_counts", "ks")
"""Notebook parameters that are lists of numbers."""
_KEYS = ("query_id", "group")
"""Columns that rows are joined and grouped by: a row without one would drop out."""


def read_csv_rows(
    path: Path, columns: Sequence[str], what: str, advice: str, *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, values by column) of each non-empty row; a missing `optional` column
    gives "".

    Files are accepted as any spreadsheet program saves them: columns in any order, separated by
    commas, semicolons or tabs with spaces after them, in UTF-8 with or without a byte order mark.
    Raises `VragError` naming file and line for a missing,
    unknown or duplicate column, and a row that is too long or too short. For a file that cannot be
    read, the message names `what` and gives the `advice`.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise VragError(f"{path}: {what} cannot be read ({error.strerror}). {advice}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise VragError(f"{path} line {line}: {error}. Save it as CSV in UTF-8.") from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        needed = [name for name in header if name not in optional]
        if sorted(needed) != sorted(columns) or len(set(header)) < len(header):
            more = f" and optionally {list(optional)}" if optional else ""
            raise VragError(
                f"{path} line 1: found the columns {header}, expected {list(columns)}{more}."
            )
        for row in filter(any, reader):
            if len(row) != len(header):
                raise VragError(
                    f"{path} line {reader.line_num}: found {len(row)} values, expected"
                    f" {len(header)} ({', '.join(header)}). Quote text that contains {delimiter!r}."
                )
            values = dict(zip(header, row, strict=True))
            yield reader.line_num, dict.fromkeys(optional, "") | values
    except csv.Error as error:
        raise VragError(f"{path} line {reader.line_num}: not CSV ({error}).") from error


def write_csv_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table for `read_csv_rows`, replacing the file only once the new one is complete.
    Raises `OSError` if it cannot be written.
    """
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([columns, *rows])
    write_file(path, content.getvalue())


def require_columns(frame: pd.DataFrame, needed: Sequence[str], where: str) -> None:
    """Raise `VragError` unless `frame` has the columns `needed`, a key in each row, and ranks from
    1. The message begins with `where`.
    """
    if missing := [name for name in needed if name not in frame]:
        raise SetupError(
            f"{where}: the table has no column {missing[0]!r}; found"
            f" {', '.join(map(str, frame.columns))}, expected {', '.join(needed)}."
        )
    for name in _KEYS:
        if name in needed and (gaps := frame[name].isna()).any():
            row = gaps.idxmax()
            raise VragError(f"{where}: column {name!r}, row {row}: found nothing, expected text.")
    if "rank" in needed and (frame["rank"] < 1).any():
        raise VragError(f"{where}: column 'rank' holds {frame['rank'].min()}; the first is 1.")


def show_full_tables(shell: Any) -> None:  # Any: IPython's shell has no types
    """Make the notebook of `shell` show its tables in full.

    Raises `VragError` if one of the notebook's `NUMBERS` is a single number.
    """
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
