"""Load Visual-RAG: annotations over image folders in the layout of iNaturalist 2021."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, FiniteFloat, field_validator

from vrag_kit.benchmarks.datasets.inat_images import build_pools, build_qrels, species_images
from vrag_kit.benchmarks.rows import Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import read_objects
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import escapes_folder, git_blob_id
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Benchmark, Json, Query

_V2 = ("y_rate", "y_count", "is_changed_v2")
"""The additional keys of a row of v2."""
_NO_QUESTION = "HOLD"  # stands in some rows of v1, as the authors' page says
_FOLDERS = 256
"""Maximum number of folders whose file names stay in memory."""


class VisualRow(Row):
    """A question with its accepted answers, and the labels of its species' images."""

    question: Annotated[str, Field(min_length=1)]
    answer: Annotated[list[Text], Field(min_length=1, description="a list of non-empty texts")]
    sn: Annotated[str, Field(min_length=1)]
    images: Annotated[dict[str, Any], Field(min_length=1)]  # Any: `_labels_are_clues` checks it
    y_rate: FiniteFloat = 0
    y_count: int = 0
    is_changed_v2: str = ""

    @field_validator("images")
    @classmethod
    def _labels_are_clues(cls, images: Json) -> Json:
        for name, label in images.items():
            if problem := image_name_problem(name):
                raise ValueError(problem)
            if isinstance(label, bool) or label not in (0, 1):
                found = short_repr(label)
                raise ValueError(f"{name!r} have label {found}; expected 1 (clue) or 0 (no clue).")
        if not any(images.values()):
            raise ValueError(f"hold no clue: all {len(images)} labels are 0.")
        return images


def load_visual_rag(
    annotations: Path | str,
    image_root: Path | str,
    *,
    name: str = "visual-rag",
    problems: Problems | None = None,
) -> Benchmark:
    """Load Visual-RAG from a JSON Lines annotation file and the image folders that it names.

    Each row is one query: `question`, `answer` (list of accepted answers), `sn`
    (scientific name) and `images` ({"<species folder>/<file>": 0 or 1}, 1 marking a
    clue). Rows of v2 add `y_rate`, `y_count` and `is_changed_v2`, which are kept in the
    query's metadata. A query's candidates are the images of its row, as in section 5.1
    of the paper; its group is the species.

    Problems are unusable rows and missing images; without `problems` the first raises
    `VragError`. It is raised too for a missing file or folder, and a file without rows. Images are
    checked for presence here and decoded only when used.
    """
    annotations, image_root = Path(annotations), Path(image_root)
    problems = problems or Problems()
    folders = _Folders(image_root, problems)
    queries: dict[str, Query] = {}
    labels: dict[str, np.ndarray] = {}
    digest = hashlib.sha256(b"[")

    def images() -> Iterator[str]:
        for where, row, v2 in read_annotations(annotations, problems):
            folders.check(row.images, where)
            query = _query(row, v2, where, queries, problems)
            digest.update(_query_bytes(query, row, first=not queries))
            queries[query.query_id] = query
            labels[query.query_id] = np.array(list(row.images.values()), np.int8)
            yield from row.images

    names, numbers = StringIndex(images()).unique()
    ends = np.cumsum([len(each) for each in labels.values()])
    own = np.split(numbers.astype(np.int32), ends[:-1])
    pools = build_pools(names, dict(zip(queries, own, strict=bool(queries))))
    digest.update(b"]")
    found = Benchmark(
        name=name,
        fingerprint=digest.hexdigest(),
        queries=queries,
        corpus=species_images(names, image_root),
        qrels=build_qrels(pools, labels),
        pools=pools,
        groups_are="species",
    )
    return replace(found, read_from=(found.fingerprint, git_blob_id(annotations)))


