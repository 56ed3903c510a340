"""CRAG-MM's rows, one per conversation, from a split's Parquet shards, and their image files.

Both published revisions are read: v0.1.2 stores turns and answers as an object of lists,
v0.1.1 as a list of objects, with the image quality outside the turns. The single-turn and the
multi-turn data number the same labels differently, so that a label's name comes from its file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from vrag_kit.benchmarks.image_cache import cache_image, cached_rows
from vrag_kit.benchmarks.images import SUFFIXES, decode
from vrag_kit.benchmarks.rows import Kind, Problems, Row, Text, encoded_image, validate
from vrag_kit.benchmarks.sources import find_shards, read_shard
from vrag_kit.benchmarks.transforms import percent_encode_spaces
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Json

SINGLE = "crag-mm-2025/crag-mm-single-turn-public@v0.1.2"
MULTI = "crag-mm-2025/crag-mm-multi-turn-public@v0.1.2"
SPLITS = ("validation", "public_test")
NAMES = {
    "domain": (
        "animal",
        "other",
        "shopping",
        "book",
        "general object recognition",
        "local",
        "vehicle",
        "plants and gardening",
        "style and fashion",
        "food",
        "text understanding",
        "sports and games",
        "math and science",
    ),
    "query_category": (
        "simple-recognition",
        "simple-knowledge",
        "multi-hop",
        "comparison",
        "aggregation",
        "reasoning",
    ),
    "dynamism": ("static", "slow-changing", "fast-changing", "real-time"),
    "image_quality": ("normal", "low light", "blurred", "truncated", "occluded", "rotated"),
}
"""Column → its label names (from the multi-turn data card)."""
_COLUMNS = ("session_id", "image", "image_url", "turns", "answers")
"""The columns of a row; v0.1.1 also has image_quality."""
_SESSIONS = Path(__file__).with_name("crag_mm_sessions.json")


def _label(value: object, info: ValidationInfo) -> str:
    """A label's name, spelled as in `NAMES`, for its name or the number that the file gives it."""
    column = str(info.field_name)
    if isinstance(value, int) and not isinstance(value, bool):
        names = (info.context or {}).get(column)
        if names is None:
            raise ValueError(
                f"is the number {value}, and the file does not carry the names of its labels;"
                " expected a ClassLabel, or a name. Fetch the hub's files: `vrag fetch crag-mm`."
            )
        if not 0 <= value < len(names):
            raise ValueError(f"is {value}, an unknown label; the file names {len(names)}.")
        value = names[value]
    spelled = {_plain(name): name for name in NAMES[column]}
    if not isinstance(value, str) or _plain(value) not in spelled:
        known = ", ".join(NAMES[column])
        raise ValueError(f"is {short_repr(value)}, an unknown label; expected one of {known}.")
    return spelled[_plain(value)]


def _plain(name: str) -> str:
    """A name without regard to case, "&" for "and", underscores and hyphens for spaces."""
    return " ".join(re.sub("[_-]", " ", name.replace("&", " and ")).casefold().split())


RowId = Annotated[Text, AfterValidator(percent_encode_spaces)]
Label = Annotated[str, BeforeValidator(_label)]


class CragTurn(Row):
    """One question of a conversation, with its labels."""

    interaction_id: RowId
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

    interaction_id: RowId
    ans_full: Text


class CragSession(Row):
    """A conversation about one image; in single-turn data it has one question."""

    session_id: RowId
    image: Annotated[bytes, BeforeValidator(encoded_image)] = b""
    """The encoded image; b"" if the row has a URL."""
    image_url: Annotated[str, BeforeValidator(lambda url: url or "")]
    turns: Annotated[list[CragTurn], Field(min_length=1)]
    answers: list[CragAnswer]

    @property
    def url(self) -> str:
        """The image's URL, which for one session is the web archive's, as in the authors' code; ""
        for an image in the row.
        """
        url = self.image_url.strip()
        elsewhere = author_overrides()[1].get(self.session_id, "{url}")
        return elsewhere.format(url=url) if url else ""

    @property
    def answer_of(self) -> dict[str, str]:
        """Interaction → its answer."""
        return {answer.interaction_id: answer.ans_full for answer in self.answers}

    @model_validator(mode="before")
    @classmethod
    def _lists_of_objects(cls, row: Json) -> Json:
        turns, answers = (_objects(row.get(column), column) for column in ("turns", "answers"))
        if "image_quality" in row:  # v0.1.1: one for all turns, or one for each
            given = row["image_quality"]
            quality = given if isinstance(given, list) else [given] * len(turns)
            turns = [{"image_quality": q, **turn} for turn, q in zip(turns, quality, strict=True)]
        return {**row, "turns": turns, "answers": answers}

    @model_validator(mode="after")
    def _each_turn_has_its_answer(self) -> CragSession:
        asked = [turn.interaction_id for turn in self.turns]
        answered = [answer.interaction_id for answer in self.answers]
        for what, names in (("interaction", asked), ("an answer of", answered)):
            if repeated := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"{what} {repeated[0]} came before; expected it once.")
        if lacking := [name for name in asked if name not in answered]:
            raise ValueError(f"no answer has the id of the turn {lacking[0]}.")
        if lost := [name for name in answered if name not in asked]:
            raise ValueError(f"the answer of {lost[0]} has no question.")
        return self


