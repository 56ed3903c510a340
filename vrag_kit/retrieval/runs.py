"""Runs and relevance labels as tables and as TREC files.

A run is a DataFrame with the columns query_id, doc_id, rank (from 1) and score (float32
values), best first within each query; equal scores are ordered by doc_id descending, as
trec_eval does. It may be shallow: a query for which nothing was found has no row.
"""

from __future__ import annotations

import gzip
import math
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.options import read_entry
from vrag_kit.spelling import did_you_mean
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import display_path
from vrag_kit.workspace import path as project_path

Qrels = Mapping[str, Mapping[str, int]]
RUN_COLUMNS = ["query_id", "doc_id", "rank", "score"]
NAME = "retriever"
"""Key in a run's `attrs`: the retriever's name in tables."""


def make_run(rows: Iterable[tuple[str, str, float]] | pd.DataFrame) -> pd.DataFrame:
    """Order (query_id, doc_id, score) rows into a run. Queries are in order of first appearance,
    ranks by score, ties by doc_id descending.
    """
    frame = (
        rows
        if isinstance(rows, pd.DataFrame)
        else pd.DataFrame(list(rows), columns=["query_id", "doc_id", "score"])
    )
    frame = frame.astype({"query_id": str, "doc_id": str, "score": float})
    position = pd.Series(pd.factorize(frame["query_id"])[0], index=frame.index)
    frame = frame.assign(_query=position).sort_values(
        ["_query", "score", "doc_id"], ascending=[True, False, False], kind="stable"
    )
    frame["rank"] = frame.groupby("_query").cumcount() + 1
    return frame[RUN_COLUMNS].reset_index(drop=True)


def top_k_scores(scores: np.ndarray, names: Sequence[str], k: int) -> list[tuple[float, str]]:
    """Returns the k best (score, name), best first; ties by name descending, also at the cutoff.
    Returns all where there are fewer than k.

    `scores`: shape (n,), the score of each name.
    """
    k = min(k, len(names))
    if k < 1:
        return []
    reached = np.flatnonzero(scores >= np.partition(scores, -k)[-k]).tolist()
    return sorted(((float(scores[place]), names[place]) for place in reached), reverse=True)[:k]


def lexical_run(
    queries: Iterable[Query], names: Sequence[str], scores: Callable[[str], np.ndarray], k: int
) -> pd.DataFrame:
    """Returns the k texts that match each question best, as a run. A text with a score of 0 shares
    no word with the question, and is not a result.

    `scores(question)`: shape (n,), at least 0, the score of each name.
    """
    rows: list[tuple[str, str, float]] = []
    for query in queries:
        found = np.asarray(scores(query.text))
        places = np.flatnonzero(found > 0)
        matched = [names[place] for place in places.tolist()]
        best = top_k_scores(found[places], matched, k)
        rows += [(query.query_id, name, score) for score, name in best]
    return make_run(rows)


def write_run(run: pd.DataFrame, path: Path | str, tag: str) -> None:
    """Write a TREC run file: query_id Q0 doc_id rank score tag; gzipped if the name ends in ".gz".
    A file is replaced only when the new one is complete. White space in `tag` becomes a hyphen;
    raises `VragError` for an id with white space, and for an empty tag.
    """
    tag = re.sub(r"\s+", "-", tag)
    for each in (tag, *run["query_id"].unique(), *run["doc_id"].unique()):
        if not re.fullmatch(r"\S+", each):
            raise VragError(
                f"{path}: {each!r} cannot stand in a TREC run, whose fields white space parts."
                " Name it without."
            )
    lines = [
        f"{query_id} Q0 {doc_id} {rank} {score:.9g} {tag}\n"
        for query_id, doc_id, rank, score in run[RUN_COLUMNS].itertuples(index=False)
    ]
    content = "".join(lines).encode()
    gzipped = Path(path).suffix == ".gz"
    write_file(Path(path), gzip.compress(content, mtime=0) if gzipped else content)


def write_qrels(qrels: Qrels, path: Path | str) -> None:
    """Write a TREC qrels file: query_id 0 doc_id label."""

    def lines() -> Iterator[str]:
        for query_id, labels in qrels.items():
            yield "".join(f"{query_id} 0 {doc_id} {label}\n" for doc_id, label in labels.items())

    write_file(Path(path), lines())


class RunRow(NamedTuple):
    """A line of a run file."""

    line: int
    """Line number, from 1."""
    query_id: str
    doc_id: str
    score: float
    """As float32, which is what trec_eval compares."""
    rank: float
    """As in the file, not used for ordering; NaN where it is not a number."""


