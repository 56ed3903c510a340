"""WebQA (Chang et al., CVPR 2022): questions answered by images with captions or by
snippets of text.

It is read from the authors' published files. WebQA_train_val.json is one object,

    {Guid: {"Q": "\\"question\\"", "A": ["\\"answer\\""], "topic": …, "Qcate": …,
            "split": "train" or "val", "Guid": …,
            "img_posFacts": [{"image_id": 30123456, "caption": …, "title": …,
                              "url": …, "imgUrl": …}],
            "img_negFacts": [the same],
            "txt_posFacts": [{"snippet_id": …, "fact": …, "title": …, "url": …}],
            "txt_negFacts": [the same]}}

imgs.tsv has the images (389,750 lines, about 51 GB), each in the line of its id modulo
10,000,000, counted from 0: the same id, a tab, the image file as base64. They are read one by one
when they are used. imgs.lineidx beside it has the byte at which each line begins, one a line.

These names, the quotes around questions and answers, and the rule of the line were read in
the authors' own notebook and in several independent programs that read the files; the
files themselves were not at hand.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

from PIL import Image
from pydantic import BeforeValidator, Field, Strict, model_validator

from vrag_kit.benchmarks.images import ImageFile, decode
from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, Text, TrecId, validate
from vrag_kit.benchmarks.transforms import encode_id, hash_parts
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, DocId, Document, Query

ANNOTATIONS = "WebQA_train_val.json"
IMAGES = "imgs.tsv"
LINES = 10_000_000
"""An image's line is its id modulo this number."""
_FETCH = "Fetch all parts again and unpack them by `7z x imgs.7z.001`."
QUESTIONS = {"image": ("img",), "text": ("txt",), "all": ("img", "txt")}
"""Value of `questions` → the kinds of evidence that may answer them."""
_MODALITY = {(True, False): "image", (False, True): "text", (True, True): "both"}


def _unquoted(text: object) -> object:
    """A text without the quotes that WebQA puts around it."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


Optional = Annotated[str, BeforeValidator(lambda value: str(value or "").strip())]
"""A text without surrounding white space; "" for null."""


class ImageFact(Row):
    """An image of an evidence list."""

    image_id: Annotated[int, Strict(False), Field(ge=0)]
    caption: Optional = ""
    title: Optional = ""

    @model_validator(mode="after")
    def _has_a_text(self) -> ImageFact:
        if not (self.caption or self.title):
            name = f"image {self.image_id}"
            raise ValueError(f"{name} has neither 'caption' nor 'title'; expected one of them.")
        return self


class Snippet(Row):
    """A text of an evidence list."""

    fact: Text
    snippet_id: Optional = ""
    title: Optional = ""
    url: Optional = ""


class WebQARow(Row):
    """A question, its answers, and its evidence lists, whose entries are unchecked."""

    guid: TrecId
    Q: Annotated[Text, BeforeValidator(_unquoted)]
    A: list[Annotated[str, BeforeValidator(_unquoted)]]
    topic: Optional = ""
    Qcate: Any = ""
    img_posFacts: list[Any]
    img_negFacts: list[Any]
    txt_posFacts: list[Any] | None = None
    txt_negFacts: list[Any] | None = None


F = TypeVar("F", ImageFact, Snippet)


@dataclass(frozen=True, slots=True)
class TsvImage:
    """An image in a line of imgs.tsv; implements `LazyImage`."""

    path: Path
    image_id: int
    offset: int  # of the line's first byte

    @property
    def where(self) -> str:
        """A URI: the file, and as its fragment the image id and the byte offset of its line."""
        return f"{self.path}#image={self.image_id}&byte={self.offset}"

    @property
    def stamp(self) -> str:
        """Size and modification time of the whole file, and the offset of the line: in a replaced
        file every image gets a new stamp.
        """
        return f"{ImageFile(self.path).stamp}-{self.offset}"

    def data(self) -> bytes:
        """Return the bytes of the image file; reads one line.

        Raises `VragError` if the line belongs to another image.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                line = file.readline()
            found, encoded = line.partition(b"\t")[::2]
            if not found.strip().isdigit() or int(found) != self.image_id:
                words = f"the line begins with {found[:20]!r}, expected the image's id and a tab"
                raise VragError(f"{self.where}: {words}; imgs.lineidx is of another file. {_FETCH}")
            return base64.b64decode(encoded)
        except (OSError, ValueError) as error:
            raise VragError(f"{self.where}: not base64, or no file ({error}). {_FETCH}") from error

    def open(self) -> Image.Image:
        """Return the decoded image: RGB, with EXIF orientation applied."""
        return decode(self.data(), self.where)


