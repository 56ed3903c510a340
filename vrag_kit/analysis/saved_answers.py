"""The judged answers of a notebook as a file beside its figures, to be compared later."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.notebook_parameters import notebook_parameters
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.forecast import current_forecast
from vrag_kit.frames import JUDGED
from vrag_kit.generation.served import SERVED, served_names
from vrag_kit.judging.judge import judge_words
from vrag_kit.plain import Json
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shown

SUFFIX = ".answers.jsonl.gz"
NEEDED = ["query_id", "group", "doc_ids", "answer", "status", "score"]
"""The columns of judged answers without which they are not saved."""
HOW = ("parameters", "judge_words")
"""Columns of saved answers that are long and mostly the same in all rows: the parameters of
the notebook that saved them (`notebook_parameters`), and what its judge was asked.
"""
_ALIKE = "in all rows"
"""The one name in the first line of a file: column → what all rows have."""


def save_answers(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """Write the table of `judge_all` into `folder`, a notebook's `figures_dir`, as
    <name>.answers.jsonl.gz: a row a line, with the question, what is accepted, which
    pictures in its prompt are relevant, and the store in `answers_dir` where the prompt
    can be read back; before them a line with the notebook's parameters and what the judge
    was asked. The same answers and parameters give the same bytes.

    What stands before the column query_id says how a row was asked: who compares
    matches answers by these columns. Raises `VragError` for a table without verdicts,
    and when the folder cannot be written. In a forecast, and of no answers, nothing is
    written.
    """
    save_suite_answers({"": judged}, {"": benchmark}, folder, name, answers_dir)


def save_suite_answers(
    judged: Mapping[str, pd.DataFrame],
    suite: Mapping[str, Benchmark],
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """`save_answers` of several data sets in one file: of each its table, by its name in
    both mappings. Raises as that does.
    """
    for table in judged.values():
        JUDGED.check(table, NEEDED, "save_answers")
    if current_forecast() or not any(map(len, judged.values())):
        return
    tables = [with_questions(judged[each], suite[each], answers_dir) for each in judged]
    rows = pd.concat(tables, ignore_index=True)
    alike = {name: rows[name].iloc[0] for name in HOW if rows[name].nunique() == 1}
    rows = rows.drop(columns=list(alike))
    lines = [{_ALIKE: alike}, *rows.astype(object).where(rows.notna(), None).to_dict("records")]
    text = "".join(f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in lines)
    place = Path(folder) / f"{name}{SUFFIX}"
    try:
        write_file(place, gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise VragError(
            f"{place}: the answers cannot be saved ({error.strerror}). Choose another"
            " `figures_dir`, or free space."
        ) from error
    print(f"saved {len(rows):,} answers in {place.name}", flush=True)


def with_questions(
    judged: pd.DataFrame, benchmark: Benchmark, answers_dir: Path | str
) -> pd.DataFrame:
    """The table of `judge_all` with question, references (what is accepted), relevant
    (where those pictures are that it was shown and that answer the question), and
    store, where its prompts can be read back; served, where an endpoint gave the model's
    name; and `HOW`. The column benchmark says whose
    the questions are, whatever corpus they were asked over.
    """
    queries = [benchmark.queries[query_id] for query_id in judged["query_id"]]
    served = served_names(judged, answers_dir)
    shown_to = zip(judged["query_id"], judged["doc_ids"], strict=True)
    return judged.assign(
        benchmark=benchmark.name,
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
        relevant=pd.Series([_relevant(benchmark, *row) for row in shown_to], judged.index),
        store=shown(Path(answers_dir) / "answers.sqlite"),
        **({SERVED: served} if served.any() else {}),
        parameters=notebook_parameters(),
        judge_words=judged["judge_key"].map(judge_words) if "judge_key" in judged else "",
    )


def load_answers(place: Path | str, *, only: str = "") -> pd.DataFrame:
    """The judged answers that notebooks saved in a folder and below it, or in one file:
    the columns of `judge_all`, question, references, relevant, store and `HOW`, and before
    them `experiment`, the file's place ("visual_rag/03_baselines").

    `only` takes the files whose place contains it. `place` is looked for here and then
    in the project. Raises `VragError` when there is none, and, with file and line, for
    a file that is damaged.
    """
    there = Path(place).expanduser()
    there = there if there.exists() else project_path(str(place))
    files = [there] if there.is_file() else sorted(there.rglob(f"*{SUFFIX}"))
    root = there.parent if there.is_file() else there
    named = {file.relative_to(root).as_posix().removesuffix(SUFFIX): file for file in files}
    chosen = {name: file for name, file in named.items() if only in name}
    if not chosen:
        found = ", ".join(named) or "none"
        wanted = f"*{only}*{SUFFIX}" if only else f"*{SUFFIX}"
        raise VragError(
            f"{there}: no answers to compare, which are files {wanted}; found {found}. Name the"
            " `figures_dir` of a run, or save a notebook's judged answers by `save_answers`."
        )
    tables = [_table(file, name) for name, file in chosen.items()]
    return pd.concat(tables, ignore_index=True)


def _relevant(benchmark: Benchmark, query_id: str, doc_ids: Sequence[str] | None) -> list[str]:
    """Where the pictures are that answer a query, of those that were shown."""
    labels = benchmark.qrels.get(query_id, {})
    answering = [doc_id for doc_id in doc_ids or () if labels.get(doc_id, 0) > 0]
    images = [benchmark.corpus[doc_id].image for doc_id in answering]
    return [image.where for image in images if image is not None]


def _table(file: Path, name: str) -> pd.DataFrame:
    rows = list(_rows(file))
    alike = rows.pop(0)[_ALIKE] if rows and _ALIKE in rows[0] else {}
    table = pd.DataFrame(rows).assign(**alike)
    if missing := [name for name in NEEDED if name not in table]:
        raise VragError(
            f"{file}: has no column {missing[0]!r}; found {', '.join(table.columns) or 'no row'}."
            " Run its notebook again."
        )
    table["doc_ids"] = [tuple(each or ()) for each in table["doc_ids"]]
    table.insert(0, "experiment", name)
    return table


def _rows(file: Path) -> Iterator[Json]:
    read = 0
    try:
        for text in gzip.decompress(file.read_bytes()).splitlines():
            read += 1
            yield json.loads(text)
    except (OSError, EOFError, ValueError) as error:
        raise VragError(
            f"{file} line {read}: not a table of answers ({error}); expected one JSON object a"
            " line, compressed by gzip. Delete it and run its notebook again."
        ) from error
