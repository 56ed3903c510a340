"""Page benchmarks: questions over images of pages, in the Parquet layout of VisRAG, ViDoRe and
MTEB's copies, with the configs `corpus`, `queries` and `qrels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field

from vrag_kit.benchmarks.image_cache import cache_image, cached_rows, image_cache_dir
from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.benchmarks.rows import EncodedImage, Kind, Problems, Row, Text, validate
from vrag_kit.benchmarks.sources import (
    by_number,
    local_folder,
    log_revision,
    read_shard,
    shards_problem,
)
from vrag_kit.benchmarks.texts import read_document_texts
from vrag_kit.benchmarks.transforms import (
    RowId,
    connected_groups,
    correct_option,
    decode_id,
    hash_parts,
    option_texts,
    parse_literal,
)
from vrag_kit.errors import short_repr
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, DocId, Document, Json, Query, QueryId

CONFIGS = ("corpus", "queries", "qrels")
ENDS = ("-*.parquet", "/*.parquet")
"""Ends of the shards' paths, behind the split, in the two published layouts."""
_IDS = ("query-id", "query_id", "corpus-id", "corpus_id", "_id", "id")
_WHAT = "a page benchmark: the folders corpus, queries and qrels, with parquet files"
Labels = dict[QueryId, dict[DocId, int]]


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
    def answers(self) -> tuple[tuple[str, ...], str]:
        """(accepted answers, ""), or ((), reason) if an answer is none of the options."""
        if not self.options:
            return self.answer, ""
        found = [correct_option(each, self.options) for each in self.answer]
        problem = next((reason for _, reason in found if reason), "")
        return () if problem else tuple(dict.fromkeys(text for text, _ in found)), problem


class LabelRow(Row):
    """A row of `qrels`."""

    query_id: RowId = Field(validation_alias=AliasChoices("query-id", "query_id"))
    doc_id: RowId = Field(validation_alias=AliasChoices("corpus-id", "corpus_id"))
    score: float = Field(
        ge=0, multiple_of=1, allow_inf_nan=False, description="a whole number from 0 on"
    )


R = TypeVar("R", PageRow, QueryRow, LabelRow)


class _Page(NamedTuple):
    """A page of the corpus, as it is cached."""

    pictures: list[str]  # the name of its file in the store
    doc_id: DocId
    document: str  # "" if unknown


