"""Chart-MRAG: questions that charts and sentences of documents answer, with statements
of what each piece of evidence says (Yang et al. 2025, arXiv 2502.14864).
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
    document_of,
    find_arrows,
    parse_row,
    pictures_in,
    read_rows,
    read_sentences,
)
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.page_texts import read_page_texts
from vrag_kit.benchmarks.revisions import say_revision
from vrag_kit.benchmarks.row_pictures import keep_picture, picture_store, read_once
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, DocId, Evidence, Query

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
    """Read Chart-MRAG from the folder that `save_to_disk` left, or from the hub
    ("ymyang/Chart-MRAG@<revision>"), over its charts and the sentences of `texts`
    (`text_corpus.jsonl`); says the revision and how many there are.

    Labels are 1 for the evidence that `gt_keypoints` names; its statements are
    `gold_claims` in the metadata, which also hold `hops` (1 for a single point, 2 within
    or between documents, None where the id does not tell), `needs` ("image", "text" or
    "both", by the kinds of evidence), `reference` (the answer, a sentence, which is also
    `answers`), `scope`, `documents` and `where`. `group` is the document, the first one
    of a question between documents.

    A chart's picture is the one in the row that names it alone, else in any that does; it
    is written once to `cache_dir` (runs/row_pictures). `text` of a chart is what
    `chart_texts`, JSON Lines of {"doc_id", "text"}, says of it. Left out, and counted,
    are questions whose evidence is not there; counted are questions without any.

    Raises `VragError` at the first row or line that cannot be used, and an id that came
    before; `vrag check` lists all.
    """
    folder = charts_folder(rows)
    arrows = find_arrows(folder)
    store = picture_store(cache_dir)
    kept = _read(arrows, store)
    sentences = read_sentences(texts)
    charts = chart_pictures([(each.row, each.pictures) for each in kept])
    bars = read_page_texts(chart_texts, list(charts), name) if chart_texts else {}
    asked = _with_evidence([each.row for each in kept], {*sentences, *charts}, name, texts)
    holds = f"{len(asked):,} questions, {len(charts):,} charts, {len(sentences):,} sentences"
    say_revision(name, folder, arrows, holds)
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


def chart_pictures(rows: Sequence[tuple[ChartRow, Sequence[str]]]) -> dict[DocId, str]:
    """Chart → its picture, of rows with the pictures that lie in them.

    Rows that name one chart and hold one picture tell first. Of others, the charts that
    are not known yet get, in order, the pictures that are not known to be others' of the
    row, when there are as many; a chart that no row settles is absent.
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
            for where, values in read_rows(arrow):
                row = parse_row(values, where)
                if row.row_id in seen:
                    raise VragError(
                        f"{row.where}: it came before, in {seen[row.row_id]}; expected each once."
                        " `vrag check` lists all."
                    )
                seen[row.row_id] = where
                pictures = [keep_picture(each, store) for each in pictures_in(values)]
                told = [row.where, row.row_id, row.query, row.answer, row.keypoints]
                found.append([pictures, *told])
        return found

    kept = []
    for pictures, where, row_id, query, answer, points in read_once(arrows, store, _WHAT, read):
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
        print(f"{name}: left out {told}, whose evidence is not there ({first})", flush=True)
    bare = [row.where for row in asked if not row.evidence]
    if bare:
        print(f"{name}: {len(bare):,} questions have no gold evidence ({bare[0]})", flush=True)
    return asked


def _query(row: ChartRow) -> Query:
    documents = tuple(dict.fromkeys(document_of(each) for each in row.evidence))
    told = {
        "hops": _HOPS.get(row.scope),
        "needs": row.needs,
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


def _document(doc_id: DocId, text: str | None, picture: Path | None) -> Evidence:
    image = ImageFile(picture) if picture else None
    told = {"document": document_of(doc_id)}
    return Evidence(doc_id=doc_id, image=image, text=text, metadata=told)


def _fingerprint(
    rows: Iterable[ChartRow], charts: Mapping[DocId, str], corpus: Mapping[DocId, Evidence]
) -> str:
    """Hash of what is asked of which charts and sentences; not of where they lie."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.row_id, row.query, row.answer, row.keypoints]).encode())
    for doc_id, document in corpus.items():
        digest.update(json.dumps([doc_id, document.text, charts.get(doc_id)]).encode())
    return digest.hexdigest()
