"""Statements of the MRAG-Bench paper about models, checked against measured differences between two
settings, or a correlation; verdicts on the paper's data only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers import statements
from vrag_kit.papers.mrag_bench.results import EDITION, OVERALL, is_paper_data, settings_at_chance
from vrag_kit.papers.statements import AT_CHANCE, data_columns, select_differences
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace


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
    """Checks the paper's statements that a notebook's differences can test (`check_statements` of
    `papers.statements`), overall.

    "Almost all open models decline" is tested for each: a model that gains contradicts it.

    `notebook` is its number ("31"); `differences` are `gains_by_scenario`, or correlations in the
    same columns. Verdicts are given on the paper's own data only ; the
    released files' hashes are unknown here, so these data are identified by their counts. With
    `means` (`accuracy_by_scenario`) there is no verdict where one of the two settings is at chance
    (`settings_at_chance`). Raises `VragError` if the folder cannot be written.
    """
    overall = differences[differences["scenario"] == OVERALL]
    if "stratum" in overall:
        overall = overall[overall["stratum"] == ALL]
    numbers = select_differences("mrag_bench", notebook, overall, published_names())
    edition = EDITION if is_paper_data(benchmark) else ""
    numbers = numbers.assign(**data_columns(benchmark, edition))
    if means is not None:
        chance = settings_at_chance(means).set_index(["model", "setting"]).index
        for side in ("setting", "baseline"):
            arms = pd.MultiIndex.from_frame(numbers[["model", side]])
            numbers.loc[arms.isin(chance), "verdict"] = AT_CHANCE
    return statements.check_statements("mrag_bench", notebook, numbers, at)
