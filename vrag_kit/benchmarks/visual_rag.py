"""Read Visual-RAG annotations (v1 and v2) over any folder tree laid out like
iNaturalist 2021.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Evidence, Query

_KEYS = {"images": dict, "answer": list, "question": str, "sn": str}
KEYS_V2 = {"y_rate": (int, float), "y_count": int, "is_changed_v2": str}
CHANGES_V2 = ("unchanged", "updated_image_label", "updated_qa")
"""The words of `is_changed_v2`, as the authors' page explains them."""


def load_visual_rag(
    annotations: Path | str, image_root: Path | str, *, name: str = "visual-rag"
) -> Benchmark:
    """Read a benchmark from annotation JSON Lines and the image folders they name.

    Each row is one query: `question`, `answer` (list of accepted answers), `sn`
    (scientific name) and `images` ({"<species folder>/<file>": 0 or 1}, 1 marking a
    clue). Rows of v2 add `y_rate`, `y_count` and `is_changed_v2`, which are kept in the
    query's metadata. A query's candidates are the images of its row, as in section 5.1
    of the paper; its group is the species.

    Raises `VragError` at the first row that cannot be used, naming file and line;
    `check_visual_rag` finds all of them. Images are checked for presence here and
    decoded only when used.
    """
    annotations, image_root = Path(annotations), Path(image_root)
    folders: dict[str, frozenset[str] | None] = {}
    queries: dict[str, Query] = {}
    corpus: dict[str, Evidence] = {}
    qrels: dict[str, Mapping[str, int]] = {}
    for where, line in read_lines(annotations):
        row = parse_row(line, where)
        _find_images(row["images"], image_root, folders, where)
        query = _query(row, where, queries)
        queries[query.query_id], qrels[query.query_id] = query, row["images"]
        for doc_id in row["images"]:
            if doc_id not in corpus:
                corpus[doc_id] = Evidence(
                    doc_id=doc_id,
                    image=ImageFile(image_root / doc_id),
                    metadata={"folder": PurePosixPath(doc_id).parts[0]},
                )
    if not queries:
        raise VragError(
            f"{annotations}: no queries found, expected one JSON object a line. Check that this is"
            " the annotation file."
        )
    digest = hashlib.sha256(
        json.dumps(
            [[q.text, q.answers, q.entity, sorted(qrels[i].items())] for i, q in queries.items()]
        ).encode()
    )
    return Benchmark(
        name=name,
        fingerprint=digest.hexdigest(),
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        pools={query_id: tuple(labels) for query_id, labels in qrels.items()},
    )


def query_id_of(scientific_name: str, question: str) -> str:
    """The id of a question: the species, and a hash of the words, so that it does not
    change when other rows do ("branta-leucopsis-1f3a9c").
    """
    return (
        re.sub(r"[^a-z0-9]+", "-", scientific_name.lower()).strip("-")
        + "-"
        + hashlib.sha256(question.encode()).hexdigest()[:6]
    )


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, text) of every line of an annotation file that is not blank; `where` is
    "<path> line <number>". A byte order mark is no text.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{path} line {number}", line
    except FileNotFoundError as error:
        raise VragError(
            f"{path}: no such annotation file. Give the path of a JSON Lines file, one query a row."
        ) from error
    except IsADirectoryError as error:
        raise VragError(
            f"{path}: this is a folder; expected the annotation file (JSON Lines) inside it."
        ) from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); expected JSON Lines."
            " Is this the annotation file?"
        ) from error


def parse_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object of a line, its fields unchecked; raises `VragError` at a name
    that stands twice in an object with different values.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if (before := found.setdefault(name, value)) is not value and before != value:
                raise VragError(
                    f"{where}: {name!r} stands twice in one object, as {_short(before)} and"
                    f" {_short(value)}; expected it once. Keep the right one."
                )
        return found

    try:
        row = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise VragError(
            f"{where}: not JSON ({error.msg} at column {error.colno}); expected one JSON object a"
            " line."
        ) from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise VragError(
            f"{where}: not JSON that can be read ({error}); expected one JSON object a line."
        ) from error
    if not isinstance(row, dict):
        raise VragError(
            f"{where}: found a JSON {type(row).__name__}, expected an object with the keys"
            f" {', '.join(_KEYS)}."
        )
    return row


