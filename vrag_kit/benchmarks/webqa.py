"""WebQA (Chang et al., CVPR 2022): questions that images with captions answer.

Read from the files that its authors publish. WebQA_train_val.json is one object,

    {Guid: {"Q": "\\"question\\"", "A": ["\\"answer\\""], "topic": …, "Qcate": …,
            "split": "train" or "val", "Guid": …,
            "img_posFacts": [{"image_id": 30123456, "caption": …, "title": …,
                              "url": …, "imgUrl": …}],
            "img_negFacts": [the same],
            "txt_posFacts": […], "txt_negFacts": […]}}

imgs.tsv has the pictures (389,750 lines, about 51 GB), as `webqa_images` tells. These
names, the quotes around questions and answers, and the rule of the line were read in
the authors' own notebook and in several independent programs that read the files; the
files themselves were not at hand.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.webqa_images import TsvFile
from vrag_kit.errors import VragError, short
from vrag_kit.types import Benchmark, Evidence, Query

_KEYS = {"Q": str, "A": list, "img_posFacts": list, "img_negFacts": list}
_LABELS = {"img_posFacts": 1, "img_negFacts": 0}

Row = dict[str, Any]  # as JSON gives it; `_check` looks at the types of _KEYS


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
    annotations = Path(annotations)
    rows = _rows(annotations, split)
    pictures = TsvFile(Path(images))
    queries: dict[str, Query] = {}
    corpus: dict[str, Evidence] = {}
    qrels: dict[str, Mapping[str, int]] = {}
    for guid, row in rows.items():
        where = f"{annotations}: question {guid!r}"
        labels: dict[str, int] = {}
        for fact, label, place in _facts(row, where):
            image_id, caption = _read_fact(fact, place)
            doc_id = str(image_id)
            labels.setdefault(doc_id, label)
            if doc_id not in corpus:
                image = pictures.image(image_id, place)
                corpus[doc_id] = Evidence(doc_id=doc_id, image=image, text=caption)
        queries[guid] = _query(guid, row, where)
        qrels[guid] = labels
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries, qrels, corpus),
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        groups_are="topics",
    )


def captions_only(benchmark: Benchmark) -> Benchmark:
    """The same questions over the texts of the documents, without their images: what a
    text-to-caption search is run on.

    Raises `VragError` for a document without text.
    """
    for doc_id, document in benchmark.corpus.items():
        if not (document.text or "").strip():
            raise VragError(
                f"{benchmark.name}: document {doc_id!r} has no text, so it cannot be found by its"
                " caption. Load a benchmark with captions, as by `load_webqa`."
            )
    fingerprint = hashlib.sha256(f"{benchmark.fingerprint} captions only".encode()).hexdigest()
    corpus = {
        doc_id: replace(document, image=None) for doc_id, document in benchmark.corpus.items()
    }
    return replace(benchmark, fingerprint=fingerprint, corpus=corpus)


def _rows(path: Path, split: str) -> dict[str, Row]:
    """Guid → row of the questions of `split` that have positive images, checked."""
    content = _read(path)
    found = {guid: row for guid, row in content.items() if row.get("split") == split}
    for guid, row in found.items():
        _check(guid, row, f"{path}: question {guid!r}")
    rows = {guid: row for guid, row in found.items() if row["img_posFacts"]}
    if not rows:
        counts = Counter(str(row.get("split")) for row in content.values())
        splits = ", ".join(f"{name!r} ({count:,})" for name, count in counts.items())
        raise VragError(
            f"{path}: no question of split {split!r} has an image in img_posFacts; the splits of"
            f" the file are {splits or 'none'}."
        )
    return rows


def _read(path: Path) -> dict[str, Row]:
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
    return content


def _check(guid: str, row: Row, where: str) -> None:
    if re.search(r"\s", guid) or not guid:
        raise VragError(
            f"{where}: the Guid is empty or contains white space, which TREC files cannot hold."
            " Rename it."
        )
    for key, kind in _KEYS.items():
        if key not in row:
            is_test = "img_Facts" in row
            hint = " WebQA_test.json has no labels; use WebQA_train_val.json." if is_test else ""
            raise VragError(
                f"{where}: no key {key!r}; found {', '.join(map(repr, row))}, expected"
                f" {', '.join(map(repr, _KEYS))}.{hint}"
            )
        if not isinstance(row[key], kind):
            expected = "text" if kind is str else "list"
            raise VragError(f"{where}: {key!r} is {short(row[key])}, expected a {expected}.")
    if not _unquoted(row["Q"]) or not all(isinstance(answer, str) for answer in row["A"]):
        raise VragError(
            f"{where}: 'Q' is {short(row['Q'])} and 'A' is {short(row['A'])}, expected a question"
            " and a list of texts."
        )


def _facts(row: Row, where: str) -> Iterator[tuple[object, int, str]]:
    """(entry, label, where) of the images of a question, positive ones first."""
    for key, label in _LABELS.items():
        for number, fact in enumerate(row[key], start=1):
            yield fact, label, f"{where}, {key} number {number}"


def _read_fact(fact: object, where: str) -> tuple[int, str]:
    """(image_id, caption) of an entry of img_posFacts or img_negFacts."""
    entry = fact if isinstance(fact, dict) else {}
    image_id = entry.get("image_id")
    if isinstance(image_id, bool) or not re.fullmatch(r"\d+", str(image_id), re.ASCII):
        raise VragError(
            f"{where}: 'image_id' is {short(image_id)}, expected a whole number such as 30000007."
        )
    texts = [str(entry.get(key) or "").strip() for key in ("caption", "title")]
    caption = next(filter(None, texts), "")
    if not caption:
        raise VragError(
            f"{where}: image {image_id} has neither 'caption' nor 'title', expected a text in one"
            " of them. Fetch WebQA_train_val.json again."
        )
    return int(str(image_id)), caption


def _query(guid: str, row: Row, where: str) -> Query:
    topic = str(row.get("topic") or "").strip()
    return Query(
        query_id=guid,
        text=_unquoted(row["Q"]),
        answers=tuple(map(_unquoted, row["A"])),
        entity=topic,
        group=topic or guid,
        metadata={"where": where, "category": row.get("Qcate", "")},
    )


def _fingerprint(
    queries: Mapping[str, Query],
    qrels: Mapping[str, Mapping[str, int]],
    corpus: Mapping[str, Evidence],
) -> str:
    asked = [
        [guid, query.text, query.answers, query.group, sorted(qrels[guid].items())]
        for guid, query in queries.items()
    ]
    captions = [[doc_id, document.text] for doc_id, document in corpus.items()]
    return hashlib.sha256((json.dumps(asked) + json.dumps(captions)).encode()).hexdigest()


def _unquoted(text: str) -> str:
    """The text without the quotes that WebQA puts around questions and answers."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text