def read_run(path: Path | str) -> pd.DataFrame:
    """Read a TREC run file, plain or gzipped (".gz"). Ranks are recomputed from the scores; scores
    that are equal in float32 are ties, as in trec_eval.

    A printed note says how often ranks contradict the scores, and from which line on. A file in
    which all do is rejected: its scores are distances, and would be read backwards. Raises
    `VragError` for that, for an empty file, as a failed job may leave, and naming the line that is
    not a result.
    """
    return make_run((row.query_id, row.doc_id, row.score) for row in run_rows(path))


def run_rows(path: Path | str) -> list[RunRow]:
    """Returns the lines of a run file in order; raises as `read_run` does."""
    rows: list[RunRow] = []
    seen: dict[tuple[str, str], int] = {}
    for number, fields in _fields(Path(path), 6, "query_id Q0 doc_id rank score tag"):
        query_id, doc_id = fields[0], fields[2]
        rank = _number(fields[3])
        if not (math.isnan(rank) or rank.is_integer()):
            raise VragError(f"{path} line {number}: rank {fields[3]!r}; expected a whole number.")
        with np.errstate(over="ignore"):
            score = float(np.float32(_number(fields[4])))
        if not math.isfinite(score):
            raise VragError(
                f"{path} line {number}: score {fields[4]!r}; expected a number that 32 bits hold."
            )
        first = seen.setdefault((query_id, doc_id), number)
        if first != number:
            raise VragError(
                f"{path} line {number}: document {doc_id!r} of query {query_id!r} was already"
                f" ranked in line {first}; expected each once."
            )
        rows.append(RunRow(number, query_id, doc_id, score, rank))
    _check_ranks(path, rows)
    return rows


def _number(text: str) -> float:
    """Returns a text as a number; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_ranks(path: Path | str, rows: Sequence[RunRow]) -> None:
    """Raise `VragError` if all ranks contradict the scores, and print a note if some do."""
    compared, odd = 0, []
    ranked = [row for row in rows if not math.isnan(row.rank)]
    ordered = sorted(ranked, key=lambda row: (row.query_id, row.rank))
    for above, below in pairwise(ordered):
        apart = above.rank < below.rank and above.score != below.score
        if apart and above.query_id == below.query_id:
            compared += 1
            if below.score > above.score:
                odd.append((below, above))
    if not odd:
        return
    row, before = min(odd)
    found = (
        f"{path} line {row.line}: rank {row.rank:g} of query {row.query_id!r} has a higher score"
        f" ({row.score:g}) than rank {before.rank:g} in line {before.line} ({before.score:g})"
    )
    if len(odd) == compared:
        raise VragError(
            f"{found}, and so it is throughout the file. Scores must be higher for what fits"
            " better, since runs are read by them: write distances as negative numbers, or ranks"
            " that follow the scores."
        )
    print(
        f"note: {found}; {len(odd)} of {compared} neighbouring ranks contradict the scores, by"
        " which the run is read, as trec_eval does",
        file=sys.stderr,
    )


def read_qrels(path: Path | str) -> dict[str, dict[str, int]]:
    """Read a TREC qrels file as query_id → doc_id → label.

    Raises `VragError` naming the line that is not a judgment.
    """
    qrels: dict[str, dict[str, int]] = {}
    expected = "query_id 0 doc_id label"
    for number, (query_id, _, doc_id, label) in _fields(Path(path), 4, expected):
        if not re.fullmatch(r"-?\d+", label):
            raise VragError(f"{path} line {number}: label {label!r} is not a whole number.")
        if qrels.setdefault(query_id, {}).setdefault(doc_id, int(label)) != int(label):
            raise VragError(
                f"{path} line {number}: document {doc_id!r} of query {query_id!r} is labelled"
                f" {label} here and {qrels[query_id][doc_id]} before."
            )
    return qrels


def _fields(path: Path, count: int, expected: str) -> list[tuple[int, list[str]]]:
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        lines = content.decode("utf-8-sig").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise VragError(
            f"{path}: cannot be read ({error}). Give the path of a TREC file with lines"
            f" '{expected}'."
        ) from error
    rows = [(number, line.split()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise VragError(f"{path}: empty; expected lines '{expected}'.")
    for number, fields in rows:
        if len(fields) != count:
            raise VragError(
                f"{path} line {number}: {len(fields)} fields, expected {count}: '{expected}'."
            )
    return rows


ENDINGS = (".run", ".run.gz", ".trec", ".trec.gz")
"""File extensions that mark an entry as a run, even if the file does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A TREC run file named by an entry."""

    path: Path
    name: str
    """The entry's `name`, else the file name without extension; used in tables and file names."""

    def rows(self) -> list[RunRow]:
        """Returns its rows; raises `VragError` for a missing file, and as `read_run` does."""
        if not self.path.is_file():
            there = [file.name for file in self.path.parent.glob("*") if file.is_file()]
            hint = did_you_mean(self.path.name, there)
            raise VragError(
                f"retriever {display_path(self.path)!r}: there is no such file; expected a TREC"
                " run with"
                f" lines 'query_id Q0 doc_id rank score tag'.{hint}"
            )
        return run_rows(self.path)