def load_page_benchmark(
    rows: Path | str,
    *,
    split: str = "train",
    name: str = "",
    ocr: Path | str | None = None,
    cache_dir: Path | str | None = None,
    problems: Problems | None = None,
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

    Problems are unusable rows, duplicate ids, labels of missing pages, and missing or damaged
    shards; without `problems` the first raises `VragError`.
    """
    problems = problems or Problems()
    patterns = [f"{config}/{split}{end}" for config, end in product(CONFIGS, ENDS)]
    folder = local_folder(rows, _WHAT, patterns)
    shards = {config: _find_shards(folder, config, split, problems) for config in CONFIGS}
    name = name or folder.name
    store = image_cache_dir(cache_dir)
    pages = _read_pages(shards["corpus"], store, problems)
    texts = read_document_texts(ocr, [page.doc_id for page in pages], name) if ocr else {}
    rows_by_id = _read_queries(shards["queries"], folder, name, problems)
    labels = _read_labels(shards["qrels"], rows_by_id, pages, name, problems)
    count = sum(map(len, labels.values()))
    holds = f"{len(rows_by_id):,} questions, {len(pages):,} pages, {count:,} labels"
    log_revision(name, folder, chain(*shards.values()), holds)
    groups = _groups(labels, pages)
    queries = {}
    asked = []
    for where, row in rows_by_id.values():
        judged = labels[row.query_id]
        query = _query(row, where, groups[row.query_id], judged)
        queries[query.query_id] = query
        texts_of_query = [query.text, query.answers, query.choices]
        asked.append([query.query_id, *texts_of_query, sorted(judged.items())])
    return Benchmark(
        name=name,
        fingerprint=hash_parts(asked, [[*page, texts.get(page.doc_id)] for page in pages]),
        queries=queries,
        corpus={page.doc_id: _document(page, store, texts) for page in pages},
        qrels=labels,
        groups_are="sets of questions that share pages",
    )


def list_splits(folder: Path) -> list[str]:
    """List the splits for which a folder has questions."""
    names = {path.name.split("-")[0] for path in folder.glob("queries/*-*.parquet")}
    return sorted(names | {path.parent.name for path in folder.glob("queries/*/*.parquet")})


def _find_shards(folder: Path, config: str, split: str, problems: Problems) -> list[Path]:
    """The shards of a split by number; problems are none, missing ones, and two layouts."""
    beside, below = (list(folder.glob(f"{config}/{split}{end}")) for end in ENDS)
    found = by_number(beside or below)
    if beside and below:
        words = (
            f"{config} is there twice, as {beside[0].relative_to(folder)} and as"
            f" {below[0].relative_to(folder)}: two revisions of the data set. Keep one."
        )
        problems.add(Kind.ROW, str(folder), words)
    elif not found:
        words = (
            f"no shards of {config}, split {split!r}; expected"
            f" {config}/{split}-00000-of-00001.parquet, …. The splits in it are"
            f" {', '.join(list_splits(folder)) or 'none'}. `vrag fetch suite` fetches VisRAG's."
        )
        problems.add(Kind.MISSING, str(folder), words)
    elif problem := shards_problem(found):
        problems.add(Kind.MISSING, str(found[0].parent), problem)
    return found


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


def _read_pages(shards: Sequence[Path], store: Path, problems: Problems) -> list[_Page]:
    """The pages in order; their images are written to `store` once."""

    def read() -> list[_Page]:
        seen: dict[str, str] = {}
        found = []
        for where, row, fields in _read(PageRow, shards, problems):
            if problems.is_new(f"page {row.doc_id!r}", where, seen):
                found.append(_Page([cache_image(fields["image"], store)], row.doc_id, row.document))
        return found

    return [_Page(*row) for row in cached_rows(shards, store, "pages", read, problems)]


def _read_queries(
    shards: Sequence[Path], folder: Path, name: str, problems: Problems
) -> dict[QueryId, tuple[str, QueryRow]]:
    """The questions in order; those without a correct option are left out, with a message."""
    seen: dict[str, str] = {}
    found: dict[QueryId, tuple[str, QueryRow]] = {}
    odd = []
    for where, row, _ in _read(QueryRow, shards, problems):
        if not problems.is_new(f"query {row.query_id!r}", where, seen):
            continue
        found[row.query_id] = where, row
        if problem := row.answers[1]:
            odd.append(f"{where}: {problem}")
            del found[row.query_id]
            if problems.collect:
                problems.add(Kind.ROW, where, problem)
        options = [" ".join(option.casefold().split()) for option in option_texts(row.options)]
        if repeated := [option for option in options if options.count(option) > 1]:
            problems.add(Kind.ODD, where, f"two options are {repeated[0]!r}")
    first = "".join(f" ({each})" for each in odd[:1])
    if not found:
        problems.add(Kind.ROW, f"{folder}", f"no question with an answer that can be read{first}.")
    if odd:
        logger.info(f"{name}: left out {len(odd):,} of {len(seen):,} questions{first}")
    return found


def _read_labels(
    shards: Sequence[Path],
    queries: Mapping[QueryId, tuple[str, QueryRow]],
    pages: Iterable[_Page],
    name: str,
    problems: Problems,
) -> Labels:
    """Labels of every question; a message counts those without, and labels of other questions."""
    corpus = {page.doc_id for page in pages}
    labels: Labels = {query_id: {} for query_id in queries}
    others: set[QueryId] = set()
    for where, row, _ in _read(LabelRow, shards, problems):
        page, label = f"page {row.doc_id!r}", int(row.score)
        if row.query_id not in labels:
            others.add(row.query_id)
        elif row.doc_id not in corpus:
            words = f"{page} is not in the corpus ({len(corpus):,} pages). Fetch all configs again."
            problems.add(Kind.ROW, where, words)
        elif (before := labels[row.query_id].setdefault(row.doc_id, label)) != label:
            words = f"{page} is labelled {label}, and {before} before; expected one label."
            problems.add(Kind.ROW, where, words)
    bare = [query_id for query_id, found in labels.items() if not any(found.values())]
    for query_id in bare:
        problems.add(Kind.ODD, queries[query_id][0], "no gold page")
    if bare:
        logger.info(f"{name}: {len(bare):,} questions have no gold page, such as {bare[0]}")
    if others:
        words = f"labels of {len(others):,} questions that are not asked, such as {min(others)}"
        problems.add(Kind.ODD, "qrels", words)
        logger.info(f"{name}: {words}")
    return labels


def _groups(labels: Labels, pages: Iterable[_Page]) -> dict[QueryId, str]:
    document = {page.doc_id: page.document or page.doc_id for page in pages}
    gold = {
        query_id: [document[doc_id] for doc_id, label in found.items() if label]
        for query_id, found in labels.items()
    }
    return connected_groups(gold)


def _query(row: QueryRow, where: str, group: str, labels: Mapping[DocId, int]) -> Query:
    gold = sum(label > 0 for label in labels.values())
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
        answers=row.answers[0],
        choices=option_texts(row.options),
        group=group,
        metadata=metadata,
    )


def _document(page: _Page, store: Path, texts: Mapping[DocId, str]) -> Document:
    document = {"document": page.document} if page.document else {}
    return Document(
        doc_id=page.doc_id,
        image=ImageFile(store / page.pictures[0]),
        text=texts.get(page.doc_id),
        metadata={"id": decode_id(page.doc_id), **document},
    )