_URI = re.compile(r"(.+)#image=(\d+)&byte=(\d+)")


def tsv_image_from_uri(uri: str) -> TsvImage | None:
    """Return the image with this `where`, or None for another kind of image."""
    found = _URI.fullmatch(uri)
    return TsvImage(Path(found[1]), int(found[2]), int(found[3])) if found else None


class TsvFile:
    """The file imgs.tsv with its index of line offsets."""

    def __init__(self, path: Path) -> None:
        """Read the index. Raises `VragError` if it or the file is missing, or if it contains
        anything but numbers.
        """
        self.path = path
        self.index = path.with_suffix(".lineidx")
        try:
            self._size = path.stat().st_size
            self._offsets = list(map(int, self.index.read_text(encoding="utf-8").split()))
        except (OSError, ValueError) as error:
            expected = "expected imgs.tsv, and beside it imgs.lineidx, a number a line"
            raise VragError(f"{self.index}: {error}; {expected}. {_FETCH}") from error

    def image(self, image_id: int, where: str, problems: Problems) -> TsvImage | None:
        """Return the image with this id; an image beyond the end of the index or the file is a
        problem at `where`.
        """
        line, lines = image_id % LINES, len(self._offsets)
        offset = self._offsets[line] if line < lines else self._size
        if offset < self._size:
            return TsvImage(self.path, image_id, offset)
        found = f"image {image_id} begins in line {line:,} at byte {offset:,}"
        ends = f"{self.path} ends at {self._size:,}, and {self.index.name} has {lines:,} lines"
        problems.add(Kind.MISSING, where, f"{found}, but {ends}. {_FETCH}", str(image_id))
        return None


def load_webqa(
    annotations: Path | str,
    images: Path | str | None = None,
    *,
    split: str | None = "val",
    name: str = "webqa",
    questions: str = "image",
    problems: Problems = RAISE,
) -> Benchmark:
    """Load a split's questions that images answer, over all images that they name. The text of
    each image is its caption.

    `images` is imgs.tsv, with imgs.lineidx in the same folder; images are read one by one
    when they are used. Queries are those with at least one positive image (Appendix A of the
    Visual-RAG paper: "queries having images as knowledge source"); each is searched in
    the whole corpus: every positive and negative image of these queries. The label is 1
    for a positive image, 0 for a negative one. The text is the caption, or the title
    where there is no caption; an image named twice keeps its first. A query's group is
    its topic, because questions on one topic are about the same images; its Guid
    if there is no topic. The metadata hold `category`, `hops` (positive
    documents), `required_modality`
    ("image", "text" or "both"), `reference` (the first answer, a
    sentence), `gold_claims` (()) and `where`.

    `questions` "text" selects questions with a positive snippet instead, "all" selects
    both; then snippets are documents too, with `title` and `url` in their metadata, and
    so are the images of all these questions. `images` may be None for text questions,
    whose documents are then snippets alone.

    Problems are unusable rows and evidence, and images beyond the end of imgs.tsv; without
    `problems` the first raises `VragError`. It is raised too for a missing file, a file of
    another form, and a split without such questions. `split` None selects all questions. Where
    problems are collected, `images` may be None for all questions.
    """
    if images is None and questions != "text" and not problems.collect:
        raise VragError(f"no images for {questions!r} questions; name imgs.tsv.")
    rows = _read_rows(Path(annotations), split, questions, problems)
    file = None if images is None else TsvFile(Path(images))
    queries: dict[str, Query] = {}
    corpus: dict[DocId, Document] = {}
    qrels: dict[str, dict[DocId, int]] = {}
    for where, row in rows:
        queries[row.guid] = _query(row, where)
        labels = qrels[row.guid] = {}
        images_of = _images(row, where, file, problems) if file or questions != "text" else ()
        texts_of = _snippets(row, where, corpus, problems) if questions != "image" else ()
        for document, label in chain(images_of, texts_of):
            corpus.setdefault(document.doc_id, document)
            labels.setdefault(document.doc_id, label)
    asked = [
        [key, query.text, query.answers, query.group, sorted(qrels[key].items())]
        for key, query in queries.items()
    ]
    captions = [[doc_id, document.text] for doc_id, document in corpus.items()]
    return Benchmark(
        name=name,
        fingerprint=hash_parts([asked, captions]),
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        groups_are="topics",
    )


