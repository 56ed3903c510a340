"""Loads the tidy results of all notebooks as one table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path

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
