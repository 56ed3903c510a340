"""Read the rows of MRAG-Bench from parquet shards, in the order of the shards' numbers.

Shards are named test-00000-of-000028 … test-00009-of-000028, test-000010-of-000028 …:
sorted by name, the eleventh comes after the second, and so do its rows. Each row has an
id, which alone defines their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.shards import by_number, local_folder, read_shard, shards_problem
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Json

LETTERS = ("A", "B", "C", "D")
TEXTS = ("id", "aspect", "scenario", "question", *LETTERS, "answer_choice", "answer")
PICTURES = ("gt_images", "retrieved_images")
_COLUMNS = (*TEXTS, "image", *PICTURES)
"""The columns that are required; image_type and source are optional."""
SCENARIO_OF_LABEL = {
    "angle": "angle",
    "partial": "partial",
    "scope": "scope",
    "obstruction": "occlusion",
    "occlusion": "occlusion",
    "temporal": "temporal",
    "deformation": "deformation",
    "incomplete": "incomplete",
    "biological": "biological",
    "others": "others",
}
"""Label of the column `scenario`, in lower case → the paper's name."""
_FETCH = "Fetch it again; `vrag check` lists all that is wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class MragRow:
    """A checked row, with its images as encoded files."""

    where: str  # shard and row, as messages name it
    texts: Mapping[str, str]  # TEXTS, image_type and source
    image: bytes
    gt_images: tuple[bytes, ...]
    retrieved_images: tuple[bytes, ...]

    @property
    def id(self) -> str:
        """The row's id."""
        return self.texts["id"]

    @property
    def scenario(self) -> str:
        """The paper's name of the row's scenario."""
        return SCENARIO_OF_LABEL[self.texts["scenario"].lower()]

    @property
    def options(self) -> tuple[str, ...]:
        """The four options, in order."""
        return tuple(self.texts[letter] for letter in LETTERS)


def find_shards(rows: Path | str) -> list[Path]:
    """List the shards in a folder or its folder "data", by number.

    `rows` may also be a hub name, "uclanlp/MRAG-Bench@<revision>", whose shards are fetched
    once. Raises `VragError` if there are none, or if shards are missing by number.
    """
    found = list_shards(rows)
    if problem := shards_problem(found):
        raise VragError(f"{found[0].parent}: {problem}")
    return found


def list_shards(rows: Path | str) -> list[Path]:
    """List the shards as `find_shards` does, complete or not."""
    patterns = ("*.parquet", "data/*.parquet")
    folder = local_folder(rows, "MRAG-Bench's shards", patterns)
    found = list(folder.glob("*.parquet")) or list(folder.glob("data/*.parquet"))
    if not found:
        raise VragError(
            f"{folder}: no parquet files; expected MRAG-Bench's shards"
            " (test-00000-of-000028.parquet, …) in it or in its folder 'data'. Get them by `vrag"
            " fetch mrag-bench`."
        )
    return by_number(found)


def read_shard_rows(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (where, unparsed row) for every row, with only a few in memory at a time.

    Raises `VragError` for a truncated or damaged file, and for missing columns.
    """
    return read_shard(path, _COLUMNS, "MRAG-Bench")


def parse_row(row: Json, where: str) -> MragRow:
    """Parse and check a row, including its images.

    Raises `VragError`, naming the row, for a missing text, an unknown scenario, an answer
    that is none of the options or is shared by two options, and for an image without
    bytes.
    """
    texts: dict[str, str] = {}
    for name in TEXTS:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            raise VragError(f"{where}: {name} is {short_repr(value)}, expected a text. {_FETCH}")
        texts[name] = value.strip()
    for name in ("image_type", "source"):
        texts[name] = str(row.get(name) or "")
    named = f"{where} (id {texts['id']})"
    if re.search(r"\s", texts["id"]):
        raise VragError(f"{named}: id has white space, which TREC files cannot hold. {_FETCH}")
    if texts["scenario"].lower() not in SCENARIO_OF_LABEL:
        known = ", ".join(label.capitalize() for label in SCENARIO_OF_LABEL)
        raise VragError(
            f"{named}: unknown scenario {texts['scenario']!r}; expected one of {known}."
        )
    if problem := _answer_problem(texts):
        raise VragError(f"{named}: {problem} {_FETCH}")
    encoded: dict[str, tuple[bytes, ...]] = {}
    for name, given in {"image": [row["image"]], **{name: row[name] for name in PICTURES}}.items():
        encoded[name] = tuple(_bytes(picture) for picture in given or [])
        if not all(encoded[name]) or (name == "gt_images" and not encoded[name]):
            raise VragError(f"{named}: a picture of {name} is missing (no bytes). {_FETCH}")
    (image,) = encoded["image"]
    found = encoded["retrieved_images"]
    return MragRow(
        where=named,
        texts=texts,
        image=image,
        gt_images=encoded["gt_images"],
        retrieved_images=found,
    )


def _bytes(picture: object) -> bytes:
    data = picture.get("bytes") if isinstance(picture, dict) else None
    return data if isinstance(data, bytes) else b""


def _answer_problem(texts: Mapping[str, str]) -> str:
    """Why letter, answer and options contradict each other; "" when they do not, but for
    case and spaces.
    """
    letter, answer = texts["answer_choice"], texts["answer"]
    options = {name: _plain(texts[name]) for name in LETTERS}
    if letter not in options:
        return f"answer_choice is {letter!r}, expected A, B, C or D."
    if _plain(answer) not in options.values():
        told = ", ".join(texts[name] for name in LETTERS)
        return f"the answer {answer!r} is none of the options {told}."
    if options[letter] != _plain(answer):
        return f"the answer is {answer!r}, but option {letter} is {texts[letter]!r}."
    if list(options.values()).count(_plain(answer)) > 1:
        return f"two options are {answer!r}, which is the answer."
    return ""


def _plain(option: str) -> str:
    """An option without regard to case, underscores and hyphens for spaces."""
    return " ".join(re.sub("[_-]", " ", option).casefold().split())


def row_warnings(row: MragRow) -> list[str]:
    """Return warnings about a row that is unusual but usable."""
    odd = []
    plain = [_plain(option) for option in row.options]
    if repeated := [option for option in row.options if plain.count(_plain(option)) > 1]:
        odd.append(f"two options are {repeated[0]!r}")
    answer = row.texts[row.texts["answer_choice"]]
    if row.texts["answer"] != answer:
        odd.append(f"the answer is spelled {row.texts['answer']!r}, its option {answer!r}")
    expected = 1 if row.scenario == "incomplete" else 5
    if len(row.gt_images) != expected:
        odd.append(f"{len(row.gt_images)} pictures in gt_images, expected {expected}")
    if len(set(row.gt_images)) < len(row.gt_images):
        odd.append("one picture of gt_images stands there twice")
    if row.image in row.gt_images:
        odd.append("the query's own picture is among gt_images")
    return odd
