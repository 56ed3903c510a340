"""A paper's statements as data, and their checks against measured results, shared by all papers:
verdicts on the paper's own data, the rows that a notebook saves, the report's first table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pandas.io.formats.style import Styler

from vrag_kit.analysis.comparisons import holm_by_family
from vrag_kit.analysis.report_tables import NOTHING, ci_cells, format_ci, format_p
from vrag_kit.analysis.strata import ALL
from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.papers.sources import DataSource
from vrag_kit.plotting.panels import Series, draw_interval, interval_handles
from vrag_kit.plotting.save_table import style_table
from vrag_kit.plotting.style import (
    DARK,
    GREY,
    LIGHT,
    SMALL,
    new_figure,
    set_axes_height,
    set_caption,
)
from vrag_kit.workspace import path as project_path

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
COMPATIBLE = "compatible"
UNDECIDED = "undecided"
NOT_RUN = "not run"
AT_CHANCE = "not tested: at chance"
"""Verdict where a setting with evidence does not differ from random choice."""
STATEMENT_COLUMNS = [
    *("statement_id", "statement", "source", "data_version", "system", "stratum", "metric"),
    *("value", "ci_low", "ci_high", "n", "unit", "expected", "p", "p_holm", "verdict"),
]
"""Columns of the statement checks that a notebook saves."""
_NO_VERDICT = "no verdict (other data, or at chance)"
_FIGURE_CAPTION = (
    "Grey: the range that a paper's statement gives, with a darker edge where it is narrow; at the"
    " edge of the axis it is open. At the left: the statement in short; at the right: the model or"
    " retriever, and n. Of two slices, n counts the first. A row without a subgroup is of all"
    " questions, so it overlaps with the rows of subgroups. No verdict: the data are not the"
    " paper's, or a setting with evidence does not differ from random choice."
)
_NARROW = 4  # points: narrower ranges have an edge
_COLORS = {
    SUPPORTED: "#2E8B57",
    COMPATIBLE: "#8BD3F7",
    UNDECIDED: GREY,
    CONTRADICTED: "#C8501E",
    _NO_VERDICT: DARK,
}
"""Colours of a figure's verdicts."""
_ESTIMATE = ["value", "ci_low", "ci_high"]
_LEVEL = 0.05
_EXACT = 1e-9  # a printed number on the edge of its range is inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a paper, paraphrased, about a number that it expects in [low, high]."""

    name: str
    """Identifier, unique within the paper."""
    section: str
    table: int | str
    """Published table or figure with its numbers; 0 if only figures without labels have them."""
    notebook: str
    """Number of the notebook whose results can test it."""
    of: Sequence[str] = ()
    """Models that it is about, by the paper's names; () for any model."""
    says: str
    metric: str
    unit: str
    """Unit of the number, "" for a ratio or a correlation."""
    setting: str | Sequence[str]
    """Setting (or several, as one family) whose metric it is about."""
    k: str | Sequence[int] = "all"
    """Values of k: a list, "all", "first" or "last"."""
    baseline: str = ""
    """Setting that is subtracted, if any; the same setting where only `baseline_k` is given."""
    baseline_k: str | Sequence[int] = ""
    """Values of k of the baseline: a list, "first", "previous", or the "same" by default."""
    over: str = "min"
    """Which of several numbers is meant: "min", "max", or "max of min" (over `k`, per baseline)."""
    label: str = "{model}"
    """Name of a number; numbers with one name are a family of simultaneous intervals."""
    needs: Sequence[int] = ()
    """Values of k without which it is not tested."""
    low: float = -math.inf
    high: float = math.inf
    short: str = ""
    """What it expects in a few words, for a row of a figure; its identifier if empty."""
    counts: str = "questions"
    """Unit of its n."""

    @property
    def is_difference(self) -> bool:
        """Whether its number is a difference."""
        return bool(self.baseline or self.baseline_k)

    @property
    def measured(self) -> str:
        """Metric of its number: "accuracy", "difference in accuracy"."""
        return f"difference in {self.metric}" if self.is_difference else self.metric

    @property
    def expected(self) -> str:
        """The expected range as text: "at least 0.01", "2 to 6"."""
        if math.isinf(self.high) or math.isinf(self.low):
            return f"at least {self.low:g}" if math.isinf(self.high) else f"at most {self.high:g}"
        return f"{self.low:g} to {self.high:g}"

    def verdict(self, value: float, low: float, high: float, *, significant: bool = True) -> str:
        """Returns the verdict for a number with the interval [`low`, `high`]. It is "supported" if
        the whole interval lies in the expected range, "contradicted" if none of it does, both only
        if `significant`; else "undecided".

        A range with two ends may be narrower than any interval. There the verdict is "compatible"
        if the number lies in the range, but only part of its interval does.
        """
        if significant and self.low - _EXACT <= low and high <= self.high + _EXACT:
            return SUPPORTED
        if significant and (high < self.low - _EXACT or low > self.high + _EXACT):
            return CONTRADICTED
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
        if not self.low - _EXACT <= value <= self.high + _EXACT:
            ends = [self.low if value < self.low else self.high]
        p, normal = 0.0, NormalDist()
        for end in ends:
            reach = high - value if end > value else value - low
            z = normal.inv_cdf(1 - _LEVEL / 2) * abs(end - value) / max(reach, _EXACT)
            p = max(p, 2 * normal.cdf(-z))
        return p


