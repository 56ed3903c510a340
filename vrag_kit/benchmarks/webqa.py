"""Read WebQA (Chang et al., CVPR 2022), whose questions are answered by images with
captions, from the files that its authors publish.

    WebQA_train_val.json    {Guid: {"Q": "\\"question\\"", "A": ["\\"answer\\""], "topic": …, "split": "train" or "val", "Qcate": …, "Guid": …,
                                    "img_posFacts": [{"image_id": 30123456, "caption":
                                    …, "title": …, "url": …, "imgUrl": …}],
                                    "img_negFacts": [the same],
                                    "txt_posFacts": […], "txt_negFacts": […]}}
    imgs.tsv                one line an image: image_id, tab, the picture's file as base64; 389,750 lines, about 51 GB
    imgs.lineidx            the byte at which each line of imgs.tsv begins, one number a line

An image is in the line of its id modulo 10,000,000, counted from 0, and the line begins
with the same id. These names, the quotes around questions and answers, and the rule of
the line were read in the authors' own notebook and in several independent programs that
read the files; the files themselves were not at hand.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Evidence, Query

LINES = 10_000_000
"""An image's id modulo this is its line."""
_KEYS = {"Q": str, "A": list, "img_posFacts": list, "img_negFacts": list}
_FETCH = "Fetch all parts again and unpack them by `7z x imgs.7z.001`."


@dataclass(frozen=True, slots=True)
class TsvImage:
    """A picture in a line of imgs.tsv; implements `LazyImage`."""

    path: Path
    image_id: int
    offset: int  # of the line's first byte

    @property
    def where(self) -> str:
        """The file, the image and the byte where its line begins."""
        return f"{self.path}, image {self.image_id} at byte {self.offset:,}"

    @property
    def stamp(self) -> str:
        """Size and modification time of the whole file, and the byte where the line
        begins: in a replaced file every picture gets a new stamp.
        """
        try:
            stat = self.path.stat()
        except OSError as error:
            raise VragError(f"{self.where}: cannot be read ({error.strerror}). {_FETCH}") from error
        return f"{stat.st_size}-{stat.st_mtime_ns}-{self.offset}"

    def data(self) -> bytes:
        """The picture's file; reads one line.

        Raises `VragError` when the line is another image's or not base64.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                found, _, encoded = file.readline().partition(b"\t")
        except OSError as error:
            raise VragError(f"{self.where}: cannot be read ({error.strerror}). {_FETCH}") from error
        if not found.strip().isdigit() or int(found) != self.image_id:
            raise VragError(
                f"{self.where}: the line begins with {found[:20]!r}, expected the image's id and a"
                " tab. This imgs.lineidx belongs to another imgs.tsv, or one of them is"
                f" incomplete. {_FETCH}"
            )
        try:
            return base64.b64decode(encoded.strip(), validate=True)
        except binascii.Error as error:
            raise VragError(
                f"{self.where}: not base64 ({error}; {len(encoded):,} bytes), expected an encoded"
                f" picture after the tab. {_FETCH}"
            ) from error

    def open(self) -> Image.Image:
        """The decoded picture: RGB, EXIF orientation applied."""
        return decode(self.data(), self.where)


def load_webqa(
    annotations: Path | str, images: Path | str, *, split: str = "val", name: str = "webqa"
) -> Benchmark:
    """The questions of a split that images answer, and all images named by them, each
    with its caption as text.

    `images` is imgs.tsv, with imgs.lineidx beside it; pictures are read one by one when
    they are used. Queries are those with at least one positive image (Appendix A of the
    Visual-RAG paper: "queries having images as knowledge source"); each is searched in
    the whole corpus: every positive and negative image of these queries. The label is 1
    for a positive image, 0 for a negative one. The text is the caption, or the title
    where there is no caption; an image named twice keeps its first. A query's group is
    its topic, because questions on one topic are asked about the same pictures; its
    Guid where there is no topic. Raises `VragError` for a file that is missing or not
    as described above, and for a split without such questions.
    """
    annotations, images = Path(annotations), Path(images)
    rows = _rows(annotations, split)
    offsets, size = _offsets(images)
    queries: dict[str, Query] = {}
    corpus: dict[str, Evidence] = {}
    qrels: dict[str, Mapping[str, int]] = {}
    for guid, row in rows.items():
        labels: dict[str, int] = {}
        for key, label in (("img_posFacts", 1), ("img_negFacts", 0)):
            for number, fact in enumerate(row[key], start=1):
                where = f"{annotations}: question {guid!r}, {key} number {number}"
                image_id, caption = _fact(fact, where)
                labels.setdefault(str(image_id), label)
                if str(image_id) not in corpus:
                    corpus[str(image_id)] = Evidence(
                        doc_id=str(image_id),
                        image=_image(images, image_id, offsets, size, where),
                        text=caption,
                    )
        topic = str(row.get("topic") or "").strip()
        queries[guid] = Query(
            query_id=guid,
            text=_unquoted(row["Q"]),
            answers=tuple(map(_unquoted, row["A"])),
            entity=topic,
            group=topic or guid,
            metadata={
                "where": f"{annotations}: question {guid!r}",
                "category": row.get("Qcate", ""),
            },
        )
        qrels[guid] = labels
    digest = hashlib.sha256(
        json.dumps(
            [
                [guid, query.text, query.answers, query.group, sorted(qrels[guid].items())]
                for guid, query in queries.items()
            ]
        ).encode()
    )
    digest.update(
        json.dumps([[doc_id, document.text] for doc_id, document in corpus.items()]).encode()
    )
    return Benchmark(
        name=name, fingerprint=digest.hexdigest(), queries=queries, corpus=corpus, qrels=qrels
    )


def captions_only(benchmark: Benchmark) -> Benchmark:
    """The same questions over the texts of the documents, without their images: what a
    text-to-caption search is run on.

    Raises `VragError` for a document without text.
    """
    if mute := next(
        (
            doc_id
            for doc_id, document in benchmark.corpus.items()
            if not (document.text or "").strip()
        ),
        None,
    ):
        raise VragError(
            f"{benchmark.name}: document {mute!r} has no text, so it cannot be found by its"
            " caption. Load a benchmark with captions, as by `load_webqa`."
        )
    fingerprint = hashlib.sha256(f"{benchmark.fingerprint} captions only".encode()).hexdigest()
    return replace(
        benchmark,
        fingerprint=fingerprint,
        corpus={
            doc_id: replace(document, image=None) for doc_id, document in benchmark.corpus.items()
        },
    )


def _rows(path: Path, split: str) -> dict[str, dict[str, Any]]:
    """Guid → row of the questions of `split` that have positive images, checked."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise VragError(
            f"{path}: no such annotation file. Give the path of WebQA_train_val.json."
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise VragError(
            f"{path}: not JSON ({error}); expected one object with a question for each Guid. Fetch"
            " WebQA_train_val.json again."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(row, dict) for row in content.values()):
        raise VragError(
            f"{path}: found a JSON {type(content).__name__}, expected one object with an object for"
            " each Guid. Is this WebQA_train_val.json?"
        )
    for guid, row in content.items():
        if row.get("split") == split:
            _check(guid, row, f"{path}: question {guid!r}")
    rows = {
        guid: row
        for guid, row in content.items()
        if row.get("split") == split and row["img_posFacts"]
    }
    if not rows:
        found = (
            ", ".join(
                f"{name!r} ({count:,})"
                for name, count in Counter(
                    str(row.get("split")) for row in content.values()
                ).items()
            )
            or "none"
        )
        raise VragError(
            f"{path}: no question of split {split!r} has an image in img_posFacts; the splits of"
            f" the file are {found}."
        )
    return rows


