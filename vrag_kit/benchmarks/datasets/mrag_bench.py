"""MRAG-Bench (Hu et al., ICLR 2025): four-option questions on images that hide the answer,
over an image corpus in which some images show it.

The images of rows have no names. The file of the corpus that each is, is found by its bytes or
else by its pixels; unmatched images are written to files of their own, and the matching is cached.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, Field, model_validator

from vrag_kit.benchmarks.image_cache import cached_rows, files_version
from vrag_kit.benchmarks.images import ImageFile, decode, list_images, open_image, pixel_hash
from vrag_kit.benchmarks.rows import (
    RAISE,
    EncodedImage,
    Kind,
    Problems,
    Row,
    Text,
    TrecId,
    validate,
)
from vrag_kit.benchmarks.sources import find_shards, read_shard
from vrag_kit.benchmarks.transforms import connected_groups, hash_parts, normalize_label
from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.log import logger, progress
from vrag_kit.types import Benchmark, Document, LazyImage, Query

_SHARDS = "MRAG-Bench's shards (test-00000-of-000028.parquet, …; `vrag data fetch mrag-bench`)"
CORPUS = "image_corpus"
"""The image folder in the archive of the corpus."""
STORE = "runs/mrag_bench"
"""Default folder of the cached matching, relative to the project's root."""
_SCENARIOS = "angle partial scope occlusion temporal deformation incomplete biological others"
SCENARIO_OF_LABEL = {name: name for name in _SCENARIOS.split()} | {"obstruction": "occlusion"}
"""Label of the column `scenario`, in lower case → the paper's name."""
IMAGES = ("image", "gt_images", "retrieved_images")
"""The columns of images."""


def _known_scenario(label: str) -> str:
    if label.lower() not in SCENARIO_OF_LABEL:
        known = ", ".join(each.capitalize() for each in SCENARIO_OF_LABEL)
        raise ValueError(f"{label!r} is unknown; expected one of {known}.")
    return label