def parse_row(line: str, where: str) -> dict[str, Any]:
    """One row of annotations, checked field by field; raises `VragError`, which begins
    with `where`.
    """
    row = parse_object(line, where)
    for key, kind in _KEYS.items():
        if key not in row:
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row)) or 'nothing'}, expected"
                f" {', '.join(map(repr, _KEYS))}."
            )
        if not isinstance(row[key], kind) or not row[key]:
            raise VragError(
                f"{where}: {key!r} is {_short(row[key])}, expected a non-empty {kind.__name__}."
            )
    for key, kind in KEYS_V2.items():
        if key in row and (
            not isinstance(row[key], kind) or isinstance(row[key], bool) or row[key] != row[key]
        ):  # the last: NaN
            raise VragError(
                f"{where}: {key!r} is {_short(row[key])}, expected {'a number' if key == 'y_rate' else kind.__name__}."
            )  # type: ignore[union-attr]
    if not all(isinstance(answer, str) and answer.strip() for answer in row["answer"]):
        raise VragError(
            f"{where}: 'answer' is {_short(row['answer'])}, expected a list of non-empty strings."
        )
    check_labels(row["images"], where)
    if not any(row["images"].values()):
        raise VragError(
            f"{where}: the query has no clue: all {len(row['images'])} labels are 0, expected at"
            " least one 1. Correct the labels or remove the row."
        )
    return row


def check_labels(images: Mapping[str, object], where: str) -> None:
    """Raise `VragError` at an image whose label is neither 0 nor 1."""
    for doc_id, label in images.items():
        if isinstance(label, bool) or label not in (0, 1):
            raise VragError(
                f"{where}: image {doc_id!r} has label {_short(label)}, expected 1 (clue) or 0 (no"
                " clue)."
            )


def name_problem(name: str, root: Path) -> str:
    """Why an image cannot go by this name below `root`; "" when it can."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or len(path.parts) < 2:
        return f"image {name!r} points outside {root}; expected '<species folder>/<file>'."
    if re.search(r"\s", name):
        return (
            f"image {name!r} contains white space, which TREC files cannot hold. Rename the file"
            " and the annotation."
        )
    return ""


def file_names(
    folder: str, root: Path, known: dict[str, frozenset[str] | None]
) -> frozenset[str] | None:
    """The names in a species folder, None when there is no such folder; each is listed
    once and kept in `known`.
    """
    if folder not in known:
        known[folder] = (
            frozenset(entry.name for entry in (root / folder).iterdir())
            if (root / folder).is_dir()
            else None
        )
    return known[folder]


def _find_images(
    names: Mapping[str, int], root: Path, folders: dict[str, frozenset[str] | None], where: str
) -> None:
    """Check that every image lies below `root`."""
    for name in names:
        if problem := name_problem(name, root):
            raise VragError(f"{where}: {problem}")
        folder, file = str(PurePosixPath(name).parent), PurePosixPath(name).name
        there = file_names(folder, root, folders)
        if there is None:
            raise VragError(
                f"{where}: no species folder {folder!r} in {root}. Check `image_root`: it must be"
                " the folder that holds the species folders (for iNaturalist archives usually"
                " 'train')."
            )
        if file not in there:
            raise VragError(
                f"{where}: image {file!r} is not in {root / folder} ({len(there)} files there). "
                "Fetch the images of this species again; `vrag check` lists all that are missing."
            )


def _query(row: dict[str, Any], where: str, others: Mapping[str, Query]) -> Query:
    stem = query_id_of(row["sn"], row["question"])
    query_id = next(
        name
        for name in [stem, *(f"{stem}-{n}" for n in range(2, len(others) + 3))]
        if name not in others
    )
    metadata = {
        "where": where,
        "version": "v2" if "y_rate" in row else "v1",
        **{key: row[key] for key in KEYS_V2 if key in row},
    }
    folder = Counter(PurePosixPath(doc_id).parts[0] for doc_id in row["images"]).most_common(1)[0][
        0
    ]
    return Query(
        query_id=query_id,
        text=row["question"],
        answers=tuple(row["answer"]),
        entity=row["sn"],
        group=row["sn"],
        metadata={**metadata, "folder": folder},
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
