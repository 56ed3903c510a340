"""Small data for the tests: a benchmark, a table of answers, and one of scored answers."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.types import Benchmark, Document, Query


def benchmark(
    queries: Iterable[str | Query] = ("q",),
    documents: Iterable[str | Document] = (),
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    **more: Any,
) -> Benchmark:
    """A benchmark of these queries, each a group of its own, and documents, whole or by id."""
    asked = [Query(query_id=q, text="What?", group=q) if isinstance(q, str) else q for q in queries]
    shown = [Document(doc_id=d) if isinstance(d, str) else d for d in documents]
    whole: dict[str, Any] = {"name": "toy", "fingerprint": "f", **more}
    return Benchmark(
        queries={query.query_id: query for query in asked},
        corpus={document.doc_id: document for document in shown},
        qrels=qrels or {query.query_id: {} for query in asked},
        **whole,
    )


ASKED = {"model": "m", "setting": "gt_clue", "k": 1, "draw": 0, "sample": 0, "status": "ok"}


def answers(**columns: Any) -> pd.DataFrame:
    """Answers to q0, q1, …, each a group of its own, or with these columns, of which one is a
    list, instead.
    """
    table = pd.DataFrame({"detail": "", **columns})
    names = [f"q{number}" for number in range(len(table))]
    table = table.assign(**{"query_id": names, **ASKED, **columns})
    return table.assign(group=columns.get("group", table["query_id"]))


def judged(**columns: Any) -> pd.DataFrame:
    """Answers with their scores, the column `score`; nobody abstains."""
    return answers(**{"abstained": 0.0, **columns})


def judged_arms(
    scores: Mapping[Any, Sequence[float]],
    names: Sequence[str] = ("model", "setting", "k"),
    **columns: Any,
) -> pd.DataFrame:
    """Scored answers of several arms, each known by the values of `names`: one a query."""
    tables = []
    for arm, values in scores.items():
        of = dict(zip(names, arm if isinstance(arm, tuple) else (arm,), strict=True))
        tables.append(judged(score=list(values), **of, **columns))
    return pd.concat(tables, ignore_index=True)


def directory_digest(folder: Path) -> str:
    """The sha256 of names and bytes of all files below a folder, but for locks."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name != ".lock":
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def labelled(n: int = 40, **changes: Any) -> pd.DataFrame:
    """`n` judged answers to ten queries, with several draws each."""
    numbers = range(n)
    table = judged(
        query_id=[f"q{i % 10}" for i in numbers],
        draw=[i // 10 for i in numbers],
        answer=[f"answer {i % 3}" for i in numbers],
        score=[float(i % 2) for i in numbers],
        verdict="Score: secret",
    )
    return table.assign(**changes)


def read_data(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of `tests/data`, such as answers that were labelled by hand."""
    with (Path(__file__).parent / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