def _check(guid: str, row: Mapping[str, Any], where: str) -> None:
    if re.search(r"\s", guid) or not guid:
        raise VragError(
            f"{where}: the Guid is empty or contains white space, which TREC files cannot hold."
            " Rename it."
        )
    for key, kind in _KEYS.items():
        if key not in row:
            hint = (
                " WebQA_test.json has no labels; use WebQA_train_val.json."
                if "img_Facts" in row
                else ""
            )
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row))}, expected"
                f" {', '.join(map(repr, _KEYS))}.{hint}"
            )
        if not isinstance(row[key], kind):
            raise VragError(
                f"{where}: {key!r} is {_short(row[key])}, expected a"
                f" {'text' if kind is str else 'list'}."
            )
    if not _unquoted(row["Q"]) or not all(isinstance(answer, str) for answer in row["A"]):
        raise VragError(
            f"{where}: 'Q' is {_short(row['Q'])} and 'A' is {_short(row['A'])}, expected a question"
            " and a list of texts."
        )


def _fact(fact: Any, where: str) -> tuple[int, str]:
    """(image_id, caption) of an entry of img_posFacts or img_negFacts."""
    image_id = fact.get("image_id") if isinstance(fact, dict) else None
    if isinstance(image_id, bool) or not re.fullmatch(r"\d+", str(image_id), re.ASCII):
        raise VragError(
            f"{where}: 'image_id' is {_short(image_id)}, expected a whole number such as 30000007."
        )
    caption = str(fact.get("caption") or "").strip() or str(fact.get("title") or "").strip()
    if not caption:
        raise VragError(
            f"{where}: image {image_id} has neither 'caption' nor 'title', expected a text in one"
            " of them. Fetch WebQA_train_val.json again."
        )
    return int(image_id), caption


def _offsets(images: Path) -> tuple[list[int], int]:
    """Where each line of imgs.tsv begins, and its size in bytes."""
    index = images.with_suffix(".lineidx")
    try:
        size, lines = (
            images.stat().st_size,
            index.read_text(encoding="ascii", errors="replace").splitlines(),
        )
    except OSError as error:
        raise VragError(
            f"{error.filename}: cannot be read ({error.strerror}); expected imgs.tsv with"
            f" imgs.lineidx beside it. {_FETCH}"
        ) from error
    wrong = next(
        (number for number, line in enumerate(lines, start=1) if not line.strip().isdigit()), None
    )
    if wrong is not None:
        raise VragError(
            f"{index} line {wrong}: found {_short(lines[wrong - 1])}, expected the byte at which a"
            f" line of {images.name} begins. {_FETCH}"
        )
    return [int(line) for line in lines], size


def _image(images: Path, image_id: int, offsets: list[int], size: int, where: str) -> TsvImage:
    line = image_id % LINES
    if line >= len(offsets):
        raise VragError(
            f"{where}: image {image_id} would be in line {line:,}, counted from 0, but"
            f" {images.with_suffix('.lineidx')} has {len(offsets):,} lines. {_FETCH}"
        )
    if offsets[line] >= size:
        raise VragError(
            f"{where}: image {image_id} begins at byte {offsets[line]:,}, but {images} ends at"
            f" {size:,}: it is incomplete. {_FETCH}"
        )
    return TsvImage(images, image_id, offsets[line])


def _unquoted(text: str) -> str:
    """The text without the quotes that WebQA puts around questions and answers."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