def _read_rows(
    path: Path, split: str | None, questions: str, problems: Problems
) -> list[tuple[str, WebQARow]]:
    """(location, row) of the questions of `split` that have such evidence."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        splits = {guid: row.get("split") for guid, row in content.items()}
    except (OSError, ValueError, AttributeError) as error:
        expected = f"{ANNOTATIONS}, one JSON object with an object for each Guid"
        raise VragError(f"{path}: {error}; expected {expected}.") from error
    wanted = [f"{kind}_posFacts" for kind in QUESTIONS[questions]]
    rows = []
    for guid, values in content.items():
        where = f"{path}: question {guid!r}"
        if split not in (None, splits[guid]):
            continue
        row = validate(WebQARow, {**values, "guid": guid}, where, problems)
        if row and any(getattr(row, key) for key in wanted):
            rows.append((where, row))
    if not rows:
        words = f"no question of split {split!r} has an entry in {' or '.join(wanted)}"
        problems.add(Kind.ROW, str(path), f"{words}; found {Counter(splits.values())}")
    return rows


def _entries(
    model: type[F], row: WebQARow, kind: str, where: str, problems: Problems
) -> Iterator[tuple[str, int, int, F]]:
    """(location, label, number in its list, entry), those of positive evidence first."""
    for suffix, label in (("posFacts", 1), ("negFacts", 0)):
        key = f"{kind}_{suffix}"
        for number, entry in enumerate(getattr(row, key) or ()):
            location = f"{where}, {key} number {number + 1}"
            if fact := validate(model, entry, location, problems):
                yield location, label, number, fact


def _images(
    row: WebQARow, where: str, file: TsvFile | None, problems: Problems
) -> Iterator[tuple[Document, int]]:
    """The images of a question with their labels."""
    for location, label, _, fact in _entries(ImageFact, row, "img", where, problems):
        image = file.image(fact.image_id, location, problems) if file else None
        text = fact.caption or fact.title
        yield Document(doc_id=str(fact.image_id), image=image, text=text), label


def _snippets(
    row: WebQARow, where: str, corpus: Mapping[DocId, Document], problems: Problems
) -> Iterator[tuple[Document, int]]:
    """The snippets of a question likewise. The id is `snippet_id`, or else, and if another text
    has it, "<Guid>_txt_pos_<number>" ("…_neg_…").
    """
    for _, label, number, fact in _entries(Snippet, row, "txt", where, problems):
        sign = "pos" if label else "neg"
        made = f"{row.guid}_txt_{sign}_{number}"
        doc_id = encode_id(fact.snippet_id) or made
        if doc_id in corpus and corpus[doc_id].text != fact.fact:
            doc_id = made
        metadata = {"title": fact.title, "url": fact.url}
        yield Document(doc_id=doc_id, text=fact.fact, metadata=metadata), label


def _query(row: WebQARow, where: str) -> Query:
    images, texts = len(row.img_posFacts), len(row.txt_posFacts or ())
    metadata = {
        "where": where,
        "category": row.Qcate,
        "hops": images + texts,
        "required_modality": _MODALITY[bool(images), bool(texts)],
        "reference": row.A[0] if row.A else "",
        "gold_claims": (),
    }
    return Query(
        query_id=row.guid,
        text=row.Q,
        answers=tuple(row.A),
        entity=row.topic,
        group=row.topic or row.guid,
        metadata=metadata,
    )
