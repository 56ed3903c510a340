"""CRAG-MM: single-turn and multi-turn questions on mostly egocentric images, over an image
knowledge graph and a web corpus (arXiv 2510.26160).

A row of a split's Parquet shards is a conversation. Both published revisions are read: v0.1.2
stores turns and answers as an object of lists, v0.1.1 as a list of objects, with the image quality
outside the turns. The single-turn and the multi-turn data number the same labels differently, so
that a label's name comes from its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from vrag_kit.benchmarks.datasets.crag_mm_index import (
    MARKS,
    entity_names,
    read_annotations,
    read_image_index,
    read_web_index,
)
from vrag_kit.benchmarks.image_cache import cache_image, cached_rows
from vrag_kit.benchmarks.images import SUFFIXES, ImageFile, ResizedImage, decode
from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, Text, encoded_image, validate
from vrag_kit.benchmarks.sources import find_shards, read_shard
from vrag_kit.benchmarks.transforms import (
    SpacelessText,
    hash_parts,
    normalize_label,
    normalize_text,
)
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import project_path
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Json, JsonView, LazyImage, Query, QueryId

STORE = "runs/crag_mm"
"""Image folder for rows from the hub cache, relative to the project's root."""
SPLITS = ("validation", "public_test")
_NAMES = {
    "domain": "animal, other, shopping, book, general object recognition, local, vehicle,"
    " plants and gardening, style and fashion, food, text understanding, sports and games,"
    " math and science",
    "query_category": "simple-recognition, simple-knowledge, multi-hop, comparison,"
    " aggregation, reasoning",
    "dynamism": "static, slow-changing, fast-changing, real-time",
    "image_quality": "normal, low light, blurred, truncated, occluded, rotated",
}
NAMES = {column: tuple(names.split(", ")) for column, names in _NAMES.items()}
"""Column → its label names (from the multi-turn data card)."""
_COLUMNS = ("session_id", "image", "image_url", "turns", "answers")
"""The columns of a row; v0.1.1 also has image_quality."""
_SESSIONS = Path(__file__).with_name("crag_mm_sessions.json")
_OVERRIDES: JsonView = json.loads(_SESSIONS.read_text(encoding="utf-8"))
"""Sessions that the authors drop, and session → URL template for its image."""


def _label(value: object, info: ValidationInfo) -> str:
    """A label's name, spelled as in `NAMES`, for its name or the number that the file gives it."""
    column = str(info.field_name)
    if isinstance(value, int) and not isinstance(value, bool):
        names = (info.context or {}).get(column)
        if names is None:
            found = f"is the number {value}, and the file does not carry the names of its labels"
            raise ValueError(f"{found}; expected a ClassLabel, or names (`vrag data fetch`).")
        if not 0 <= value < len(names):
            raise ValueError(f"is {value}, an unknown label; the file names {len(names)}.")
        value = names[value]
    spelled = {_spaced(name): name for name in NAMES[column]}
    if not isinstance(value, str) or _spaced(value) not in spelled:
        known = ", ".join(NAMES[column])
        raise ValueError(f"is {short_repr(value)}, an unknown label; expected one of {known}.")
    return spelled[_spaced(value)]


def _spaced(name: str) -> str:
    """A name without regard to case, "&" for "and", underscores and hyphens for spaces."""
    return normalize_label(name.replace("&", " and "))


Label = Annotated[str, BeforeValidator(_label)]


class CragTurn(Row):
    """One question of a conversation, with its labels."""

    interaction_id: SpacelessText
    query: Text
    domain: Label
    query_category: Label
    dynamism: Label
    image_quality: Label

    @property
    def labels(self) -> dict[str, str]:
        """Column → name of the label."""
        return {column: getattr(self, column) for column in NAMES}


class CragAnswer(Row):
    """The answer to one question."""

    interaction_id: SpacelessText
    ans_full: Text


class CragSession(Row):
    """A conversation about one image; in single-turn data it has one question."""

    session_id: SpacelessText
    image: Annotated[bytes, BeforeValidator(encoded_image)] = b""
    """The encoded image; b"" if the row has a URL."""
    image_url: Annotated[str, BeforeValidator(lambda url: url or "")]
    turns: list[CragTurn] = Field(min_length=1, description="a list of objects, at least one")
    answers: list[CragAnswer] = Field(description="a list of objects")
    where: str = ""
    """Shard, row and session."""
    image_name: str = ""
    """File of the image below the folder of images; "" if the row has neither image nor URL."""

    @property
    def url(self) -> str:
        """The image's URL, which for one session is the web archive's, as in the authors' code; ""
        for an image in the row.
        """
        url = self.image_url.strip()
        elsewhere = _OVERRIDES["fetched_elsewhere"].get(self.session_id, "{url}")
        return elsewhere.format(url=url) if url else ""

    @model_validator(mode="before")
    @classmethod
    def _lists_of_objects(cls, row: Json) -> Json:
        turns, answers = (_objects(row.get(column), column) for column in ("turns", "answers"))
        if "image_quality" in row and isinstance(turns, list):  # v0.1.1: one for all, or for each
            given = row["image_quality"]
            quality = given if isinstance(given, list) else [given] * len(turns)
            turns = [{"image_quality": q, **turn} for turn, q in zip(turns, quality, strict=True)]
        return {**row, "turns": turns, "answers": answers}

    @model_validator(mode="after")
    def _each_turn_has_its_answer(self) -> CragSession:
        asked = sorted(turn.interaction_id for turn in self.turns)
        answered = sorted(answer.interaction_id for answer in self.answers)
        if asked != answered or len({*asked}) < len(asked):
            raise ValueError(f"answers {answered}: expected one answer of each of {asked}.")
        return self


