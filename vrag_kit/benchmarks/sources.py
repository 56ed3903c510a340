"""Files of a data set, from a folder or the hub, and their rows with the place of each: Parquet
shards and JSON Lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.rows import Kind, Problems
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import Json

_SHARD = re.compile(r"(.+)-(\d+)-of-(\d+)\.parquet")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def local_folder(rows: Path | str, what: str, patterns: Sequence[str]) -> Path:
    """Return a folder of rows; for a hub name, fetch the files of `patterns` once to its cache.

    A hub name is "<owner>/<name>@<revision>". Raises `VragError`, with `what` as the
    expected content, for anything else.
    """
    folder = Path(rows).expanduser()
    name = str(rows)
    if folder.is_dir():
        return folder
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise VragError(f"{folder}: no such folder; expected the one with {what}.")
    from huggingface_hub import snapshot_download

    try:
        fetched = snapshot_download(
            name.partition("@")[0],
            repo_type="dataset",
            revision=name.partition("@")[2] or None,
            allow_patterns=list(patterns),
        )
    except (OSError, ValueError) as error:
        raise VragError(
            f"{name!r} is no folder here and no data set that can be fetched from the Hugging Face"
            f" hub: {str(error).strip().splitlines()[0]} Check name and network, or give a folder"
            " of shards."
        ) from error
    return Path(fetched)


def find_shards(
    rows: Path | str, pattern: str, what: str, problems: Problems | None = None
) -> list[Path]:
    """List the shards of a data set by number; `pattern` is that of their names, in a folder, its
    folder "data", or a data set of the hub (`local_folder`).

    Raises `VragError`, with `what` as the expected content, if there are none. A problem are
    shards that are missing or too many by their names.
    """
    folder = local_folder(rows, what, (pattern, f"data/{pattern}"))
    found = by_number(list(folder.glob(pattern)) or list(folder.glob(f"data/{pattern}")))
    if not found:
        raise VragError(
            f"{folder}: no parquet files {pattern}; expected {what} in it or in its folder 'data'."
        )
    if problem := shards_problem(found):
        (problems or Problems()).add(Kind.MISSING, str(found[0].parent), problem)
    return found


def by_number(shards: Iterable[Path]) -> list[Path]:
    """Sort shards by the numbers in their names, whatever their digits."""
    return sorted(shards, key=_number)


def shards_problem(shards: Sequence[Path]) -> str:
    """Describe which shards are missing or too many by the numbers in their names; "" if they
    are complete or have no numbers.
    """
    counts = {_number(path)[1] for path in shards}
    numbers = [_number(path)[0] for path in shards]
    if 0 in counts:
        return ""
    total = max(counts)
    found = f"{len(shards)} shards of {total}"
    if missing := sorted({*range(total)} - {*numbers}):
        more = " and others are" if missing[1:] else " is"
        return f"{found}; number {missing[0]}{more} missing. Fetch the data set again."
    if len(shards) > total or len(counts) > 1:
        return f"{found}; remove those that belong to another data set, or an older one."
    return ""


def _number(path: Path) -> tuple[int, int, str]:
    """(number of a shard, number of shards in its name, name); 0, 0 without numbers."""
    match = _SHARD.fullmatch(path.name)
    return (int(match[2]), int(match[3]), path.name) if match else (0, 0, path.name)


def read_shard(
    path: Path, columns: Sequence[str], what: str, problems: Problems | None = None
) -> Iterator[tuple[str, Json]]:
    """Yield (location, unparsed row) for every row, with all columns and a few rows in memory.

    `what` names the data set in messages. Problems are a truncated or damaged file, and a
    missing one of `columns`.
    """
    import pyarrow as pa  # heavy

    problems = problems or Problems()
    number = 0
    try:
        with _open_table(path) as (names, batches):
            if lacking := [name for name in columns if name not in names]:
                words = f"no column {lacking[0]!r}; found {', '.join(names)}. Is this {what}?"
                problems.add(Kind.ROW, str(path), words)
                return
            for batch in batches:
                for row in batch.to_pylist():
                    yield f"{path.name} row {number}", row
                    number += 1
    except (pa.ArrowException, OSError) as error:
        size = path.stat().st_size if path.exists() else 0
        problems.add(
            Kind.ROW,
            str(path),
            f"cannot be read behind row {number}: {str(error).splitlines()[0]} The file has"
            f" {size:,} bytes and is cut short or damaged. Fetch it again.",
        )


@contextmanager
def _open_table(path: Path) -> Iterator[tuple[list[str], Iterator[Any]]]:  # Any: record batches
    """The columns of a Parquet or Arrow file, and its rows in small batches."""
    import pyarrow as pa  # heavy
    import pyarrow.parquet as pq

    if path.suffix == ".arrow":
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()  # no copy
            yield table.column_names, iter(table.to_batches(max_chunksize=4))
    else:
        with pq.ParquetFile(path) as shard:
            yield shard.schema_arrow.names, shard.iter_batches(batch_size=4)


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
    except FileNotFoundError as error:
        raise VragError(f"{path}: no such {what}; expected a JSON Lines file.") from error
    except IsADirectoryError as error:
        raise VragError(f"{path}: a folder; expected the {what} (JSON Lines) in it.") from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); expected JSON Lines."
            f" Is this the {what}?"
        ) from error


def read_objects(
    path: Path,
    what: str,
    keys: Collection[str],
    problems: Problems | None = None,
    *,
    contains: str = "rows",
) -> Iterator[tuple[str, Json]]:
    """Yield (location, object) for every line of a JSON Lines file, with its fields unchecked.

    Problems are lines that `parse_object` refuses. Raises `VragError` as `read_lines` does, and
    for a file without what it `contains`.
    """
    problems = problems or Problems()
    location = ""
    for location, line in read_lines(path, what):
        try:
            row = _parse(line, keys)
        except ValueError as error:
            problems.add(Kind.ROW, location, str(error))
        else:
            yield location, row
    if not location:
        raise VragError(f"{path}: no {contains} found; expected one JSON object a line.")


def parse_object(line: str, where: str, keys: Collection[str]) -> Json:
    """Parse a line as a JSON object without checking its fields; messages list `keys`.

    Raises `VragError` for anything else, for a key that occurs twice in an object with
    different values, and for half a surrogate pair.
    """
    try:
        return _parse(line, keys)
    except ValueError as error:
        raise VragError(f"{where}: {error}") from error


def check_surrogates(found: object, text: str, where: str) -> None:
    """Raise `VragError`, which begins with `where`, if the JSON `text` escapes half a surrogate
    pair. `found` is its parsed value; such text cannot be encoded as UTF-8.
    """
    if half := _half_surrogate(found, text):
        raise VragError(f"{where}: {half}")


def _parse(line: str, keys: Collection[str]) -> Json:
    """As `parse_object`, but raises ValueError without the location."""
    repeated: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> Json:  # Any: what JSON holds
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(name for name, value in pairs if found[name] != value)
        return found

    try:
        row = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}); expected one JSON object a line.") from error
    if not isinstance(row, dict):
        raise ValueError(
            f"found a JSON {type(row).__name__}; expected an object with the keys"
            f" {', '.join(keys)}."
        )
    if repeated:
        raise ValueError(f"{repeated[0]!r} stands twice in one object; expected it once.")
    if half := _half_surrogate(row, line):
        raise ValueError(half)
    return row


def _half_surrogate(found: object, text: str) -> str:
    if "\\u" not in text:
        return ""
    try:
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
    found = set()
    for path in files:
        note = notes / f"{path.relative_to(folder)}.metadata"
        if note.is_file():
            found.add(note.read_text(encoding="utf-8").splitlines()[0].strip()[:7])
    return ", ".join(sorted(found))


def log_revision(name: str, folder: Path, files: Iterable[Path], holds: str) -> None:
    """Print the revision and the contents of a data set."""
    revision = hub_revision(folder, files)
    words = f"revision {revision}" if revision else "unknown revision"
    if "," in revision:
        words = f"files of several revisions ({revision})"
    logger.info(f"{name}, {words}: {holds}")
