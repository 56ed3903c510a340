"""MRAG-Bench's rows, and the file of the corpus that each of their images is, by its bytes or
else by its pixels. Unmatched images are written to separate files; the matching is cached.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from vrag_kit.benchmarks.image_cache import cached_rows, files_version
from vrag_kit.benchmarks.images import decode, list_images, open_image, pixel_hash
from vrag_kit.benchmarks.rows import EncodedImage, Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import read_shard
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger, track

SCENARIOS = (
    *("angle", "partial", "scope", "occlusion"),
    *("temporal", "deformation", "incomplete", "biological", "others"),
)
SCENARIO_OF_LABEL = {name: name for name in SCENARIOS} | {"obstruction": "occlusion"}
"""Label of the column `scenario`, in lower case → the paper's name."""
IMAGES = ("image", "gt_images", "retrieved_images")
"""The columns of images."""


def _in_run_file(name: str) -> str:
    if re.search(r"\s", name):
        raise ValueError(f"{name!r} has white space, which TREC files cannot hold")
    return name


def _known_scenario(label: str) -> str:
    if label.lower() not in SCENARIO_OF_LABEL:
        known = ", ".join(each.capitalize() for each in SCENARIO_OF_LABEL)
        raise ValueError(f"{label!r} is unknown; expected one of {known}.")
    return label


class MragRow(Row):
    """A question with its options, and its images as encoded files."""

    id: Annotated[Text, AfterValidator(_in_run_file)]
    aspect: Text
    scenario: Annotated[Text, AfterValidator(_known_scenario)]
    question: Text
    A: Text
    B: Text
    C: Text
    D: Text
    answer_choice: Literal["A", "B", "C", "D"]
    answer: Text
    image_type: str | None = None
    source: str | None = None
    image: EncodedImage
    gt_images: Annotated[list[EncodedImage], Field(min_length=1)]
    retrieved_images: list[EncodedImage] | None

    @property
    def options(self) -> tuple[str, str, str, str]:
        """The four options, in order."""
        return (self.A, self.B, self.C, self.D)

    @property
    def texts(self) -> dict[str, str]:
        """The fields that are texts; "" for a missing one."""
        fields = self.model_dump(exclude={*IMAGES})
        return {name: value or "" for name, value in fields.items()}

    @model_validator(mode="after")
    def _answer_is_its_option(self) -> MragRow:
        options, answer = list(map(_plain, self.options)), _plain(self.answer)
        option = self.options["ABCD".index(self.answer_choice)]
        if answer not in options:
            found = ", ".join(self.options)
            raise ValueError(f"the answer {self.answer!r} is none of the options {found}")
        if _plain(option) != answer:
            raise ValueError(
                f"the answer is {self.answer!r}, but option {self.answer_choice} is {option!r}"
            )
        if options.count(answer) > 1:
            raise ValueError(f"two options are {self.answer!r}, which is the answer")
        return self


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row whose images are names of files, in the corpus or in the cache."""

    where: str
    texts: dict[str, str]
    images: dict[str, list[str]]
    """For each of `IMAGES`."""

    @property
    def id(self) -> str:
        """The row's id."""
        return self.texts["id"]

    @property
    def image(self) -> str:
        """The file of the query's image."""
        return self.images["image"][0]


@dataclass(frozen=True, slots=True)
class Matching:
    """All rows, with the files of their images."""

    rows: list[MatchedRow]
    cache: Path
    """The folder of the images in `written`."""
    written: list[str]
    """Files of those images that are in no file of the corpus."""
    copies: list[str]
    """Files of the corpus with the bytes of an earlier one."""


def match_rows(
    shards: Sequence[Path], corpus: Path | None, cache_dir: Path, problems: Problems
) -> Matching:
    """Match the images of all rows to the files of the corpus; without a corpus, all are written.

    The result is cached in a folder of `cache_dir` until a file changes. Problems are unusable
    rows, duplicate ids, damaged images and shards, and images that are odd.
    """
    files = [*shards, *(list_images(corpus) if corpus else [])]
    cache = cache_dir / files_version(files, "MRAG-Bench")
    read = lambda: _match(shards, corpus, cache, problems)  # noqa: E731
    (written, copies), *rows = cached_rows(files, cache, "MRAG-Bench", read, problems)
    return Matching([MatchedRow(*row) for _, *row in rows], cache, written, copies)


def _match(
    shards: Sequence[Path], corpus: Path | None, cache: Path, problems: Problems
) -> list[object]:
    """(files written, copies in the corpus), then ([], fields of a row) for each row."""
    images = _Images(corpus, cache)
    columns = [name for name, field in MragRow.model_fields.items() if field.is_required()]
    matched = []
    seen: dict[str, str] = {}
    ids = set()
    for shard in shards:
        for location, values in read_shard(shard, columns, "MRAG-Bench", problems):
            ids.add(str(values["id"]))
            row = validate(MragRow, values, location, problems)
            if row and problems.is_new(f"id {row.id!r}", location, seen):
                _note_oddities(row, location, problems)
                if names := _image_names(row, location, images, problems):
                    matched.append(MatchedRow(f"{location} (id {row.id})", row.texts, names))
    by_pixels = images.by_pixels()
    written = [name for name in images.sizes if name not in by_pixels]
    rows = []
    for each in matched:
        renamed = {
            column: [by_pixels.get(name, name) for name in names]
            for column, names in each.images.items()
        }
        rows.append([[], each.where, each.texts, renamed])
        for column, files in renamed.items() if corpus else ():
            if lost := len({*written}.intersection(files)):
                words = f"{lost} images are not in the corpus"
                problems.add(Kind.ODD, each.where, words, column)
    logger.info(
        f"MRAG-Bench: {images.by_bytes:,} images of the rows are files of the corpus,"
        f" {len(by_pixels):,} by their pixels, {len(written):,} are not in it"
    )
    for copy in images.copies:
        problems.add(Kind.ODD, str(corpus), "the bytes of an earlier file", copy)
    _note_gaps(ids, shards[0].parent, problems)
    return [[written, images.copies], *rows]