def find_run_file(entry: object) -> RunFile | None:
    """Returns the run file that an entry of `retrievers` names; None for any other entry. A run is
    an existing file, or a name that ends in one of `ENDINGS`.

    Raises `VragError` for an option other than `name`.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    if not isinstance(spec, str):
        return None
    place = project_path(spec)
    if place.is_dir() or not (place.is_file() or spec.endswith(ENDINGS)):
        return None
    _, options = read_entry(entry, ("name",), "run")
    whole = place.name.removesuffix(".gz")
    name = options.get("name", whole.rpartition(".")[0] or whole)
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise VragError(f"run {spec!r}: name is {name!r}; expected a text without '/'.")
    return RunFile(path=place, name=name)


def external_run(file: RunFile, benchmark: Benchmark, k: int) -> pd.DataFrame:
    """Returns each question's first k documents in the file that are among its candidates. The run
    is as deep as the file; a printed line says how deep.

    The file may rank further questions. Raises `VragError` as `RunFile.rows` does, for a question
    without ranked documents, a document that the benchmark does not have, and a question without
    any of its candidates.
    """
    rows = file.rows()
    asked = [row for row in rows if row.query_id in benchmark.queries]
    _check_queries(file, benchmark, rows, {row.query_id for row in asked})
    pools: dict[str, set[str]] = {}
    kept: dict[str, list[RunRow]] = {query_id: [] for query_id in benchmark.queries}
    for row in asked:
        _check_document(file, benchmark, row)
        if row.query_id not in pools:
            pools[row.query_id] = set(benchmark.searchable(row.query_id))
        if row.doc_id in pools[row.query_id]:
            kept[row.query_id].append(row)
    for query_id, ranked in kept.items():
        if not ranked:
            raise VragError(
                f"{display_path(file.path)}: none of the documents that it ranks for query"
                f" {query_id!r} is"
                f" a candidate of it in {benchmark.name}, such as"
                f" {next(iter(benchmark.searchable(query_id)), None)!r}. Rank its candidates."
            )
    found = chain.from_iterable(kept.values())
    run = make_run((row.query_id, row.doc_id, row.score) for row in found)
    run = run[run["rank"] <= k].reset_index(drop=True)
    run.attrs[READ_FROM] = str(file.path.resolve())
    _tell(file, run, rows, asked, sum(map(len, kept.values())))
    return run


READ_FROM = "read from"
"""Key in a run's `attrs`: the file that it was read from, which must not be overwritten."""


def _check_queries(
    file: RunFile, benchmark: Benchmark, rows: list[RunRow], ranked: Collection[str]
) -> None:
    missing = [query_id for query_id in benchmark.queries if query_id not in ranked]
    if not missing:
        return
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    lack = f"it ranks nothing for {missing[0]!r}{others} of {len(benchmark.queries)} queries"
    stranger = next((row for row in rows if row.query_id not in benchmark.queries), None)
    if stranger is None:
        raise VragError(
            f"{display_path(file.path)}: {lack} of {benchmark.name}; expected a document at least"
            " for"
            " each. Search for these too, and write the run again."
        )
    hint = did_you_mean(stranger.query_id, missing)
    raise VragError(
        f"{display_path(file.path)} line {stranger.line}: query {stranger.query_id!r} is none of"
        f" {benchmark.name}, and {lack}.{hint} Write the run with the benchmark's ids of queries."
    )


def _check_document(file: RunFile, benchmark: Benchmark, row: RunRow) -> None:
    if row.doc_id in benchmark.corpus:
        return
    among = benchmark.searchable(row.query_id)
    example = f" Its documents are called such as {among[0]!r}." if among else ""
    hint = did_you_mean(row.doc_id, among) or example
    raise VragError(
        f"{display_path(file.path)} line {row.line}: document {row.doc_id!r} of query"
        f" {row.query_id!r} is"
        f" none of the {len(benchmark.corpus):,} of {benchmark.name}.{hint} Write the run with the"
        " benchmark's ids of documents; it belongs to one corpus."
    )


def _tell(
    file: RunFile, run: pd.DataFrame, rows: list[RunRow], asked: list[RunRow], kept: int
) -> None:
    depths = run["query_id"].value_counts()
    least, most = int(depths.min()), int(depths.max())
    depth = f"{most}" if least == most else f"{least} to {most}"
    line = f"run {file.name}: {len(depths):,} queries, {depth} documents each"
    if len(rows) > len(asked):
        line += f"; {len(rows) - len(asked):,} lines of other queries are passed over"
    if len(asked) > kept:
        line += f"; {len(asked) - kept:,} lines that are no candidates are passed over"
    logger.info(line)
