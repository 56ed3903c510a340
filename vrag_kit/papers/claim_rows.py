"""What papers say, beside results of one's own: ranges, verdicts on a paper's own data, the
rows that a notebook saves, and the table that a report begins with; the papers' in common.
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

from vrag_kit.analysis.cells import NOTHING, interval_cell, interval_cells, p_cell
from vrag_kit.analysis.comparison import holm
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.papers.sources import Source
from vrag_kit.whole_tables import styled

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
COMPATIBLE = "compatible"
UNDECIDED = "undecided"
NOT_RUN = "not run"
MIXED = "mixed"
AT_CHANCE = "at chance: no verdict"
"""Where an arm that shows evidence cannot be told from a random choice."""
_ASKED = ["claim", "of", "stratum", "value", "ci_low", "ci_high", "n", "verdict"]
COLUMNS = [
    *("claim", "says", "source", "edition", "of", "stratum", "metric", "value", "ci_low"),
    *("ci_high", "n", "unit", "expected", "p", "p_holm", "verdict"),
]
"""Columns of the rows that a notebook saves."""
_TABLE = ["says", "section", "verdict", "numbers", "source", "printed"]
_SHOWN = {
    "says": "the paper's sentence",
    "measured": "measured",
    "expected": "expected",
    "of": "tested on",
}
_LEVEL = 0.05
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
        return self.otherwise(value, low, high)

    def otherwise(self, value: float, low: float, high: float) -> str:
        """ "compatible" or "undecided": what is left to say where nothing is decided."""
        known = not math.isnan(low + high)
        two_ends = math.isfinite(self.low) and math.isfinite(self.high)
        return COMPATIBLE if known and two_ends and self.low <= value <= self.high else UNDECIDED

    def p(self, value: float, low: float, high: float) -> float:
        """Two-sided p-value of what `verdict` decides, from the number's 95 % interval: that
        the truth lies at the end of the range that the number is beyond, or, of a number
        within, at the end that is harder to exclude. NaN without an interval.

        It is 0.05 where the interval touches that end, and 2 Φ(−1.96 · distance of the end
        / reach of the interval to that side): the tail is taken as normal, which holds
        where groups are many, as in the papers' own data. An exact number has 0 or 1.
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
    def low(self) -> float:
        """It holds where its number lies from here …"""

    @property
    def high(self) -> float:
        """… to here."""

    @property
    def expected(self) -> str:
        """The range of its number, in words."""


SaidT = TypeVar("SaidT", bound=Said)


def save_claims(
    rows: Sequence[tuple[object, ...]],
    asked: Sequence[Said],
    source: Source | Mapping[str, Source],
    file: Path,
) -> pd.DataFrame:
    """`rows` (claim, of, stratum, value, ci_low, ci_high, n, verdict) with what their
    sentence, one of `asked`, says, measures and expects, written to `file`,
    NN_claims.csv, and returned with a row without numbers for each sentence that has none.
    `source` is that of all, or name of a sentence → its own.

    On the paper's own data (`source.edition`) a verdict stands only where p_holm is below
    0.05 too: Holm over all sentences and models of the notebook, each stratum and all
    questions being a family of its own, as in `compare`. On other data there is none: in
    its place stands `source.no_verdict`, and p is NaN. A verdict that is no decision, such
    as `AT_CHANCE`, stays, and counts for no other. Raises `VragError` when the file cannot
    be written.
    """
    said = {each.name: each for each in asked}
    sources = dict.fromkeys(said, source) if isinstance(source, Source) else source
    told = pd.DataFrame(rows, columns=_ASKED)
    told = told.assign(
        source=[sources[name].name for name in told["claim"]],
        edition=[sources[name].edition for name in told["claim"]],
    )
    told = _decided(told, said, sources)
    abouts = [_about(said[name]) for name in told["claim"]]
    claims = pd.concat([told, pd.DataFrame(abouts, index=told.index)], axis=1)
    claims = claims.reindex(columns=COLUMNS)
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
        {"claim": each.name, "source": sources[each.name].name, "verdict": NOT_RUN, **_about(each)}
        | {"of": ", ".join(each.of) or "any model"}
        for each in asked
        if each.name not in set(claims["claim"])
    ]
    shown = pd.DataFrame([*claims.to_dict("records"), *absent], columns=COLUMNS)
    numbers = {"value": float, "ci_low": float, "ci_high": float}
    return shown.astype(numbers).round(dict.fromkeys(numbers, 2))


def _about(said: Said) -> dict[str, str]:
    """What stands beside every number of a sentence."""
    metric, unit = said.measured
    return {"says": said.says, "metric": metric, "unit": unit, "expected": said.expected}


