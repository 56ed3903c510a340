"""The Visual-RAG benchmark: annotations over folders laid out like iNaturalist 2021."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from pathlib import Path

from vrag_kit.benchmarks.again import get_again
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.visual_rag_rows import KEYS_V2, Row, no_rows, parse_row
from vrag_kit.errors import VragError
from vrag_kit.forecast import read_once
from vrag_kit.plain import JsonView
from vrag_kit.types import Benchmark, Evidence, Query

Folders = dict[str, frozenset[str] | None]
"""Species folder → the names in it; None where there is no such folder."""


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
    return read_once(
        lambda: _read(annotations, image_root, name), annotations, str(image_root), name
    )


def _read(annotations: Path, image_root: Path, name: str) -> Benchmark:
    folders: Folders = {}
    queries: dict[str, Query] = {}
    corpus: dict[str, Evidence] = {}
    qrels: dict[str, Mapping[str, int]] = {}
    for where, line in read_lines(annotations):
        row = parse_row(line, where)
        _check_images(row["images"], image_root, folders, where)
        query = _query(row, where, queries)
        queries[query.query_id] = query
        qrels[query.query_id] = row["images"]
        for doc_id in row["images"]:
            if doc_id not in corpus:
                corpus[doc_id] = photograph(doc_id, image_root)
    if not queries:
        raise no_rows(annotations)
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries.values(), qrels),
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        pools={query_id: tuple(labels) for query_id, labels in qrels.items()},
        groups_are="species",
    )


def query_id_of(scientific_name: str, question: str) -> str:
    """The id of a question: the species, and a hash of the words, so that it does not
    change when other rows do ("branta-leucopsis-1f3a9c").
    """
    species = re.sub(r"[^a-z0-9]+", "-", scientific_name.lower()).strip("-")
    return f"{species}-{hashlib.sha256(question.encode()).hexdigest()[:6]}"


def name_problem(name: str, root: Path) -> str:
    """Why an image cannot go by this name below `root`; "" when it can."""
    parts = name.split("/")
    if len(parts) < 2 or "\\" in name or not {"", ".", ".."}.isdisjoint(parts):
        return f"image {name!r} points outside {root}; expected '<species folder>/<file>'."
    if re.search(r"\s", name):
        return (
            f"image {name!r} contains white space, which TREC files cannot hold. Rename the file"
            " and the annotation."
        )
    return ""


def file_names(folder: str, root: Path, known: Folders) -> frozenset[str] | None:
    """The names in a species folder, None when there is no such folder; each is listed
    once and kept in `known`.
    """
    if folder not in known:
        place = root / folder
        names = place.iterdir() if place.is_dir() else None
        known[folder] = None if names is None else frozenset(path.name for path in names)
    return known[folder]


def _check_images(names: Iterable[str], root: Path, folders: Folders, where: str) -> None:
    """Raise `VragError` at an image that does not lie below `root`."""
    for name in names:
        if problem := name_problem(name, root):
            raise VragError(f"{where}: {problem}")
        folder, file = name.rsplit("/", 1)
        there = file_names(folder, root, folders)
        if there is None:
            raise VragError(
                f"{where}: no species folder {folder!r} in {root}. Check `image_root`: it must be"
                " the folder that holds the species folders (for iNaturalist archives usually"
                " 'train')."
            )
        if file not in there:
            fetch = "Copy or fetch it again; `vrag check` lists all that are missing."
            raise VragError(
                f"{where}: image {file!r} is not in {root / folder} ({len(there)} files there)."
                f" {get_again(root / name, fetch)}"
            )


def photograph(doc_id: str, image_root: Path) -> Evidence:
    """The document of a file in a species' folder."""
    folder = doc_id.partition("/")[0]
    return Evidence(doc_id=doc_id, image=ImageFile(image_root / doc_id), metadata=_told(folder))


@cache
def _told(folder: str) -> JsonView:
    """What its pictures have in common, once for all of them."""
    return {"folder": folder}


def _query(row: Row, where: str, others: Mapping[str, Query]) -> Query:
    folders = Counter(doc_id.partition("/")[0] for doc_id in row["images"])
    said = {key: row[key] for key in KEYS_V2 if key in row}
    version = "v2" if "y_rate" in row else "v1"
    ((folder, _),) = folders.most_common(1)
    return Query(
        query_id=_free_id(query_id_of(row["sn"], row["question"]), others),
        text=row["question"],
        answers=tuple(row["answer"]),
        entity=row["sn"],
        group=row["sn"],
        metadata={"where": where, "version": version, **said, "folder": folder},
    )


def _free_id(stem: str, taken: Mapping[str, Query]) -> str:
    """`stem`, or the first of "<stem>-2", "<stem>-3", … that no other query has."""
    if stem not in taken:
        return stem
    return next(f"{stem}-{number}" for number in count(2) if f"{stem}-{number}" not in taken)


def _fingerprint(queries: Iterable[Query], qrels: Mapping[str, Mapping[str, int]]) -> str:
    rows = [
        [query.text, query.answers, query.entity, sorted(qrels[query.query_id].items())]
        for query in queries
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
