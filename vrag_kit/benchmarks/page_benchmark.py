"""Load page benchmarks (questions over page images) in the layout of VisRAG, ViDoRe and
MTEB's copies, with the configs `corpus`, `queries` and `qrels`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from vrag_kit.benchmarks.image_cache import cache_image, cached_rows, image_cache_dir
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.page_rows import (
    CONFIGS,
    PageQuery,
    find_config,
    page_folder,
    parse_label,
    parse_page,
    parse_query,
    read_config,
)
from vrag_kit.benchmarks.page_texts import read_page_texts
from vrag_kit.benchmarks.sources import log_revision
from vrag_kit.benchmarks.transforms import connected_groups, decode_id
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Query, QueryId

Labels = dict[QueryId, dict[DocId, int]]


class _Page(NamedTuple):
    """One page of the corpus, as it is kept between runs."""

    pictures: list[str]  # the name of its file in the store
    doc_id: DocId
    document: str  # "" where the data do not tell


def load_page_benchmark(
    rows: Path | str,
    *,
    split: str = "train",
    name: str = "",
    ocr: Path | str | None = None,
    cache_dir: Path | str | None = None,
) -> Benchmark:
    """Load questions over page images from a folder or the hub.

    A hub name is "openbmb/VisRAG-Ret-Test-PlotQA@<revision>". The revision and the numbers of
    questions, pages and labels are printed, because revisions of a data set differ.

    Ids may be numbers or texts; white space in them is percent-encoded (`decode_id` restores
    it). A query's `answers` are the texts of `answer`, one or a list. For a question with
    options they are the text of the correct option, never its letter, and `choices` are
    the options without letters. `answers` is empty if the data have none, as in ViDoRe.
    `group` are the questions that share gold pages, or pages of one document if the corpus
    has such a column, directly or through others. The metadata hold
    `hops` (gold pages; None without any), `required_modality` ("image"), `reference` (""),
    `gold_claims` (()), `is_numerical` (None if not in the data) and `where`.

    `image` of a page is written once to `cache_dir` (runs/row_pictures); `text` comes from
    `ocr`, a JSON Lines file of {"doc_id", "text"}. Questions whose answer is none of their
    options are left out and counted; questions without a gold page, and labels of questions
    that do not exist, are counted.

    Raises `VragError` at the first unusable row, for a duplicate id, for a label of a missing
    page, and for missing shards; `vrag check` lists all.
    """
    folder = page_folder(rows, split)
    shards = {config: find_config(folder, config, split) for config in CONFIGS}
    name = name or folder.name
    store = image_cache_dir(cache_dir)
    pages = _pages(shards["corpus"], store)
    texts = read_page_texts(ocr, [page.doc_id for page in pages], name) if ocr else {}
    queries = _queries(shards["queries"], name)
    labels = _labels(shards["qrels"], queries, pages, name)
    count = sum(map(len, labels.values()))
    holds = f"{len(queries):,} questions, {len(pages):,} pages, {count:,} labels"
    log_revision(name, folder, chain(*shards.values()), holds)
    return Benchmark(
        name=name,
        fingerprint=_fingerprint(queries, labels, pages, texts),
        queries=_asked(queries, labels, pages),
        corpus={page.doc_id: _document(page, store, texts) for page in pages},
        qrels=labels,
        groups_are="sets of questions that share pages",
    )


def _pages(shards: Sequence[Path], store: Path) -> list[_Page]:
    """The pages in order; their pictures are written to `store` once."""

    def read() -> list[_Page]:
        seen: dict[DocId, str] = {}
        found = []
        for where, row in read_config(shards):
            page = parse_page(row, where)
            if page.doc_id in seen:
                raise VragError(
                    f"{page.where}: it came before, in {seen[page.doc_id]}; expected each once."
                    " Are two revisions in one folder? `vrag check` lists all."
                )
            seen[page.doc_id] = where
            picture = cache_image(page.picture, store)
            found.append(_Page([picture], page.doc_id, page.document))
        return found

    return [_Page(*row) for row in cached_rows(shards, store, "pages", read)]


def _queries(shards: Sequence[Path], name: str) -> dict[QueryId, PageQuery]:
    """The questions in order; says which are left out."""
    found: dict[QueryId, PageQuery] = {}
    for where, row in read_config(shards):
        query = parse_query(row, where)
        if query.query_id in found:
            raise VragError(
                f"{query.where}: it came before, in {found[query.query_id].where}; expected each"
                " once. Are two revisions in one folder? `vrag check` lists all."
            )
        found[query.query_id] = query
    odd = [query for query in found.values() if query.problem]
    kept = {query_id: query for query_id, query in found.items() if not query.problem}
    if not kept:
        first = f": {odd[0].where}: {odd[0].problem}" if odd else ""
        raise VragError(f"{shards[0].parent}: no question that can be asked{first}.")
    if odd:
        told = f"{odd[0].where}: {odd[0].problem}"
        logger.info(f"{name}: left out {len(odd):,} of {len(found):,} questions ({told})")
    return kept


def _labels(
    shards: Sequence[Path], queries: Mapping[QueryId, PageQuery], pages: Iterable[_Page], name: str
) -> Labels:
    """Labels of every question; says what has none, and what is of no question."""
    there = {page.doc_id for page in pages}
    labels: Labels = {query_id: {} for query_id in queries}
    others: set[QueryId] = set()
    for where, row in read_config(shards):
        each = parse_label(row, where)
        if each.query_id not in labels:
            others.add(each.query_id)
            continue
        if each.doc_id not in there:
            raise VragError(
                f"{each.where}: page {each.doc_id!r} is not in the corpus ({len(there):,} pages)."
                " Corpus and qrels are of different revisions: fetch all three configs again."
            )
        before = labels[each.query_id].setdefault(each.doc_id, each.label)
        if before != each.label:
            raise VragError(
                f"{each.where}: page {each.doc_id!r} is labelled {each.label}, and {before} before;"
                " expected one label."
            )
    bare = [query_id for query_id, found in labels.items() if not any(found.values())]
    if bare:
        logger.info(f"{name}: {len(bare):,} questions have no gold page, such as {bare[0]}")
    if others:
        told = f"of {len(others):,} questions that are not asked, such as {min(others)}"
        logger.info(f"{name}: labels {told}")
    return labels


def _groups(labels: Labels, pages: Iterable[_Page]) -> dict[QueryId, str]:
    document = {page.doc_id: page.document or page.doc_id for page in pages}
    gold = {
        query_id: [document[doc_id] for doc_id, label in found.items() if label]
        for query_id, found in labels.items()
    }
    return connected_groups(gold)


def _asked(
    rows: Mapping[QueryId, PageQuery], labels: Labels, pages: Sequence[_Page]
) -> dict[QueryId, Query]:
    groups = _groups(labels, pages)
    found = [_query(row, groups[row.query_id], labels[row.query_id]) for row in rows.values()]
    return {query.query_id: query for query in found}


def _query(row: PageQuery, group: str, labels: Mapping[DocId, int]) -> Query:
    gold = sum(label > 0 for label in labels.values())
    told = {
        "hops": gold or None,
        "required_modality": "image",
        "reference": "",
        "gold_claims": (),
        "is_numerical": row.is_numerical,
        "where": row.where,
    }
    return Query(
        query_id=row.query_id,
        text=row.text,
        answers=row.answers,
        choices=row.choices,
        group=group,
        metadata=told,
    )


def _document(page: _Page, store: Path, texts: Mapping[DocId, str]) -> Document:
    told = {"id": decode_id(page.doc_id)}
    if page.document:
        told["document"] = page.document
    return Document(
        doc_id=page.doc_id,
        image=ImageFile(store / page.pictures[0]),
        text=texts.get(page.doc_id),
        metadata=told,
    )


def _fingerprint(
    queries: Mapping[QueryId, PageQuery],
    labels: Labels,
    pages: Iterable[_Page],
    texts: Mapping[DocId, str],
) -> str:
    """Hash of what is asked of which pages; not of where they lie."""
    digest = hashlib.sha256()
    for query_id, row in queries.items():
        asked = [query_id, row.text, row.answers, row.choices, sorted(labels[query_id].items())]
        digest.update(json.dumps(asked).encode())
    for page in pages:
        digest.update(json.dumps([*page, texts.get(page.doc_id)]).encode())
    return digest.hexdigest()
