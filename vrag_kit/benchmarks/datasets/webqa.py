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

imgs.tsv has the images (389,750 lines, about 51 GB); see `webqa_images`. These
names, the quotes around questions and answers, and the rule of the line were read in
the authors' own notebook and in several independent programs that read the files; the
files themselves were not at hand.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from vrag_kit.benchmarks.datasets.webqa_images import TsvFile
from vrag_kit.benchmarks.rows import Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.transforms import encode_id, hash_parts
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Benchmark, DocId, Document, Json, Query

ANNOTATIONS = "WebQA_train_val.json"
IMAGES = "imgs.tsv"
QUESTIONS = {"image": ("img",), "text": ("txt",), "all": ("img", "txt")}
"""Value of `questions` → the kinds of evidence that may answer them."""
_MODALITY = {(True, False): "image", (False, True): "text", (True, True): "both"}


def _unquoted(text: object) -> object:
    """A text without the quotes that WebQA puts around it."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _in_run_file(guid: str) -> str:
    if re.search(r"\s", guid):
        raise ValueError("contains white space, which TREC files cannot hold; rename it.")
    return guid


def _image_id(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value), re.ASCII):
        raise ValueError(f"is {short_repr(value)}; expected a whole number such as 30000007.")
    return int(str(value))


Optional = Annotated[str, BeforeValidator(lambda value: str(value or "").strip())]
"""A text without surrounding white space; "" for null."""


class ImageFact(Row):
    """An image of an evidence list."""

    image_id: Annotated[int, BeforeValidator(_image_id)]
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

    guid: Annotated[str, Field(min_length=1), AfterValidator(_in_run_file)]
    Q: Annotated[Text, BeforeValidator(_unquoted)]
    A: list[Annotated[str, BeforeValidator(_unquoted)]]
    topic: Optional = ""
    Qcate: Any = ""
    img_posFacts: list[Any]
    img_negFacts: list[Any]
    txt_posFacts: list[Any] | None = None
    txt_negFacts: list[Any] | None = None


class TextRow(WebQARow):
    """A row whose snippets are documents."""

    txt_posFacts: list[Any]
    txt_negFacts: list[Any]


F = TypeVar("F", ImageFact, Snippet)


def load_webqa(
    annotations: Path | str,
    images: Path | str | None = None,
    *,
    split: str | None = "val",
    name: str = "webqa",
    questions: str = "image",
    problems: Problems | None = None,
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
    problems = problems or Problems()
    if questions not in QUESTIONS:
        raise VragError(f"questions is {questions!r}; expected one of {', '.join(QUESTIONS)}.")
    if images is None and questions != "text" and not problems.collect:
        raise VragError(f"no images for {questions!r} questions; name imgs.tsv.")
    rows = _read_rows(Path(annotations), split, questions, problems)
    queries = {row.guid: _query(row, where) for where, row in rows}
    file = None if images is None else TsvFile(Path(images))
    corpus: dict[DocId, Document] = {}
    qrels: dict[str, dict[DocId, int]] = {row.guid: {} for _, row in rows}
    for where, row in rows:
        documents = []
        if file or questions != "text":
            documents += list(_images(row, where, file, corpus, problems))
        if questions != "image":
            documents += list(_snippets(row, where, corpus, problems))
        for document, label in documents:
            qrels[row.guid].setdefault(document.doc_id, label)
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
    content = _read_annotations(path)
    model = WebQARow if questions == "image" else TextRow
    wanted = [f"{kind}_posFacts" for kind in QUESTIONS[questions]]
    rows = []
    for guid, values in content.items():
        if split is not None and values.get("split") != split:
            continue
        where = f"{path}: question {guid!r}"
        if row := validate(model, {**values, "guid": guid}, where, problems):
            if any(getattr(row, key) for key in wanted):
                rows.append((where, row))
            else:
                problems.add(Kind.ODD, where, "no gold evidence")
    if not rows:
        counts = Counter(str(row.get("split")) for row in content.values())
        splits = ", ".join(f"{name!r} ({count:,})" for name, count in counts.items())
        words = (
            f"no question of split {split!r} has an entry in {' or '.join(wanted)}; the splits of"
            f" the file are {splits or 'none'}."
        )
        problems.add(Kind.ROW, str(path), words)
    return rows


def _read_annotations(path: Path) -> dict[str, Json]:
    """Guid → unchecked row."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VragError(f"{path}: no such annotation file; expected {ANNOTATIONS}.") from error
    except ValueError as error:
        raise VragError(
            f"{path}: not JSON ({error}); expected one object with a question for each Guid. Fetch"
            f" {ANNOTATIONS} again."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(row, dict) for row in content.values()):
        found = f"found a JSON {type(content).__name__}"
        raise VragError(f"{path}: {found}; expected one object with an object for each Guid.")
    return content


def _entries(
    model: type[F], row: WebQARow, kind: str, where: str, problems: Problems
) -> Iterator[tuple[str, int, int, F]]:
    """(location, label, number in its list, entry), those of positive evidence first."""
    for suffix, label in (("posFacts", 1), ("negFacts", 0)):
        key = f"{kind}_{suffix}"
        for number, entry in enumerate(getattr(row, key)):
            location = f"{where}, {key} number {number + 1}"
            fields = entry if isinstance(entry, dict) else {}
            if fact := validate(model, fields, location, problems):
                yield location, label, number, fact


def _images(
    row: WebQARow,
    where: str,
    file: TsvFile | None,
    corpus: dict[DocId, Document],
    problems: Problems,
) -> Iterator[tuple[Document, int]]:
    """The images of a question with their labels; new ones are added to the corpus."""
    for location, label, _, fact in _entries(ImageFact, row, "img", where, problems):
        doc_id = str(fact.image_id)
        if doc_id not in corpus:
            image = file.image(fact.image_id, location, problems) if file else None
            text = fact.caption or fact.title
            corpus[doc_id] = Document(doc_id=doc_id, image=image, text=text)
        yield corpus[doc_id], label


def _snippets(
    row: WebQARow, where: str, corpus: dict[DocId, Document], problems: Problems
) -> Iterator[tuple[Document, int]]:
    """The snippets of a question, likewise. The id is `snippet_id`, or else, and if another text
    has it, "<Guid>_txt_pos_<number>" ("…_neg_…").
    """
    for _, label, number, fact in _entries(Snippet, row, "txt", where, problems):
        sign = "pos" if label else "neg"
        made = f"{row.guid}_txt_{sign}_{number}"
        doc_id = encode_id(fact.snippet_id) or made
        if doc_id in corpus and corpus[doc_id].text != fact.fact:
            doc_id = made
        metadata = {"title": fact.title, "url": fact.url}
        document = Document(doc_id=doc_id, text=fact.fact, metadata=metadata)
        yield corpus.setdefault(doc_id, document), label


def _query(row: WebQARow, where: str) -> Query:
    images, texts = len(row.img_posFacts), len(row.txt_posFacts or [])
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
