"""Checks of a paper's statements against measured results, shared by all papers: expected ranges,
verdicts on the paper's own data, the rows that a notebook saves, the report's first table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Protocol, TypeVar

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.comparisons import holm
from vrag_kit.analysis.report_tables import NOTHING, ci_cells, format_ci, format_p
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.papers.sources import DataSource
from vrag_kit.tables import style_table

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
COMPATIBLE = "compatible"
UNDECIDED = "undecided"
NOT_RUN = "not run"
MIXED = "mixed"
AT_CHANCE = "not tested: at chance"
"""Verdict where a setting with evidence does not differ from random choice."""
_ASKED = ["statement_id", "system", "stratum", "value", "ci_low", "ci_high", "n", "verdict"]
STATEMENT_COLUMNS = [
    *("statement_id", "statement", "source", "data_version", "system", "stratum", "metric"),
    *("value", "ci_low", "ci_high", "n", "unit", "expected", "p", "p_holm", "verdict"),
]
"""Columns of the statement checks that a notebook saves."""
_TABLE = ["statement", "section", "verdict", "numbers", "source", "reported"]
_SHOWN = ["statement", "measured", "expected", "system"]
_LEVEL = 0.05
_EXACT = 1e-9  # a printed number on the edge of its range is inside


@dataclass(frozen=True, slots=True)
class ExpectedRange:
    """Range in which a statement expects a number; it holds if the number lies in [low, high]."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        """The range as text: "at least 0.01", "2 to 6"."""
        if math.isinf(self.high) or math.isinf(self.low):
            return f"at least {self.low:g}" if math.isinf(self.high) else f"at most {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"

    def verdict(self, value: float, low: float, high: float) -> str:
        """Returns the verdict for a number with the interval [`low`, `high`]. It is "supported" if
        the whole interval lies in the range, "contradicted" if none of it does, else "undecided".

        A range with two ends may be narrower than any interval. There the verdict is "compatible"
        if the number lies in the range, but only part of its interval does.
        """
        if self.low - _EXACT <= low and high <= self.high + _EXACT:
            return SUPPORTED
        if high < self.low - _EXACT or low > self.high + _EXACT:
            return CONTRADICTED
        return self.undecided_verdict(value, low, high)

    def undecided_verdict(self, value: float, low: float, high: float) -> str:
        """Returns "compatible" or "undecided", the verdicts for a number that decides nothing."""
        known = not math.isnan(low + high)
        two_ends = math.isfinite(self.low) and math.isfinite(self.high)
        return COMPATIBLE if known and two_ends and self.low <= value <= self.high else UNDECIDED

    def p_value(self, value: float, low: float, high: float) -> float:
        """Two-sided p-value behind `verdict`, from the number's 95 % interval. The null hypothesis
        puts the true value at the end of the range that the number is beyond. For a number inside
        the range, it is the end that is harder to exclude. NaN without an interval.

        The p-value is 0.05 where the interval touches that end, and otherwise 2 Φ(−1.96 · distance
        of the end / width of the interval on that side). The tail is taken as normal, which holds
        for many groups, as in the papers' own data. An exact number has 0 or 1.
        """
        if math.isnan(value + low + high):
            return math.nan
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        inside = self.low - _EXACT <= value <= self.high + _EXACT
        if not inside:
            ends = [self.low if value < self.low else self.high]
        return max((_tail(end, value, low, high) for end in ends), default=1.0)


def _tail(end: float, value: float, low: float, high: float) -> float:
    """Two-sided p-value of the truth being `end`."""
    reach = high - value if end > value else value - low
    if reach <= _EXACT:
        return 0.0 if abs(end - value) > _EXACT else 1.0
    normal = NormalDist()
    return 2 * normal.cdf(-normal.inv_cdf(1 - _LEVEL / 2) * abs(end - value) / reach)


class StatementLike(Protocol):
    """Interface of one statement of a paper."""

    @property
    def name(self) -> str:
        """Identifier, unique within the paper."""

    @property
    def section(self) -> str:
        """Section of the paper that contains it."""

    @property
    def notebook(self) -> str:
        """Number of the notebook whose answers can test it."""

    @property
    def says(self) -> str:
        """The statement, paraphrased."""

    @property
    def of(self) -> tuple[str, ...]:
        """Models that it is about, by the paper's names; () for any model."""

    @property
    def measured(self) -> tuple[str, str]:
        """Metric and unit of its number: ("difference in accuracy", "points"). The unit is "" where
        there is none, as of a correlation.
        """

    @property
    def low(self) -> float:
        """Lower end of the range in which the statement holds."""

    @property
    def high(self) -> float:
        """Upper end of the range in which the statement holds."""

    @property
    def expected(self) -> str:
        """The expected range of its number, as text."""


