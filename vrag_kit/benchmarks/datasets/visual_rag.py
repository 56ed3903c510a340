"""Visual-RAG: annotations over image folders in the layout of iNaturalist 2021, and an unlabelled
corpus of its species, such as iNaturalist 2024 (Table 5).

Documents and labels are created on access because there are millions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, FiniteFloat, field_validator

from vrag_kit.benchmarks.images import ImageFile, list_images
from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import read_objects
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import escapes_folder
from vrag_kit.types import Benchmark, DocId, Document, Json, LazyMapping, Query, QueryId

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
            parts = name.split("/")
            if len(parts) < 2 or escapes_folder(name) or not {"", "."}.isdisjoint(parts):
                expected = "'<species folder>/<file>'"
                raise ValueError(f"{name!r} points outside the image folder; expected {expected}.")
            if re.search(r"\s", name):
                raise ValueError(f"{name!r} has white space, which TREC files cannot hold.")
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
    problems: Problems = RAISE,
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
    annotations, image_root = Path(annotations), _image_root(image_root)
    files_in = lru_cache(_FOLDERS)(partial(_file_names, image_root))
    missing: set[str] = set()
    names: dict[str, str] = {}  # each is kept once
    queries: dict[str, Query] = {}
    pools: dict[str, tuple[DocId, ...]] = {}
    labels: dict[str, np.ndarray] = {}
    digest = hashlib.sha256()
    for where, row, v2 in read_annotations(annotations, problems):
        for doc_id in row.images:
            folder, file = doc_id.rsplit("/", 1)
            if file not in files_in(folder) and doc_id not in missing:
                missing.add(doc_id)
                words = f"image {file!r} is not in the species folder {image_root / folder}"
                problems.add(Kind.MISSING, where, f"{words}; see `vrag data check`.", doc_id)
        query = _query(row, v2, where, queries, problems)
        told = [query.text, query.answers, query.entity, sorted(row.images.items())]
        before = ", " if queries else "["
        digest.update(f"{before}{json.dumps(told)}".encode())
        queries[query.query_id] = query
        pools[query.query_id] = tuple(names.setdefault(each, each) for each in row.images)
        labels[query.query_id] = np.array(list(row.images.values()), np.int8)
    digest.update(b"]")
    found = Benchmark(
        name=name,
        fingerprint=digest.hexdigest(),
        queries=queries,
        corpus=LazyMapping(names, partial(_document, image_root)),
        qrels=LazyMapping(labels, partial(_labels, pools, labels)),
        pools=pools,
        groups_are="species",
    )
    return replace(found, blob=_git_blob_id(annotations))


def load_inat_corpus(benchmark: Benchmark, image_root: Path | str, *, name: str) -> Benchmark:
    """Load the queries of `benchmark` over the images of their species' folders in `image_root`.

    A query's pool is its species' folder; there are no labels, so qrels are empty. Folders are
    named as in iNaturalist, NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species; they are
    matched by scientific name, and numbers may differ. Queries without images are left out:
    compare `len(benchmark.queries)` before and after. Raises `VragError` if the folder is
    missing, or if no species is found in it.
    """
    root = _image_root(image_root)
    species = {query.entity for query in benchmark.queries.values()}
    files: dict[str, list[str]] = {}
    folders = [each for each in sorted(root.iterdir()) if each.is_dir()]
    for folder in folders:
        scientific = " ".join(folder.name.split("_")[6:])
        if scientific in species:
            files[scientific] = [f"{folder.name}/{path.name}" for path in list_images(folder)]
    files = dict(sorted(files.items()))
    kept = [key for key, query in benchmark.queries.items() if files.get(query.entity)]
    if not kept:
        found = f"none of its {len(folders)} folders has images of a species of {benchmark.name}"
        raise VragError(f"{root}: {found}; expected folders like 'NNNNN_…_Genus_species'.")
    part = benchmark.subset(kept)
    names = dict.fromkeys(chain.from_iterable(files.values()))
    pools = {query_id: tuple(files[query.entity]) for query_id, query in part.queries.items()}
    return part.derive(
        "\n".join(names),
        name=name,
        corpus=LazyMapping(names, partial(_document, root)),
        qrels={query_id: {} for query_id in part.queries},
        pools=pools,
    )


def _document(image_root: Path, doc_id: DocId) -> Document:
    """The document of the file "<species folder>/<file>"."""
    metadata = {"folder": doc_id.partition("/")[0]}
    return Document(doc_id=doc_id, image=ImageFile(image_root / doc_id), metadata=metadata)


def _labels(
    pools: Mapping[QueryId, tuple[DocId, ...]],
    labels: Mapping[QueryId, np.ndarray],
    query_id: QueryId,
) -> Mapping[DocId, int]:
    """The labels of a query, which are given in the order of its pool."""
    return dict(zip(pools[query_id], labels[query_id].tolist(), strict=True))


def _image_root(image_root: Path | str) -> Path:
    """Return the folder that holds the species folders; raises `VragError` if there is none."""
    root = Path(image_root)
    if not root.is_dir():
        expected = "the one of the species folders, for iNaturalist archives usually 'train'"
        raise VragError(f"{root}: no such image folder; expected {expected}.")
    return root


def read_annotations(
    annotations: Path, problems: Problems = RAISE
) -> Iterator[tuple[str, VisualRow, Json]]:
    """Yield (location, row, its fields of v2) for every row; problems are those of
    `load_visual_rag`, but for missing images.
    """
    keys = list(VisualRow.model_fields)[:4]
    for location, values in read_objects(annotations, "annotation file", keys, problems):
        if row := validate(VisualRow, values, location, problems):
            yield location, row, {key: values[key] for key in _V2 if key in values}


def make_query_id(scientific_name: str, question: str) -> str:
    """Build a question's id from the species and a hash of the question, which does not depend on
    other rows ("branta-leucopsis-1f3a9c").
    """
    species = re.sub(r"[^a-z0-9]+", "-", scientific_name.lower()).strip("-")
    return f"{species}-{hashlib.sha256(question.encode()).hexdigest()[:6]}"


def _file_names(root: Path, folder: str) -> frozenset[str]:
    place = root / folder
    return frozenset(os.listdir(place) if os.path.isdir(place) else ())


def _query(
    row: VisualRow, v2: Json, where: str, others: Mapping[str, Query], problems: Problems
) -> Query:
    query_id = stem = make_query_id(row.sn, row.question)
    if stem in others:
        problems.add(Kind.ODD, where, "the species and question of an earlier row")
        query_id = next(free for n in count(2) if (free := f"{stem}-{n}") not in others)
    if row.question.strip().upper() == _NO_QUESTION:
        problems.add(Kind.ODD, where, f"the question is {row.question!r}, which v2 leaves out")
    folders = Counter(doc_id.partition("/")[0] for doc_id in row.images)
    ((folder, _),) = folders.most_common(1)
    version = "v2" if "y_rate" in v2 else "v1"
    return Query(
        query_id=query_id,
        text=row.question,
        answers=tuple(row.answer),
        entity=row.sn,
        group=row.sn,
        metadata={"where": where, "version": version, **v2, "folder": folder},
    )


def _git_blob_id(file: Path) -> str:
    """Return the SHA-1 of a file's length and bytes, as `git hash-object` prints it."""
    digest = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: digest).hexdigest()
