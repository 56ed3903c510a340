"""MRAG-Bench (Hu et al., ICLR 2025): four-option questions on images that hide the answer,
over an image corpus in which some images show it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vrag_kit.benchmarks.images import ImageFile, list_images
from vrag_kit.benchmarks.mrag_bench_matching import MatchedRow, match_cache_dir, match_rows
from vrag_kit.benchmarks.mrag_bench_rows import LETTERS, SCENARIO_OF_LABEL, find_shards
from vrag_kit.benchmarks.shared_groups import connected_groups
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

    Raises `VragError` at the first unusable row, for missing or truncated shards, and for a
    corpus without images; `vrag check` lists all.
    """
    store = Path(cache_dir) if cache_dir else project_path(STORE)
    folder = corpus_folder(corpus) if corpus else None
    found = _find(find_shards(rows), folder, store)
    groups = connected_groups({row.texts["id"]: row.gt_images for row in found.rows})
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(found.rows, found.documents),
        queries={row.texts["id"]: _query(row, found.places, groups) for row in found.rows},
        corpus={
            doc_id_from_filename(each): _document(each, found.places) for each in found.documents
        },
        qrels={row.texts["id"]: _labels(row) for row in found.rows},
        left_out=_left_out(found),
        groups_are="sets of questions that share pictures",
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows in order, and where their pictures are."""

    rows: list[MatchedRow]
    places: dict[str, Path]  # name of a picture → its file
    documents: list[str]  # names: the corpus, and pictures of rows that are not in it


def _find(shards: Sequence[Path], corpus: Path | None, store: Path) -> _Found:
    place = match_cache_dir(shards, corpus, store)
    matched = match_rows(shards, corpus, place)
    rows = sorted(matched.rows, key=lambda row: _order(row.texts["id"]))
    files = {path.name: path for path in list_images(corpus)} if corpus else {}
    for copy in matched.copies:
        del files[copy]
    documents = dict.fromkeys(files)
    for row in rows:
        documents |= dict.fromkeys((*row.gt_images, *row.retrieved_images))
    places = {name: files.get(name, place / name) for name in (*files, *matched.written)}
    return _Found(rows, places, list(documents))


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


def _left_out(found: _Found) -> dict[str, frozenset[str]]:
    """Query → its own picture, where that is a document."""
    documents = set(found.documents)
    return {
        row.texts["id"]: frozenset({doc_id_from_filename(row.image)})
        for row in found.rows
        if row.image in documents
    }


def _query(row: MatchedRow, places: Mapping[str, Path], groups: Mapping[str, str]) -> Query:
    texts = row.texts
    return Query(
        query_id=texts["id"],
        text=texts["question"],
        image=ImageFile(places[row.image]),
        answers=(texts[texts["answer_choice"]],),
        choices=tuple(texts[letter] for letter in LETTERS),
        group=groups[texts["id"]],
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
        "retrieved": [doc_id_from_filename(each) for each in row.retrieved_images],
        "image_type": texts["image_type"],
        "source": texts["source"],
    }


def _document(name: str, places: Mapping[str, Path]) -> Document:
    return Document(
        doc_id=doc_id_from_filename(name), image=ImageFile(places[name]), metadata={"file": name}
    )


def _labels(row: MatchedRow) -> dict[str, int]:
    return {doc_id_from_filename(picture): 1 for picture in row.gt_images}


def _fingerprint(rows: Iterable[MatchedRow], documents: Iterable[str]) -> str:
    asked = [[sorted(row.texts.items()), row.gt_images, row.retrieved_images] for row in rows]
    return hashlib.sha256(json.dumps([asked, sorted(documents)]).encode()).hexdigest()
