"""Reads an external TREC run in place of a retriever, and checks it against a benchmark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.options import read_entry
from vrag_kit.retrieval.runs import RunRow, make_run, run_rows
from vrag_kit.spelling import did_you_mean
from vrag_kit.types import Benchmark
from vrag_kit.workspace import display_path
from vrag_kit.workspace import path as project_path

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