StatementT = TypeVar("StatementT", bound=StatementLike)


def save_statement_checks(
    rows: Sequence[tuple[object, ...]],
    asked: Sequence[StatementLike],
    source: DataSource | Mapping[str, DataSource],
    file: Path,
) -> pd.DataFrame:
    """Saves the checks of a paper's statements to `file` (NN_claims.csv) and returns them as a
    table. `rows` are (statement_id, system, stratum, value, ci_low, ci_high, n, verdict); text,
    metric and range come from the statements in `asked`. The returned table also has a row without
    numbers for each statement that was not run. `source` is one for all, or maps a statement's name
    to its source.

    On the paper's own data (`source.edition`) a verdict requires p_holm below 0.05 too: Holm over
    all statements and models of the notebook, with each stratum and all questions as separate
    families, as in `compare`. On other data `source.no_verdict` replaces the verdict, and p is NaN.
    A verdict that is no decision, such as `AT_CHANCE`, stays, and is left out of the correction.
    Raises `VragError` if the file cannot be written.
    """
    said = {each.name: each for each in asked}
    sources = dict.fromkeys(said, source) if isinstance(source, DataSource) else source
    told = pd.DataFrame(rows, columns=_ASKED)
    told = told.assign(
        source=[sources[name].name for name in told["statement_id"]],
        data_version=[sources[name].edition for name in told["statement_id"]],
    )
    told = _decided(told, said, sources)
    abouts = [_about(said[name]) for name in told["statement_id"]]
    claims = pd.concat([told, pd.DataFrame(abouts, index=told.index)], axis=1)
    claims = claims.reindex(columns=STATEMENT_COLUMNS)
    try:
        write_file(
            file, claims.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
        )
    except OSError as error:
        raise VragError(
            f"{file}: the claims cannot be saved ({error.strerror}). Choose another"
            " `figures_dir`, or free space."
        ) from error
    absent = [
        {"statement_id": each.name, "source": sources[each.name].name, "verdict": NOT_RUN}
        | {"system": ", ".join(each.of) or "any model", **_about(each)}
        for each in asked
        if each.name not in set(claims["statement_id"])
    ]
    shown = pd.DataFrame([*claims.to_dict("records"), *absent], columns=STATEMENT_COLUMNS)
    numbers = {"value": float, "ci_low": float, "ci_high": float}
    return shown.astype(numbers).round(dict.fromkeys(numbers, 2))


def _about(statement: StatementLike) -> dict[str, str]:
    """What stands beside every number of a sentence."""
    metric, unit = statement.measured
    return {
        "statement": statement.says,
        "metric": metric,
        "unit": unit,
        "expected": statement.expected,
    }


def _decided(
    rows: pd.DataFrame, statements: Mapping[str, StatementLike], sources: Mapping[str, DataSource]
) -> pd.DataFrame:
    """With p and p_holm, and the verdicts that hold with them."""
    none = rows["statement_id"].map({name: source.no_verdict for name, source in sources.items()})
    other = (rows["data_version"] == "") & (rows["verdict"] != AT_CHANCE)
    rows = rows.assign(verdict=rows["verdict"].mask(other, none))
    ranges = [
        ExpectedRange(statements[name].low, statements[name].high) for name in rows["statement_id"]
    ]
    numbers = list(zip(rows["value"], rows["ci_low"], rows["ci_high"], strict=True))
    tested = (rows["verdict"] != AT_CHANCE) & (rows["data_version"] != "")
    p = [each.p_value(*number) for each, number in zip(ranges, numbers, strict=True)]
    rows = rows.assign(p=pd.Series(p, rows.index, float).where(tested))
    families = rows.groupby("stratum")["p"]
    rows["p_holm"] = families.transform(lambda p: holm(p.to_numpy(float)))
    open_ = rows["verdict"].isin([SUPPORTED, CONTRADICTED]) & ~(rows["p_holm"] < _LEVEL)
    left = [each.undecided_verdict(*number) for each, number in zip(ranges, numbers, strict=True)]
    return rows.assign(verdict=rows["verdict"].mask(open_, pd.Series(left, rows.index, object)))


