"""Files of a data set, from a folder or the hub, and their rows with the place of each: Parquet
shards and JSON Lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, validate
from vrag_kit.benchmarks.transforms import RowId
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import DocId, Json

_SHARD = re.compile(r".+-(\d+)-of-(\d+)\.(?:parquet|arrow)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def local_folder(rows: Path | str, what: str, patterns: Sequence[str]) -> Path:
    """Return a folder of rows; for a hub name, fetch the files of `patterns` once to its cache.

    Raises `VragError`, with `what` as the expected content, for anything else and as
    `download_from_hub`.
    """
    folder = Path(rows).expanduser()
    if folder.is_dir():
        return folder
    name = str(rows).partition("@")[0]
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise VragError(f"{folder}: no such folder; expected the one with {what}.")
    return download_from_hub(str(rows), patterns)


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
        raise VragError(
            f"rows {rows!r} are no folder here and cannot be fetched from the Hugging Face hub:"
            f" {str(error).strip().splitlines()[0]} Check name and network, and run this again to"
            " go on; or give a folder of shards."
        ) from error
    return Path(fetched)


def find_shards(
    rows: Path | str, patterns: Sequence[str], what: str, problems: Problems = RAISE
) -> list[Path]:
    """List the shards of a data set by number, in a folder or a data set of the hub
    (`local_folder`); `patterns` are those of their paths.

    Raises `VragError`, with `what` as the expected content, if there are none. A problem are
    shards that are missing or too many by their names.
    """
    folder = local_folder(rows, what, patterns)
    found = chain.from_iterable(map(folder.glob, patterns))
    numbered = sorted((_number(path), path) for path in found)
    if not numbered:
        raise VragError(f"{folder}: no files {patterns[0]}; expected {what}.")
    numbers, totals = zip(*(number for number, _ in numbered), strict=True)
    words = ""
    if missing := sorted({*range(max(totals))} - {*numbers}):
        words = f"number {missing[0]} is missing. Fetch the data set again."
    elif len({*totals}) > 1 or 0 < max(totals) < len(numbered):
        words = "remove those that belong to another data set, or another revision."
    if words:
        counts = f"{len(numbered)} shards of {max(totals)}"
        place = str(numbered[0][1].parent)
        problems.add(Kind.MISSING, place, f"{counts}; {words}")
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
    except OSError as error:
        words = f"no such {what} ({error.strerror}); expected a JSON Lines file."
        raise VragError(f"{path}: {words}") from error
    except UnicodeDecodeError as error:
        words = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise VragError(f"{path}: {words}; expected the {what}, JSON Lines.") from error


def read_objects(
    path: Path,
    what: str,
    keys: Collection[str],
    problems: Problems = RAISE,
    *,
    contains: str = "rows",
) -> Iterator[tuple[str, Json]]:
    """Yield (location, object) for every line of a JSON Lines file, with its fields unchecked.

    Problems are lines that `parse_object` refuses. Raises `VragError` as `read_lines` does, and
    for a file without what it `contains`.
    """
    location = ""
    for location, line in read_lines(path, what):
        if row := parse_object(line, location, keys, problems):
            yield location, row
    if not location:
        raise VragError(f"{path}: no {contains} found; expected one JSON object a line.")


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


def hub_revision(folder: Path, files: Iterable[Path]) -> str:
    """Return the commit of `files` in `folder`, seven digits long, as the hub's cache or download
    folder records it. Different commits are joined by commas; "" if none is recorded.
    """
    cached = folder.resolve().name
    if _COMMIT.fullmatch(cached):
        return cached[:7]
    notes = folder / ".cache" / "huggingface" / "download"
    recorded = [notes / f"{path.relative_to(folder)}.metadata" for path in files]
    found = {note.read_text(encoding="utf-8")[:7] for note in recorded if note.is_file()}
    return ", ".join(sorted(found))


def log_revision(name: str, folder: Path, files: Iterable[Path], holds: str) -> None:
    """Print the revision and the contents of a data set."""
    revision = hub_revision(folder, files) or "unknown"
    words = f"several revisions ({revision})" if "," in revision else f"revision {revision}"
    logger.info(f"{name}, {words}: {holds}")


class TextRow(Row):
    """The text of one document."""

    doc_id: RowId
    text: str


def read_document_texts(
    path: Path | str, documents: Collection[DocId], name: str
) -> dict[DocId, str]:
    """Read the texts of `documents` from a file, keyed by document; `name` is the data set's.

    Missing texts and texts of other documents are counted and printed. Ids are those of the
    data set, or as `encode_id` encodes them. Raises `VragError` for an unusable line, a
    duplicate document, and a file of other documents only.
    """
    file = Path(path).expanduser()
    known = set(documents)
    seen: dict[str, str] = {}
    found: dict[DocId, str] = {}
    others: list[str] = []
    for where, values in read_objects(file, "file of texts", ("doc_id", "text")):
        if row := validate(TextRow, values, where, RAISE):
            doc_id = values["doc_id"] if values["doc_id"] in known else row.doc_id
            if doc_id not in known:
                others.append(f"{where}: {doc_id}")
            elif RAISE.is_new(f"document {doc_id!r}", where, seen):
                found[doc_id] = row.text
    if not found:
        words = f"texts of {len(others):,} documents, none of {name}, such as {others[0]!r}"
        raise VragError(f"{file}: {words}. Give the sidecar of this data set.")
    if others or len(found) < len(known):
        logger.info(
            f"{name}: {file.name} has no text of {len(known) - len(found):,} of {len(known):,}"
            f" documents, and texts of {len(others):,} documents that are not in the corpus"
        )
    return found