def _image_names(
    row: MragRow, location: str, images: _Images, problems: Problems
) -> dict[str, list[str]]:
    """Column → files of its images; empty if one is damaged."""
    columns = ([row.image], row.gt_images, row.retrieved_images or [])
    names: dict[str, list[str]] = {}
    for column, encoded in zip(IMAGES, columns, strict=True):
        try:
            names[column] = [images.name(data, column) for data in encoded]
        except VragError as error:
            problems.add(Kind.DAMAGED, location, str(error), column)
            return {}
    return names


def _note_oddities(row: MragRow, location: str, problems: Problems) -> None:
    plain = list(map(_plain, row.options))
    if repeated := [option for option in row.options if plain.count(_plain(option)) > 1]:
        problems.add(Kind.ODD, location, f"two options are {repeated[0]!r}")
    if len({*row.gt_images}) < len(row.gt_images):
        problems.add(Kind.ODD, location, "one image occurs twice", "gt_images")
    if row.image in row.gt_images:
        problems.add(Kind.ODD, location, "the query's own image is among them", "gt_images")


def _note_gaps(ids: Iterable[str], folder: Path, problems: Problems) -> None:
    numbers = {int(each) for each in ids if each.isdecimal()}
    gaps = sorted({*range(max(numbers, default=0))} - numbers)
    if problems.collect and gaps:
        first = ", ".join(map(str, gaps[:5])) + (", …" if gaps[5:] else "")
        words = f"{len(gaps):,} of {max(numbers) + 1:,} ids: {first}"
        problems.add(Kind.MISSING, str(folder), words)


class _Images:
    """The images of rows, each matched once; the corpus' files are hashed only where their size
    is that of a row's image.
    """

    def __init__(self, corpus: Path | None, cache: Path) -> None:
        self.sizes: dict[str, tuple[int, int]] = {}  # file in the cache → its size in pixels
        self.copies: list[str] = []
        self.by_bytes = 0
        self._cache = cache
        self._pixels: dict[str, str] = {}  # hash of pixels → file in the cache
        self._files = list_images(corpus) if corpus else []
        self._names: dict[str, str] = {}  # hash of a row's image → file
        self._hashed: dict[int, dict[str, str]] = {}  # size → hash → file of the corpus
        self._of_size: dict[int, list[Path]] = defaultdict(list)
        for path in self._files:
            self._of_size[path.stat().st_size].append(path)

    def name(self, data: bytes, where: str) -> str:
        """Return the file of these bytes, in the corpus or else in the cache. Raises `VragError`,
        beginning with `where`, if they cannot be decoded.
        """
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._names:
            name = self._same_bytes(len(data)).get(digest)
            self.by_bytes += name is not None
            self._names[digest] = name or self._write(data, digest, where)
        return self._names[digest]

    def by_pixels(self) -> dict[str, str]:
        """Map files in the cache to the first file of the corpus with the same pixels, and remove
        them from the cache.
        """
        if not self._files or not self.sizes:
            return {}
        sizes = {*self.sizes.values()}
        sizes |= {(height, width) for width, height in sizes}  # EXIF may rotate by 90°
        in_corpus: dict[str, str] = {}
        for path in track(self._files, "comparing pixels", len(self._files), "images"):
            if digest := _pixel_hash(path, sizes):
                in_corpus.setdefault(digest, path.name)
        found = {}
        for digest, name in self._pixels.items():
            if digest in in_corpus:
                found[name] = in_corpus[digest]
                (self._cache / name).unlink()
        return found

    def _same_bytes(self, size: int) -> dict[str, str]:
        """Hash → the first file of the corpus, for those of this size."""
        if size not in self._hashed:
            known = self._hashed.setdefault(size, {})
            for path in self._of_size.get(size, ()):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                if digest in known:
                    self.copies.append(path.name)
                known.setdefault(digest, path.name)
        return self._hashed[size]

    def _write(self, data: bytes, digest: str, where: str) -> str:
        image = decode(data, where)
        pixels = pixel_hash(image)
        if pixels not in self._pixels:
            with open_image(data, where) as header:
                kind = (header.format or "png").lower().replace("jpeg", "jpg").replace("mpo", "jpg")
            name = self._pixels[pixels] = f"row-{digest[:16]}.{kind}"
            self.sizes[name] = image.size
            write_file(self._cache / name, data)
        return self._pixels[pixels]


def _pixel_hash(path: Path, sizes: set[tuple[int, int]]) -> str:
    """Hash of a file's pixels; "" for other sizes, and for a damaged one, which matches none."""
    try:
        data = path.read_bytes()
        with open_image(data, str(path)) as header:
            size = header.size
        return pixel_hash(decode(data, str(path))) if size in sizes else ""
    except (VragError, OSError):
        return ""


def _plain(option: str) -> str:
    """An option without regard to case, underscores and hyphens for spaces."""
    return " ".join(re.sub("[_-]", " ", option).casefold().split())
