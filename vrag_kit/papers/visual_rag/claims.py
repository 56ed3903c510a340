"""The paper's sentences beside results of one's own; verdicts on the paper's data alone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.claim_rows import save_claims, table_of
from vrag_kit.papers.published import published
from vrag_kit.papers.sources import Source
from vrag_kit.papers.visual_rag.cells import Cells, judged_cells, printed_cells, retrieved_cells
from vrag_kit.papers.visual_rag.statements import STATEMENTS, Statement, Tables

_FOLDER = "visual_rag"


def claims_on(notebook: str, table: pd.DataFrame, source: Source, folder: Path) -> pd.DataFrame:
    """What the paper says that the results of a notebook can decide, one row a sentence
    and model (or retriever): `COLUMNS` of `claim_rows`; saved below `folder`, a notebook's
    `figures_dir`, as NN_claims.csv.

    `notebook` is its number ("03"), `table` its judged answers, or in 02 the scores of
    its runs, `source` of `source_of(benchmark)`. Numbers and ranges are those of
    `STATEMENTS`, in points; intervals are 95 % over groups, and where a sentence is
    about the smallest or largest of several numbers, hold for all of them at once. A
    sentence about named models, or a class of them, is asked of those that are in
    `table`; where there are none, the returned table says so in a row without numbers,
    and the file has none. By stratum and pooled where `table` is from
    `with_strata`, which matters where effects are opposite. There are verdicts on the
    paper's own data alone (see `save_claims`), where what a retriever finds is no sample,
    and exact. Raises `VragError` when the folder cannot be written.
    """
    strata = table if "stratum" in table else table.assign(stratum=ALL)
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        for stratum, part in strata.groupby("stratum", sort=False):
            cells: Cells = (
                retrieved_cells(part, same_data=bool(source.edition))
                if statement.table == 2
                else judged_cells(part, statement.table)
            )
            for name, number in statement.on(cells).items():
                told = (number.value, number.low, number.high, number.n, statement.verdict(number))
                rows.append((statement.name, name, stratum, *told))
    return save_claims(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def claims_table(folder: Path) -> pd.DataFrame:
    """Every sentence of `STATEMENTS` with what the claims saved below `folder` say of
    it: says, section, verdict, numbers, source, printed (see `table_of`).
    """
    return table_of(folder / _FOLDER, STATEMENTS, _printed)


def _printed(statement: Statement) -> list[str]:
    """What the paper's own numbers say of its sentence."""
    tables: Tables = {statement.table: published("visual_rag", table=statement.table)}
    numbers = statement.on(printed_cells(tables, statement.table)).values()
    return [statement.verdict(number) for number in numbers]
