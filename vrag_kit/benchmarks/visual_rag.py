"""Load Visual-RAG: annotations over image folders in the layout of iNaturalist 2021."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.json_lines import read_lines
from vrag_kit.benchmarks.species_images import build_pools, build_qrels, species_images
from vrag_kit.benchmarks.visual_rag_rows import KEYS_V2, AnnotationRow, empty_file_error, parse_row
from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder, git_blob_id
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Benchmark, Query

Listing = Callable[[str], frozenset[str] | None]
"""Returns the names in a species folder, or None if there is no such folder."""
_LISTED = 256
"""Maximum number of folders whose names stay in memory."""


def load_visual_rag(
    annotations: Path | str, image_root: Path | str, *, name: str = "visual-rag"
) -> Benchmark:
    """Load Visual-RAG from a JSON Lines annotation file and the image folders that it names.

    Each row is one query: `question`, `answer` (list of accepted answers), `sn`
    (scientific name) and `images` ({"<species folder>/<file>": 0 or 1}, 1 marking a
    clue). Rows of v2 add `y_rate`, `y_count` and `is_changed_v2`, which are kept in the
    query's metadata. A query's candidates are the images of its row, as in section 5.1
    of the paper; its group is the species.

    Raises `VragError` at the first unusable row, naming file and line;
    `check_visual_rag` finds all of them. Images are checked for presence here and
    decoded only when used.
    """
    annotations, image_root = Path(annotations), Path(image_root)
    listing = make_folder_lister(image_root)
    queries: dict[str, Query] = {}
    labels: dict[str, np.ndarray] = {}
    told = hashlib.sha256(b"[")

    def images() -> Iterator[str]:
        for where, line in read_lines(annotations):
            row = parse_row(line, where)
            _check_images(row["images"], image_root, listing, where)
            query = _query(row, where, queries)
            told.update(_query_bytes(query, row, first=not queries))
            queries[query.query_id] = query
            labels[query.query_id] = np.array(list(row["images"].values()), np.int8)
            yield from row["images"]

    names, numbers = StringIndex(images()).unique()
    if not queries:
        raise empty_file_error(annotations)
    ends = np.cumsum([len(each) for each in labels.values()])
    own = np.split(numbers.astype(np.int32), ends[:-1])
    pools = build_pools(names, dict(zip(queries, own, strict=True)))
    told.update(b"]")
    found = Benchmark(
        name=name,
        fingerprint=told.hexdigest(),
        queries=queries,
        corpus=species_images(names, image_root),
        qrels=build_qrels(pools, labels),
        pools=pools,
        groups_are="species",
    )
    return replace(found, read_from=(found.fingerprint, git_blob_id(annotations)))


def make_query_id(scientific_name: str, question: str) -> str:
    """Build a question's id from the species and a hash of the question, which does not depend on
    other rows ("branta-leucopsis-1f3a9c").
    """
    species = re.sub(r"[^a-z0-9]+", "-", scientific_name.lower()).strip("-")
    return f"{species}-{hashlib.sha256(question.encode()).hexdigest()[:6]}"


def image_name_problem(name: str, root: Path) -> str:
    """Describe why `name` is not a valid image name below `root`; "" if it is valid."""
    parts = name.split("/")
    if len(parts) < 2 or escapes_folder(name) or not {"", "."}.isdisjoint(parts):
        return f"image {name!r} points outside {root}; expected '<species folder>/<file>'."
    if re.search(r"\s", name):
        return (
            f"image {name!r} contains white space, which TREC files cannot hold. Rename the file"
            " and the annotation."
        )
    return ""


def make_folder_lister(root: Path) -> Listing:
    """Return a function that lists species folders below `root`, with an LRU cache."""

    def listed(folder: str) -> frozenset[str] | None:
        place = root / folder
        return frozenset(os.listdir(place)) if os.path.isdir(place) else None

    return lru_cache(_LISTED)(listed)


def _check_images(names: Iterable[str], root: Path, listing: Listing, where: str) -> None:
    """Raise `VragError` at an image that does not lie below `root`."""
    for name in names:
        if problem := image_name_problem(name, root):
            raise VragError(f"{where}: {problem}")
        folder, file = name.rsplit("/", 1)
        there = listing(folder)
        if there is None:
            raise VragError(
                f"{where}: no species folder {folder!r} in {root}. Check `image_root`: it must be"
                " the folder that holds the species folders (for iNaturalist archives usually"
                " 'train')."
            )
        if file not in there:
            raise VragError(
                f"{where}: image {file!r} is not in {root / folder} ({len(there)} files there)."
                " Copy or fetch it again; `vrag check` lists all that are missing."
            )


def _query(row: AnnotationRow, where: str, others: Mapping[str, Query]) -> Query:
    folders = Counter(doc_id.partition("/")[0] for doc_id in row["images"])
    said = {key: row[key] for key in KEYS_V2 if key in row}
    version = "v2" if "y_rate" in row else "v1"
    ((folder, _),) = folders.most_common(1)
    return Query(
        query_id=_free_id(make_query_id(row["sn"], row["question"]), others),
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


def _query_bytes(query: Query, row: AnnotationRow, *, first: bool) -> bytes:
    """What of a query counts for the fingerprint: an element of a JSON list."""
    told = [query.text, query.answers, query.entity, sorted(row["images"].items())]
    before = "" if first else ", "
    return f"{before}{json.dumps(told)}".encode()
