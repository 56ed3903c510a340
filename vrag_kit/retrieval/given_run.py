"""A run from elsewhere in the place of a retriever: a TREC file, held against a benchmark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.options import read_entry
from vrag_kit.retrieval.run import RunRow, make_run, run_rows
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shown

ENDINGS = (".run", ".run.gz", ".trec", ".trec.gz")
"""Of names that are meant as a run, also where there is no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A run that an entry names."""

    path: Path
    name: str
    """In tables and file names: the entry's `name`, else the file's without its ending."""

    def rows(self) -> list[RunRow]:
        """What it ranks; raises `VragError` for a file that is missing, and as `read_run` does."""
        if not self.path.is_file():
            there = [file.name for file in self.path.parent.glob("*") if file.is_file()]
            near = get_close_matches(self.path.name, there, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise VragError(
                f"retriever {shown(self.path)!r}: there is no such file; expected a TREC run with"
                f" lines 'query_id Q0 doc_id rank score tag'.{hint}"
            )
        return run_rows(self.path)


def run_file(entry: object) -> RunFile | None:
    """The run that an entry of `retrievers` names: a file, or what ends as one of
    `ENDINGS`; None for every other entry.

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


def given_run(file: RunFile, benchmark: Benchmark, k: int) -> pd.DataFrame:
    """The first k documents of each question, as deep as the file is, among those that a
    search would find: its candidates. A printed line says how many there are.

    A file may rank more questions than the benchmark asks. Raises `VragError` as
    `RunFile.rows` does, for a question that it ranks nothing for, a document that the
    benchmark does not have, and a question without any of its candidates.
    """
    rows = file.rows()
    asked = [row for row in rows if row.query_id in benchmark.queries]
    _check_queries(file, benchmark, rows, {row.query_id for row in asked})
    pools: dict[str, Collection[str]] = {}
    kept: dict[str, list[RunRow]] = {query_id: [] for query_id in benchmark.queries}
    for row in asked:
        _check_document(file, benchmark, row)
        if row.query_id not in pools:
            pools[row.query_id] = _pool(benchmark, row.query_id)
        if row.doc_id in pools[row.query_id]:
            kept[row.query_id].append(row)
    for query_id, ranked in kept.items():
        if not ranked:
            raise VragError(
                f"{shown(file.path)}: none of the documents that it ranks for query {query_id!r} is"
                f" a candidate of it in {benchmark.name}, such as"
                f" {next(iter(_pool(benchmark, query_id)), None)!r}. Rank its candidates."
            )
    found = chain.from_iterable(kept.values())
    run = make_run((row.query_id, row.doc_id, row.score) for row in found)
    run = run[run["rank"] <= k].reset_index(drop=True)
    run.attrs[READ_FROM] = str(file.path.resolve())
    _tell(file, run, rows, asked, sum(map(len, kept.values())))
    return run


READ_FROM = "read from"
"""In a run's `attrs`: the file that it was read from, so that nothing writes over it."""


def _pool(benchmark: Benchmark, query_id: str) -> Collection[str]:
    """What a query is searched in, and may find."""
    pool = benchmark.candidates(query_id)
    there: Collection[str] = benchmark.corpus if pool is None else pool
    left_out = benchmark.left_out.get(query_id, frozenset())
    return {doc_id: None for doc_id in there if doc_id not in left_out}


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
            f"{shown(file.path)}: {lack} of {benchmark.name}; expected a document at least for"
            " each. Search for these too, and write the run again."
        )
    near = get_close_matches(stranger.query_id, missing, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise VragError(
        f"{shown(file.path)} line {stranger.line}: query {stranger.query_id!r} is none of"
        f" {benchmark.name}, and {lack}.{hint} Write the run with the benchmark's ids of queries."
    )


def _check_document(file: RunFile, benchmark: Benchmark, row: RunRow) -> None:
    if row.doc_id in benchmark.corpus:
        return
    among = list(_pool(benchmark, row.query_id))
    near = get_close_matches(row.doc_id, among, 1)
    example = f" Its documents are called such as {among[0]!r}." if among else ""
    hint = f" Did you mean {near[0]!r}?" if near else example
    raise VragError(
        f"{shown(file.path)} line {row.line}: document {row.doc_id!r} of query {row.query_id!r} is"
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
    print(line, flush=True)
