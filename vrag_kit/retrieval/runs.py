"""Runs and relevance labels as tables and as TREC files.

A run is a DataFrame with the columns query_id, doc_id, rank (from 1) and score, best first within
each query; equal scores are ordered by doc_id descending everywhere, as trec_eval does
(`make_run`). It may be shallow: a query for which nothing was found has no row. `external_run`,
`read_run` and `make_run` bring in runs of other tools; scores in files are float32.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.config import check_name, read_entry
from vrag_kit.errors import VragError
from vrag_kit.files import display_path, project_path, write_file
from vrag_kit.log import logger
from vrag_kit.types import Benchmark

Qrels = Mapping[str, Mapping[str, int]]
RUN_COLUMNS = ["query_id", "doc_id", "rank", "score"]
NAME = "retriever"
"""Key in a run's `attrs`: the retriever's name in tables."""
READ_FROM = "read from"
"""Key in a run's `attrs`: the file that it was read from, which must not be overwritten."""
ENDINGS = (".run", ".run.gz", ".trec", ".trec.gz")
"""File extensions that mark an entry as a run, even if the file does not exist."""
_RUN_LINE = "query_id Q0 doc_id rank score tag"
_QRELS_LINE = "query_id 0 doc_id label"


def make_run(rows: Iterable[tuple[str, str, float]] | pd.DataFrame) -> pd.DataFrame:
    """Order (query_id, doc_id, score) rows into a run. Queries are in order of first appearance,
    ranks by score, ties by doc_id descending.
    """
    rows = rows if isinstance(rows, pd.DataFrame) else list(rows)
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    frame = frame.astype({"query_id": str, "doc_id": str, "score": float})
    position = pd.Series(pd.factorize(frame["query_id"])[0], index=frame.index)
    frame = frame.assign(_query=position).sort_values(
        ["_query", "score", "doc_id"], ascending=[True, False, False], kind="stable"
    )
    frame["rank"] = frame.groupby("_query").cumcount() + 1
    return frame[RUN_COLUMNS].reset_index(drop=True)


