"""Loads the tidy results of all notebooks as one table."""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.images import find_damaged
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.generation import AnswerStore, stored_field
from vrag_kit.generation.ask import SERVED
from vrag_kit.log import logger
from vrag_kit.tables import require_columns
from vrag_kit.types import Benchmark, Json
from vrag_kit.workspace import display_path
from vrag_kit.workspace import path as project_path


def notebook_parameters() -> str:
    """The parameters of the running notebook as JSON, {name: current value}; "" outside of a
    notebook.

    Parameters are the names assigned by cells that only assign plain values: the cell of
    parameters, and the one that papermill adds. Names that end in `_dir`, by convention output
    folders, are left out.
    """
    if "IPython" not in sys.modules:
        return ""
    from IPython.core.getipython import get_ipython

    if (shell := get_ipython()) is None:
        return ""
    known = shell.user_ns
    given = {}
    for source in known.get("In", []):
        for name in _assigned(source):
            if name in known and not name.endswith("_dir"):
                given[name] = known[name]
    return json.dumps(given, ensure_ascii=False, default=str)


def _assigned(source: str) -> Iterator[str]:
    """The names that a cell gives plain values; none where it does anything else."""
    try:
        statements = ast.parse(source).body
        for each in statements:
            ast.literal_eval(each.value)  # type: ignore[attr-defined]  # or it raises
    except (AttributeError, SyntaxError, TypeError, ValueError):
        return
    for each in statements:
        targets = each.targets if isinstance(each, ast.Assign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))