def show_statements(claims: pd.DataFrame) -> Styler:
    """Formats the table of `save_statement_checks` for display: each statement once and in full,
    its metric, expected range, value with interval, n, Holm's p, verdict, and data version.
    """
    cells = ci_cells(claims, decimals=2)
    n = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims["n"]]
    said = claims["statement"].str.partition("; number: ")
    table = claims.assign(statement=said[0], measured=said[2], value=cells, n=n)
    table["stratum"] = claims["stratum"].fillna("")
    table["data_version"] = claims["data_version"].fillna("")
    last = ["value", "n", "verdict"]
    if table["data_version"].any():
        table["p (Holm)"] = claims["p_holm"].map(format_p, na_action="ignore").fillna("")
        last = ["value", "n", "p (Holm)", "verdict", "data_version"]
    table = table.sort_values(["statement", "system"], kind="stable")
    return style_table(table.set_index([*_SHOWN, "stratum"])[last])


def tabulate_statements(
    folder: Path, statements: Sequence[StatementT], printed: Callable[[StatementT], list[str]]
) -> pd.DataFrame:
    """Summarises the checks saved in `folder`, one row per statement, those that were run first.
    Columns: statement, section, verdict, numbers, source, reported. The table is empty if nothing
    was saved.

    A statement about several models is "contradicted" where it is for one of them, "mixed" where
    strata of one contradict each other, "supported" where it is for all, "compatible" where it is
    that or supported for all, else "undecided". On data that are not the paper's the verdict says
    why nothing was tested. It is "not run" where there is no number; `numbers` then says what to
    run. `source` names the benchmark and its version, which may differ between statements. The
    column reported counts the paper's own numbers, with verdicts from `printed`, that support it
    ("not reported" without any).
    """
    files = sorted(folder.glob("[0-9][0-9]_claims.csv"))
    if not files:
        return pd.DataFrame(columns=_TABLE)
    parts = [pd.read_csv(file, dtype={"system": str, "data_version": str}) for file in files]
    parts = [
        part.reindex(columns=STATEMENT_COLUMNS) for part in parts if len(part) and "p_holm" in part
    ]
    saved = (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=STATEMENT_COLUMNS)
    )
    rows = []
    for statement in statements:
        found = saved[saved["statement_id"] == statement.name]
        rows.append(_row(statement, found, printed(statement)))
    rows.sort(key=lambda row: row["verdict"] == NOT_RUN)
    return pd.DataFrame(rows)


def _row(statement: StatementLike, found: pd.DataFrame, printed: list[str]) -> dict[str, str]:
    models = [part for _, part in found.groupby("system", sort=False)]
    return {
        "statement": f"{statement.says}, expected {statement.expected}",
        "section": statement.section,
        "verdict": _together([_of_model(part) for part in models]),
        "numbers": "; ".join(map(_in_words, models)) or f"run {_what(statement)}",
        "source": ", ".join(dict.fromkeys(_sources(found))),
        "reported": f"{printed.count(SUPPORTED)} of {len(printed)}" if printed else "not reported",
    }


def _sources(found: pd.DataFrame) -> list[str]:
    """Each row's data, with the edition."""
    editions = found["data_version"].fillna("")
    return [str(DataSource(*each)) for each in zip(found["source"], editions, strict=True)]


def _of_model(part: pd.DataFrame) -> str:
    """The verdict of one model: of all its questions, unless its strata are opposite."""
    if {SUPPORTED, CONTRADICTED} <= set(part["verdict"]):
        return MIXED
    pooled = part[part["stratum"] == ALL]["verdict"]
    if len(pooled):
        return str(pooled.iloc[0])
    return UNDECIDED if part["data_version"].notna().all() else str(part["verdict"].iloc[0])


def _in_words(part: pd.DataFrame) -> str:
    """A model's numbers, strata first."""
    numbers = []
    for row in part.to_dict("records"):
        known = format_ci(row["value"], row["ci_low"], row["ci_high"], decimals=2)
        number = "gCUE undefined" if pd.isna(row["value"]) else known
        stratum = f"{row['stratum']} " if len(part) > 1 else ""
        verdict = f" {row['verdict']}" if isinstance(row["data_version"], str) else ""
        numbers.append(f"{stratum}{number}{verdict}")
    return f"{part['system'].iloc[0]}: {', '.join(numbers)}"


def _together(verdicts: list[str]) -> str:
    for verdict in (CONTRADICTED, MIXED, UNDECIDED, COMPATIBLE, SUPPORTED):
        if verdict in verdicts:
            return verdict
    return verdicts[0] if verdicts else NOT_RUN


def _what(statement: StatementLike) -> str:
    """What would answer it, in words."""
    if not statement.of:
        return f"notebook {statement.notebook}"
    return f"notebook {statement.notebook} with models it is about: {', '.join(statement.of)}"