class MragRow(Row):
    """A question with its options, and its images as encoded files."""

    id: TrecId
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
    def texts(self) -> dict[str, str]:
        """The fields that are texts; "" for a missing one."""
        fields = self.model_dump(exclude={*IMAGES})
        return {name: value or "" for name, value in fields.items()}

    @model_validator(mode="after")
    def _answer_is_its_option(self) -> MragRow:
        options = {letter: normalize_label(getattr(self, letter)) for letter in "ABCD"}
        answer, letter = normalize_label(self.answer), self.answer_choice
        if options[letter] != answer:
            of = f"{options[letter]!r} of the options {', '.join(options.values())}"
            raise ValueError(f"the answer {self.answer!r} is another than option {letter}, {of}")
        if list(options.values()).count(answer) > 1:
            raise ValueError(f"two options are {self.answer!r}")
        return self


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row whose images are names of files, in the corpus or in the cache."""

    id: str
    where: str
    texts: dict[str, str]
    image: str
    gt_images: list[str]
    retrieved: list[str]


def load_mrag_bench(
    rows: Path | str,
    corpus: Path | str | None = None,
    *,
    cache_dir: Path | str = STORE,
    name: str = "mrag-bench",
    problems: Problems = RAISE,
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
    files = corpus_images(corpus) if corpus else []
    shards = find_shards(rows, ("*.parquet", "data/*.parquet"), _SHARDS, problems)
    cache = project_path(cache_dir) / files_version([*shards, *files], "MRAG-Bench")
    matched, copies = match_rows(shards, files, cache, problems)
    rows_by_id = sorted(matched, key=lambda row: (len(row.id), row.id))  # ids are numbers
    paths = {path.name: path for path in files}
    documents = dict.fromkeys(name for name in paths if name not in copies)
    for row in rows_by_id:
        documents |= dict.fromkeys(row.gt_images + row.retrieved)

    def image(name: str) -> ImageFile:
        return ImageFile(paths.get(name, cache / name))

    groups = connected_groups({row.id: row.gt_images for row in rows_by_id})
    own = [row for row in rows_by_id if row.image in documents]
    asked = [[sorted(row.texts.items()), row.gt_images, row.retrieved] for row in rows_by_id]
    found = {}
    for each in documents:
        doc_id = doc_id_from_filename(each)
        found[doc_id] = Document(doc_id=doc_id, image=image(each), metadata={"file": each})
    gold = {row.id: map(doc_id_from_filename, row.gt_images) for row in rows_by_id}
    return Benchmark(
        name=name,
        fingerprint=hash_parts([[asked, sorted(documents)]]),
        queries={row.id: _query(row, image(row.image), groups[row.id]) for row in rows_by_id},
        corpus=found,
        qrels={query_id: dict.fromkeys(doc_ids, 1) for query_id, doc_ids in gold.items()},
        left_out={row.id: frozenset({doc_id_from_filename(row.image)}) for row in own},
        groups_are="sets of questions that share pictures",
    )


def corpus_images(corpus: Path | str) -> list[Path]:
    """List the images in `corpus`, or else in "image_corpus" in it.

    Raises `VragError` if there are none.
    """
    folder = Path(corpus).expanduser()
    for place in (folder, folder / CORPUS):
        if place.is_dir() and (files := list_images(place)):
            return files
    what = "MRAG-Bench's image_corpus (`vrag data fetch mrag-bench`)"
    raise VragError(f"{folder}: found no images; expected {what}, or no corpus.")


def doc_id_from_filename(name: str) -> str:
    """Percent-encode a file name, including its spaces and slashes, as a document id."""
    return quote(name, safe="")


def _query(row: MatchedRow, image: LazyImage, group: str) -> Query:
    texts = row.texts
    return Query(
        query_id=row.id,
        text=texts["question"],
        image=image,
        answers=(texts[texts["answer_choice"]],),
        choices=tuple(texts[letter] for letter in "ABCD"),
        group=group,
        metadata={
            "where": row.where,
            "scenario": SCENARIO_OF_LABEL[texts["scenario"].lower()],
            "label": texts["scenario"],
            "aspect": texts["aspect"],
            "letter": texts["answer_choice"],
            "retrieved": [doc_id_from_filename(each) for each in row.retrieved],
            "image_type": texts["image_type"],
            "source": texts["source"],
            "excluded": "query_image",
        },
    )


def match_rows(
    shards: Sequence[Path], corpus: Sequence[Path], cache: Path, problems: Problems
) -> tuple[list[MatchedRow], list[str]]:
    """Match the images of all rows to the files of the corpus; without any, all are written.

    Returns the rows, and the files of the corpus with the bytes of an earlier one. Images that are
    in no file of the corpus are written to the folder `cache`; the result is cached there until a
    file changes. Problems are unusable rows, duplicate ids, damaged images and shards, and images
    that are odd.
    """
    read = lambda: _match(shards, corpus, cache, problems)  # noqa: E731
    (_, copies), *rows = cached_rows([*shards, *corpus], cache, "MRAG-Bench", read, problems)
    matched = []
    for _, where, texts, names in rows:
        images = (names["image"][0], names["gt_images"], names["retrieved_images"])
        matched.append(MatchedRow(texts["id"], where, texts, *images))
    return matched, copies


def _match(
    shards: Sequence[Path], corpus: Sequence[Path], cache: Path, problems: Problems
) -> list[object]:
    """([], copies in the corpus), then (files in the cache, fields of a row) for each row."""
    images = _Images(corpus, cache)
    columns = [name for name, field in MragRow.model_fields.items() if field.is_required()]
    rows: list[object] = [[[], images.copies]]
    seen: dict[str, str] = {}
    for shard in shards:
        for location, values in read_shard(shard, columns, "MRAG-Bench", problems):
            row = validate(MragRow, values, location, problems)
            if not row or not problems.is_new(f"id {row.id!r}", location, seen):
                continue
            where = f"{location} (id {row.id})"
            if len({*row.gt_images}) < len(row.gt_images):
                problems.add(Kind.ODD, location, "one image occurs twice", "gt_images")
            if names := _image_names(row, location, images, problems):
                cached = sorted(images.written.intersection(chain(*names.values())))
                rows.append([cached, where, row.texts, names])
                for column, files in names.items() if corpus else ():
                    if lost := len(images.written.intersection(files)):
                        words = f"{lost} images are not in the corpus"
                        problems.add(Kind.ODD, where, words, column)
    if corpus:
        logger.info(f"MRAG-Bench: {len(images.written):,} images of rows are not in the corpus")
    return rows


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


class _Images:
    """The images of rows, each matched once. Files of the corpus are hashed only where their size
    is that of a row's image, in bytes or in pixels.
    """

    def __init__(self, corpus: Sequence[Path], cache: Path) -> None:
        self.copies: list[str] = []
        self.written: set[str] = set()
        """Files in the cache."""
        self._cache = cache
        self._names: dict[str, str] = {}  # hash of bytes or pixels → file
        self._files = corpus
        self._of_bytes: dict[int, list[Path]] = defaultdict(list)  # size in bytes → files
        for path in corpus:
            self._of_bytes[path.stat().st_size].append(path)

    def name(self, data: bytes, where: str) -> str:
        """Return the file of these bytes, in the corpus or else in the cache. Raises `VragError`,
        beginning with `where`, if they cannot be decoded.
        """
        for path in self._of_bytes.pop(len(data), ()):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if self._names.setdefault(digest, path.name) != path.name:
                self.copies.append(path.name)
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._names:
            self._names[digest] = self._by_pixels(data, digest, where)
        return self._names[digest]

    def _by_pixels(self, data: bytes, digest: str, where: str) -> str:
        """The first file with the same pixels, in the corpus or else in the cache."""
        image = decode(data, where)
        for path in self._of_pixels.pop(frozenset(image.size), ()):
            with suppress(VragError):  # a damaged file matches none
                self._names.setdefault(pixel_hash(ImageFile(path).open()), path.name)
        pixels = pixel_hash(image)
        if pixels not in self._names:
            with open_image(data, where) as header:
                kind = (header.format or "png").lower().replace("jpeg", "jpg").replace("mpo", "jpg")
            name = self._names[pixels] = f"row-{digest[:16]}.{kind}"
            self.written.add(name)
            write_file(self._cache / name, data)
        return self._names[pixels]

    @cached_property
    def _of_pixels(self) -> dict[frozenset[int], list[Path]]:
        """Width and height, which EXIF may exchange → files of the corpus."""
        found: dict[frozenset[int], list[Path]] = defaultdict(list)
        for path in progress(self._files, "reading image sizes", len(self._files), "images"):
            with suppress(VragError), open_image(path, path.name) as header:
                found[frozenset(header.size)].append(path)
        return found
