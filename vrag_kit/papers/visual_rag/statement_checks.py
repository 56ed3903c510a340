"""Checks of the paper's statements against measured results; verdicts on the paper's data only."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.published import published
from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.statements import save_statement_checks, tabulate_statements
from vrag_kit.papers.visual_rag.cells import Cells, judged_cells, published_cells, retrieval_cells
from vrag_kit.papers.visual_rag.statements import STATEMENTS, Statement, Tables

_FOLDER = "visual_rag"


def check_statements(
    notebook: str, table: pd.DataFrame, source: DataSource, folder: Path
) -> pd.DataFrame:
    """Checks the paper's statements that a notebook can test and saves one row per statement and
    model (or retriever). Columns are `STATEMENT_COLUMNS` of `papers.statements`; the file is
    NN_claims.csv below `folder`, a notebook's `figures_dir`.

    `notebook` is its number ("03"), `table` its judged answers, or in 02 the scores of its runs,
    `source` the `data_source(benchmark)`. Numbers and ranges are those of `STATEMENTS`, in points;
    intervals are 95 % over groups, and hold simultaneously for statements about the smallest or
    largest of several numbers. A statement about named models, or a class of them, is checked for
    those in `table`; if there are none, the returned table has a row without numbers, and the file
    has none. Results are by stratum and pooled if `table` is from `expand_strata`, which matters
    where effects are opposite. Verdicts are given on the paper's own data only (see
    `save_statement_checks`), where retrieval is exact, not a sample. Raises `VragError` if the
    folder cannot be written.
    """
    strata = table if "stratum" in table else table.assign(stratum=ALL)
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        for stratum, part in strata.groupby("stratum", sort=False):
            cells: Cells = (
                retrieval_cells(part, same_data=bool(source.edition))
                if statement.table == 2
                else judged_cells(part, statement.table)
            )
            for name, number in statement.evaluate(cells).items():
                told = (number.value, number.low, number.high, number.n, statement.verdict(number))
                rows.append((statement.name, name, stratum, *told))
    return save_statement_checks(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def statements_table(folder: Path) -> pd.DataFrame:
    """Summarises the checks saved below `folder` for all `STATEMENTS`. Columns: statement, section,
    verdict, numbers, source, reported (see `tabulate_statements`).
    """
    return tabulate_statements(folder / _FOLDER, STATEMENTS, _printed)


def _printed(statement: Statement) -> list[str]:
    """What the paper's own numbers say of its sentence."""
    tables: Tables = {statement.table: published("visual_rag", table=statement.table)}
    numbers = statement.evaluate(published_cells(tables, statement.table)).values()
    return [statement.verdict(number) for number in numbers]
