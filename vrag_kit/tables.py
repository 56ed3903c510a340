"""CSV files that people edit, row by row with the number of each line; written whole.

They are read as any spreadsheet saves them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.files import write_file


def read_rows(
    path: Path, columns: Sequence[str], what: str, advice: str, *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, values by column) of each row that holds something; "" where the file has not
    got an `optional` column.

    The columns may stand in any order, with commas, semicolons or tabs between, and
    blanks behind them, as UTF-8 with or without a mark. Raises `VragError` naming file
    and line for a missing, unknown or doubled column, and a row that is too long or too
    short; and for a file that cannot be read, where it says that `what` cannot be read
    and gives the `advice`.
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


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table that `read_rows` reads, replacing the file only once the new one is
    complete. Raises `OSError` when it cannot be written.
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
