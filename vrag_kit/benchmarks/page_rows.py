"""Rows of page benchmarks in parquet: the configs `corpus`, `queries` and `qrels`, in the
layout of VisRAG, ViDoRe and MTEB's copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.benchmarks.rows import encoded_image
from vrag_kit.benchmarks.sources import by_number, local_folder, read_shard, shards_problem
from vrag_kit.benchmarks.transforms import correct_option, option_texts, parse_id, parse_literal
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import Json

CONFIGS = ("corpus", "queries", "qrels")
_QUERY_IDS = ("query-id", "query_id", "_id", "id")
_PAGE_IDS = ("corpus-id", "corpus_id", "_id", "id")
_DOCUMENTS = ("doc-id", "doc_id", "document")
_FETCH = "Fetch it again; `vrag check` lists all that is wrong."
_WHAT = "a page benchmark: the folders corpus, queries and qrels, with parquet files"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """One row of `queries`."""

    where: str
    query_id: str
    text: str
    answers: tuple[str, ...]  # none where the data hide them
    choices: tuple[str, ...]
    is_numerical: bool | None  # None where the data do not tell
    problem: str  # why it cannot be asked; "" when it can


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLabel:
    """One row of `qrels`."""

    where: str
    query_id: str
    doc_id: str
    label: int


@dataclass(frozen=True, slots=True)
class PageRow:
    """One row of `corpus`."""

    where: str
    doc_id: str
    document: str  # "" where the data do not tell
    picture: object  # the field, which holds bytes


def page_folder(rows: Path | str, split: str) -> Path:
    """Return the folder of a benchmark; for the name of a data set, that of the hub cache."""
    patterns = [f"{config}/{split}-*.parquet" for config in CONFIGS]
    patterns += [f"{config}/{split}/*.parquet" for config in CONFIGS]
    return local_folder(rows, _WHAT, patterns)


def find_config(folder: Path, config: str, split: str) -> list[Path]:
    """List the shards of a config's split, by number.

    Raises `VragError` if there are none, if some are missing, and if two revisions with
    different layouts are in the folder.
    """
    found = list_config(folder, config, split)
    if problem := shards_problem(found):
        raise VragError(f"{found[0].parent}: {problem}")
    return found


def list_config(folder: Path, config: str, split: str) -> list[Path]:
    """List the shards of a config's split as `find_config` does, complete or not."""
    beside = list(folder.glob(f"{config}/{split}-*.parquet"))
    below = list(folder.glob(f"{config}/{split}/*.parquet"))
    if beside and below:
        raise VragError(
            f"{folder}: {config} is there twice, as {beside[0].relative_to(folder)} and as"
            f" {below[0].relative_to(folder)}: two revisions of the data set. Keep the files of"
            " one."
        )
    if not (beside or below):
        there = splits_in(folder)
        hint = f" The splits there are {', '.join(there)}." if there else ""
        raise VragError(
            f"{folder}: no shards of {config}, split {split!r}; expected"
            f" {config}/{split}-00000-of-00001.parquet, ….{hint} Get VisRAG's by `vrag fetch"
            " suite`."
        )
    return by_number(beside or below)


def splits_in(folder: Path) -> list[str]:
    """List the splits for which a folder has questions."""
    names = {path.name.split("-")[0] for path in folder.glob("queries/*-*.parquet")}
    return sorted(names | {path.parent.name for path in folder.glob("queries/*/*.parquet")})


def read_config(shards: Sequence[Path]) -> Iterator[tuple[str, Json]]:
    """Yield (where, unparsed row) for every row of a config, with only a few in memory.

    Raises `VragError` for a truncated or damaged file.
    """
    for shard in shards:
        for place, row in read_shard(shard, (), "a page benchmark"):
            yield f"{shard.parent.name}/{place}", row


def parse_page(row: Json, where: str) -> PageRow:
    """Parse a row of `corpus` and check that it has an image.

    Raises `VragError`, naming the row, if the image or the id is missing.
    """
    column, value = _first(row, _PAGE_IDS, where)
    doc_id = parse_id(value, column, where)
    named = f"{where} (page {doc_id})"
    if not encoded_image(row.get("image")):
        raise VragError(f"{named}: no picture (no bytes in image). {_FETCH}")
    document = next((row[name] for name in _DOCUMENTS if row.get(name) is not None), "")
    return PageRow(named, doc_id, str(document), row["image"])


def parse_query(row: Json, where: str) -> PageQuery:
    """Parse a row of `queries` and check that it has an id and a question.

    Raises `VragError`, naming the row, if one is missing, and for answers or options of
    another type.
    """
    column, value = _first(row, _QUERY_IDS, where)
    query_id = parse_id(value, column, where)
    named = f"{where} (query {query_id})"
    text = row.get("query") if row.get("query") is not None else row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise VragError(f"{named}: query is {short_repr(text)}, expected a question.")
    options = _texts(row.get("options"), "options", named)
    answers = _texts(row.get("answer", row.get("answers")), "answer", named)
    problem = ""
    if options and answers:
        found = [correct_option(answer, options) for answer in answers]
        problem = next((why for _, why in found if why), "")
        answers = () if problem else tuple(dict.fromkeys(option for option, _ in found))
    told = row.get("is_numerical")
    return PageQuery(
        where=named,
        query_id=query_id,
        text=text.strip(),
        answers=answers,
        choices=option_texts(options),
        is_numerical=None if told is None else bool(told),
        problem=problem,
    )


def parse_label(row: Json, where: str) -> PageLabel:
    """Parse a row of `qrels`. Raises `VragError`, naming the row, for a label that is not a
    non-negative whole number, and for a missing id.
    """
    column, value = _first(row, ("query-id", "query_id"), where)
    query_id = parse_id(value, column, where)
    named = f"{where} (query {query_id})"
    column, value = _first(row, ("corpus-id", "corpus_id"), named)
    score = row.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not _is_whole(score):
        raise VragError(
            f"{named}: score is {short_repr(score)}, expected a whole number from 0 on."
        )
    doc_id = parse_id(value, column, named)
    return PageLabel(where=named, query_id=query_id, doc_id=doc_id, label=int(score))


def query_warnings(query: PageQuery) -> list[str]:
    """Return warnings about a question that is unusual but usable."""
    plain = [" ".join(choice.casefold().split()) for choice in query.choices]
    repeated = [each for each in plain if plain.count(each) > 1]
    return [f"two options are {repeated[0]!r}"] if repeated else []


def _is_whole(score: float) -> bool:
    return score >= 0 and float(score).is_integer()


def _first(row: Mapping[str, object], names: Sequence[str], where: str) -> tuple[str, object]:
    """(column, value) of the first of these columns that a row has."""
    for name in names:
        if row.get(name) is not None:
            return name, row[name]
    raise VragError(
        f"{where}: no id; expected a column {' or '.join(names)}, found {', '.join(row)}."
    )


def _texts(value: object, column: str, where: str) -> tuple[str, ...]:
    """The texts of a column that is a text, a number, a list of them, or a list that is
    written as text; without blanks.
    """
    if isinstance(value, str) and value.strip().startswith("["):
        written = parse_literal(value)
        value = written if isinstance(written, list) else value
    values = value if isinstance(value, list) else [value]
    for each in values:
        if each is not None and not isinstance(each, str | int | float):
            raise VragError(f"{where}: {column} is {short_repr(value)}, expected texts.")
    return tuple(str(each).strip() for each in values if each is not None and str(each).strip())
