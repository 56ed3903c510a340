"""Loads the results of all notebooks as one table, and saves and loads judged answers."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import display_path, project_path, write_file
from vrag_kit.generation import stored_field
from vrag_kit.generation.ask import SERVED
from vrag_kit.judging.scale import require_columns
from vrag_kit.log import logger
from vrag_kit.types import Benchmark, Json
from vrag_kit.workspace import Workspace

RESULT_COLUMNS = (
    *("model", "retriever", "judge", "setting", "baseline", "k", "m", "draw", "metric"),
    *("value", "ci_low", "ci_high", "ci_low_runs", "ci_high_runs", "n", "n_failed"),
)
"""The columns that the papers' tables and the kit's share, in this order everywhere."""
FIRST = ("folder", "experiment", "source", *RESULT_COLUMNS, "unit")
"""The columns that come first, in this order; the others follow as the files have them.
"""
TABLE = ".table.csv"
"""The suffix of files with a formatted table, which are no results."""
_NAMES = (
    *("folder", "experiment", "source", "model", "retriever", "judge"),
    *("setting", "baseline", "metric", "unit"),
)
_COUNTS = ("k", "m", "draw", "n", "n_failed")
_NUMBERS = (*_COUNTS, "value", "ci_low", "ci_high")


def load_results(folder: Path | str) -> pd.DataFrame:
    """Loads every CSV that notebooks saved in `folder` and below it (`NN_name.csv`) as one table.
    The column `experiment` is the file's name, `folder` its subfolder, as in "visual_rag" ("" at
    the top).

    `source` names the data of a row: a benchmark's name, or "Visual-RAG, reported"; in results of
    several data sets `dataset` or `benchmark` does. `retriever` names the retriever of the
    evidence, `judge` the judge of the answers, as in tables; "" where there is none, and for
    published numbers. A row with a `baseline` is a difference from it, and its metric is named so
    ("difference in accuracy", in points); without one, `value` is the metric itself, except for
    statements of a paper, whose sentence (`statement`) says what is compared.

    Rows are as in the files, columns those of any file, `FIRST` first. Counts (k, m,
    draw, n, n_…) are Int64 where all are whole; other numbers are float64; True and
    False are boolean; text stays text, also "None" and "NA". Where a file has no such
    column or an empty cell, a number is NaN (or NA) and a text is "". `folder` is
    looked for here and then in the project, as in a parameter file. Raises `VragError`
    when it is not there or holds no such file, and, with file and row, for a file that
    is damaged.
    """
    place = _found(folder)
    files = result_files(place)
    if not files:
        raise VragError(
            f"{place}: holds no results, which are files like 03_baselines.csv. Run `vrag run"
            " params/visual_rag/demo.yaml`, or name the `figures_dir` of your parameter file."
        )
    results = pd.concat([_read(file, place) for file in files], ignore_index=True)
    first = [name for name in FIRST if name in results]
    columns = [*first, *results.columns.difference(first, sort=False)]
    return pd.DataFrame({name: _typed(results[name]) for name in columns})


def _found(place: Path | str) -> Path:
    """A path as seen from here or, where there is none, from the project."""
    here = Path(place).expanduser()
    return here if here.exists() else project_path(place)


def result_files(folder: Path) -> list[Path]:
    """The CSV files of results in a folder of figures and below it, sorted by path."""
    found = sorted(folder.rglob("[0-9][0-9]_*.csv"))
    return [file for file in found if not file.name.endswith(TABLE)]


def _read(file: Path, root: Path) -> pd.DataFrame:
    """One file, all cells as text."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header, *rows = list(filter(None, csv.reader(lines, strict=True))) or [[]]
        table = _checked(header, rows)
    except (OSError, ValueError, csv.Error) as error:
        raise VragError(f"{file}: {error}. Delete it and run its notebook again.") from error
    folder = file.parent.relative_to(root).as_posix()
    return table.assign(experiment=file.stem, folder="" if folder == "." else folder)


