"""The paper's sentences beside results of one's own; verdicts on the paper's data alone."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pandas as pd

from vrag_kit.analysis import accuracy, in_percent
from vrag_kit.analysis.mix import Mix
from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.claim_rows import AT_CHANCE, save_claims, table_of
from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL, gains_by_scenario
from vrag_kit.papers.mrag_bench.statements import STATEMENTS
from vrag_kit.papers.sources import Source

_FOLDER = "mrag_bench"


def claims_on(
    notebook: str, differences: pd.DataFrame, source: Source, folder: Path
) -> pd.DataFrame:
    """What the paper says that the differences of a notebook can decide, one row a
    sentence and model: `COLUMNS` of `claim_rows`; saved below `folder`, a notebook's
    `figures_dir`, as NN_claims.csv.

    `notebook` is its number ("31"); `differences` are `in_percent(gains_by_scenario(…))`
    (or `gains_said`; without a column baseline: from "no_rag"), or
    correlations in the columns of those; `source` is that of `source_of(benchmark)`. Of a sentence
    about models or numbers that are not there the returned table has a row without
    numbers. There are verdicts on the paper's own data alone (`save_claims`), and none
    where the column at_chance is true. Raises `VragError` when
    the folder cannot be written.
    """
    told = differences[differences["scenario"] == OVERALL]
    if "baseline" not in told:
        told = told.assign(baseline="no_rag")
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        arm = told["setting"].eq(statement.setting) & told["baseline"].eq(statement.baseline)
        for row in told[arm].to_dict("records"):
            if statement.is_about(row["model"]):
                number = (row["value"], row["ci_low"], row["ci_high"])
                chance = row.get("at_chance", False)
                verdict = AT_CHANCE if chance else statement.range.verdict(*number)
                first = (statement.name, row["model"], ALL)
                rows.append((*first, *number, row["n"], verdict))
    return save_claims(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def gains_said(
    notebook: str, judged: pd.DataFrame, *, mix: Mix | None, arm: str = "setting"
) -> pd.DataFrame:
    """The differences that the sentences of a notebook speak of, of those arms that
    `judged` has: `gains_by_scenario` in points, `arm` as text in the column setting, and
    baseline. `arm` may be "k", the number of examples. The column at_chance says whether
    one of the two arms is (`at_chance`): then the difference tests no statement.
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
            table = gains_by_scenario(both, mix=mix, arm=arm, baseline=pair[1])
            chance = table["model"].isin(
                at_chance(judged[arms.isin(pair)], mix=mix, arm=arm)["model"]
            )
            table = table.rename(columns={arm: "setting"})
            tables.append(table.assign(metric="accuracy", at_chance=chance))
    if not tables:
        return pd.DataFrame(columns=["scenario", "setting", "baseline"])
    return in_percent(pd.concat(tables, ignore_index=True))


def at_chance(judged: pd.DataFrame, *, mix: Mix | None, arm: str = "setting") -> pd.DataFrame:
    """The arms that show evidence and whose 95 % interval contains chance, one option in
    four: model, `arm`, value, ci_low, ci_high, n, in percent; empty where there are none.
    """
    means = in_percent(accuracy(judged[judged["k"] > 0], by=["model", arm], mix=mix))
    at = means["metric"].eq("accuracy") & means["ci_low"].le(CHANCE) & means["ci_high"].ge(CHANCE)
    return means.loc[at, ["model", arm, "value", "ci_low", "ci_high", "n"]]


def _in_words(arm: Hashable) -> str:
    """A setting as it is called, a number without its decimal point."""
    return arm if isinstance(arm, str) else f"{arm:g}"


def claims_table(folder: Path) -> pd.DataFrame:
    """Every sentence of `STATEMENTS` with what the claims saved below `folder` say of
    it: says, section, verdict, numbers, source, printed (see `table_of`).
    """
    return table_of(folder / _FOLDER, STATEMENTS, lambda statement: statement.printed())
