"""Checks of the paper's statements against measured results; verdicts on the paper's data only."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pandas as pd

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL, gains_by_scenario
from vrag_kit.papers.mrag_bench.statements import STATEMENTS
from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.statements import AT_CHANCE, save_statement_checks, tabulate_statements

_FOLDER = "mrag_bench"


def check_statements(
    notebook: str, differences: pd.DataFrame, source: DataSource, folder: Path
) -> pd.DataFrame:
    """Checks the paper's statements that a notebook's differences can test, one row per statement
    and model. Columns are `STATEMENT_COLUMNS` of `papers.statements`; the file is NN_claims.csv
    below `folder`, a notebook's `figures_dir`.

    `notebook` is its number ("31"); `differences` are `to_percent(gains_by_scenario(…))` (or
    `statement_differences`; without a column baseline: from "no_rag"), or correlations in the same
    columns; `source` is the `data_source(benchmark)`. The returned table has a row without numbers
    for each statement without results. Verdicts are given on the paper's own data only
    (`save_statement_checks`), and not where the column at_chance is true. Raises `VragError` if the
    folder cannot be written.
    """
    told = differences[differences["scenario"] == OVERALL]
    if "baseline" not in told:
        told = told.assign(baseline="no_rag")
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        arm = told["setting"].eq(statement.setting) & told["baseline"].eq(statement.baseline)
        for row in told[arm].to_dict("records"):
            if statement.applies_to(row["model"]):
                number = (row["value"], row["ci_low"], row["ci_high"])
                chance = row.get("at_chance", False)
                verdict = AT_CHANCE if chance else statement.range.verdict(*number)
                first = (statement.name, row["model"], ALL)
                rows.append((*first, *number, row["n"], verdict))
    return save_statement_checks(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def statement_differences(
    notebook: str,
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    arm: str = "setting",
) -> pd.DataFrame:
    """Computes the differences that the statements of a notebook are about, for the arms in
    `judged`. They are `gains_by_scenario` in points, with `arm` as text in the column setting, and
    baseline. `arm` may be "k", the number of examples. The column at_chance is true if one of the
    two arms is at chance (`settings_at_chance`): then the difference tests no statement.
    """
    arms = judged[arm].map(_in_words)
    pairs = dict.fromkeys(
        (statement.setting, statement.baseline)
        for statement in STATEMENTS
        if statement.notebook == notebook
    )
    tables = []
    for pair in pairs:
        both = judged.assign(**{arm: arms})[arms.isin(pair)]
        if both[arm].nunique() == len(pair):
            table = gains_by_scenario(both, weights=weights, arm=arm, baseline=pair[1])
            chance = table["model"].isin(
                settings_at_chance(judged[arms.isin(pair)], weights=weights, arm=arm)["model"]
            )
            table = table.rename(columns={arm: "setting"})
            tables.append(table.assign(metric="accuracy", at_chance=chance))
    if not tables:
        return pd.DataFrame(columns=["scenario", "setting", "baseline"])
    return to_percent(pd.concat(tables, ignore_index=True))


def settings_at_chance(
    judged: pd.DataFrame, *, weights: pd.Series | None, arm: str = "setting"
) -> pd.DataFrame:
    """Returns the arms with evidence whose 95 % interval contains chance, one option in four:
    model, `arm`, value, ci_low, ci_high, n, in percent; empty if there are none.
    """
    means = to_percent(mean_scores(judged[judged["k"] > 0], by=["model", arm], weights=weights))
    at = means["metric"].eq("accuracy") & means["ci_low"].le(CHANCE) & means["ci_high"].ge(CHANCE)
    return means.loc[at, ["model", arm, "value", "ci_low", "ci_high", "n"]]


def _in_words(arm: Hashable) -> str:
    """A setting as it is called, a number without its decimal point."""
    return arm if isinstance(arm, str) else f"{arm:g}"


def statements_table(folder: Path) -> pd.DataFrame:
    """Summarises the checks saved below `folder` for all `STATEMENTS`. Columns: statement, section,
    verdict, numbers, source, reported (see `tabulate_statements`).
    """
    return tabulate_statements(
        folder / _FOLDER, STATEMENTS, lambda statement: statement.published_verdicts()
    )