def load_statements(paper: str) -> tuple[Statement, ...]:
    """Reads the statements of a paper, a folder here, in the order of the paper."""
    file = Path(__file__).parent / paper / "statements.json"
    return tuple(Statement(**entry) for entry in json.loads(file.read_text(encoding="utf-8")))


def select_differences(
    statements: Sequence[Statement],
    differences: pd.DataFrame,
    published_name: Callable[[str], str] = str,
) -> pd.DataFrame:
    """Selects the numbers of statements from a table of differences: rows of their setting,
    baseline and metric (if `differences` has that column), of the models that they are about by
    `published_name`. Adds the columns statement_id, system and stratum.
    """
    columns = [name for name in ("metric", "setting", "baseline") if name in differences]
    parts = []
    for statement in statements:
        arm = [getattr(statement, name) for name in columns]
        part = differences[(differences[columns] == arm).all(axis=1)]
        if statement.of:
            part = part[part["model"].map(published_name).isin(statement.of)]
        parts.append(part.assign(statement_id=statement.name, system=part["model"], stratum=ALL))
    return pd.concat(parts, ignore_index=True)


def save_statement_checks(
    paper: str,
    notebook: str,
    numbers: pd.DataFrame,
    source: DataSource | Mapping[str, DataSource],
    at: Workspace,
) -> pd.DataFrame:
    """Saves the checks of the statements of a paper that are about a notebook ("31") as
    <paper>/NN_claims.csv below the workspace's `figures_dir`, and returns them:
    `STATEMENT_COLUMNS`. `numbers` has the columns statement_id, system, stratum, value, ci_low,
    ci_high, n and optionally at_chance; text, metric and range come from the statements. `source`
    is one for all, or maps a statement's name to its source.

    On the paper's own data (`source.edition`) a verdict requires p_holm below 0.05 too: Holm over
    all statements and models of the notebook, with each stratum and all questions as separate
    families, as in `compare`. On other data `source.no_verdict` replaces the verdict, and p is NaN.
    A row at chance has the verdict `AT_CHANCE`, and is left out of the correction.
    Raises `VragError` if the file cannot be written.
    """
    statements, rows = {each.name: each for each in load_statements(paper)}, []
    for row in numbers.to_dict("records"):
        statement = statements[row["statement_id"]]
        data = source if isinstance(source, DataSource) else source[statement.name]
        known: dict[Hashable, object] = {
            "statement": statement.says,
            "source": data.name,
            "data_version": data.edition,
            "metric": statement.measured,
            "unit": statement.unit,
            "expected": statement.expected,
            "verdict": "" if data.edition else data.no_verdict,
        }
        if row.get("at_chance"):
            known["verdict"] = AT_CHANCE
        tested = not known["verdict"]
        p = statement.p_value(*(row[name] for name in _ESTIMATE)) if tested else math.nan
        rows.append(row | known | {"p": p})
    checks = pd.DataFrame(rows, columns=STATEMENT_COLUMNS)
    checks["p_holm"] = holm_by_family(checks, ["stratum"])
    for place, check in checks[checks["verdict"] == ""].iterrows():
        statement, significant = statements[check["statement_id"]], check["p_holm"] < _LEVEL
        verdict = statement.verdict(*check[_ESTIMATE], significant=significant)
        checks.loc[place, "verdict"] = verdict
    file = project_path(at.figures_dir) / paper / f"{notebook}_claims.csv"
    try:
        write_file(file, checks.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    except OSError as error:
        raise VragError(f"{file}: the claims cannot be saved ({error.strerror}).") from error
    return checks.astype(dict.fromkeys(_ESTIMATE, float)).round(dict.fromkeys(_ESTIMATE, 2))


def show_statements(claims: pd.DataFrame) -> Styler:
    """Formats the table of `save_statement_checks` for display: each statement once and in full,
    its metric, expected range, value with interval, n, Holm's p, verdict, and data version.
    """
    says = claims["statement"].astype(str).str.split("; number: ", n=1)
    table = claims.assign(
        statement=says.str[0],
        measured=says.str[1].fillna(""),
        value=ci_cells(claims, decimals=2),
        n=claims["n"].map("{:.0f}".format, na_action="ignore").fillna(NOTHING),
    )
    columns = ["value", "n", "verdict"]
    if claims["data_version"].fillna("").any():
        table["p (Holm)"] = claims["p_holm"].map(format_p, na_action="ignore")
        columns = ["value", "n", "p (Holm)", "verdict", "data_version"]
    rows = ["statement", "measured", "expected", "system", "stratum"]
    table = table.sort_values(["statement", "system"], kind="stable")
    return style_table(table[[*rows, *columns]].astype(object).fillna("").set_index(rows))


def load_statement_checks(folder: Path | str) -> pd.DataFrame:
    """Loads the checks that notebooks saved below `folder` (<paper>/NN_claims.csv): paper,
    `STATEMENT_COLUMNS`, low and high (the expected range, ±inf where it is open). Empty if
    nothing was saved.
    """
    files = sorted(project_path(folder).glob("*/[0-9][0-9]_claims.csv"))
    tables = [pd.read_csv(file).assign(paper=file.parent.name) for file in files]
    empty = pd.DataFrame(columns=["paper", *STATEMENT_COLUMNS])
    checks = pd.concat([empty, *tables], ignore_index=True) if tables else empty
    statements = _statements_of(checks)
    ends = {end: [float(getattr(each, end)) for each in statements] for end in ("low", "high")}
    return checks.assign(**ends)


def _statements_of(checks: pd.DataFrame) -> list[Statement]:
    """The statement of each row of saved checks."""
    known: dict[tuple[str, str], Statement] = {}
    for paper in checks["paper"].unique():
        known |= {(paper, each.name): each for each in load_statements(paper)}
    return [known[key] for key in zip(checks["paper"], checks["statement_id"], strict=True)]


def statements_figure(checks: pd.DataFrame, names: Mapping[str, str], title: str) -> Figure:
    """Draws each row of `load_statement_checks`, at least one, with its interval on the expected
    range; papers under headings, in the order of `names` (folder → name). Shares and differences
    are in points, correlations × 100; narrow ranges have a darker edge. Verdicts, which only a
    paper's own data have, are colours.
    """
    rows = checks.sort_values(
        "paper", key=lambda paper: paper.map(list(names).index), kind="stable"
    )
    rows = rows.reset_index(drop=True)
    ends = [*_ESTIMATE, "low", "high"]
    rows[ends] = rows[ends].mul(np.where(rows["unit"].isna(), 100, 1), axis=0).astype(float)
    verdicts = rows["verdict"].where(rows["verdict"].isin(list(_COLORS)), _NO_VERDICT)
    at = 1 + np.arange(len(rows)) + rows.groupby("paper", sort=False).ngroup().to_numpy()
    finite = rows[ends].where(np.isfinite(rows[ends])).stack()
    left, right = finite.min() - 2, finite.max() + 2
    figure, axes = new_figure(height=5)
    axis = axes[0][0]
    low, high = rows["low"].clip(lower=left), rows["high"].clip(upper=right)
    edges = [GREY if narrow else LIGHT for narrow in high - low < _NARROW]
    axis.barh(at, high - low, left=low, height=0.8, color=LIGHT, edgecolor=edges, zorder=0)
    for verdict, part in rows.groupby(verdicts, sort=False):
        draw_interval(axis, at[part.index], part, Series(_COLORS[str(verdict)]), flat=True)
    axis.axvline(0, color=DARK, linewidth=0.8, zorder=1)
    statements, right_of = _statements_of(rows), axis.get_yaxis_transform()
    for place, row, said in zip(at, rows.to_dict("records"), statements, strict=True):
        group = "" if row["stratum"] == ALL else f" {row['stratum']}"
        words = f"{row['system']}, n = {row['n']:,.0f} {said.counts}{group}"
        axis.text(1.01, place, words, transform=right_of, va="center", size=SMALL, color=DARK)
    labels = pd.Series([each.short or each.name.replace("_", " ") for each in statements])
    labels = labels.mask(rows["statement_id"].eq(rows["statement_id"].shift()), "")
    first = ~rows["paper"].duplicated()
    heads = [names[paper] for paper in rows.loc[first, "paper"]]
    axis.set_yticks([*(at[first] - 1), *at], [*heads, *labels])
    for text in axis.get_yticklabels()[: len(heads)]:
        text.set_fontweight("bold")
    axis.set(xlim=(left, right), ylim=(at[-1] + 0.6, -0.6))
    axis.grid(visible=False, axis="y")
    figure.supxlabel("Percentage points (correlations: × 100)", fontsize=8)
    expected = Patch(color=LIGHT, label="range of the paper's statement")
    colors = {verdict: _COLORS[verdict] for verdict in verdicts.unique()}
    marks = [Line2D([], [], color=hue, marker="o", label=name) for name, hue in colors.items()]
    set_caption(figure, title, _FIGURE_CAPTION, [expected, *interval_handles([rows]), *marks])
    set_axes_height(figure, axis, 0.155 * (at[-1] + 1))
    return figure


def statements_table(paper: str, folder: Path | str) -> pd.DataFrame:
    """Lists all statements of a paper with the checks saved below `folder`: statement, verdict,
    numbers (model and stratum, number with interval), source; a row for each check. Those without
    one come last: their verdict is "not run", and numbers names the notebook. Empty if nothing was
    saved.
    """
    checks, rows = load_statement_checks(folder), []
    checks = checks[checks["paper"] == paper]
    for each in load_statements(paper) if len(checks) else ():
        says = f"{each.says}, expected {each.expected} ({each.section})"
        found = checks[checks["statement_id"] == each.name].fillna({"data_version": ""})
        for row in found.to_dict("records"):
            where = row["system"] if row["stratum"] == ALL else f"{row['system']}, {row['stratum']}"
            number = format_ci(*(row[name] for name in _ESTIMATE), decimals=2)
            source = str(DataSource(row["source"], row["data_version"]))
            rows.append((says, row["verdict"], f"{where}: {number}", source))
        if found.empty:
            rows.append((says, NOT_RUN, f"run notebook {each.notebook}", ""))
    rows.sort(key=lambda row: row[1] == NOT_RUN)
    return pd.DataFrame(rows, columns=["statement", "verdict", "numbers", "source"])
