"""Checks of a paper's published numbers against each other: what `checks.csv` and
`text_numbers.csv` of a paper compare, and the findings.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

CELL = ["model", "setting", "k"]
AGREES = "agrees"
ROUNDED = "consistent with rounding"
NOT_COMPARABLE = "not comparable"
CONTRADICTS = "contradicts"
FINDINGS = (AGREES, ROUNDED, NOT_COMPARABLE, CONTRADICTS)
"""Possible findings of a check.

Two numbers agree to the last published digit; or differ by no more than the rounding of the inputs
allows; or are not comparable, as one is not published or is based on other queries; or they
contradict each other.
"""
_WITHOUT_K = ("zero_shot", "gt_clue", "non_clue", "text_rag", "m_gt")
"""Settings of which no k is printed."""
_PARTS = ("retriever", "dataset", "model", "setting", "m", "k", "modality", "scenario")
Frames = Mapping[str, pd.DataFrame]


def run_checks(paper: str, frames: Frames) -> Iterator[pd.DataFrame]:
    """Yields the audit's rows of each check in `checks.csv` of a paper's folder.

    `rows` names one of `frames`; both sides are expressions over its columns (`DataFrame.eval`),
    computed for the rows that `where` selects. With a `bound` ("upper", "lower") of the reported
    number, recomputed is the nearest number that it allows. `otherwise` is the finding of numbers
    that differ, `always` that of all rows. `cell` (by default `cell_labels`), `note` and, of rows
    that do not agree, `odd_note` are filled with the columns of a row.
    """
    for check in read_checks(paper):
        rows = frames[check["rows"]]
        rows = (rows.query(check["where"]) if check["where"] else rows).reset_index(drop=True)
        reported = evaluate(check["reported"], rows)
        own = evaluate(check["recomputed"], rows)
        if check["bound"]:
            upper = check["bound"] == "upper"
            nearest = reported.clip(upper=own) if upper else reported.clip(lower=own)
            own = nearest.where(own.notna())
        where = _fill(check["cell"], rows) if check["cell"] else rows
        within = {name: float(check[name]) for name in ("exact", "rounding")}
        found = audit_rows(check["check"], check["table"], where, reported, own, **within)
        odd = found["finding"]
        found["finding"] = check["always"] or odd.replace(CONTRADICTS, check["otherwise"])
        found["note"] = _fill(check["note"], rows)
        found.loc[odd != AGREES, "note"] += pd.Series(_fill(check["odd_note"], rows))
        yield found


def evaluate(expression: str, rows: pd.DataFrame) -> pd.Series:
    """Returns an expression over the columns of `rows` (`DataFrame.eval`), one value a row."""
    return pd.Series(cast(Any, rows.eval(expression)), rows.index)


def _fill(template: str, rows: pd.DataFrame) -> list[str]:
    return [template.format_map(row) for row in rows.to_dict("records")]


def check_text_numbers(paper: str, frames: Frames) -> Iterator[pd.DataFrame]:
    """Yields one row of an audit for each number of the text in `text_numbers.csv` of a paper's
    folder; the note has the section and the sentence.

    `recomputed` is an expression over `frames` (`pandas.eval`), with the published number as
    `reported`, and `unit` the last published digit's. With `above`, the text says that the value
    exceeds this number.
    """
    for text in read_checks(paper, "text_numbers"):
        reported, within = pd.Series([float(text["reported"])]), float(text["unit"]) / 2 + 1e-4
        own = pd.eval(text["recomputed"], local_dict={**frames, "reported": reported})
        found = audit_rows("text vs. tables", text["table"], [text["name"]], reported, own, within)
        if text["above"]:
            found["finding"] = np.where(found["recomputed"] > reported, AGREES, CONTRADICTS)
        finding = found["finding"].replace(CONTRADICTS, text["otherwise"])
        yield found.assign(finding=finding, note=f"section {text['section']}: {text['says']}")


def read_checks(paper: str, name: str = "checks") -> list[dict[str, str]]:
    """Returns the rows of `checks.csv` (or `text_numbers.csv`) of a paper's folder."""
    with (Path(__file__).with_name(paper) / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def audit_rows(
    check: str,
    table: int | str | pd.Series,
    where: pd.DataFrame | Sequence[str],
    reported: object,
    recomputed: object,
    exact: float = 1e-9,
    rounding: float = 0.0,
) -> pd.DataFrame:
    """Returns the rows of an audit, one for each row of a table or each name in `where`. Columns:
    check, table, cell, reported, recomputed, tolerance, finding (one of `FINDINGS`), and an empty
    note.

    `table` is one for all rows, or a column. Both numbers have that length, or are one for all.
    They agree within `exact`: half a unit of the last published digit, plus a small margin. They
    are consistent with rounding within `rounding`, what the rounding of the inputs allows, and
    contradict each other where they differ by more.
    """
    names = cell_labels(where) if isinstance(where, pd.DataFrame) else list(where)
    rows = pd.DataFrame(
        {
            "check": check,
            "table": list(table.astype(str)) if isinstance(table, pd.Series) else str(table),
            "cell": names,
            "reported": np.asarray(reported, float),
            "recomputed": np.asarray(recomputed, float),
            "tolerance": max(exact, rounding),
        },
        index=range(len(names)),
    )
    apart = (rows["reported"] - rows["recomputed"]).abs()
    finding = np.select(
        [apart <= exact, apart <= rounding, rows["reported"].isna()],
        [AGREES, ROUNDED, NOT_COMPARABLE],
        CONTRADICTS,
    )
    return rows.assign(finding=finding, note="")


def cell_labels(cells: pd.DataFrame) -> list[str]:
    """Returns a label of each row: "Phi4-MM, one_in_k, k=10"."""
    rows = cells[[part for part in _PARTS if part in cells]].to_dict("records")
    return [", ".join(_words(row)) for row in rows]


def _words(row: Mapping[Hashable, Any]) -> Iterator[str]:  # a row of a table: any values
    for part, value in row.items():
        hidden = part == "k" and row.get("setting") in _WITHOUT_K
        if pd.notna(value) and not hidden:
            yield f"{part}={value:g}" if part in ("m", "k") else str(value)


def possible_denominators(
    shares: Sequence[float], low: int, high: int, *, digits: int = 1
) -> list[int]:
    """Returns each n from `low` to `high` for which all shares, in percent to `digits`, are whole
    numbers.
    """
    given, n = np.asarray(shares)[:, None], np.arange(low, high + 1)
    nearest = 100 / n * np.round(given * n / 100)
    fits = np.abs(nearest - given) <= 0.5 / 10**digits + 1e-6
    return [int(each) for each in n[fits.all(axis=0)]]


def audit_table(checks: pd.DataFrame) -> pd.DataFrame:
    """Returns one row for each check, the most contradictions first: the tables or the text that it
    compares, how many numbers, how many contradict, and their largest difference (NaN for none).
    """
    wrong = checks["finding"] == CONTRADICTS
    apart = (checks["reported"] - checks["recomputed"]).abs().where(wrong)
    by_check = checks.assign(wrong=wrong, apart=apart).groupby("check", sort=False)
    names = by_check["table"].agg(lambda each: "; ".join(each.unique()))
    table = pd.DataFrame(
        {
            "compared": names.str.replace(r"^(?=\d)", "Tables ", regex=True),
            "numbers": by_check.size(),
            "contradictions": by_check["wrong"].sum(),
            "largest difference": by_check["apart"].max(),
        }
    )
    return table.sort_values("contradictions", ascending=False, kind="stable")
