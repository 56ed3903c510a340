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

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vrag_kit.benchmarks.webqa_facts import facts, read_image, read_snippet
from vrag_kit.benchmarks.webqa_images import TsvFile
from vrag_kit.benchmarks.webqa_rows import WebQARow, check_row, read_annotations, strip_quotes
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Document, Query

QUESTIONS = {"image": ("img",), "text": ("txt",), "all": ("img", "txt")}
"""Value of `questions` → the kinds of evidence that may answer them."""
_NEEDS = {("img",): "image", ("txt",): "text", ("img", "txt"): "both"}


def load_webqa(
    annotations: Path | str,
    images: Path | str | None,
    *,
    split: str = "val",
    name: str = "webqa",
    questions: str = "image",
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

    Raises `VragError` for a missing file, a file of another form, and a split without
    such questions.
    """
    _check_sort(questions, images)
    rows = _rows(Path(annotations), split, questions)
    where = {guid: f"{annotations}: question {guid!r}" for guid in rows}
    queries = {guid: _query(guid, row, where[guid]) for guid, row in rows.items()}
    pictures = None if images is None else TsvFile(Path(images))
    corpus: dict[str, Document] = {}
    qrels: dict[str, dict[str, int]] = {guid: {} for guid in rows}
    for guid, row in rows.items():
        if pictures:
            _add_images(row, where[guid], pictures, corpus, qrels[guid])
        if questions != "image":
            _add_snippets(row, guid, where[guid], corpus, qrels[guid])
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries, qrels, corpus),
        queries=queries,
        corpus=corpus,
        qrels=qrels,
        groups_are="topics",
    )


def captions_only(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with text-only documents, for text-to-caption search.

    The questions stay the same. Raises `VragError` for a document without text.
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


def _check_sort(questions: str, images: Path | str | None) -> None:
    """Refuse a sort of questions that there is not, or that lacks its images."""
    if questions not in QUESTIONS:
        raise VragError(f"questions is {questions!r}; expected one of {', '.join(QUESTIONS)}.")
    if images is None and questions != "text":
        raise VragError(
            f"no images for {questions!r} questions; name imgs.tsv, or ask text questions."
        )


def _rows(path: Path, split: str, questions: str) -> dict[str, WebQARow]:
    """Guid → row of the questions of `split` that have such evidence, checked."""
    content = read_annotations(path)
    found = {guid: row for guid, row in content.items() if row.get("split") == split}
    has_texts = questions != "image"
    for guid, row in found.items():
        check_row(guid, row, f"{path}: question {guid!r}", texts=has_texts)
    wanted = [f"{kind}_posFacts" for kind in QUESTIONS[questions]]
    rows = {guid: row for guid, row in found.items() if any(row[key] for key in wanted)}
    if not rows:
        counts = Counter(str(row.get("split")) for row in content.values())
        splits = ", ".join(f"{name!r} ({count:,})" for name, count in counts.items())
        lacking = " or ".join(wanted).replace("img_posFacts", "an image in img_posFacts")
        lacking = lacking.replace("txt_posFacts", "a snippet in txt_posFacts")
        raise VragError(
            f"{path}: no question of split {split!r} has {lacking}; the splits of"
            f" the file are {splits or 'none'}."
        )
    return rows


def _add_images(
    row: WebQARow,
    where: str,
    pictures: TsvFile,
    corpus: dict[str, Document],
    labels: dict[str, int],
) -> None:
    """The images of a question, as documents and with their labels."""
    for fact in facts(row, "img", where):
        image_id, caption = read_image(fact)
        doc_id = str(image_id)
        labels.setdefault(doc_id, fact.label)
        if doc_id not in corpus:
            image = pictures.image(image_id, fact.where)
            corpus[doc_id] = Document(doc_id=doc_id, image=image, text=caption)


def _add_snippets(
    row: WebQARow, guid: str, where: str, corpus: dict[str, Document], labels: dict[str, int]
) -> None:
    """The snippets of a question, likewise."""
    for fact in facts(row, "txt", where):
        snippet = read_snippet(fact, guid, corpus)
        labels.setdefault(snippet.doc_id, fact.label)
        corpus.setdefault(snippet.doc_id, snippet)


def _query(guid: str, row: WebQARow, where: str) -> Query:
    topic = str(row.get("topic") or "").strip()
    answers = tuple(map(strip_quotes, row["A"]))
    gold = {kind: len(row.get(f"{kind}_posFacts") or []) for kind in ("img", "txt")}
    told = {
        "where": where,
        "category": row.get("Qcate", ""),
        "hops": sum(gold.values()),
        "required_modality": _NEEDS[tuple(kind for kind, count in gold.items() if count)],
        "reference": answers[0] if answers else "",
        "gold_claims": (),
    }
    return Query(
        query_id=guid,
        text=strip_quotes(row["Q"]),
        answers=answers,
        entity=topic,
        group=topic or guid,
        metadata=told,
    )


def _fingerprint(
    queries: Mapping[str, Query],
    qrels: Mapping[str, Mapping[str, int]],
    corpus: Mapping[str, Document],
) -> str:
    asked = [
        [guid, query.text, query.answers, query.group, sorted(qrels[guid].items())]
        for guid, query in queries.items()
    ]
    captions = [[doc_id, document.text] for doc_id, document in corpus.items()]
    return hashlib.sha256((json.dumps(asked) + json.dumps(captions)).encode()).hexdigest()