def read_annotations(
    annotations: Path, problems: Problems | None = None
) -> Iterator[tuple[str, VisualRow, Json]]:
    """Yield (location, row, its fields of v2) for every row; problems are those of
    `load_visual_rag`, but for missing images.
    """
    problems = problems or Problems()
    keys = list(VisualRow.model_fields)[:4]
    rows = read_objects(annotations, "annotation file", keys, problems, contains="queries")
    for location, values in rows:
        if row := validate(VisualRow, values, location, problems):
            yield location, row, {key: values[key] for key in _V2 if key in values}


def make_query_id(scientific_name: str, question: str) -> str:
    """Build a question's id from the species and a hash of the question, which does not depend on
    other rows ("branta-leucopsis-1f3a9c").
    """
    species = re.sub(r"[^a-z0-9]+", "-", scientific_name.lower()).strip("-")
    return f"{species}-{hashlib.sha256(question.encode()).hexdigest()[:6]}"


def image_name_problem(name: str) -> str:
    """Describe why `name` is not a valid image name; "" if it is valid."""
    parts = name.split("/")
    if len(parts) < 2 or escapes_folder(name) or not {"", "."}.isdisjoint(parts):
        return f"{name!r} points outside the image folder; expected '<species folder>/<file>'."
    if re.search(r"\s", name):
        return f"{name!r} contains white space, which TREC files cannot hold; rename the file."
    return ""


class _Folders:
    """The species folders: which images are missing in them, each once."""

    def __init__(self, root: Path, problems: Problems) -> None:
        if not root.is_dir():
            raise VragError(
                f"{root}: no such image folder; expected the one that holds the species folders"
                " (for iNaturalist archives usually 'train')."
            )
        self._root = root
        self._problems = problems
        self._missing: set[str] = set()
        self._files = lru_cache(_FOLDERS)(partial(_file_names, root))

    def check(self, names: Mapping[str, object], where: str) -> None:
        """Add a problem for each image that is missing."""
        for name in names:
            folder, file = name.rsplit("/", 1)
            files = self._files(folder)
            if (files is not None and file in files) or name in self._missing:
                continue
            self._missing.add(name)
            found = f"no species folder {folder!r} in {self._root}"
            if files is not None:
                place = f"{self._root / folder} ({len(files)} files there)"
                found = f"image {file!r} is not in {place}"
            advice = "`vrag check` lists all that are missing."
            self._problems.add(Kind.MISSING, where, f"{found}; {advice}", name)


def _file_names(root: Path, folder: str) -> frozenset[str] | None:
    place = root / folder
    return frozenset(os.listdir(place)) if os.path.isdir(place) else None


def _query(
    row: VisualRow, v2: Json, where: str, others: Mapping[str, Query], problems: Problems
) -> Query:
    stem = make_query_id(row.sn, row.question)
    if stem in others:
        problems.add(Kind.ODD, where, "the species and question of an earlier row")
    if row.question.strip().upper() == _NO_QUESTION:
        problems.add(Kind.ODD, where, f"the question is {row.question!r}, which v2 leaves out")
    folders = Counter(doc_id.partition("/")[0] for doc_id in row.images)
    ((folder, _),) = folders.most_common(1)
    version = "v2" if "y_rate" in v2 else "v1"
    return Query(
        query_id=_free_id(stem, others),
        text=row.question,
        answers=tuple(row.answer),
        entity=row.sn,
        group=row.sn,
        metadata={"where": where, "version": version, **v2, "folder": folder},
    )


def _free_id(stem: str, taken: Mapping[str, Query]) -> str:
    """`stem`, or the first of "<stem>-2", "<stem>-3", … that no other query has."""
    if stem not in taken:
        return stem
    return next(f"{stem}-{number}" for number in count(2) if f"{stem}-{number}" not in taken)


def _query_bytes(query: Query, row: VisualRow, *, first: bool) -> bytes:
    """What of a query counts for the fingerprint: an element of a JSON list."""
    told = [query.text, query.answers, query.entity, sorted(row.images.items())]
    before = "" if first else ", "
    return f"{before}{json.dumps(told)}".encode()
