"""The sweep over prompts in tables: what could be read, what was chosen, and what the paper
prints of its own (Table 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from vrag_kit.analysis.cells import NOTHING, interval_cell
from vrag_kit.analysis.percent import in_percent
from vrag_kit.papers.mrag_suite.printed import printed_best_prompts
from vrag_kit.papers.mrag_suite.prompt_sweep import (
    CHOOSE,
    PLANTED,
    REPORT,
    prompt_gains,
    prompt_sweep,
)

_ENDS = ("", "_low", "_high")
_IN_SHARES = [f"{name}{end}" for name, end in product((CHOOSE, REPORT), _ENDS)]


def sweeps_of(judged: Mapping[str, pd.DataFrame], *, seed: int = 0) -> dict[str, pd.DataFrame]:
    """`prompt_sweep` of each data set, in percent and points; raises as that does."""
    sweeps = {}
    for name, table in judged.items():
        swept = prompt_sweep(table, seed=seed)
        sweeps[name] = swept.assign(**{column: 100 * swept[column] for column in _IN_SHARES})
    return sweeps


def readable_table(answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How many replies to each prompt are in the form that it asks for: prompts down, data
    sets across, "readable of all"; what cannot be read is a failure, and no wrong answer.
    """
    columns = {}
    for name, table in answers.items():
        read = (table["status"] == "ok").groupby(table["prompt"], sort=False)
        counts = read.agg(["sum", "size"])
        columns[name] = counts["sum"].astype(str) + " of " + counts["size"].astype(str)
    return pd.DataFrame(columns).fillna(NOTHING)


def gains_of(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`prompt_gains` of each data set, in points, with the columns dataset and model (of
    several models all names, as values are means over them).
    """
    tables = []
    for name, table in judged.items():
        models = " and ".join(table["model"].unique())
        tables.append(prompt_gains(table).assign(dataset=name, model=models))
    return in_percent(pd.concat(tables, ignore_index=True))


def chosen_beside_print(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The prompt that was chosen of each data set: its mean where it was chosen and where
    it is reported, and the highest mean of the reporting half (but for `PLANTED`),
    which nobody could have known; beside it Table 6's best prompt and mean, over six models
    and on the paper's data, in percent ("–" where it prints none).
    """
    printed = printed_best_prompts().set_index("dataset")
    rows = {}
    for name, table in sweeps.items():
        chosen = table[table["chosen"]]
        row = {"chosen": str(chosen["prompt"].iloc[0])}
        for half, said in ((CHOOSE, "where it was chosen"), (REPORT, "where it is reported")):
            row[said] = _cell(chosen, half)
        highest = table[~table["prompt"].isin(PLANTED)][REPORT].max()
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
    cell = interval_cell(row[half], row[f"{half}_low"], row[f"{half}_high"])
    return f"{cell} (n = {row[f'{half}_n']:.0f})"