def write_run(run: pd.DataFrame, path: Path | str, tag: str) -> None:
    """Write a TREC run file: query_id Q0 doc_id rank score tag; gzipped if the name ends in ".gz".
    A file is replaced only when the new one is complete. White space in `tag` becomes a hyphen;
    raises `VragError` for an id with white space, and for an empty tag.
    """
    tag = re.sub(r"\s+", "-", tag)
    for name in (tag, *run["query_id"].unique(), *run["doc_id"].unique()):
        if not re.fullmatch(r"\S+", name):
            raise VragError(
                f"{path}: {name!r} cannot stand in a TREC run; expected a name without white space."
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
    lines: list[str] = []
    for query_id, labels in qrels.items():
        lines += [f"{query_id} 0 {doc_id} {label}\n" for doc_id, label in labels.items()]
    write_file(Path(path), lines)


def read_run(path: Path | str) -> pd.DataFrame:
    """Read a TREC run file, plain or gzipped (".gz"). Ranks are recomputed from the scores; scores
    that are equal in float32 are ties, as in trec_eval.

    Raises `VragError` for a file whose ranks all contradict the scores, which are distances then,
    for an empty file, as a failed job may leave, and naming the line that is not a result.
    """
    return make_run(read_run_lines(path))


def read_run_lines(path: Path | str) -> pd.DataFrame:
    """Returns the lines of a run file: query_id, doc_id, rank (float, as in the file; NaN where it
    is not a number) and score. The index is the line number, from 1; raises as `read_run` does.
    """
    lines = _read_fields(Path(path), _RUN_LINE)
    ranks = pd.to_numeric(lines["rank"], errors="coerce")
    scores = pd.to_numeric(lines["score"], errors="coerce")
    with np.errstate(over="ignore"):
        scores = scores.astype(np.float32).astype(float)
    _refuse(path, lines["rank"][ranks.notna() & (ranks % 1 != 0)], "a whole number")
    _refuse(path, lines["score"][~np.isfinite(scores)], "a number that 32 bits hold")
    keys = ["query_id", "doc_id"]
    twice = lines[lines.duplicated(keys)]
    if len(twice):
        row = twice.iloc[0]
        first = lines.index[(lines[keys] == row[keys]).all(axis=1)][0]
        raise VragError(
            f"{path} line {twice.index[0]}: document {row['doc_id']!r} of query"
            f" {row['query_id']!r} was already ranked in line {first}; expected each once."
        )
    lines = lines.assign(rank=ranks, score=scores)[RUN_COLUMNS]
    _check_ranks(path, lines)
    return lines


def read_qrels(path: Path | str) -> dict[str, dict[str, int]]:
    """Read a TREC qrels file as query_id → doc_id → label.

    Raises `VragError` naming the line that is not a judgment.
    """
    lines = _read_fields(Path(path), _QRELS_LINE)
    _refuse(path, lines["label"][~lines["label"].str.fullmatch(r"-?\d+")], "a whole number")
    qrels: dict[str, dict[str, int]] = {}
    for number, query_id, _, doc_id, label in lines.itertuples():
        before = qrels.setdefault(query_id, {}).setdefault(doc_id, int(label))
        if before != int(label):
            raise VragError(
                f"{path} line {number}: document {doc_id!r} of query {query_id!r} has two labels,"
                f" {before} and {label}."
            )
    return qrels


def _read_fields(path: Path, names: str) -> pd.DataFrame:
    """Returns the fields of a TREC file as text; the index is the line number, from 1."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig") as file:
            lines = dict(enumerate(map(str.split, file), start=1))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise VragError(
            f"{display_path(path)}: no such file, or one that cannot be read ({error}); expected"
            f" lines '{names}'."
        ) from error
    rows = {number: fields for number, fields in lines.items() if fields}
    if not rows:
        raise VragError(f"{path}: empty; expected lines '{names}'.")
    columns = names.split()
    for number, fields in rows.items():
        if len(fields) != len(columns):
            raise VragError(
                f"{path} line {number}: {len(fields)} fields, expected {len(columns)}: '{names}'."
            )
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _refuse(path: Path | str, wrong: pd.Series, expected: str) -> None:
    """Raise `VragError` for the first of a column's wrong fields, if there is one."""
    if len(wrong):
        found = f"{wrong.name} {wrong.iloc[0]!r}"
        raise VragError(f"{path} line {wrong.index[0]}: {found}; expected {expected}.")


def _check_ranks(path: Path | str, lines: pd.DataFrame) -> None:
    """Raise `VragError` if all ranks contradict the scores."""
    ranked = lines[lines["rank"].notna()].sort_values(["query_id", "rank"], kind="stable")
    above = ranked.shift()
    compared = (ranked["query_id"] == above["query_id"]) & (ranked["rank"] > above["rank"])
    compared &= ranked["score"] != above["score"]
    odd = compared & (ranked["score"] > above["score"])
    if odd.any() and odd.sum() == compared.sum():
        line = ranked.index[odd].min()
        lower, higher = ranked.loc[line], above.loc[line]
        raise VragError(
            f"{path} line {line}: rank {lower['rank']:g} of query {lower['query_id']!r} has a"
            f" higher score ({lower['score']:g}) than rank {higher['rank']:g}"
            f" ({higher['score']:g}), and so throughout the file. Write distances as negative"
            " numbers."
        )


def find_run_file(entry: object) -> tuple[str, Path] | None:
    """Returns the name and path of the run file that an entry of `retrievers` names; None for any
    other entry. A run is an existing file, or a name that ends in one of `ENDINGS`. Its name, for
    tables and files, is the entry's `name`, else the file name without extension.

    Raises `VragError` for an option other than `name`.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    if not isinstance(spec, str):
        return None
    place = project_path(spec)
    if place.is_dir() or not (place.is_file() or spec.endswith(ENDINGS)):
        return None
    _, options = read_entry(entry, "run", ("name",))
    whole = place.name.removesuffix(".gz")
    name = options.get("name", whole.rpartition(".")[0] or whole)
    return check_name(name, f"run {spec!r}"), place


def external_run(name: str, path: Path, benchmark: Benchmark, k: int) -> pd.DataFrame:
    """Returns each question's first k documents in the file that are among its candidates. The run
    is as deep as the file.

    The file may rank further questions and documents. Raises `VragError` as `read_run` does, and
    for a question without any of its candidates.
    """
    place = display_path(path)
    lines = read_run_lines(path)
    ranked = dict(list(lines.groupby("query_id")))
    if missing := [query_id for query_id in benchmark.queries if query_id not in ranked]:
        raise VragError(
            f"{place}: {len(missing)} of {len(benchmark.queries)} queries of {benchmark.name} have"
            f" no ranked document, the first is {missing[0]!r}; line 1 is of query"
            f" {lines['query_id'].iloc[0]!r}."
        )
    parts = []
    for query_id in benchmark.queries:
        part, candidates = ranked[query_id], benchmark.searchable(query_id)
        allowed = set(candidates)
        part = part[[doc_id in allowed for doc_id in part["doc_id"]]]
        if part.empty:
            raise VragError(
                f"{place}: none of the documents ranked for query {query_id!r}"
                f" is among its candidates in {benchmark.name}, such as {candidates[:1]}."
            )
        parts.append(part)
    run = make_run(pd.concat(parts))
    skipped = f"{len(lines) - len(run):,} lines of other queries and other documents"
    logger.info(f"run {name}: skipped {skipped}")
    run = run[run["rank"] <= k].reset_index(drop=True)
    run.attrs[READ_FROM] = str(path.resolve())
    return run


def clip_cutoffs(ks: Sequence[int], most: int, available: str) -> list[int]:
    """Clip the cutoffs `ks` to `most`, in their order and without duplicates. A warning is logged
    if any k is clipped.

    `available` describes the documents there are, such as "query 'q1' has 12 candidates".
    """
    larger = list(dict.fromkeys(k for k in ks if k > most))
    if larger:
        logger.warning(f"k = {', '.join(map(str, larger))} is cut to {most}: {available}")
    return list(dict.fromkeys(min(k, most) for k in ks))


def common_cutoffs(
    benchmark: Benchmark, run: pd.DataFrame, ks: Sequence[int], name: str = "the run"
) -> list[int]:
    """Clip the cutoffs `ks`, as `clip_cutoffs`, to the fewest documents that a run holds for a
    query.

    Raises `VragError`, which begins with `name`, for a query without documents.
    """
    depths = run["query_id"].value_counts().reindex(list(benchmark.queries), fill_value=0)
    query_id, depth = str(depths.idxmin()), int(depths.min())
    words = f"{name} holds {depth} documents for query {query_id!r}"
    if not depth:
        raise VragError(f"{words}, so there is no k to compare all queries at. Leave it out.")
    return clip_cutoffs(ks, depth, words)
