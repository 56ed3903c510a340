"""Chart-MRAG: questions answered by charts and sentences, with a gold statement for each
piece of evidence (Yang et al. 2025, arXiv 2502.14864).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from vrag_kit.benchmarks.image_cache import cache_image, cached_rows, image_cache_dir
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.rows import Kind, Problems, Row, Text, encoded_image, validate
from vrag_kit.benchmarks.sources import local_folder, log_revision, read_objects, read_shard
from vrag_kit.benchmarks.texts import read_document_texts
from vrag_kit.benchmarks.transforms import RowId, encode_id, hash_parts, parse_literal
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import safe_join
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Query

SENTENCES = "text_corpus.jsonl"
"""The file of sentences, in the folder of the rows or its parent folder."""
_COLUMNS = ("id", "query", "gt_answer", "gt_keypoints")
_EVIDENCE = re.compile(r"(chart|paragraph)_(\w+?)(_.*)?", re.DOTALL)
_ROW_ID = re.compile(
    r"(single-point|intra-document|inter-document)-(text-only|chart-only|text-chart|chart-text)\b.*"
)
_HOPS = {"single-point": 1, "intra-document": 2, "inter-document": 2}
_MODALITY = {
    "text-only": "text",
    "paragraph-only": "text",
    "chart-only": "image",
    "text-chart": "both",
    "chart-text": "both",
}
_FETCH = "Fetch it again by `vrag fetch suite`."
Keypoints = tuple[tuple[DocId, str], ...]


def _keypoints(value: object) -> Keypoints:
    """(evidence id, statement) pairs of an object, which may be written as text."""
    points = parse_literal(value) if isinstance(value, str) and value.strip() else value or {}
    if not isinstance(points, dict):
        raise ValueError(f"is {short_repr(value)}; expected an object of evidence and statements.")
    found = []
    for evidence, statements in points.items():
        if statements is None:  # as Arrow fills up objects of different keys
            continue
        if not _EVIDENCE.fullmatch(str(evidence)):
            expected = "an id such as chart_00058_09 or paragraph_00058_08_02"
            raise ValueError(f"hold evidence {evidence!r}; expected {expected}.")
        for each in statements if isinstance(statements, list) else [statements]:
            if not isinstance(each, str) or not each.strip():
                found_claim = f"{short_repr(each)} as a claim of {evidence}"
                raise ValueError(f"hold {found_claim}; expected a text.")
            found.append((encode_id(evidence), each.strip()))
    return tuple(found)


class ChartRow(Row):
    """A question of Chart-MRAG, without its images."""

    id: RowId
    query: Text
    gt_answer: Text
    gt_keypoints: Annotated[Keypoints, BeforeValidator(_keypoints)]
    """(evidence id, statement) pairs; an id occurs once for each of its statements."""

    @property
    def evidence(self) -> tuple[DocId, ...]:
        """The distinct evidence ids, in order."""
        return tuple(dict.fromkeys(doc_id for doc_id, _ in self.gt_keypoints))

    @property
    def charts(self) -> tuple[DocId, ...]:
        """The evidence ids that are charts."""
        return tuple(each for each in self.evidence if each.startswith("chart_"))

    @property
    def id_parts(self) -> tuple[str, str]:
        """(scope, modality) as the id states them; "" for an id of another form."""
        match = _ROW_ID.fullmatch(self.id.lower().replace("_", "-"))
        return (match[1], _MODALITY[match[2]]) if match else ("", "")

    @property
    def modality(self) -> str:
        """The modality of the evidence, "image", "text" or "both"; without any, that of the id."""
        kinds = {each.partition("_")[0] for each in self.evidence}
        if len(kinds) == 2:
            return "both"
        return _MODALITY[f"{kinds.pop()}-only"] if kinds else self.id_parts[1]


class Sentence(Row):
    """A line of the file of sentences."""

    id: RowId
    text: Text


@dataclass(frozen=True, slots=True)
class _Question:
    where: str
    row: ChartRow
    images: list[str]  # names of files in the store


def load_chart_mrag(
    rows: Path | str,
    texts: Path | str,
    *,
    chart_texts: Path | str | None = None,
    name: str = "chart-mrag",
    cache_dir: Path | str | None = None,
    problems: Problems | None = None,
) -> Benchmark:
    """Load Chart-MRAG over the corpus of its charts and of the sentences in `texts`.

    `rows` is a folder of `save_to_disk`, or a hub name ("ymyang/Chart-MRAG@<revision>");
    `texts` is `text_corpus.jsonl`. The revision and the counts are printed.

    Labels are 1 for the evidence in `gt_keypoints`; its statements are `gold_claims` in the
    metadata, which also hold `hops` (1 for a single point, 2 within or between documents,
    None if the id does not state it), `required_modality` ("image", "text" or "both", by
    the kinds of evidence), `reference` (the answer, a sentence, which is also `answers`),
    `scope`, `documents` and `where`. `group` is the first source document.

    The image of a chart comes from a row that names only this chart, else from any row that
    names it; it is written once to `cache_dir` (runs/row_pictures). `text` of a chart comes
    from `chart_texts`, JSON Lines of {"doc_id", "text"}. Questions whose evidence is missing
    are left out and counted; questions without gold evidence are kept and counted.

    Problems are unusable rows and lines, duplicate ids, and missing or damaged files; without
    `problems` the first raises `VragError`. Missing evidence is among them where problems are
    collected.
    """
    problems = problems or Problems()
    folder = local_folder(rows, "Chart-MRAG's data-00000-of-00001.arrow", ["*.arrow", "*.json"])
    files = _find_files(folder, problems)
    store = image_cache_dir(cache_dir)
    found = _read_questions(files, store, problems)
    sentences = read_sentences(texts, problems)
    charts = chart_images(found)
    bars = read_document_texts(chart_texts, charts, name) if chart_texts else {}
    asked = _with_evidence(found, {*sentences, *charts}, name, texts, problems)
    holds = f"{len(asked):,} questions, {len(charts):,} charts, {len(sentences):,} sentences"
    log_revision(name, folder, files, holds)
    corpus = {
        chart: _document(chart, bars.get(chart), store / image) for chart, image in charts.items()
    }
    corpus |= {doc_id: _document(doc_id, text, None) for doc_id, text in sentences.items()}
    texts_of_rows = [[row.id, row.query, row.gt_answer, row.gt_keypoints] for _, row in asked]
    documents = [[doc_id, each.text, charts.get(doc_id)] for doc_id, each in corpus.items()]
    return Benchmark(
        name=name,
        fingerprint=hash_parts(texts_of_rows, documents),
        queries={row.id: _query(row, where) for where, row in asked},
        corpus=corpus,
        qrels={row.id: dict.fromkeys(row.evidence, 1) for _, row in asked},
        groups_are="documents",
    )


def chart_images(questions: Sequence[_Question]) -> dict[DocId, str]:
    """Map each chart to its image, given the questions and the images stored in them.

    Rows that name one chart and hold one image are used first. In other rows, charts without
    an image get, in order, the images that no other chart of the row has, if the two numbers
    are equal; a chart that no row settles is absent.
    """
    found: dict[DocId, str] = {}
    for each in sorted(questions, key=lambda each: len(each.row.charts) > 1):
        known = {found[chart] for chart in each.row.charts if chart in found}
        open_charts = [chart for chart in each.row.charts if chart not in found]
        free = [image for image in each.images if image not in known]
        if len(open_charts) == len(free):
            found |= dict(zip(open_charts, free, strict=True))
    return found


def read_sentences(path: Path | str, problems: Problems | None = None) -> dict[DocId, str]:
    """Read `text_corpus.jsonl` as a mapping from sentence id to text, in file order.

    Problems are a missing file, unusable lines, and an id with two texts.
    """
    problems = problems or Problems()
    file = Path(path).expanduser()
    if not file.exists():
        problems.add(Kind.MISSING, str(file), f"no such file of sentences. {_FETCH}")
        return {}
    found: dict[DocId, str] = {}
    lines = read_objects(file, "file of sentences", ("id", "text"), problems)
    for where, values in lines:
        row = validate(Sentence, values, f"{where} ({values.get('id')})", problems)
        if row and found.setdefault(row.id, row.text) != row.text:
            words = f"{row.id!r} came before with another text; expected it once."
            problems.add(Kind.ROW, where, words)
    return found


def _find_files(folder: Path, problems: Problems) -> list[Path]:
    """The Arrow files that `state.json` names, in order; without it, all in the folder."""
    state = folder / "state.json"
    found = sorted(folder.glob("*.arrow"))
    if state.is_file():
        try:
            listed = json.loads(state.read_text(encoding="utf-8"))["_data_files"]
            found = [safe_join(folder, str(each["filename"]), str(state)) for each in listed]
        except (ValueError, KeyError, TypeError) as error:
            problems.add(Kind.ROW, str(state), f"cannot be read ({error!r}). {_FETCH}")
    missing = [path.name for path in found if not path.is_file()]
    if missing or not found:
        name = (missing or ["data-00000-of-00001.arrow"])[0]
        words = f"no {name}; expected Chart-MRAG's rows. {_FETCH}"
        problems.add(Kind.MISSING, str(folder), words)
    return [path for path in found if path.name not in missing]


def _read_questions(files: Sequence[Path], store: Path, problems: Problems) -> list[_Question]:
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
            questions.append(_Question(where, row, names))
            for oddity in _oddities(row, len(names)):
                problems.add(Kind.ODD, where, oddity)
    return questions


def _oddities(row: ChartRow, images: int) -> list[str]:
    """Warnings about a row that is unusual but usable."""
    scope, modality = row.id_parts
    odd = []
    if not row.evidence:
        odd.append("no gold evidence: gt_keypoints is empty")
    if not scope:
        odd.append("the id states neither hops nor modality")
    elif row.evidence and modality != row.modality:
        odd.append(f"the id says {modality}, the evidence {row.modality}")
    if len(row.charts) != images:
        odd.append(f"{images} images for {len(row.charts)} charts")
    return odd


def _with_evidence(
    questions: Sequence[_Question],
    documents: Collection[DocId],
    name: str,
    texts: Path | str,
    problems: Problems,
) -> list[tuple[str, ChartRow]]:
    """(location, row) of the questions with all of their evidence; a message counts the others."""
    lost = []
    asked = []
    for each in questions:
        missing = [doc_id for doc_id in each.row.evidence if doc_id not in documents]
        lost += [(each.where, doc_id) for doc_id in missing]
        if not missing:
            asked.append((each.where, each.row))
    if problems.collect:
        for where, doc_id in lost:
            is_chart = doc_id.startswith("chart_")
            words = "no row tells its image" if is_chart else f"not in {Path(texts).name}"
            kind = Kind.MISSING if is_chart else Kind.ROW
            problems.add(kind, where, f"{doc_id}: {words}", doc_id if is_chart else "")
    elif lost:
        first = ": ".join(lost[0])
        if not asked:
            raise VragError(
                f"{name}: the evidence of all {len(questions):,} questions is missing, such as"
                f" {first}; expected its sentences in {texts}. Give the {SENTENCES} of this data"
                " set."
            )
        words = f"{len(questions) - len(asked):,} of {len(questions):,} questions"
        logger.info(f"{name}: left out {words}, whose evidence is missing ({first})")
    if bare := [where for where, row in asked if not row.evidence]:
        logger.info(f"{name}: {len(bare):,} questions have no gold evidence ({bare[0]})")
    return asked


def _source(evidence: DocId) -> str:
    """The document in an evidence id: "00058" for "chart_00058_09"."""
    return evidence.split("_")[1] if "_" in evidence else evidence


def _query(row: ChartRow, where: str) -> Query:
    documents = tuple(dict.fromkeys(map(_source, row.evidence)))
    scope = row.id_parts[0]
    metadata = {
        "hops": _HOPS.get(scope),
        "required_modality": row.modality,
        "reference": row.gt_answer,
        "gold_claims": tuple(statement for _, statement in row.gt_keypoints),
        "scope": scope,
        "documents": documents,
        "where": where,
    }
    return Query(
        query_id=row.id,
        text=row.query,
        answers=(row.gt_answer,),
        group=documents[0] if documents else row.id,
        metadata=metadata,
    )


def _document(doc_id: DocId, text: str | None, image: Path | None) -> Document:
    return Document(
        doc_id=doc_id,
        image=ImageFile(image) if image else None,
        text=text,
        metadata={"document": _source(doc_id)},
    )
