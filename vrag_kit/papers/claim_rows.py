"""What papers say, held against results of one's own: ranges and verdicts, the rows that
a notebook saves, and the table that a report begins with; the papers' in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.cells import NOTHING, interval_cell, interval_cells
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.whole_tables import styled

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
COMPATIBLE = "compatible"
UNDECIDED = "undecided"
NOT_RUN = "not run"
MIXED = "mixed"
_DECIDED = ["claim", "says", "source", "of", "stratum"]
_NUMBERS = ["value", "ci_low", "ci_high", "n", "verdict"]
COLUMNS = [*_DECIDED, "metric", *_NUMBERS[:-1], "unit", "verdict"]
"""Columns of the rows that a notebook saves."""
_TABLE = ["says", "section", "verdict", "numbers", "source", "printed"]
_SHOWN = {"says": "the paper's sentence", "measured": "measured", "of": "tested on"}
_EXACT = 1e-9  # a printed number on the edge of its range is inside


@dataclass(frozen=True, slots=True)
class Range:
    """Where a sentence puts a number: it holds where that lies in [low, high]."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        """In words: "at least 0.01", "2 to 6"."""
        if math.isinf(self.high) or math.isinf(self.low):
            return f"at least {self.low:g}" if math.isinf(self.high) else f"at most {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"

    def verdict(self, value: float, low: float, high: float) -> str:
        """ "supported" where the whole interval from `low` to `high` lies in the range,
        "contradicted" where none of it does, else "undecided".

        A range with two ends may be narrower than any interval. There a number that lies
        in it with a part of its interval only is "compatible".
        """
        if self.low - _EXACT <= low and high <= self.high + _EXACT:
            return SUPPORTED
        if high < self.low - _EXACT or low > self.high + _EXACT:
            return CONTRADICTED
        known = not math.isnan(low + high)
        two_ends = math.isfinite(self.low) and math.isfinite(self.high)
        if known and two_ends and self.low <= value <= self.high:
            return COMPATIBLE
        return UNDECIDED


class Said(Protocol):
    """One sentence of a paper."""

    @property
    def name(self) -> str:
        """Tells it from the paper's other ones."""

    @property
    def section(self) -> str:
        """Where it stands."""

    @property
    def notebook(self) -> str:
        """The number of the notebook whose answers it can be looked up in."""

    @property
    def says(self) -> str:
        """The sentence, in our words."""

    @property
    def of(self) -> tuple[str, ...]:
        """The models that it is about, as the paper calls them; () where any."""

    @property
    def measured(self) -> tuple[str, str]:
        """What its number is, and the unit: ("difference in accuracy", "points"); "" where
        there is none, as of a correlation.
        """

    @property
    def expected(self) -> str:
        """The range of its number, in words."""


SaidT = TypeVar("SaidT", bound=Said)


def save_claims(
    rows: Sequence[tuple[object, ...]], asked: Sequence[Said], source: str, file: Path
) -> pd.DataFrame:
    """`rows` (claim, says, source, of, stratum, value, ci_low, ci_high, n, verdict) with
    the metric and unit of their sentence, one of `asked`, written to `file`,
    NN_claims.csv, and returned with a row without numbers for each sentence that has none.

    Raises `VragError` when the file cannot be written.
    """
    measured = {each.name: each.measured for each in asked}
    told = pd.DataFrame(rows, columns=[*_DECIDED, *_NUMBERS])
    metrics, units = ([measured[name][place] for name in told["claim"]] for place in (0, 1))
    claims = told.assign(metric=metrics, unit=units)[COLUMNS]
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
    """The table of `save_claims` as people read it: each sentence in full and once, of
    what it is said, the number with its interval, n and the verdict.
    """
    cells = interval_cells(claims, decimals=2)
    n = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims["n"]]
    said = claims["says"].str.partition("; number: ")
    table = claims.assign(says=said[0], measured=said[2], value=cells, n=n)
    table["stratum"] = claims["stratum"].fillna("")
    table = table.sort_values(["says", "of"], kind="stable").rename(columns=_SHOWN)
    return styled(table.set_index([*_SHOWN.values(), "stratum"])[["value", "n", "verdict"]])


def table_of(
    folder: Path, statements: Sequence[SaidT], printed: Callable[[SaidT], list[str]]
) -> pd.DataFrame:
    """Every sentence of `statements` with what the claims saved in `folder` say of it,
    those that were run first: says, section, verdict, numbers, source, printed; empty
    where none were saved.

    A sentence about several models is "contradicted" where it is for one of them,
    "mixed" where strata of one contradict each other, "supported" where it is for all,
    "compatible" where it is that or supported for all, else "undecided"; "not run"
    where there is no number, and `numbers` then says what to run. `source` names the
    benchmark, which may be another from sentence to sentence: notebooks run apart. The
    column printed is how many of the paper's own numbers, whose verdicts the function
    gives, bear it out ("not printed" without any).
    """
    files = sorted(folder.glob("[0-9][0-9]_claims.csv"))
    if not files:
        return pd.DataFrame(columns=_TABLE)
    parts = [pd.read_csv(file, dtype={"of": str}) for file in files]
    filled = [part for part in parts if len(part)]
    saved = pd.concat(filled, ignore_index=True) if filled else parts[0]
    rows = []
    for statement in statements:
        found = saved[saved["claim"] == statement.name]
        rows.append(_row(statement, found, printed(statement)))
    rows.sort(key=lambda row: row["verdict"] == NOT_RUN)
    return pd.DataFrame(rows)


def _row(statement: Said, found: pd.DataFrame, printed: list[str]) -> dict[str, str]:
    models = [part for _, part in found.groupby("of", sort=False)]
    return {
        "says": f"{statement.says}, expected {statement.expected}",
        "section": statement.section,
        "verdict": _together([_of_model(part) for part in models]),
        "numbers": "; ".join(map(_in_words, models)) or f"run {_what(statement)}",
        "source": ", ".join(dict.fromkeys(found["source"].astype(str))),
        "printed": f"{printed.count(SUPPORTED)} of {len(printed)}" if printed else "not printed",
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


def _what(statement: Said) -> str:
    """What would answer it, in words."""
    if not statement.of:
        return f"notebook {statement.notebook}"
    return f"notebook {statement.notebook} with models it is about: {', '.join(statement.of)}"
