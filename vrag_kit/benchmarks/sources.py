"""Files of a data set, from a folder or the hub, and their rows with the place of each: Parquet
shards, JSON Lines, and CSV that people edit.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, validate
from vrag_kit.benchmarks.transforms import RowId
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.types import DocId, Json

_SHARD = re.compile(r".+-(\d+)-of-(\d+)\.(?:parquet|arrow)")


def local_folder(rows: Path | str, patterns: Sequence[str]) -> Path:
    """Return a folder of rows; for a hub name, fetch the files of `patterns` once to its cache.

    Raises `VragError` as `download_from_hub`.
    """
    folder = Path(rows).expanduser()
    return folder if folder.is_dir() else download_from_hub(str(rows), patterns)


def download_from_hub(rows: str, patterns: Sequence[str], to: Path | None = None) -> Path:
    """Download the files that match `patterns` from a data set of the hub,
    "<owner>/<name>@<revision>", to the folder `to` or the hub's cache. Returns the folder. Existing
    files are not fetched again. Raises `VragError` if the download fails.
    """
    from huggingface_hub import snapshot_download

    try:
        fetched = snapshot_download(
            rows.partition("@")[0],
            repo_type="dataset",
            revision=rows.partition("@")[2] or None,
            allow_patterns=list(patterns),
            local_dir=to,
        )
    except (OSError, ValueError) as error:
        found = f"no folder, nor to be fetched from the Hugging Face hub: {error}"
        raise VragError(f"rows {rows!r}: {found} Check name and network, and run again.") from error
    return Path(fetched)


def find_shards(
    rows: Path | str, patterns: Sequence[str], what: str, problems: Problems = RAISE
) -> list[Path]:
    """List the shards of a data set by number, in a folder or a data set of the hub
    (`local_folder`); `patterns` are those of their paths.

    Raises `VragError`, with `what` as the expected content, if there are none. A problem are
    shards that are missing or too many by their names.
    """
    folder = local_folder(rows, patterns)
    found = chain.from_iterable(map(folder.glob, patterns))
    numbered = sorted((_number(path), path) for path in found)
    if not numbered:
        raise VragError(f"{folder}: no files {patterns[0]}; expected {what}.")
    total = max(total for (_, total), _ in numbered)
    if total and [number for number, _ in numbered] != [(n, total) for n in range(total)]:
        words = f"{len(numbered)} shards of {total}; expected each once. Fetch the data set again."
        problems.add(Kind.MISSING, str(numbered[0][1].parent), words)
    return [path for _, path in numbered]


def _number(path: Path) -> tuple[int, int]:
    """(number of a shard, number of shards) in its name; 0, 0 without numbers."""
    match = _SHARD.fullmatch(path.name)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def read_shard(
    path: Path, columns: Sequence[str], what: str, problems: Problems = RAISE
) -> Iterator[tuple[str, Json]]:
    """Yield (location, unparsed row) for every row, with all columns and a few rows in memory.

    `what` names the data set in messages. Problems are a truncated or damaged file, and a
    missing one of `columns`.
    """
    import pyarrow as pa  # heavy

    number = 0
    try:
        for batch in _batches(path):
            names = batch.schema.names
            if lacking := [name for name in columns if name not in names]:
                words = f"no column {lacking[0]!r}; found {', '.join(names)}. Is this {what}?"
                problems.add(Kind.ROW, str(path), words)
                return
            for row in batch.to_pylist():
                yield f"{path.name} row {number}", row
                number += 1
    except (pa.ArrowException, OSError) as error:
        words = f"cannot be read behind row {number}: {str(error).splitlines()[0]}"
        problems.add(Kind.ROW, str(path), f"{words} It is cut short or damaged. Fetch it again.")


def _batches(path: Path) -> Iterator[Any]:  # Any: record batches, which have no types
    """A few rows of a Parquet or Arrow file at a time."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    if path.suffix == ".arrow":
        with pa.memory_map(str(path)) as file:  # no copy
            yield from pa.ipc.open_stream(file).read_all().to_batches(max_chunksize=4)
    else:
        with pq.ParquetFile(path) as shard:
            yield from shard.iter_batches(batch_size=4)