def _objects(value: object, column: str) -> object:
    """A list of objects, for an object of lists."""
    if not isinstance(value, dict):
        return value
    lengths = {key: len(each) for key, each in value.items()}
    if len({*lengths.values()}) != 1:
        raise ValueError(f"the lists of {column} are not of one length ({lengths}).")
    return [dict(zip(value, each, strict=True)) for each in zip(*value.values(), strict=True)]


def load_crag_mm(
    rows: Path | str,
    split: str = "validation",
    *,
    image_index: Path | str | None = None,
    web_index: Path | str | None = None,
    images: Path | str | None = None,
    egocentric_size: tuple[int, int] | None = None,
    problems: Problems = RAISE,
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
    `egocentric_size` ((960, 1280) in that code) resizes egocentric images. Questions without
    an image file, and sessions that the authors drop, are left out, with a message.

    Problems are unusable rows, damaged images of rows, and missing shards; without `problems` the
    first raises `VragError`. It is raised too for the index of another split, and
    without any image. Where problems are collected,
    images that were not fetched are among them, and their queries, and those with an image in the
    row, have none.
    """
    others = tuple(each for each in SPLITS if each != split)
    for index in (image_index, web_index):
        if index and Path(index).name.replace("-", "_").endswith(others):
            raise VragError(f"{index}: the index of {others[0]}; expected that of {split}.")
    shards = find_split(rows, split, problems)
    is_folder = Path(rows).expanduser().is_dir()
    default = images_folder(rows) if is_folder else project_path(STORE)
    place = Path(images or default).expanduser()
    sessions = all_sessions(shards, place, problems)
    is_multi = any(len(each.turns) > 1 for each in sessions)
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
    corpus = read_image_index(image_index, problems) if image_index else {}
    corpus |= read_web_index(web_index, problems) if web_index else {}
    names = {each.session_id: each.image_name for each in sessions}
    asked = []
    for query in queries.values():
        told = {key: value for key, value in query.metadata.items() if key != "where"}
        texts = [query.query_id, query.text, query.answers, query.entity]
        asked.append([*texts, told, names[query.group]])
    documents = [[key, each.text, dict(each.metadata)] for key, each in corpus.items()]
    return Benchmark(
        name=name,
        fingerprint=hash_parts([egocentric_size], asked, documents),
        queries=queries,
        corpus=corpus,
        qrels=_labels(queries, corpus),
        groups_are="conversations" if is_multi else "questions",
    )


def _usable(
    sessions: Sequence[CragSession], place: Path, name: str, problems: Problems
) -> list[CragSession]:
    """The sessions to ask, and a message about the others; all where problems are collected."""
    kept = [each for each in sessions if each.session_id not in _OVERRIDES["dropped"]]
    missing = {each.session_id for each in kept if not _image(each, place, None)}
    if problems.collect:
        for each in kept:
            if each.url and each.session_id in missing:
                words = f"the image at {each.url} was not fetched: `vrag data fetch crag-mm`"
                problems.add(Kind.MISSING, each.where, words, each.image_name)
        return kept
    usable = [each for each in kept if each.session_id not in missing]
    if not usable:
        expected = "those that `vrag data fetch crag-mm` fetches"
        raise VragError(f"{name}: no image of a session is in {place}; expected {expected}.")
    count, used = (sum(len(each.turns) for each in some) for some in (sessions, usable))
    if count > used:
        logger.info(
            f"{name}: {count - used:,} of {count:,} questions are left out: the pictures of"
            f" {len(missing):,} sessions are not in {place} (`vrag data fetch crag-mm`"
            f" fetches them), and the authors drop {len(sessions) - len(kept):,}"
        )
    return usable


def _image(
    session: CragSession, place: Path, egocentric_size: tuple[int, int] | None
) -> LazyImage | None:
    """The image of a session; None without a file."""
    path = place / session.image_name
    if not (session.image_name and path.is_file()):
        return None
    if egocentric_size and not session.url:
        return ResizedImage(ImageFile(path), egocentric_size)
    return ImageFile(path)


def _queries(
    session: CragSession, image: LazyImage | None, marks: Mapping[QueryId, JsonView], is_multi: bool
) -> Iterator[Query]:
    """The turns of a session, in order."""
    answers = {answer.interaction_id: answer.ans_full for answer in session.answers}
    for number, turn in enumerate(session.turns):
        marked = dict(marks.get(turn.interaction_id, {}))
        entity = str(marked.pop("entity", ""))
        metadata = {
            "session_id": session.session_id,
            **turn.labels,
            "egocentric": not session.url,
            "where": f"{session.where} turn {number}",
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
        yield replace(query, conversation_id=talk, turn=number, metadata=metadata)


def _labels(
    queries: Mapping[QueryId, Query], corpus: Mapping[DocId, Document]
) -> dict[QueryId, dict[DocId, int]]:
    """Query → the documents of its entity, where marks name it."""
    of_entity: dict[str, dict[DocId, int]] = {"": {}}
    for doc_id, document in corpus.items():
        names = [*entity_names(document), document.metadata.get("page_name", "")]
        for name in filter(None, map(normalize_text, names)):
            of_entity.setdefault(name, {})[doc_id] = 1
    return {
        name: dict(of_entity.get(normalize_text(each.entity), {})) for name, each in queries.items()
    }


def cached_image_name(url: str) -> str:
    """Return an image's file name below the image folder: "url/" and a hash of the whole URL. URLs
    that differ only after the "?" give different images.
    """
    suffix = Path(urlsplit(url).path).suffix.lower()
    known = suffix if suffix in SUFFIXES else ".jpg"
    return f"url/{hashlib.sha256(url.encode()).hexdigest()[:40]}{known}"


def images_folder(rows: Path | str) -> Path:
    """Return the folder "images" next to the rows', shared by single- and multi-turn data."""
    return Path(rows).expanduser().absolute().parent / "images"


def find_split(rows: Path | str, split: str, problems: Problems = RAISE) -> list[Path]:
    """List a split's shards by number, in a folder or its folder "data".

    `rows` may also be a hub name (`load_crag_mm`), whose shards are fetched once. Raises
    `VragError` for an unknown split and for no shards; missing shards are a problem.
    """
    if split not in SPLITS:
        raise VragError(f"split is {split!r}; expected {' or '.join(SPLITS)}.")
    what = f"CRAG-MM's shards of {split} (`vrag data fetch crag-mm`)"
    return find_shards(rows, (f"{split}-*.parquet", f"data/{split}-*.parquet"), what, problems)


def all_sessions(
    shards: Sequence[Path], images: Path, problems: Problems = RAISE
) -> list[CragSession]:
    """Read the conversations of all shards, in order, and cache them in `images`/.read.

    Images stored in rows are written to `images`/rows once; where problems are collected, they
    are decoded in place of that. Problems are unusable rows, duplicate sessions and interactions,
    and damaged images; rows of sessions that the authors drop may be unusable. Raises `OSError`
    for an unwritable folder.
    """
    read = lambda: list(_read(shards, images, problems))  # noqa: E731
    rows = cached_rows([*shards, _SESSIONS], images, "CRAG-MM", read, problems)
    return [CragSession.model_validate(values) for _, values in rows]


def _read(shards: Sequence[Path], images: Path, problems: Problems) -> Iterator[list[object]]:
    """(images of rows that were written, fields) of each session."""
    seen: dict[str, str] = {}
    for shard in shards:
        names: Mapping[str, Sequence[str]] | None = None
        for location, values in read_shard(shard, _COLUMNS, "CRAG-MM", problems):
            names = label_names(shard) if names is None else names
            is_dropped = values["session_id"] in _OVERRIDES["dropped"]
            strict = Problems(collect=True) if is_dropped else problems
            session = validate(CragSession, values, location, strict, names)
            if session is None:
                continue
            where = f"{location} (session {session.session_id})"
            ids = [f"interaction {turn.interaction_id}" for turn in session.turns]
            ids = [f"session {session.session_id}", *ids]
            if all(problems.is_new(each, where, seen) for each in ids):
                name = cached_image_name(session.url) if session.url else ""
                if problems.collect:
                    _check_image(session, where, problems)
                elif session.image:
                    name = f"rows/{cache_image(values['image'], images / 'rows', '.jpg')}"
                kept = [name] if name.startswith("rows/") else []
                fields = session.model_dump(exclude={"image"})
                yield [kept, {**fields, "where": where, "image_name": name}]


def _check_image(session: CragSession, where: str, problems: Problems) -> None:
    """Decode the image of a row without writing it."""
    if not (session.image or session.url):
        problems.add(Kind.MISSING, where, "neither an image nor a URL", "image")
    try:
        if session.image:
            decode(session.image, "image")
    except VragError as error:
        problems.add(Kind.DAMAGED, where, str(error), "image")


def label_names(shard: Path) -> dict[str, list[str]]:
    """Map each column to its label names in numerical order, from the features that `datasets`
    wrote into a shard; columns without names are absent.
    """
    import pyarrow.parquet as pq  # heavy

    found: dict[str, list[str]] = {}

    def note_labels(features: Json) -> object:
        """Note each ClassLabel in an object; a list of values is replaced by its values."""
        for column, feature in features.items():
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
                found[column] = feature["names"]
        return features.get("feature", features)

    metadata = pq.read_schema(shard).metadata or {}
    json.loads(metadata.get(b"huggingface", b"{}"), object_hook=note_labels)
    return found