def _objects(value: object, column: str) -> list[Json]:
    """A list of objects, which may be published as an object of lists."""
    if isinstance(value, dict) and all(isinstance(each, list) for each in value.values()):
        lengths = ", ".join(f"{key} {len(each)}" for key, each in value.items())
        if len({len(each) for each in value.values()}) != 1:
            raise ValueError(f"the lists of {column} are not of one length ({lengths}).")
        return [dict(zip(value, each, strict=True)) for each in zip(*value.values(), strict=True)]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        found = short_repr(value)
        raise ValueError(f"{column!r}: found {found}; expected an object of lists, or objects.")
    return value


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A conversation without its image, and the name of the image's file."""

    where: str
    """Shard, row and session."""
    session: CragSession
    image_name: str
    """Below the folder of images; "" if the row has neither an image nor a URL."""


@cache
def author_overrides() -> tuple[frozenset[str], dict[str, str]]:
    """Return (sessions that the authors drop, session → URL template for its image)."""
    overrides = json.loads(_SESSIONS.read_text(encoding="utf-8"))
    return frozenset(overrides["dropped"]), dict(overrides["fetched_elsewhere"])


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


def find_split(rows: Path | str, split: str, problems: Problems | None = None) -> list[Path]:
    """List a split's shards by number, in a folder or its folder "data".

    `rows` may also be a hub name such as `SINGLE`, whose shards are fetched once. Raises
    `VragError` for an unknown split and for no shards; missing shards are a problem.
    """
    if split not in SPLITS:
        raise VragError(f"split is {split!r}; expected {' or '.join(SPLITS)}.")
    what = f"CRAG-MM's shards of {split} (`vrag fetch crag-mm`)"
    return find_shards(rows, f"{split}-*.parquet", what, problems)


def all_sessions(
    shards: Sequence[Path], images: Path, problems: Problems | None = None
) -> list[CachedSession]:
    """Read the conversations of all shards, in order, and cache them in `images`/.read.

    Images stored in rows are written to `images`/rows once; where problems are collected, they
    are decoded in place of that. Problems are unusable rows, duplicate sessions and interactions,
    and damaged images; rows of sessions that the authors drop may be unusable. Raises `VragError`
    for an unwritable folder.
    """
    problems = problems or Problems()
    read = lambda: list(_read(shards, images, problems))  # noqa: E731
    rows = cached_rows([*shards, _SESSIONS], images, "CRAG-MM", read, problems)
    return [
        CachedSession(where, CragSession.model_validate(values), image_name)
        for _, where, values, image_name in rows
    ]


def _read(shards: Sequence[Path], images: Path, problems: Problems) -> Iterator[list[object]]:
    """(images to keep, place, values, name of the image) of each session."""
    seen: dict[str, str] = {}
    for shard in shards:
        names: Mapping[str, Sequence[str]] | None = None
        for location, values in read_shard(shard, _COLUMNS, "CRAG-MM", problems):
            names = label_names(shard) if names is None else names
            is_dropped = values["session_id"] in author_overrides()[0]
            strict = Problems(collect=True) if is_dropped else problems
            session = validate(CragSession, values, location, strict, names)
            if session is None:
                continue
            where = f"{location} (session {session.session_id})"
            ids = [f"interaction {turn.interaction_id}" for turn in session.turns]
            ids = [f"session {session.session_id}", *ids]
            if all(problems.is_new(each, where, seen) for each in ids):
                name = cached_image_name(session.url) if session.url else ""
                if session.image:
                    name = _store(values["image"], images, where, problems)
                elif not name and problems.collect:
                    problems.add(Kind.MISSING, where, "neither an image nor a URL", "image")
                kept = [name] if session.image and not problems.collect else []
                yield [kept, where, session.model_dump(exclude={"image"}), name]


def _store(image: Json, images: Path, where: str, problems: Problems) -> str:
    """Write an image of a row, or check it; returns the name of its file."""
    if not problems.collect:
        return f"rows/{cache_image(image, images / 'rows', '.jpg')}"
    try:
        decode(encoded_image(image), "image")
    except VragError as error:
        problems.add(Kind.DAMAGED, where, str(error), "image")
    return ""


def label_names(shard: Path) -> dict[str, tuple[str, ...]]:
    """Map each column to its label names in numerical order, from the features that `datasets`
    wrote into a shard; columns without names are absent.
    """
    import pyarrow.parquet as pq  # heavy

    metadata = pq.read_schema(shard).metadata or {}
    written = json.loads(metadata.get(b"huggingface", b"{}"))
    return dict(_class_labels(written.get("info", {}).get("features", {}), ""))


def _class_labels(feature: object, column: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of every ClassLabel in a feature, whatever it is nested in."""
    if isinstance(feature, list):
        for each in feature:
            yield from _class_labels(each, column)
    elif isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        yield column, tuple(feature["names"])
    elif isinstance(feature, dict):
        for key, value in feature.items():
            yield from _class_labels(value, column if key == "feature" else key)
