"""CRAG-MM: single-turn and multi-turn questions on mostly egocentric images, over an image
knowledge graph and a web corpus (arXiv 2510.26160).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vrag_kit.benchmarks.datasets.crag_mm_index import (
    MARKS,
    index_problem,
    read_annotations,
    read_image_index,
    read_web_index,
)
from vrag_kit.benchmarks.datasets.crag_mm_rows import (
    CachedSession,
    all_sessions,
    author_overrides,
    find_split,
    images_folder,
)
from vrag_kit.benchmarks.images import ImageFile, ResizedImage
from vrag_kit.benchmarks.rows import Kind, Problems
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
    problems: Problems | None = None,
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

    Problems are unusable rows, damaged images of rows, and missing shards; without `problems` the
    first raises `VragError`. It is raised too for the index of another split, and without any
    image. Where problems are collected, images that were not fetched are among them, and their
    queries, and those with an image in the row, have none.
    """
    problems = problems or Problems()
    shards = find_split(rows, split, problems)
    place = _images(rows, images)
    sessions = all_sessions(shards, place, problems)
    is_multi = any(len(each.session.turns) > 1 for each in sessions)
    kind = "multi-turn" if is_multi else "single-turn"
    name = f"crag-mm-{kind}-{split.replace('_', '-')}"
    folder = shards[0].parent
    if folder.name == "data" and folder != Path(rows).expanduser():
        folder = folder.parent
    marks = read_annotations(folder / MARKS, problems)
    queries: dict[QueryId, Query] = {}
    for each in _usable(sessions, place, name, problems):
        image = _image(each, place, egocentric_size)
        queries |= {query.query_id: query for query in _queries(each, image, marks, is_multi)}
    if marks and not marks.keys() & queries.keys():
        words = f"none of {len(marks):,} marks is of a question, such as of {next(iter(marks))}"
        problems.add(Kind.ODD, f"{name} {MARKS}", words)
    corpus = _documents(image_index, web_index, split, problems)
    names = {each.session.session_id: each.image_name for each in sessions}
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries, names, egocentric_size, corpus),
        queries=queries,
        corpus=corpus,
        qrels=_labels(queries, corpus),
        groups_are="conversations" if is_multi else "questions",
    )


def _images(rows: Path | str, images: Path | str | None) -> Path:
    """The folder of the image files."""
    if images:
        return Path(images).expanduser()
    return images_folder(rows) if Path(rows).expanduser().is_dir() else project_path(STORE)


def _usable(
    sessions: Sequence[CachedSession], place: Path, name: str, problems: Problems
) -> list[CachedSession]:
    """The sessions to ask, and a message about the others; all where problems are collected."""
    dropped = author_overrides()[0]
    kept = [each for each in sessions if each.session.session_id not in dropped]
    missing = [each for each in kept if not _is_file(each, place)]
    if problems.collect:
        for each in missing:
            if url := each.session.url:
                words = f"the image at {url} was not fetched (`vrag fetch crag-mm` fetches it)"
                problems.add(Kind.MISSING, each.where, words, each.image_name)
        return kept
    usable = [each for each in kept if each not in missing]
    if not usable:
        raise VragError(
            f"{name}: no image of {len(sessions):,} sessions is in {place}. Fetch them by `vrag"
            " fetch crag-mm`, or name their folder by `images`."
        )
    count = sum(len(each.session.turns) for each in sessions)
    if lost := count - sum(len(each.session.turns) for each in usable):
        reasons = f"the pictures of {len(missing):,} sessions are not in {place}"
        dropped_too = f"the authors drop {len(sessions) - len(kept):,}"
        logger.info(
            f"{name}: {lost:,} of {count:,} questions are left out: {reasons} (`vrag fetch crag-mm`"
            f" fetches them), and {dropped_too}"
        )
    return usable


def _is_file(each: CachedSession, place: Path) -> bool:
    return bool(each.image_name) and (place / each.image_name).is_file()


def _image(
    each: CachedSession, place: Path, egocentric_size: tuple[int, int] | None
) -> LazyImage | None:
    if not _is_file(each, place):
        return None
    image = ImageFile(place / each.image_name)
    if egocentric_size and not each.session.url:
        return ResizedImage(image, egocentric_size)
    return image


def _queries(
    each: CachedSession, image: LazyImage | None, marks: Mapping[QueryId, JsonView], is_multi: bool
) -> list[Query]:
    """The turns of a session, in order."""
    session = each.session
    answers = session.answer_of
    found = []
    for number, turn in enumerate(session.turns):
        marked = dict(marks.get(turn.interaction_id, {}))
        entity = str(marked.pop("entity", ""))
        metadata = {
            "session_id": session.session_id,
            **turn.labels,
            "egocentric": not session.url,
            "where": f"{each.where} turn {number}",
            **marked,
        }
        query = Query(
            query_id=turn.interaction_id,
            text=turn.query,
            image=image,
            answers=(answers[turn.interaction_id],),
            entity=entity,
            group=session.session_id,
        )
        talk = session.session_id if is_multi else None
        found.append(replace(query, conversation_id=talk, turn=number, metadata=metadata))
    return found


def _documents(
    image_index: Path | str | None, web_index: Path | str | None, split: str, problems: Problems
) -> dict[DocId, Document]:
    for folder in (image_index, web_index):
        if folder and (problem := index_problem(folder, split)):
            raise VragError(problem)
    entries = read_image_index(image_index, problems) if image_index else {}
    pages = read_web_index(web_index, problems) if web_index else {}
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
