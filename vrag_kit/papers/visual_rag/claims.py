"""The paper's sentences on results of one's own: supported, contradicted, or neither."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.cells import NOTHING, interval_cell, interval_cells
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.cells import Cells, judged_cells, printed_cells, retrieved_cells
from vrag_kit.papers.visual_rag.statements import (
    COMPATIBLE,
    CONTRADICTED,
    STATEMENTS,
    SUPPORTED,
    UNDECIDED,
    Statement,
    Tables,
)

NOT_RUN = "not run"
MIXED = "mixed"
_NUMBERS = ["value", "ci_low", "ci_high", "n", "verdict"]
COLUMNS = ["claim", "says", "source", "of", "stratum", *_NUMBERS]
_TABLE = ["says", "section", "verdict", "numbers", "source", "printed"]
_FOLDER = "visual_rag"


def claims_on(
    notebook: str, table: pd.DataFrame, source: str, folder: Path, *, same_data: bool = False
) -> pd.DataFrame:
    """What the paper says that the results of a notebook can decide, one row a sentence
    and model (or retriever): claim, says, source, of, stratum, value, ci_low, ci_high,
    n, verdict; saved below `folder`, a notebook's `figures_dir`, as NN_claims.csv.

    `notebook` is its number ("03"), `table` its judged answers, or in 02 the scores of
    its runs, `source` the benchmark's name. Numbers and ranges are those of
    `STATEMENTS`, in points; intervals are 95 % over groups, and where a sentence is
    about the smallest or largest of several numbers, hold for all of them at once. A
    sentence about named models, or a class of them, is asked of those that are in
    `table`; where there are none, the returned table says so in a row without numbers,
    and the file has none. By stratum and pooled where `table` is from
    `with_strata`, which matters where effects are opposite. On other data than the
    paper's a contradiction says that the sentence does not carry over. On the paper's
    own (`same_data`) what a retriever finds is no sample, and exact. Raises `VragError`
    when the folder cannot be written.
    """
    strata = table if "stratum" in table else table.assign(stratum=ALL)
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        for stratum, part in strata.groupby("stratum", sort=False):
            cells: Cells = (
                retrieved_cells(part, same_data=same_data)
                if statement.table == 2
                else judged_cells(part, statement.table)
            )
            for name, number in statement.on(cells).items():
                told = (number.value, number.low, number.high, number.n, statement.verdict(number))
                rows.append((statement.name, statement.says, source, name, stratum, *told))
    claims = pd.DataFrame(rows, columns=COLUMNS)
    file = folder / _FOLDER / f"{notebook}_claims.csv"
    try:
        write_file(
            file, claims.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
        )
    except OSError as error:
        raise VragError(
            f"{file}: the claims cannot be saved ({error.strerror}). Choose another"
            " `figures_dir`, or free space."
        ) from error
    decided = set(claims["claim"])
    absent = [
        {"claim": each.name, "says": each.says, "source": source, "of": about, "verdict": NOT_RUN}
        for each in asked
        if each.name not in decided and (about := ", ".join(each.of) or "any model")
    ]
    shown = pd.DataFrame([*claims.to_dict("records"), *absent], columns=COLUMNS)
    return shown.astype({"value": float, "ci_low": float, "ci_high": float}).round(2)


def show_claims(claims: pd.DataFrame) -> Styler:
    """The table of `claims_on` as people read it: each sentence in full and once, of
    what it is said, the number with its interval, n and the verdict.
    """
    cells = interval_cells(claims, decimals=2)
    n = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims["n"]]
    table = claims.assign(number=cells, n=n, stratum=claims["stratum"].fillna(""))
    table = table.sort_values(["says", "of"], kind="stable")
    return table.set_index(["says", "of", "stratum"])[["number", "n", "verdict"]].style


def claims_table(folder: Path) -> pd.DataFrame:
    """Every sentence of `STATEMENTS` with what the claims saved below `folder` say of
    it, those that were run first: says, section, verdict, numbers, source, printed;
    empty where none were saved.

    A sentence about several models is "contradicted" where it is for one of them,
    "mixed" where strata of one contradict each other, "supported" where it is for all,
    "compatible" where it is that or supported for all, else "undecided"; "not run"
    where there is no number, and `numbers` then says what to run. `source` names the
    benchmark, which may be another from sentence to sentence: notebooks run apart.
    `printed` is how many of the paper's own numbers bear it out.
    """
    files = sorted((folder / _FOLDER).glob("[0-9][0-9]_claims.csv"))
    if not files:
        return pd.DataFrame(columns=_TABLE)
    parts = [pd.read_csv(file, dtype={"of": str}) for file in files]
    filled = [part for part in parts if len(part)]
    saved = pd.concat(filled, ignore_index=True) if filled else parts[0]
    rows = [_row(statement, saved[saved["claim"] == statement.name]) for statement in STATEMENTS]
    rows.sort(key=lambda row: row["verdict"] == NOT_RUN)
    return pd.DataFrame(rows)


def _row(statement: Statement, found: pd.DataFrame) -> dict[str, str]:
    models = [part for _, part in found.groupby("of", sort=False)]
    tables: Tables = {statement.table: published("visual_rag", table=statement.table)}
    printed = statement.on(printed_cells(tables, statement.table)).values()
    borne = sum(statement.verdict(number) == SUPPORTED for number in printed)
    return {
        "says": f"{statement.says}, expected {statement.expected}",
        "section": statement.section,
        "verdict": _together([_of_model(part) for part in models]),
        "numbers": "; ".join(map(_in_words, models)) or f"run {_what(statement)}",
        "source": ", ".join(dict.fromkeys(found["source"].astype(str))),
        "printed": f"{borne} of {len(printed)}",
    }


def _of_model(part: pd.DataFrame) -> str:
    """The verdict of one model: of all its questions, unless its strata are opposite."""
    if {SUPPORTED, CONTRADICTED} <= set(part["verdict"]):
        return MIXED
    pooled = part[part["stratum"] == ALL]["verdict"]
    return str(pooled.iloc[0]) if len(pooled) else UNDECIDED


def _in_words(part: pd.DataFrame) -> str:
    """A model's numbers, strata first."""
    numbers = []
    for row in part.to_dict("records"):
        known = interval_cell(row["value"], row["ci_low"], row["ci_high"], decimals=2)
        number = "no ratio" if pd.isna(row["value"]) else known
        stratum = f"{row['stratum']} " if len(part) > 1 else ""
        numbers.append(f"{stratum}{number} {row['verdict']}")
    return f"{part['of'].iloc[0]}: {', '.join(numbers)}"


def _together(verdicts: list[str]) -> str:
    for verdict in (CONTRADICTED, MIXED, UNDECIDED, COMPATIBLE, SUPPORTED):
        if verdict in verdicts:
            return verdict
    return NOT_RUN


def _what(statement: Statement) -> str:
    """What would answer it, in words."""
    if not statement.of:
        return f"notebook {statement.notebook}"
    return f"notebook {statement.notebook} with models it is about: {', '.join(statement.of)}"