def _checked(header: list[str], rows: list[list[str]]) -> pd.DataFrame:
    """The cells as text. Raises `ValueError` unless columns have names of their own, rows a cell
    for each, and `_NUMBERS` numbers.
    """
    if not header or len({*header, "folder", "experiment"}) < len(header) + 2:
        found = ", ".join(header) or "none"
        raise ValueError(f"found {found}; expected different column names but folder, experiment")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"data row {number}: found {len(row)} cells, expected {len(header)}")
    table = pd.DataFrame(rows, columns=header, dtype=str)
    for name, cells in table[table.columns.intersection(list(_NUMBERS))].items():
        wrong = cells.ne("") & pd.to_numeric(cells, errors="coerce").isna()
        if wrong.any():
            at = wrong.argmax()
            raise ValueError(f"data row {at + 1}: {name} is {cells[at]!r}, expected a number")
    return table


def _typed(cells: pd.Series) -> pd.Series:
    """The column in its type, by its name and all its cells."""
    cells = cells.fillna("")
    filled = cells[cells != ""]
    if cells.name in _NAMES or str(cells.name).endswith("_id"):
        return cells
    if len(filled) and filled.isin(["True", "False"]).all():
        return cells.map({"True": True, "False": False}).astype("boolean")
    numbers = pd.to_numeric(filled, errors="coerce").astype("float64").reindex(cells.index)
    if numbers.count() < len(filled) or (filled.empty and cells.name not in _NUMBERS):
        return cells
    counts = cells.name in _COUNTS or str(cells.name).startswith("n_")
    whole = counts and (np.mod(numbers.dropna(), 1) == 0).all()
    return numbers.astype("Int64") if whole else numbers


SUFFIX = ".answers.jsonl.gz"
"""The suffix of a file of answers."""
NEEDED = ["query_id", "group", "doc_ids", "answer", "status", "score"]
"""The columns of judged answers that saving requires."""
_SAVED = [*NEEDED, "parameters", "judge_prompt"]
"""The columns that a file of answers has at least."""


def notebook_parameters() -> str:
    """The parameters of the running notebook as JSON, {name: current value}; "" outside of a
    notebook.

    Parameters are the names assigned in the cells before the first import: the cell of parameters,
    and the one that papermill adds. Names that end in `_dir`, by convention output folders, are
    left out.
    """
    from IPython.core.getipython import get_ipython

    if (shell := get_ipython()) is None:
        return ""
    known = shell.user_ns
    cells = takewhile(lambda cell: not re.search(r"^(from|import) ", cell, re.M), known["In"])
    names = re.findall(r"^(\w+) *=", "\n".join(cells), re.M)
    given = {name: known[name] for name in names if name in known and not name.endswith("_dir")}
    return json.dumps(given, ensure_ascii=False, default=str)


def save_answers(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    at: Workspace,
    name: str,
) -> None:
    """Saves the table of `judge_answers` in the workspace's `figures_dir` as
    <name>.answers.jsonl.gz: one line per row, with the columns of `add_questions`. The same answers
    and parameters give the same bytes.

    The columns before query_id are the condition of a row: comparisons match answers by them.
    Raises `VragError` for a table without verdicts. In a dry run, and without answers, nothing is
    written.
    """
    save_collection_answers({"": judged}, {"": benchmark}, at, name)


def save_collection_answers(
    judged: Mapping[str, pd.DataFrame],
    suite: Mapping[str, Benchmark],
    at: Workspace,
    name: str,
) -> None:
    """Saves the judged answers of several data sets in one file, each under its name in both
    mappings. Raises as `save_answers` does.
    """
    for table in judged.values():
        require_columns(table, NEEDED, "save_answers")
    if current_dry_run() or not any(map(len, judged.values())):
        return
    tables = [add_questions(judged[each], suite[each], at) for each in judged]
    rows = pd.concat(tables, ignore_index=True)
    lines = rows.astype(object).where(rows.notna(), None).to_dict("records")
    text = "".join(f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in lines)
    place = project_path(at.figures_dir) / f"{name}{SUFFIX}"
    write_file(place, gzip.compress(text.encode(), mtime=0))
    logger.info(f"saved {len(rows):,} answers in {place.name}")


