"""MRAG-Bench (Hu et al., ICLR 2025): four-option questions on images that hide the answer,
over an image corpus in which some images show it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from vrag_kit.benchmarks.datasets.mrag_bench_matching import (
    IMAGES,
    SCENARIO_OF_LABEL,
    MatchedRow,
    match_rows,
)
from vrag_kit.benchmarks.images import ImageFile, list_images
from vrag_kit.benchmarks.rows import Problems
from vrag_kit.benchmarks.sources import find_shards
from vrag_kit.benchmarks.transforms import connected_groups
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import path as project_path

CORPUS = "image_corpus"
"""The image folder in the archive of the corpus."""
STORE = "runs/mrag_bench"
"""Default folder of the cached matching, relative to the project's root."""


def load_mrag_bench(
    rows: Path | str,
    corpus: Path | str | None = None,
    *,
    cache_dir: Path | str | None = None,
    name: str = "mrag-bench",
    problems: Problems | None = None,
) -> Benchmark:
    """Load MRAG-Bench from a folder of parquet shards or from the hub, over an image corpus.

    A hub name is "uclanlp/MRAG-Bench@43620fd"; `corpus` is the folder of the corpus. Without
    it the documents are the images of the rows, ground truth and retrieved.

    A query has `image` and `choices`; `answers` is the text of the correct option, `group`
    the questions that share ground-truth images, directly or through others. Labels are 1
    for ground truth. The metadata hold `scenario` (as in the paper, lower case:
    "Obstruction" is "occlusion"), `label` (as in the row), `aspect`, `letter` (of the
    correct option), `retrieved` (the row's documents, best first), `image_type`, `source`
    and `where`. Queries are sorted by id, whatever the order of the shards.

    A document's id is the file's name, percent-encoded; many hold spaces, and some the
    answer, so show them to no model. Images of rows carry no usable name: they are matched
    to the corpus by their bytes, else by their pixels, and the matching is cached in
    `cache_dir` (runs/mrag_bench); an image without a match becomes a document "row-…". A
    query may not retrieve its own image, which is in the corpus (`left_out`). The paper does
    not say what it excludes.

    Problems are unusable rows, damaged images, and missing or truncated shards; without
    `problems` the first raises `VragError`. It is raised too for a corpus without images.
    """
    store = Path(cache_dir) if cache_dir else project_path(STORE)
    folder = corpus_folder(corpus) if corpus else None
    shards = list_rows(rows, problems)
    matching = match_rows(shards, folder, store, problems or Problems())
    rows_by_id = sorted(matching.rows, key=lambda row: _order(row.id))
    files = {path.name: path for path in list_images(folder)} if folder else {}
    for copy in matching.copies:
        del files[copy]
    documents = dict.fromkeys(files)
    for row in rows_by_id:
        documents |= dict.fromkeys(row.images["gt_images"] + row.images["retrieved_images"])
    places = {name: matching.cache / name for name in matching.written} | files
    groups = connected_groups({row.id: row.images["gt_images"] for row in rows_by_id})
    own = [row for row in rows_by_id if row.image in documents]
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(rows_by_id, documents),
        queries={row.id: _query(row, places, groups) for row in rows_by_id},
        corpus={doc_id_from_filename(each): _document(each, places) for each in documents},
        qrels={row.id: _labels(row) for row in rows_by_id},
        left_out={row.id: frozenset({doc_id_from_filename(row.image)}) for row in own},
        groups_are="sets of questions that share pictures",
    )


def list_rows(rows: Path | str, problems: Problems | None = None) -> list[Path]:
    """List the shards in a folder or its folder "data", by number.

    `rows` may also be a hub name, "uclanlp/MRAG-Bench@<revision>", whose shards are fetched
    once. Raises `VragError` if there are none; missing ones are a problem.
    """
    what = "MRAG-Bench's shards (test-00000-of-000028.parquet, …; `vrag fetch mrag-bench`)"
    return find_shards(rows, "*.parquet", what, problems)


def corpus_folder(corpus: Path | str) -> Path:
    """Return the folder of the corpus' images: `corpus` itself or "image_corpus" in it.

    Raises `VragError` if there are no images.
    """
    folder = Path(corpus).expanduser()
    for place in (folder, folder / CORPUS):
        if place.is_dir() and list_images(place):
            return place
    found = "is no folder" if not folder.is_dir() else "holds no pictures"
    raise VragError(
        f"{folder}: {found}; expected MRAG-Bench's image_corpus. Get it by `vrag fetch mrag-bench`,"
        " or leave the corpus out: then the documents are the pictures of the rows."
    )


def doc_id_from_filename(name: str) -> str:
    """Percent-encode a file name, including its spaces and slashes, as a document id."""
    return quote(name, safe="")


def _order(row_id: str) -> tuple[bool, int, str]:
    """Ids are numbers, and sort as such; others come behind, as texts."""
    return (not row_id.isdecimal(), int(row_id) if row_id.isdecimal() else 0, row_id)


def _query(row: MatchedRow, places: Mapping[str, Path], groups: Mapping[str, str]) -> Query:
    texts = row.texts
    return Query(
        query_id=row.id,
        text=texts["question"],
        image=ImageFile(places[row.image]),
        answers=(texts[texts["answer_choice"]],),
        choices=tuple(texts[letter] for letter in "ABCD"),
        group=groups[row.id],
        metadata={**_metadata(row), "excluded": "query_image"},
    )


def _metadata(row: MatchedRow) -> dict[str, object]:
    """What a row tells beside the question."""
    texts = row.texts
    return {
        "where": row.where,
        "scenario": SCENARIO_OF_LABEL[texts["scenario"].lower()],
        "label": texts["scenario"],
        "aspect": texts["aspect"],
        "letter": texts["answer_choice"],
        "retrieved": [doc_id_from_filename(each) for each in row.images["retrieved_images"]],
        "image_type": texts["image_type"],
        "source": texts["source"],
    }


def _document(name: str, places: Mapping[str, Path]) -> Document:
    return Document(
        doc_id=doc_id_from_filename(name), image=ImageFile(places[name]), metadata={"file": name}
    )


def _labels(row: MatchedRow) -> dict[str, int]:
    return {doc_id_from_filename(picture): 1 for picture in row.images["gt_images"]}


def _fingerprint(rows: Iterable[MatchedRow], documents: Iterable[str]) -> str:
    gt, retrieved = IMAGES[1:]
    asked = [[sorted(row.texts.items()), row.images[gt], row.images[retrieved]] for row in rows]
    return hashlib.sha256(json.dumps([asked, sorted(documents)]).encode()).hexdigest()
