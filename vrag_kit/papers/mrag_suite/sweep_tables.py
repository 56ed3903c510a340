"""Tables of the prompt sweep: parse rates, selected prompts, and the paper's best ones
(Table 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from vrag_kit.analysis.means import to_percent
from vrag_kit.analysis.report_tables import NOTHING, format_ci
from vrag_kit.papers.mrag_suite.sweep import (
    HELD_OUT,
    PLANTED,
    SELECTION,
    prompt_gains,
    prompt_sweep,
)
from vrag_kit.papers.published import published

_ENDS = ("", "_low", "_high")
_IN_SHARES = [f"{name}{end}" for name, end in product((SELECTION, HELD_OUT), _ENDS)]


def sweep_by_dataset(
    judged: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Runs `prompt_sweep` on each data set, in percent and points; raises as that does."""
    sweeps = {}
    for name, table in judged.items():
        swept = prompt_sweep(table, seed=seed)
        sweeps[name] = swept.assign(**{column: 100 * swept[column] for column in _IN_SHARES})
    return sweeps


def parse_rate_table(answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Counts the replies to each prompt in the requested format: rows prompts, columns data sets,
    "parsed of all". An unparsed reply is a failure, not an incorrect answer.
    """
    columns = {}
    for name, table in answers.items():
        read = (table["status"] == "ok").groupby(table["prompt"], sort=False)
        counts = read.agg(["sum", "size"])
        columns[name] = counts["sum"].astype(str) + " of " + counts["size"].astype(str)
    return pd.DataFrame(columns).fillna(NOTHING)


def prompt_gains_by_dataset(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Computes `prompt_gains` of each data set, in points, with the columns dataset and model (all
    names if there are several, as values are means over them).
    """
    tables = []
    for name, table in judged.items():
        models = " and ".join(table["model"].unique())
        tables.append(prompt_gains(table).assign(dataset=name, model=models))
    return to_percent(pd.concat(tables, ignore_index=True))


def compare_chosen_to_paper(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compares each data set's selected prompt with Table 6's best prompt and mean. Shown are its
    mean on the selection half and on the held-out half, and the highest held-out mean (except
    `PLANTED`), which could not be known beforehand. Table 6 is over six models and on the paper's
    data, in percent ("–" if it has none).
    """
    printed = published("mrag_suite", 6).set_index("dataset")
    rows = {}
    for name, table in sweeps.items():
        chosen = table[table["selected"]]
        row = {"selected": str(chosen["prompt"].iloc[0])}
        for half, said in ((SELECTION, "where it was chosen"), (HELD_OUT, "where it is reported")):
            row[said] = _cell(chosen, half)
        highest = table[~table["prompt"].isin(PLANTED)][HELD_OUT].max()
        row["the highest reported"] = f"{highest:.1f}"
        row["questions without a value"] = f"{chosen['n_failed'].iloc[0]:.0f}"
        there = printed[printed.index == name]
        row["printed (Table 6)"] = NOTHING if there.empty else str(there["prompt"].iloc[0])
        row["printed mean"] = NOTHING if there.empty else f"{there['value'].iloc[0]:.1f}"
        rows[name] = row
    return pd.DataFrame(rows).T


def _cell(chosen: pd.DataFrame, half: str) -> str:
    """The mean of one half with its interval and n."""
    row = chosen.iloc[0]
    cell = format_ci(row[half], row[f"{half}_low"], row[f"{half}_high"])
    return f"{cell} (n = {row[f'{half}_n']:.0f})"
