"""Page benchmarks: questions over images of pages, in the Parquet layout of VisRAG, ViDoRe and
MTEB's copies, with the configs `corpus`, `queries` and `qrels`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import unquote

from pydantic import AliasChoices, BeforeValidator, Field

from vrag_kit.benchmarks.image_cache import STORE, cache_image, cached_rows
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.rows import RAISE, EncodedImage, Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import find_shards, local_folder, read_document_texts, read_shard
from vrag_kit.benchmarks.transforms import (
    RowId,
    connected_groups,
    correct_option,
    hash_parts,
    option_texts,
    parse_literal,
)
from vrag_kit.errors import short_repr
from vrag_kit.files import project_path
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Json, Query, QueryId

CONFIGS = ("corpus", "queries", "qrels")
_IDS = ("query-id", "query_id", "corpus-id", "corpus_id", "_id", "id")


def _texts(value: object) -> tuple[str, ...]:
    """The texts of a field that is a text, a number, a list of them, or a list written as text;
    without blanks.
    """
    if isinstance(value, str) and value.strip().startswith("["):
        written = parse_literal(value)
        value = written if isinstance(written, list) else value
    values = value if isinstance(value, list) else [value]
    for each in values:
        if each is not None and not isinstance(each, str | int | float):
            raise ValueError(f"is {short_repr(value)}; expected texts.")
    return tuple(str(each).strip() for each in values if each is not None and str(each).strip())


class PageRow(Row):
    """A row of `corpus`."""

    doc_id: RowId = Field(validation_alias=AliasChoices("corpus-id", "corpus_id", "_id", "id"))
    image: EncodedImage
    document: Annotated[str, BeforeValidator(str)] = Field(
        "", validation_alias=AliasChoices("doc-id", "doc_id", "document")
    )


class QueryRow(Row):
    """A row of `queries`; without answers where the data hide them."""

    query_id: RowId = Field(validation_alias=AliasChoices("query-id", "query_id", "_id", "id"))
    text: Text = Field(validation_alias=AliasChoices("query", "text"))
    answer: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        (), validation_alias=AliasChoices("answer", "answers")
    )
    options: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    is_numerical: Annotated[bool | None, BeforeValidator(bool)] = None

    @property
    def accepted(self) -> tuple[str, ...]:
        """The accepted answers; empty if one of them is none of the options."""
        found = [correct_option(each, self.options) for each in self.answer]
        if not self.options:
            return self.answer
        return tuple(dict.fromkeys(found)) if all(found) else ()


class LabelRow(Row):
    """A row of `qrels`."""

    query_id: RowId = Field(validation_alias=AliasChoices("query-id", "query_id"))
    doc_id: RowId = Field(validation_alias=AliasChoices("corpus-id", "corpus_id"))
    score: float = Field(
        ge=0, multiple_of=1, allow_inf_nan=False, description="a whole number from 0 on"
    )


R = TypeVar("R", PageRow, QueryRow, LabelRow)
Labels = dict[QueryId, dict[DocId, int]]
Questions = dict[QueryId, tuple[str, QueryRow]]
"""Question → its location and its row."""


Page = tuple[list[str], DocId, str]
"""([name of its image's file in the store], id, its document or ""), as pages are cached."""


def load_page_benchmark(
    rows: Path | str,
    *,
    split: str = "train",
    name: str = "",
    ocr: Path | str | None = None,
    cache_dir: Path | str = STORE,
    problems: Problems = RAISE,
) -> Benchmark:
    """Load questions over page images from a folder or the hub.

    A hub name is "openbmb/VisRAG-Ret-Test-PlotQA@<revision>". The numbers of questions, pages
    and labels are printed, because revisions of a data set differ.

    Ids may be numbers or texts; white space in them is percent-encoded (`urllib.parse.unquote`
    restores it). A query's `answers` are the texts of `answer`, one or a list. For a question with
    options they are the text of the correct option, never its letter, and `choices` are
    the options without letters. `answers` is empty if the data have none, as in ViDoRe.
    `group` are the questions that share gold pages, or pages of one document if the corpus
    has such a column, directly or through others. The metadata hold
    `hops` (gold pages; None without any), `required_modality` ("image"), `reference` (""),
    `gold_claims` (()), `is_numerical` (None if not in the data) and `where`.

    `image` of a page is written once to `cache_dir` (runs/row_pictures); `text` comes from
    `ocr`, a JSON Lines file of {"doc_id", "text"}. Questions whose answer is none of their
    options are left out and counted; labels of questions that do not exist are ignored.

    Problems are unusable rows, duplicate ids, labels of missing pages, and missing or damaged
    shards; without `problems` the first raises `VragError`. It is raised too if a folder has
    no shards.
    """
    layouts = (f"{split}-*.parquet", f"{split}/*.parquet")
    paths = {config: [f"{config}/{each}" for each in layouts] for config in CONFIGS}
    folder = local_folder(rows, list(chain(*paths.values())))
    what = f"the split {split!r}; the splits in it are {', '.join(list_splits(folder)) or 'none'}"
    shards = {key: find_shards(folder, each, what, problems) for key, each in paths.items()}
    name = name or folder.name
    store = project_path(cache_dir)
    pages = _read_pages(shards["corpus"], store, problems)
    texts = read_document_texts(ocr, [doc_id for _, doc_id, _ in pages], name) if ocr else {}
    questions = _read_queries(shards["queries"], name, problems)
    labels = _read_labels(shards["qrels"], questions, {doc_id for _, doc_id, _ in pages}, problems)
    count = sum(map(len, labels.values()))
    holds = f"{len(questions):,} questions, {len(pages):,} pages, {count:,} labels"
    logger.info(f"{name}: {holds}")
    documents = {doc_id: document or doc_id for _, doc_id, document in pages}
    gold = {
        query_id: [documents[doc_id] for doc_id, label in found.items() if label]
        for query_id, found in labels.items()
    }
    groups = connected_groups(gold)
    queries = {
        query_id: _query(row, where, groups[query_id], len(gold[query_id]))
        for query_id, (where, row) in questions.items()
    }
    asked = [
        [key, query.text, query.answers, query.choices, sorted(labels[key].items())]
        for key, query in queries.items()
    ]
    return Benchmark(
        name=name,
        fingerprint=hash_parts(asked, [[*page, texts.get(page[1])] for page in pages]),
        queries=queries,
        corpus={page[1]: _document(page, store, texts) for page in pages},
        qrels=labels,
        groups_are="sets of questions that share pages",
    )


def list_splits(folder: Path) -> list[str]:
    """List the splits for which a folder has questions."""
    names = {path.name.split("-")[0] for path in folder.glob("queries/*-*.parquet")}
    return sorted(names | {path.parent.name for path in folder.glob("queries/*/*.parquet")})


def _read(
    model: type[R], shards: Sequence[Path], problems: Problems
) -> Iterator[tuple[str, R, Json]]:
    """(location with the row's id, row, its fields) of every usable row."""
    noun = "page" if model is PageRow else "query"
    for shard in shards:
        for place, values in read_shard(shard, (), "a page benchmark", problems):
            fields = {name: value for name, value in values.items() if value is not None}
            known = next((fields[name] for name in _IDS if name in fields), None)
            location = f"{shard.parent.name}/{place} ({noun} {known})"
            if row := validate(model, fields, location, problems):
                yield location, row, fields


def _read_pages(shards: Sequence[Path], store: Path, problems: Problems) -> list[Page]:
    """The pages in order; their images are written to `store` once."""

    def read() -> list[Page]:
        seen: dict[str, str] = {}
        return [
            ([cache_image(fields["image"], store)], row.doc_id, row.document)
            for where, row, fields in _read(PageRow, shards, problems)
            if problems.is_new(f"page {row.doc_id!r}", where, seen)
        ]

    return cached_rows(shards, store, "pages", read, problems)


def _read_queries(shards: Sequence[Path], name: str, problems: Problems) -> Questions:
    """The questions in order; those without a correct option are left out, with a message."""
    seen: dict[str, str] = {}
    found: Questions = {}
    lost = []
    for where, row, _ in _read(QueryRow, shards, problems):
        if not problems.is_new(f"query {row.query_id!r}", where, seen):
            continue
        if row.accepted or not row.answer:
            found[row.query_id] = where, row
            continue
        listed = ", ".join(option_texts(row.options))
        words = f"the answer {' or '.join(map(repr, row.answer))} is none of the options {listed}"
        lost.append(f"{where}: {words}")
        if problems.collect:
            problems.add(Kind.ROW, where, words)
    if lost:
        logger.info(f"{name}: left out {len(lost):,} of {len(seen):,} questions ({lost[0]})")
    if lost and not found:
        problems.add(Kind.ROW, name, f"no question with an answer that can be read ({lost[0]}).")
    return found


def _read_labels(
    shards: Sequence[Path], questions: Questions, corpus: Collection[DocId], problems: Problems
) -> Labels:
    """Labels of every question; those of others are ignored."""
    labels: Labels = {query_id: {} for query_id in questions}
    for where, row, _ in _read(LabelRow, shards, problems):
        page, label = f"page {row.doc_id!r}", int(row.score)
        if row.query_id not in labels:
            continue
        if row.doc_id not in corpus:
            words = f"{page} is not in the corpus ({len(corpus):,} pages). Fetch all configs again."
            problems.add(Kind.ROW, where, words)
        elif (before := labels[row.query_id].setdefault(row.doc_id, label)) != label:
            words = f"{page} is labelled {label}, and {before} before; expected one label."
            problems.add(Kind.ROW, where, words)
    return labels


def _query(row: QueryRow, where: str, group: str, gold: int) -> Query:
    metadata = {
        "hops": gold or None,
        "required_modality": "image",
        "reference": "",
        "gold_claims": (),
        "is_numerical": row.is_numerical,
        "where": where,
    }
    return Query(
        query_id=row.query_id,
        text=row.text,
        answers=row.accepted,
        choices=option_texts(row.options),
        group=group,
        metadata=metadata,
    )


def _document(page: Page, store: Path, texts: Mapping[DocId, str]) -> Document:
    images, doc_id = page[:2]
    return Document(
        doc_id=doc_id,
        image=ImageFile(store / images[0]),
        text=texts.get(doc_id),
        metadata={"id": unquote(doc_id)} | ({"document": page[2]} if page[2] else {}),
    )
