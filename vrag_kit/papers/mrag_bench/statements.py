"""Statements of the MRAG-Bench paper about models, checked against measured differences between two
settings, or a correlation; verdicts on the paper's data only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.papers.mrag_bench.results import CHANCE, MODEL_GROUPS, OVERALL, gains_by_scenario
from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.statements import (
    load_statements,
    published_verdicts,
    save_statement_checks,
    select_differences,
    summarise_statements,
)
from vrag_kit.workspace import path as project_path

PAPER = "mrag_bench"
STATEMENTS = load_statements(PAPER)
"""The statements, in the order of the paper.

"Almost all open models decline" is tested for each: a model that gains contradicts it.
"""


@cache
def _names() -> dict[str, str]:
    """Maps a checkpoint's name in our tables to its name in Table 3."""
    table = pd.read_csv(Path(__file__).with_name("models.csv"), keep_default_na=False)
    names = table.melt("model", ["checkpoint", "instead"], "column", "name")
    names["name"] = names["name"].str.split(r" \(|@").str[0].str.strip().str.replace("/", "-")
    return dict(zip(names["name"], names["model"], strict=True))


def published_name(model: str) -> str:
    """Returns the Table 3 name of a model in our tables; the same name if it has none."""
    return _names().get(model, model)


def check_statements(
    notebook: str, differences: pd.DataFrame, source: DataSource, folder: Path | str
) -> pd.DataFrame:
    """Checks the paper's statements that a notebook's differences can test, one row per statement
    and model. Columns are `STATEMENT_COLUMNS` of `papers.statements`; the file is NN_claims.csv
    below `folder`, a notebook's `figures_dir`.

    `notebook` is its number ("31"); `differences` are `to_percent(gains_by_scenario(…))` or
    `statement_differences`, or correlations in the same columns; `source` is the
    `data_source(benchmark)`. The returned table has a row without numbers for each statement
    without results. Verdicts are given on the paper's own data only
    (`save_statement_checks`), and not where the column at_chance is true. Raises `VragError` if the
    folder cannot be written.
    """
    overall = differences[differences["scenario"] == OVERALL]
    overall = overall.drop(columns="metric", errors="ignore")
    statements = [each for each in STATEMENTS if each.notebook == notebook]
    numbers = select_differences(statements, overall, published_name)
    file = project_path(folder) / PAPER / f"{notebook}_claims.csv"
    return save_statement_checks(file, statements, numbers, source)


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
    arms = judged[arm].map(lambda name: name if isinstance(name, str) else f"{name:g}")
    rows = judged.assign(setting=arms)
    statements = [each for each in STATEMENTS if each.notebook == notebook]
    tables = []
    for setting, baseline in dict.fromkeys((each.setting, each.baseline) for each in statements):
        both = rows[arms.isin([setting, baseline])]
        if both["setting"].nunique() == 2:
            table = gains_by_scenario(both, weights=weights, baseline=baseline)
            chance = table["model"].isin(settings_at_chance(both, weights=weights)["model"])
            tables.append(table.assign(metric="accuracy", at_chance=chance))
    if not tables:
        return pd.DataFrame(columns=["model", "scenario", "setting", "baseline"])
    return to_percent(pd.concat(tables, ignore_index=True))


def settings_at_chance(judged: pd.DataFrame, *, weights: pd.Series | None) -> pd.DataFrame:
    """Returns the settings with evidence whose 95 % interval contains chance, one option in four:
    model, setting, value, ci_low, ci_high, n, in percent; empty if there are none.
    """
    by = ["model", "setting"]
    means = to_percent(mean_scores(judged[judged["k"] > 0], by=by, weights=weights))
    at = means["metric"].eq("accuracy") & means["ci_low"].le(CHANCE) & means["ci_high"].ge(CHANCE)
    return means.loc[at, [*by, "value", "ci_low", "ci_high", "n"]]


def statements_table(folder: Path | str) -> pd.DataFrame:
    """Summarises the checks saved below `folder` for all `STATEMENTS`. Columns: statement, section,
    verdict, numbers, source, reported (see `summarise_statements`).
    """
    overall = {"scenario": OVERALL, "model_group": MODEL_GROUPS}
    return summarise_statements(
        project_path(folder) / PAPER,
        STATEMENTS,
        lambda statement: published_verdicts(PAPER, statement, **overall),
    )
