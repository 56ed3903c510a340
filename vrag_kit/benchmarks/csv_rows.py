"""CSV files that people edit, row by row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import write_file


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
