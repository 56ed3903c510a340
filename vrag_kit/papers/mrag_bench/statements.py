"""Statements of the MRAG-Bench paper about models, checked against measured differences between two
settings, or a correlation; verdicts on the paper's data only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.mrag_bench.results import (
    EDITION,
    OVERALL,
    is_paper_data,
    settings_at_chance,
)
from vrag_kit.papers.statements import (
    make_data_source,
    save_statement_checks,
    select_differences,
    show_statements,
)
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

PAPER = "mrag_bench"


@cache
def published_names() -> dict[str, str]:
    """Maps a checkpoint's name in our tables to its name in Table 3."""
    table = pd.read_csv(Path(__file__).with_name("models.csv"), keep_default_na=False)
    names = table.melt("model", ["checkpoint", "instead"], "column", "name")
    names["name"] = names["name"].str.split(r" \(|@").str[0].str.strip().str.replace("/", "-")
    return dict(zip(names["name"], names["model"], strict=True))


def check_statements(
    notebook: str,
    differences: pd.DataFrame,
    benchmark: Benchmark,
    at: Workspace,
    means: pd.DataFrame | None = None,
) -> Styler:
    """Checks the paper's statements that a notebook's differences can test, saves the checks as
    NN_claims.csv below `figures_dir`, and formats them for display, one row per statement and
    model.

    "Almost all open models decline" is tested for each: a model that gains contradicts it.

    `notebook` is its number ("31"); `differences` are `gains_by_scenario`, or correlations in the
    same columns. Verdicts are given on the paper's own data only (`save_statement_checks`); the
    released files' hashes are unknown here, so these data are identified by their counts. With
    `means` (`accuracy_by_scenario`) there is no verdict where one of the two settings is at chance
    (`settings_at_chance`). Raises `VragError` if the folder cannot be written.
    """
    overall = differences[differences["scenario"] == OVERALL].drop(
        columns="metric", errors="ignore"
    )
    if "stratum" in overall:
        overall = overall[overall["stratum"] == ALL]
    numbers = select_differences(
        PAPER, notebook, overall.drop(columns="metric", errors="ignore"), published_names()
    )
    if means is not None:
        found = settings_at_chance(means)
        chance = found["model"] + "\n" + found["setting"]
        first, second = (
            numbers["model"] + "\n" + numbers[side] for side in ("setting", "baseline")
        )
        numbers["at_chance"] = first.isin(chance) | second.isin(chance)
    source = make_data_source(benchmark, EDITION if is_paper_data(benchmark) else "")
    sources = [source] * len(numbers)
    return show_statements(save_statement_checks(PAPER, notebook, numbers, sources, at))