def add_questions(judged: pd.DataFrame, benchmark: Benchmark, at: Workspace) -> pd.DataFrame:
    """Adds to the table of `judge_answers` question, references (accepted answers), relevant (the
    relevant ones of its doc_ids), relevant_images (of each the place of its image; "" for a text),
    and store, the answer store with its prompts; served_model, where an endpoint gave the model's
    name; parameters, those of the running notebook (`notebook_parameters`); and judge_prompt. The
    column benchmark names that of the questions, whatever corpus was searched.
    """
    queries = [benchmark.queries[query_id] for query_id in judged["query_id"]]
    served = stored_field(judged, at, SERVED).fillna("")
    relevant = [
        [doc_id for doc_id in doc_ids or () if benchmark.qrels.get(query_id, {}).get(doc_id, 0) > 0]
        for query_id, doc_ids in zip(judged["query_id"], judged["doc_ids"], strict=True)
    ]
    images = [[_image_place(benchmark, doc_id) for doc_id in each] for each in relevant]
    return judged.assign(
        benchmark=benchmark.name,
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
        relevant=pd.Series(relevant, judged.index, dtype=object),
        relevant_images=pd.Series(images, judged.index, dtype=object),
        store=display_path(at.answers_file),
        **({"served_model": served} if served.any() else {}),
        parameters=notebook_parameters(),
        judge_prompt=judged.get("judge_prompt", ""),
    )


def _image_place(benchmark: Benchmark, doc_id: str) -> str:
    document = benchmark.corpus.get(doc_id)
    return document.image.where if document and document.image else ""


def load_answers(place: Path | str, *, only: str = "") -> pd.DataFrame:
    """Loads the judged answers that notebooks saved in a folder and below it, or in one file: the
    columns of `add_questions`, and before them `experiment`, the file's path
    ("visual_rag/03_baselines").

    `only` selects the files whose path contains it. `place` is looked for here and then in the
    project. Raises `VragError` when there is none, and, with file and line, for a file that is
    damaged, or in a former format.
    """
    root = _found(place)
    files = [root] if root.is_file() else sorted(root.rglob(f"*{SUFFIX}"))
    root = root.parent if root.is_file() else root
    named = {file.relative_to(root).as_posix().removesuffix(SUFFIX): file for file in files}
    chosen = {name: file for name, file in named.items() if only in name}
    if not chosen:
        raise VragError(
            f"{root}: no answers to compare in files *{only}*{SUFFIX}; found"
            f" {', '.join(named) or 'none'}. Name the `figures_dir` of a run."
        )
    tables = [_table(file, name) for name, file in chosen.items()]
    return pd.concat(tables, ignore_index=True)


def _table(file: Path, name: str) -> pd.DataFrame:
    rows: list[Json] = []
    place = f"{file}"
    try:
        for number, text in enumerate(gzip.decompress(file.read_bytes()).splitlines(), start=1):
            place = f"{file} line {number}"
            rows.append(json.loads(text))
    except (OSError, EOFError, ValueError) as error:
        raise VragError(
            f"{place}: not a table of answers ({error}); expected one JSON object a line,"
            " compressed by gzip. Delete it and run its notebook again."
        ) from error
    if not rows or not set(_SAVED) <= set(rows[0]):
        found = ", ".join(map(repr, rows[0])) if rows else "no row"
        raise VragError(
            f"{file} line 1: found {found}; expected {', '.join(_SAVED)}. Run its notebook again."
        )
    table = pd.DataFrame(rows)
    table["doc_ids"] = [tuple(each or ()) for each in table["doc_ids"]]
    table.insert(0, "experiment", name)
    return table


def portable_path(part: str) -> str:
    """Return a path for sharing: relative to the project, or the file name alone. Text that is not
    an absolute path is unchanged.
    """
    place = Path(part)
    if not place.is_absolute():
        return part
    shown = display_path(place)
    return place.name if Path(shown).is_absolute() else shown