def read_lines(path: Path, what: str = "annotation file") -> Iterator[tuple[str, str]]:
    """Yield (location, text) for every non-blank line of a file.

    The location is "<path> line <number>"; `what` names the kind of file in messages. A byte
    order mark is skipped. Raises `VragError` for a file that is missing, a folder, or not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{path} line {number}", line
    except (OSError, UnicodeDecodeError) as error:
        raise VragError(f"{path}: {error}; expected the {what}, JSON Lines.") from error


def read_objects(
    path: Path, what: str, keys: Collection[str], problems: Problems = RAISE
) -> Iterator[tuple[str, Json]]:
    """Yield (location, object) for every line of a JSON Lines file, with its fields unchecked.

    Problems are lines that `parse_object` refuses. Raises `VragError` as `read_lines` does, and
    for a file without rows.
    """
    location = ""
    for location, line in read_lines(path, what):
        if row := parse_object(line, location, keys, problems):
            yield location, row
    if not location:
        raise VragError(f"{path}: no rows found; expected one JSON object a line.")


def parse_object(line: str, where: str, keys: Collection[str], problems: Problems = RAISE) -> Json:
    """Return a line as a JSON object with its fields unchecked, or {} after a problem.

    Problems are anything else, an empty object, a key that occurs twice in an object with
    different values, and half a surrogate pair; messages begin with `where` and list `keys`.
    """

    def once(pairs: list[tuple[str, Any]]) -> Json:  # Any: what JSON holds
        found = dict(pairs)
        for name, value in pairs:
            if found[name] is not value and found[name] != value:
                raise KeyError(name)
        return found

    try:
        row: Json = json.loads(line, object_pairs_hook=once)
    except KeyError as error:
        fault = f"{error} stands twice in one object; expected it once."
    except (ValueError, RecursionError) as error:
        fault = f"not JSON ({error}); expected one JSON object a line."
    else:
        fault = half_surrogate(row, line)
        if not isinstance(row, dict) or not row:
            found = f"found a JSON {type(row).__name__}" if row else f"found {row}"
            fault = f"{found}; expected an object with {', '.join(keys)}."
    if not fault:
        return row
    problems.add(Kind.ROW, where, fault)
    return {}


def half_surrogate(found: object, text: str) -> str:
    """Describe half a surrogate pair, which UTF-8 cannot encode, in the value `found` of the JSON
    `text`; "" if there is none.
    """
    try:
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        return f"found {half!r}, half of a surrogate pair; expected text in UTF-8."
    return ""


class TextRow(Row):
    """The text of one document."""

    doc_id: RowId
    text: str


def read_document_texts(
    path: Path | str, documents: Collection[DocId], name: str
) -> dict[DocId, str]:
    """Read the texts of `documents` from a file, keyed by document; `name` is the data set's.

    If some are missing, their number is printed; texts of other documents are ignored. Raises
    `VragError` for an unusable line, a duplicate document, and a file of other documents only.
    """
    file = Path(path).expanduser()
    seen: dict[str, str] = {}
    texts: dict[DocId, str] = {}
    for where, values in read_objects(file, "file of texts", ("doc_id", "text")):
        row = validate(TextRow, values, where, RAISE)
        if row and RAISE.is_new(f"document {row.doc_id!r}", where, seen):
            texts[row.doc_id] = row.text
    found = {doc_id: texts[doc_id] for doc_id in documents if doc_id in texts}
    if not found:
        words = f"texts of {len(texts):,} documents, none of {name}, such as {next(iter(texts))!r}"
        raise VragError(f"{file}: {words}. Give the sidecar of this data set.")
    if len(found) < len(documents):
        counts = f"{len(found):,} of {len(documents):,}"
        logger.info(f"{name}: {file.name} has texts of {counts} documents")
    return found


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
