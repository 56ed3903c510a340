"""Chart-MRAG: questions answered by charts and sentences, with a gold statement for each
piece of evidence (Yang et al. 2025, arXiv 2502.14864).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vrag_kit.benchmarks.chart_rows import (
    ChartRow,
    charts_folder,
    find_arrow_files,
    images_in_row,
    parse_row,
    read_arrow_rows,
    read_sentences,
    source_document,
)
from vrag_kit.benchmarks.image_cache import cache_image, cached_rows, image_cache_dir
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.page_texts import read_page_texts
from vrag_kit.benchmarks.sources import log_revision
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Query

_WHAT = "Chart-MRAG"
_HOPS = {"single-point": 1, "intra-document": 2, "inter-document": 2}


class _Kept(NamedTuple):
    """A question with its pictures, as it is kept between runs."""

    pictures: list[str]  # names of files in the store
    row: ChartRow


def load_chart_mrag(
    rows: Path | str,
    texts: Path | str,
    *,
    chart_texts: Path | str | None = None,
    name: str = "chart-mrag",
    cache_dir: Path | str | None = None,
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

    Raises `VragError` at the first unusable row or line, and at a duplicate id; `vrag check`
    lists all.
    """
    folder = charts_folder(rows)
    arrows = find_arrow_files(folder)
    store = image_cache_dir(cache_dir)
    kept = _read(arrows, store)
    sentences = read_sentences(texts)
    charts = chart_images([(each.row, each.pictures) for each in kept])
    bars = read_page_texts(chart_texts, list(charts), name) if chart_texts else {}
    asked = _with_evidence([each.row for each in kept], {*sentences, *charts}, name, texts)
    holds = f"{len(asked):,} questions, {len(charts):,} charts, {len(sentences):,} sentences"
    log_revision(name, folder, arrows, holds)
    corpus = {
        chart: _document(chart, bars.get(chart), store / picture)
        for chart, picture in charts.items()
    }
    corpus |= {doc_id: _document(doc_id, text, None) for doc_id, text in sentences.items()}
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(asked, charts, corpus),
        queries={row.row_id: _query(row) for row in asked},
        corpus=corpus,
        qrels={row.row_id: dict.fromkeys(row.evidence, 1) for row in asked},
        groups_are="documents",
    )


def chart_images(rows: Sequence[tuple[ChartRow, Sequence[str]]]) -> dict[DocId, str]:
    """Map each chart to its image, given the rows and the images stored in them.

    Rows that name one chart and hold one image are used first. In other rows, charts without
    an image get, in order, the images that no other chart of the row has, if the two numbers
    are equal; a chart that no row settles is absent.
    """
    found: dict[DocId, str] = {}
    by_count = sorted(rows, key=lambda each: len(each[0].charts) > 1)
    for row, pictures in by_count:
        known = {found[chart] for chart in row.charts if chart in found}
        open_charts = [chart for chart in row.charts if chart not in found]
        free = [picture for picture in pictures if picture not in known]
        if len(open_charts) == len(free):
            found |= dict(zip(open_charts, free, strict=True))
    return found


def _read(arrows: Sequence[Path], store: Path) -> list[_Kept]:
    """The questions in order; their pictures are written to `store` once."""

    def read() -> list[list[object]]:
        seen: dict[str, str] = {}
        found: list[list[object]] = []
        for arrow in arrows:
            for where, values in read_arrow_rows(arrow):
                row = parse_row(values, where)
                if row.row_id in seen:
                    raise VragError(
                        f"{row.where}: it came before, in {seen[row.row_id]}; expected each once."
                        " `vrag check` lists all."
                    )
                seen[row.row_id] = where
                pictures = [cache_image(each, store) for each in images_in_row(values)]
                told = [row.where, row.row_id, row.query, row.answer, row.keypoints]
                found.append([pictures, *told])
        return found

    kept = []
    for pictures, where, row_id, query, answer, points in cached_rows(arrows, store, _WHAT, read):
        keypoints = tuple((doc_id, statement) for doc_id, statement in points)
        kept.append(_Kept(pictures, ChartRow(where, row_id, query, answer, keypoints)))
    return kept


def _with_evidence(
    rows: Sequence[ChartRow], there: set[DocId], name: str, texts: Path | str
) -> list[ChartRow]:
    """The questions whose evidence is all there; says which are left out."""
    lacking = {}
    for row in rows:
        if missing := [each for each in row.evidence if each not in there]:
            lacking[row.row_id] = f"{row.where}: {missing[0]}"
    asked = [row for row in rows if row.row_id not in lacking]
    if lacking:
        first = next(iter(lacking.values()))
        told = f"{len(lacking):,} of {len(rows):,} questions"
        if not asked:
            raise VragError(
                f"{name}: the evidence of all {len(rows):,} questions is missing, such as {first};"
                f" expected its sentences in {texts}. Give the text_corpus.jsonl of this data set."
            )
        logger.info(f"{name}: left out {told}, whose evidence is not there ({first})")
    bare = [row.where for row in asked if not row.evidence]
    if bare:
        logger.info(f"{name}: {len(bare):,} questions have no gold evidence ({bare[0]})")
    return asked


def _query(row: ChartRow) -> Query:
    documents = tuple(dict.fromkeys(source_document(each) for each in row.evidence))
    told = {
        "hops": _HOPS.get(row.scope),
        "required_modality": row.needs,
        "reference": row.answer,
        "gold_claims": tuple(statement for _, statement in row.keypoints),
        "scope": row.scope,
        "documents": documents,
        "where": row.where,
    }
    return Query(
        query_id=row.row_id,
        text=row.query,
        answers=(row.answer,),
        group=documents[0] if documents else row.row_id,
        metadata=told,
    )


def _document(doc_id: DocId, text: str | None, picture: Path | None) -> Document:
    image = ImageFile(picture) if picture else None
    told = {"document": source_document(doc_id)}
    return Document(doc_id=doc_id, image=image, text=text, metadata=told)


def _fingerprint(
    rows: Iterable[ChartRow], charts: Mapping[DocId, str], corpus: Mapping[DocId, Document]
) -> str:
    """Hash of what is asked of which charts and sentences; not of where they lie."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.row_id, row.query, row.answer, row.keypoints]).encode())
    for doc_id, document in corpus.items():
        digest.update(json.dumps([doc_id, document.text, charts.get(doc_id)]).encode())
    return digest.hexdigest()