RESULT_COLUMNS = (
    "model",
    "retriever",
    "judge",
    "setting",
    "baseline",
    "k",
    "m",
    "draw",
    "metric",
    "value",
    "ci_low",
    "ci_high",
    "ci_low_runs",
    "ci_high_runs",
    "n",
    "n_failed",
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
    place = Path(folder).expanduser()
    place = place if place.is_dir() else project_path(str(folder))
    if not place.is_dir():
        raise VragError(
            f"{place}: no such folder of results. Run `vrag run params/visual_rag/demo.yaml`"
            " first, or name the `figures_dir` of your parameter file."
        )
    files = result_files(place)
    if not files:
        raise VragError(
            f"{place}: holds no results, which are files like 03_baselines.csv. Run `vrag run"
            " params/visual_rag/demo.yaml` first, or name another folder."
        )
    results = pd.concat([_read(file, place) for file in files], ignore_index=True)
    columns = [
        *(name for name in FIRST if name in results),
        *(name for name in results if name not in FIRST),
    ]
    return pd.DataFrame({name: _typed(results[name]) for name in columns})


def result_files(folder: Path) -> list[Path]:
    """The CSV files of results in a folder of figures and below it, sorted by path."""
    found = sorted(folder.rglob("[0-9][0-9]_*.csv"))
    return [file for file in found if not file.name.endswith(TABLE)]


def _read(file: Path, place: Path) -> pd.DataFrame:
    """One file, all cells as text."""
    again = "Delete it and run its notebook again."
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header, *rows = [row for row in csv.reader(lines, strict=True) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise VragError(f"{file}: not a readable table ({error}). {again}") from error
    if not header:
        raise VragError(f"{file}: it is empty; expected a line of column names. {again}")
    if {"folder", "experiment"} & set(header) or len(set(header)) < len(header):
        raise VragError(
            f"{file}: its columns are {', '.join(header)}; expected different names, and none"
            f" called folder or experiment, which say where the file is. {again}"
        )
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise VragError(
                f"{file} data row {number}: found {len(row)} cells, expected {len(header)}, one for"
                f" each column. {again}"
            )
    table = pd.DataFrame(rows, columns=header, dtype=str)
    for name in (name for name in _NUMBERS if name in table):
        wrong = (table[name] != "") & pd.to_numeric(table[name], errors="coerce").isna()
        if wrong.any():
            raise VragError(
                f"{file} data row {wrong.argmax() + 1}: {name} is {table[name][wrong.argmax()]!r},"
                f" expected a number. {again}"
            )
    table.insert(0, "experiment", file.stem)
    folder = file.parent.relative_to(place).as_posix()
    table.insert(0, "folder", "" if folder == "." else folder)
    return table


def _typed(cells: pd.Series) -> pd.Series:
    """The column in its type, told from its name and from all its cells."""
    cells = cells.fillna("")
    filled = cells[cells != ""]
    if (
        cells.name in _NAMES
        or str(cells.name).endswith("_id")
        or (cells.name not in _NUMBERS and filled.empty)
    ):
        return cells
    if filled.isin(["True", "False"]).all() and not filled.empty:
        return cells.map({"True": True, "False": False}).astype("boolean")
    numbers = pd.to_numeric(cells, errors="coerce").astype("float64")
    if numbers[filled.index].isna().any():
        return cells
    counts = cells.name in _COUNTS or str(cells.name).startswith("n_")
    whole = counts and (np.mod(numbers[filled.index], 1) == 0).all()
    return numbers.astype("Int64") if whole else numbers


SUFFIX = ".answers.jsonl.gz"
"""The suffix of the file of the table …"""
ABOUT = ".answers.about.json"
"""… and of the one with what is common to all rows: column → value, and `_OF`."""
NEEDED = ["query_id", "group", "doc_ids", "answer", "status", "score"]
"""The columns of judged answers that saving requires."""
HOW = ("parameters", "judge_prompt")
"""Columns of saved answers that are long and mostly the same in all rows: the parameters of the
notebook that saved them (`notebook_parameters`), and its judge's prompt.
"""
_OF = "sha256"
"""The hash of the table that a file `ABOUT` belongs to."""
_FORMER = ("in all rows", "judged_by")
"""A name in the first line of a file of a former form."""


def save_answers(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """Saves the table of `judge_answers` in `folder`, a notebook's `figures_dir`, as
    <name>.answers.jsonl.gz: one line per row, with the columns of `add_questions`. What is the same
    in all rows of `HOW`, the notebook's parameters and the judge's prompt, is in
    <name>.answers.about.json. The same answers and parameters give the same bytes.

    The columns before query_id are the condition of a row: comparisons match answers by them.
    Raises `VragError` for a table without verdicts, and when the folder cannot be written. In a dry
    run, and without answers, nothing is written.
    """
    save_collection_answers({"": judged}, {"": benchmark}, folder, name, answers_dir)


def save_collection_answers(
    judged: Mapping[str, pd.DataFrame],
    suite: Mapping[str, Benchmark],
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """Saves the judged answers of several data sets in one file, each under its name in both
    mappings. Raises as `save_answers` does.
    """
    for table in judged.values():
        require_columns(table, NEEDED, "save_answers")
    if current_dry_run() or not any(map(len, judged.values())):
        return
    tables = [add_questions(judged[each], suite[each], answers_dir) for each in judged]
    rows = pd.concat(tables, ignore_index=True)
    alike = {name: rows[name].iloc[0] for name in HOW if rows[name].nunique() == 1}
    rows = rows.drop(columns=list(alike))
    lines = rows.astype(object).where(rows.notna(), None).to_dict("records")
    text = "".join(f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in lines)
    place = Path(folder) / f"{name}{SUFFIX}"
    data = gzip.compress(text.encode(), mtime=0)
    about = {**alike, _OF: hashlib.sha256(data).hexdigest()}
    try:
        write_file(place, data)
        write_file(_about_file(place), json.dumps(about, ensure_ascii=False, indent=1))
    except OSError as error:
        raise VragError(
            f"{place}: the answers cannot be saved ({error.strerror}). Choose another"
            " `figures_dir`, or free space."
        ) from error
    logger.info(f"saved {len(rows):,} answers in {place.name}")


def add_questions(
    judged: pd.DataFrame, benchmark: Benchmark, answers_dir: Path | str
) -> pd.DataFrame:
    """Adds to the table of `judge_answers` question, references (accepted answers), relevant (the
    relevant ones of its doc_ids), relevant_pixel_hashes (of each the hash of its image, as in its
    prompt; "" for a text), and store, the answer store with its prompts; served_model, where an
    endpoint gave the model's name; and `HOW`. The column benchmark names that of the questions,
    whatever corpus was searched.
    """
    queries = [benchmark.queries[query_id] for query_id in judged["query_id"]]
    served = stored_field(judged, answers_dir, SERVED).fillna("")
    relevant = [
        [doc_id for doc_id in doc_ids or () if benchmark.qrels.get(query_id, {}).get(doc_id, 0) > 0]
        for query_id, doc_ids in zip(judged["query_id"], judged["doc_ids"], strict=True)
    ]
    known = _pixels(benchmark, relevant, Path(answers_dir) / "answers.sqlite")
    pixels = [[known.get(doc_id, "") for doc_id in each] for each in relevant]
    return judged.assign(
        benchmark=benchmark.name,
        question=[query.text for query in queries],
        references=[" | ".join(query.answers) for query in queries],
        relevant=pd.Series(relevant, judged.index, dtype=object),
        relevant_pixel_hashes=pd.Series(pixels, judged.index, dtype=object),
        store=display_path(Path(answers_dir) / "answers.sqlite"),
        **({"served_model": served} if served.any() else {}),
        parameters=notebook_parameters(),
        judge_prompt=judged.get("judge_prompt", ""),
    )


def load_answers(place: Path | str, *, only: str = "") -> pd.DataFrame:
    """Loads the judged answers that notebooks saved in a folder and below it, or in one file: the
    columns of `add_questions`, and before them `experiment`, the file's path
    ("visual_rag/03_baselines").

    `only` selects the files whose path contains it. `place` is looked for here and then in the
    project. Raises `VragError` when there is none, and, with file and line, for a file that is
    damaged, or in a former format.
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


def _about_file(place: Path) -> Path:
    """The file `ABOUT` of a table."""
    return place.with_name(place.name.removesuffix(SUFFIX) + ABOUT)


def _pixels(benchmark: Benchmark, relevant: list[list[str]], store: Path) -> dict[str, str]:
    """The documents' pixel hashes, as the store knows them; none without a store."""
    images = {}
    for doc_id in dict.fromkeys(chain.from_iterable(relevant)):
        document = benchmark.corpus.get(doc_id)
        if document is not None and document.image is not None:
            images[doc_id] = document.image
    if not images or not store.is_file():
        return {}
    with AnswerStore(store) as known:
        try:
            found = known.image_info(images.values())
        except VragError:  # of a picture that no prompt held, as of an entry told in words
            images = {doc_id: each for doc_id, each in images.items() if not find_damaged([each])}
            found = known.image_info(images.values())
    return {doc_id: found[image.where].pixels for doc_id, image in images.items()}


def _table(file: Path, name: str) -> pd.DataFrame:
    rows = list(_rows(file))
    if found := [name for name in _FORMER if rows and name in rows[0]]:
        raise VragError(
            f"{file} line 1: found {found[0]!r}; expected 'judge', as in files of this version."
            " Run its notebook again: the answers are stored."
        )
    table = pd.DataFrame(rows).assign(**_about(file))
    if missing := [name for name in NEEDED if name not in table]:
        raise VragError(
            f"{file}: has no column {missing[0]!r}; found {', '.join(table.columns) or 'no row'}."
            " Run its notebook again."
        )
    table["doc_ids"] = [tuple(each or ()) for each in table["doc_ids"]]
    table.insert(0, "experiment", name)
    return table


def _about(file: Path) -> Json:
    """What holds for all rows of a table; nothing where the file beside it is not there."""
    beside = _about_file(file)
    try:
        about: Json = json.loads(beside.read_text(encoding="utf-8"))
        belongs = about.pop(_OF) == hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise VragError(f"{beside}: not readable ({error}). Run its notebook again.") from error
    if not belongs:
        raise VragError(
            f"{beside}: belongs to other answers than {file.name}. Copy both files of one run, or"
            " run its notebook again."
        )
    return about


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
