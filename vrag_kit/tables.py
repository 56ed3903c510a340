"""CSV files that people edit: reading with line numbers, and atomic writing.

Files are accepted as any spreadsheet program saves them.
"""

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

    Columns may be in any order, separated by commas, semicolons or tabs with spaces after them, in
    UTF-8 with or without a byte order mark. Raises `VragError` naming file and line for a missing,
    unknown or duplicate column, and a row that is too long or too short. For a file that cannot be
    read, the message names `what` and gives the `advice`.
    """
    text = _read_text(path, what, advice)
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    empty = dict.fromkeys(optional, "")
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, columns, optional, path)
        for row in filter(any, reader):
            if len(row) != len(header):
                raise VragError(
                    f"{path} line {reader.line_num}: found {len(row)} values, expected"
                    f" {len(header)} ({', '.join(header)}). A text with a separator in it stands"
                    " in double quotes."
                )
            yield reader.line_num, {**empty, **dict(zip(header, row, strict=True))}
    except csv.Error as error:
        raise VragError(
            f"{path} line {reader.line_num}: not CSV ({error}); expected the columns"
            f" {', '.join(columns)}, text with quotes doubled."
        ) from error


def write_csv_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table for `read_csv_rows`, replacing the file only once the new one is complete.
    Raises `OSError` if it cannot be written.
    """
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([columns, *rows])
    write_file(path, content.getvalue())


def _read_text(path: Path, what: str, advice: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise VragError(f"{path}: {what} cannot be read ({error.strerror}). {advice}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise VragError(
            f"{path} line {line}: not UTF-8 (byte {error.start}: {error.reason}). Save it as CSV in"
            " UTF-8."
        ) from error


def _check_header(
    header: Sequence[str], columns: Sequence[str], optional: Sequence[str], path: Path
) -> None:
    known = [*columns, *optional]
    odd = [f"no column {name!r}" for name in columns if name not in header]
    odd += [f"the column {name!r}" for name in header if name not in known]
    odd += [f"the column {name!r} twice" for name in known if header.count(name) > 1]
    if odd:
        more = f", and where you like {', '.join(optional)}" if optional else ""
        raise VragError(
            f"{path} line 1: found {' and '.join(odd)}, expected {', '.join(columns)}{more}."
        )
