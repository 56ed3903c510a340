"""Chart-MRAG: questions answered by charts and sentences, with a gold statement for each
piece of evidence (Yang et al. 2025, arXiv 2502.14864).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from vrag_kit.benchmarks.image_cache import STORE, cache_image, cached_rows
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.rows import RAISE, Kind, Problems, Row, Text, encoded_image, validate
from vrag_kit.benchmarks.sources import (
    find_shards,
    local_folder,
    read_document_texts,
    read_objects,
    read_shard,
)
from vrag_kit.benchmarks.transforms import RowId, encode_id, hash_parts, parse_literal
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Query

SENTENCES = "text_corpus.jsonl"
"""The file of sentences, in the folder of the rows or its parent folder."""
_ROWS = "Chart-MRAG's data-00000-of-00001.arrow"
_COLUMNS = ("id", "query", "gt_answer", "gt_keypoints")
_EVIDENCE = re.compile(r"(chart|paragraph)_(\w+?)(_.*)?", re.DOTALL)
_ROW_ID = re.compile(
    r"(single-point|intra-document|inter-document)-(text-only|chart-only|text-chart|chart-text)\b.*"
)
_HOPS = {"single-point": 1, "intra-document": 2, "inter-document": 2}
_MODALITY = {
    "text-only": "text",
    "chart-only": "image",
    "text-chart": "both",
    "chart-text": "both",
    "paragraph": "text",
    "chart": "image",
    "chart paragraph": "both",
}
"""Modality that an id states, or kinds of evidence → modality."""


def _evidence_id(name: str) -> str:
    if not _EVIDENCE.fullmatch(name):
        expected = "an id such as chart_00058_09 or paragraph_00058_08_02"
        raise ValueError(f"{name!r} is no evidence; expected {expected}.")
    return encode_id(name)


def _keypoints(value: object) -> object:
    """Evidence → list of statements, of an object that may be written as text."""
    points = parse_literal(value) if isinstance(value, str) else value
    if not isinstance(points, dict):
        return value
    return {key: each if isinstance(each, list) else [each] for key, each in points.items()}


class ChartRow(Row):
    """A question of Chart-MRAG, without its images."""

    id: RowId
    query: Text
    gt_answer: Text
    gt_keypoints: Annotated[
        dict[Annotated[str, AfterValidator(_evidence_id)], list[Text]], BeforeValidator(_keypoints)
    ] = Field(description="an object of evidence and statements")
    """Evidence id → its statements."""

    @property
    def evidence(self) -> tuple[DocId, ...]:
        """The distinct evidence ids, in order."""
        return tuple(doc_id for doc_id, statements in self.gt_keypoints.items() if statements)

    @property
    def charts(self) -> tuple[DocId, ...]:
        """The evidence ids that are charts."""
        return tuple(each for each in self.evidence if each.startswith("chart_"))

    @property
    def statements(self) -> list[tuple[DocId, str]]:
        """(evidence id, statement) pairs, in order."""
        keypoints = self.gt_keypoints.items()
        return list(chain.from_iterable(product([doc_id], found) for doc_id, found in keypoints))

    @property
    def id_parts(self) -> tuple[str, str]:
        """(scope, modality) as the id states them; "" for an id of another form."""
        match = _ROW_ID.fullmatch(self.id.lower().replace("_", "-"))
        return (match[1], _MODALITY[match[2]]) if match else ("", "")

    @property
    def modality(self) -> str:
        """The modality of the evidence, "image", "text" or "both"; without any, that of the id."""
        kinds = {each.partition("_")[0] for each in self.evidence}
        return _MODALITY.get(" ".join(sorted(kinds)), self.id_parts[1])


class Sentence(Row):
    """A line of the file of sentences."""

    id: RowId
    text: Text


Question = tuple[str, ChartRow, list[str]]
"""(location, row, names of its images' files in the store)."""


def load_chart_mrag(
    rows: Path | str,
    texts: Path | str,
    *,
    chart_texts: Path | str | None = None,
    name: str = "chart-mrag",
    cache_dir: Path | str = STORE,
    problems: Problems = RAISE,
) -> Benchmark:
    """Load Chart-MRAG over the corpus of its charts and of the sentences in `texts`.

    `rows` is a folder of `save_to_disk`, or a hub name ("ymyang/Chart-MRAG@<revision>");
    `texts` is `text_corpus.jsonl`. The counts are printed.

    Labels are 1 for the evidence in `gt_keypoints`; its statements are `gold_claims` in the
    metadata, which also hold `hops` (1 for a single point, 2 within or between documents,
    None if the id does not state it), `required_modality` ("image", "text" or "both", by
    the kinds of evidence), `reference` (the answer, a sentence, which is also `answers`),
    `scope`, `documents` and `where`. `group` is the first source document.

    The image of a chart comes from a row that names only this chart, else from any row that
    names it; it is written once to `cache_dir` (runs/row_pictures). `text` of a chart comes
    from `chart_texts`, JSON Lines of {"doc_id", "text"}. Questions whose evidence is missing
    are left out and counted; questions without gold evidence are kept.

    Problems are unusable rows and lines, duplicate ids, and missing or damaged files; without
    `problems` the first raises `VragError`. Missing evidence is among them where problems are
    collected.
    """
    folder = local_folder(rows, ["*.arrow", "*.json"])
    files = find_shards(folder, ["*.arrow"], _ROWS, problems)
    store = project_path(cache_dir)
    questions = _read_questions(files, store, problems)
    sentences = read_sentences(texts, problems)
    charts = chart_images(questions)
    bars = read_document_texts(chart_texts, charts, name) if chart_texts else {}
    asked = _with_evidence(questions, {*sentences, *charts}, name, texts, problems)
    holds = f"{len(asked):,} questions, {len(charts):,} charts, {len(sentences):,} sentences"
    logger.info(f"{name}: {holds}")
    corpus = {
        key: Document(
            doc_id=key,
            image=ImageFile(store / charts[key]) if key in charts else None,
            text=text,
            metadata={"document": _source(key)},
        )
        for key, text in ({key: bars.get(key) for key in charts} | sentences).items()
    }
    texts_of_rows = [[row.id, row.query, row.gt_answer, row.statements] for _, row in asked]
    documents = [[doc_id, each.text, charts.get(doc_id)] for doc_id, each in corpus.items()]
    return Benchmark(
        name=name,
        fingerprint=hash_parts(texts_of_rows, documents),
        queries={row.id: _query(row, where) for where, row in asked},
        corpus=corpus,
        qrels={row.id: dict.fromkeys(row.evidence, 1) for _, row in asked},
        groups_are="documents",
    )


def chart_images(questions: Sequence[Question]) -> dict[DocId, str]:
    """Map each chart to its image, given the questions and the images stored in them.

    Rows that name one chart and hold one image are used first. In other rows, charts without
    an image get, in order, the images that no other chart of the row has, if the two numbers
    are equal; a chart that no row settles is absent.
    """
    found: dict[DocId, str] = {}
    for _, row, images in sorted(questions, key=lambda each: len(each[1].charts) > 1):
        known = {found[chart] for chart in row.charts if chart in found}
        open_charts = [chart for chart in row.charts if chart not in found]
        free = [image for image in images if image not in known]
        if len(open_charts) == len(free):
            found |= dict(zip(open_charts, free, strict=True))
    return found


def read_sentences(path: Path | str, problems: Problems = RAISE) -> dict[DocId, str]:
    """Read `text_corpus.jsonl` as a mapping from sentence id to text, in file order.

    Problems are unusable lines, and an id with two texts.
    """
    found: dict[DocId, str] = {}
    file = Path(path).expanduser()
    for where, values in read_objects(file, "file of sentences", ("id", "text"), problems):
        row = validate(Sentence, values, f"{where} ({values.get('id')})", problems)
        if row and found.setdefault(row.id, row.text) != row.text:
            words = f"{row.id!r} came before with another text; expected it once."
            problems.add(Kind.ROW, where, words)
    return found


def _read_questions(files: Sequence[Path], store: Path, problems: Problems) -> list[Question]:
    """The questions in order; their images are written to `store` once."""

    def read() -> list[list[object]]:
        found: list[list[object]] = []
        for file in files:
            for where, row in read_shard(file, (*_COLUMNS, "gt_chart"), "Chart-MRAG", problems):
                images = row["gt_chart"] if isinstance(row["gt_chart"], list) else [row["gt_chart"]]
                names = [cache_image(each, store) for each in images if encoded_image(each)]
                found.append([names, where, {column: row[column] for column in _COLUMNS}])
        return found

    seen: dict[str, str] = {}
    questions = []
    for names, place, values in cached_rows(files, store, "Chart-MRAG", read, problems):
        where = f"{place} (query {values['id']})"
        row = validate(ChartRow, values, where, problems)
        if row and problems.is_new(f"query {row.id!r}", where, seen):
            questions.append((where, row, names))
    return questions


def _with_evidence(
    questions: Sequence[Question],
    documents: Collection[DocId],
    name: str,
    texts: Path | str,
    problems: Problems,
) -> list[tuple[str, ChartRow]]:
    """(location, row) of the questions with all of their evidence; a message counts the others."""
    lost = []
    asked = []
    for where, row, _ in questions:
        missing = [doc_id for doc_id in row.evidence if doc_id not in documents]
        if not missing:
            asked.append((where, row))
        for doc_id in missing:
            lost.append(f"{where}: {doc_id}")
            if problems.collect:
                words = f"{doc_id}: not in {Path(texts).name}, and in no row with its image"
                problems.add(Kind.MISSING, where, words, doc_id)
    if lost and not asked and not problems.collect:
        found = f"the evidence of all {len(questions):,} questions is missing, such as {lost[0]}"
        raise VragError(f"{name}: {found}; expected its sentences in {texts}.")
    if lost:
        words = f"{len(questions) - len(asked):,} of {len(questions):,} questions"
        logger.info(f"{name}: left out {words}, whose evidence is missing ({lost[0]})")
    return asked


def _source(evidence: DocId) -> str:
    """The document in an evidence id: "00058" for "chart_00058_09"."""
    return evidence.split("_")[1] if "_" in evidence else evidence


def _query(row: ChartRow, where: str) -> Query:
    documents = tuple(dict.fromkeys(map(_source, row.evidence)))
    scope, _ = row.id_parts
    return Query(
        query_id=row.id,
        text=row.query,
        answers=(row.gt_answer,),
        group=documents[0] if documents else row.id,
        metadata={
            "hops": _HOPS.get(scope),
            "required_modality": row.modality,
            "reference": row.gt_answer,
            "gold_claims": tuple(statement for _, statement in row.statements),
            "scope": scope,
            "documents": documents,
            "where": where,
        },
    )
