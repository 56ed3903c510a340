"""CRAG-MM: single-turn and multi-turn questions on mostly egocentric images, over an image
knowledge graph and a web corpus (arXiv 2510.26160).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vrag_kit.benchmarks.crag_mm_images import (
    CachedSession,
    ResizedImage,
    all_sessions,
    author_overrides,
    images_folder,
)
from vrag_kit.benchmarks.crag_mm_index import index_problem, read_image_index, read_web_index
from vrag_kit.benchmarks.crag_mm_marks import MARKS, read_annotations
from vrag_kit.benchmarks.crag_mm_rows import find_split, rows_folder
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, JsonView, LazyImage, Query, QueryId
from vrag_kit.workspace import path as project_path

EGO_SIZE = (960, 1280)
"""Width and height to which the authors' code resizes egocentric images."""
STORE = "runs/crag_mm"
"""Image folder for rows from the hub cache, relative to the project's root."""


def load_crag_mm(
    rows: Path | str,
    split: str = "validation",
    *,
    image_index: Path | str | None = None,
    web_index: Path | str | None = None,
    images: Path | str | None = None,
    egocentric_size: tuple[int, int] | None = None,
) -> Benchmark:
    """Load a split of CRAG-MM's single-turn or multi-turn data, with one query per turn.

    `rows` is a folder, or a hub name ("crag-mm-2025/crag-mm-single-turn-public@v0.1.2").
    `query_id` is the interaction, `group` the session, and in multi-turn data
    `conversation_id` too, with `turn` from 0. `answers` is the one full answer. The
    metadata hold session_id, domain, query_category, dynamism and image_quality (names),
    egocentric (the image is in the row and has no URL), where, and the annotations of
    `marks.jsonl` (with the rows), of which `entity` is the query's. The corpus holds the
    documents of the given indexes; labels are 1 for the entries and pages of the annotated
    entity, and empty without annotations.

    `images` is the folder of the image files, by default "images" next to the rows' folder.
    It holds fetched images and those stored in rows, which are written there once. EXIF
    orientation is applied; the authors' code does not apply it to images with a URL.
    `egocentric_size` (`EGO_SIZE` in that code) resizes egocentric images. Questions without
    an image file, and sessions that the authors drop, are left out, with a message.

    Raises `VragError` at the first unusable row, for missing shards, and for the index of
    another split; `vrag check` lists all.
    """
    shards = find_split(rows, split)
    place = _images(rows, images)
    kept = all_sessions(shards, place)
    is_multi = any(len(each.session.turns) > 1 for each in kept)
    kind = "multi-turn" if is_multi else "single-turn"
    name = f"crag-mm-{kind}-{split.replace('_', '-')}"
    marks = read_annotations(rows_folder(rows, split) / MARKS)
    queries: dict[QueryId, Query] = {}
    for each in _usable(kept, place, name):
        queries |= _queries(each, _picture(each, place, egocentric_size), marks, is_multi)
    corpus = _documents(image_index, web_index, split)
    pictures = {each.session.session_id: each.picture for each in kept}
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries, pictures, egocentric_size, corpus),
        queries=queries,
        corpus=corpus,
        qrels=_labels(queries, corpus),
        groups_are="conversations" if is_multi else "questions",
    )


def _images(rows: Path | str, images: Path | str | None) -> Path:
    """The folder of the picture files."""
    if images:
        return Path(images).expanduser()
    return images_folder(rows) if Path(rows).expanduser().is_dir() else project_path(STORE)


def _usable(kept: Sequence[CachedSession], place: Path, name: str) -> list[CachedSession]:
    """The sessions to ask; says which were left out."""
    dropped = author_overrides()[0]
    asked = [each for each in kept if each.session.session_id not in dropped]
    usable = [each for each in asked if each.picture and (place / each.picture).is_file()]
    count = sum(len(each.session.turns) for each in kept)
    lost = count - sum(len(each.session.turns) for each in usable)
    if not usable:
        raise VragError(
            f"{name}: no picture of {len(kept):,} sessions is in {place}. Fetch them by `vrag fetch"
            " crag-mm`, or name their folder by `images`."
        )
    if lost:
        missing = f"the pictures of {len(asked) - len(usable):,} sessions are not in {place}"
        dropped_too = f"the authors drop {len(kept) - len(asked):,}"
        reasons = f"{missing} (`vrag fetch crag-mm` fetches them), and {dropped_too}"
        logger.info(f"{name}: {lost:,} of {count:,} questions are left out: {reasons}")
    return usable


def _picture(
    kept: CachedSession, place: Path, egocentric_size: tuple[int, int] | None
) -> LazyImage:
    picture = ImageFile(place / kept.picture)
    return (
        ResizedImage(picture, egocentric_size)
        if egocentric_size and not kept.session.image_url
        else picture
    )


def _queries(
    kept: CachedSession, image: LazyImage, marks: Mapping[QueryId, JsonView], is_multi: bool
) -> dict[QueryId, Query]:
    """The turns of a session, in order."""
    session = kept.session
    found = {}
    for number, turn in enumerate(session.turns):
        marked = dict(marks.get(turn.interaction_id, {}))
        query = Query(
            query_id=turn.interaction_id,
            text=turn.question,
            image=image,
            answers=(turn.answer,),
            entity=str(marked.pop("entity", "")),
        )
        told = {
            "session_id": session.session_id,
            **turn.labels,
            "egocentric": not session.image_url,
            "where": f"{session.where} turn {number}",
            **marked,
        }
        talk = session.session_id if is_multi else None
        found[query.query_id] = replace(
            query, group=session.session_id, conversation_id=talk, turn=number, metadata=told
        )
    return found


def _documents(
    image_index: Path | str | None, web_index: Path | str | None, split: str
) -> dict[DocId, Document]:
    for folder in (image_index, web_index):
        if folder and (problem := index_problem(folder, split)):
            raise VragError(problem)
    entries = read_image_index(image_index) if image_index else {}
    pages = read_web_index(web_index) if web_index else {}
    return {**entries, **pages}


def _labels(
    queries: Mapping[QueryId, Query], corpus: Mapping[DocId, Document]
) -> dict[QueryId, dict[DocId, int]]:
    """Query → the documents of its entity, where marks name it."""
    of_entity: dict[str, dict[DocId, int]] = {"": {}}
    for doc_id, document in corpus.items():
        names = [each["entity_name"] for each in document.metadata.get("entities", ())]
        names.append(document.metadata.get("page_name", ""))
        for name in filter(None, map(_plain, names)):
            of_entity.setdefault(name, {})[doc_id] = 1
    return {name: dict(of_entity.get(_plain(each.entity), {})) for name, each in queries.items()}


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _fingerprint(
    queries: Mapping[QueryId, Query],
    pictures: Mapping[str, str],
    egocentric_size: tuple[int, int] | None,
    corpus: Mapping[DocId, Document],
) -> str:
    """Hash of what is asked, of which pictures and documents; not of where they lie."""
    digest = hashlib.sha256(json.dumps(egocentric_size).encode())
    for query in queries.values():
        told = {key: value for key, value in query.metadata.items() if key != "where"}
        asked = [query.query_id, query.text, query.answers, query.entity, told]
        digest.update(json.dumps([*asked, pictures[query.group]]).encode())
    for doc_id, document in corpus.items():
        digest.update(json.dumps([doc_id, document.text, dict(document.metadata)]).encode())
    return digest.hexdigest()