def _decided(
    told: pd.DataFrame, said: Mapping[str, Said], sources: Mapping[str, Source]
) -> pd.DataFrame:
    """With p and p_holm, and the verdicts that hold with them."""
    none = told["claim"].map({name: source.no_verdict for name, source in sources.items()})
    other = (told["edition"] == "") & (told["verdict"] != AT_CHANCE)
    told = told.assign(verdict=told["verdict"].mask(other, none))
    ranges = [Range(said[name].low, said[name].high) for name in told["claim"]]
    numbers = list(zip(told["value"], told["ci_low"], told["ci_high"], strict=True))
    tested = (told["verdict"] != AT_CHANCE) & (told["edition"] != "")
    p = [each.p(*number) for each, number in zip(ranges, numbers, strict=True)]
    told = told.assign(p=pd.Series(p, told.index, float).where(tested))
    families = told.groupby("stratum")["p"]
    told["p_holm"] = families.transform(lambda p: holm(p.to_numpy(float)))
    open_ = told["verdict"].isin([SUPPORTED, CONTRADICTED]) & ~(told["p_holm"] < _LEVEL)
    left = [each.otherwise(*number) for each, number in zip(ranges, numbers, strict=True)]
    return told.assign(verdict=told["verdict"].mask(open_, pd.Series(left, told.index, object)))


def show_claims(claims: pd.DataFrame) -> Styler:
    """The table of `save_claims` as people read it: each sentence in full and once, the
    range it gives, of what it is said, the number with its interval, n, Holm's p and the
    verdict, with the edition of the paper's data it is on.
    """
    cells = interval_cells(claims, decimals=2)
    n = [NOTHING if pd.isna(count) else f"{count:.0f}" for count in claims["n"]]
    said = claims["says"].str.partition("; number: ")
    table = claims.assign(says=said[0], measured=said[2], value=cells, n=n)
    table["stratum"] = claims["stratum"].fillna("")
    table["edition"] = claims["edition"].fillna("")
    last = ["value", "n", "verdict"]
    if table["edition"].any():
        table["p (Holm)"] = claims["p_holm"].map(p_cell, na_action="ignore").fillna("")
        last = ["value", "n", "p (Holm)", "verdict", "edition"]
    table = table.sort_values(["says", "of"], kind="stable").rename(columns=_SHOWN)
    return styled(table.set_index([*_SHOWN.values(), "stratum"])[last])


def table_of(
    folder: Path, statements: Sequence[SaidT], printed: Callable[[SaidT], list[str]]
) -> pd.DataFrame:
    """Every sentence of `statements` with what the claims saved in `folder` say of it,
    those that were run first: says, section, verdict, numbers, source, printed; empty
    where none were saved.

    A sentence about several models is "contradicted" where it is for one of them,
    "mixed" where strata of one contradict each other, "supported" where it is for all,
    "compatible" where it is that or supported for all, else "undecided"; on data that are
    not the paper's it says that there is no verdict; "not run" where there is no number,
    and `numbers` then says what to run. `source` names the benchmark and its edition,
    which may be another from sentence to sentence: notebooks run apart. The column printed
    is how many of the paper's own numbers, whose verdicts the function gives, bear it out
    ("not printed" without any).
    """
    files = sorted(folder.glob("[0-9][0-9]_claims.csv"))
    if not files:
        return pd.DataFrame(columns=_TABLE)
    parts = [pd.read_csv(file, dtype={"of": str, "edition": str}) for file in files]
    parts = [part.reindex(columns=COLUMNS) for part in parts if len(part) and "p_holm" in part]
    saved = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
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
        "source": ", ".join(dict.fromkeys(_sources(found))),
        "printed": f"{printed.count(SUPPORTED)} of {len(printed)}" if printed else "not printed",
    }


def _sources(found: pd.DataFrame) -> list[str]:
    """Each row's data, with the edition."""
    editions = found["edition"].fillna("")
    return [str(Source(*each)) for each in zip(found["source"], editions, strict=True)]


def _of_model(part: pd.DataFrame) -> str:
    """The verdict of one model: of all its questions, unless its strata are opposite."""
    if {SUPPORTED, CONTRADICTED} <= set(part["verdict"]):
        return MIXED
    pooled = part[part["stratum"] == ALL]["verdict"]
    if len(pooled):
        return str(pooled.iloc[0])
    return UNDECIDED if part["edition"].notna().all() else str(part["verdict"].iloc[0])


def _in_words(part: pd.DataFrame) -> str:
    """A model's numbers, strata first."""
    numbers = []
    for row in part.to_dict("records"):
        known = interval_cell(row["value"], row["ci_low"], row["ci_high"], decimals=2)
        number = "no ratio" if pd.isna(row["value"]) else known
        stratum = f"{row['stratum']} " if len(part) > 1 else ""
        verdict = f" {row['verdict']}" if isinstance(row["edition"], str) else ""
        numbers.append(f"{stratum}{number}{verdict}")
    return f"{part['of'].iloc[0]}: {', '.join(numbers)}"


def _together(verdicts: list[str]) -> str:
    for verdict in (CONTRADICTED, MIXED, UNDECIDED, COMPATIBLE, SUPPORTED):
        if verdict in verdicts:
            return verdict
    return verdicts[0] if verdicts else NOT_RUN


def _what(statement: Said) -> str:
    """What would answer it, in words."""
    if not statement.of:
        return f"notebook {statement.notebook}"
    return f"notebook {statement.notebook} with models it is about: {', '.join(statement.of)}"
