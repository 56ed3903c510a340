"""The sweep over prompts in tables: what could be read, what was chosen, and what the paper
prints of its own (Table 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from vrag_kit.analysis.cells import NOTHING, interval_cell, p_cell
from vrag_kit.papers.mrag_suite.printed import printed_best_prompts
from vrag_kit.papers.mrag_suite.prompt_sweep import CHOOSE, REPORT, prompt_sweep

_ENDS = ("", "_low", "_high")
_IN_SHARES = [f"{name}{end}" for name, end in product((CHOOSE, REPORT, "gain"), _ENDS)]


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


def gains_table(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What each prompt gains over the mean of all on the reporting half: prompts down, data
    sets across, points with interval, n and p (Holm over the prompts).
    """
    columns = {}
    for name, table in sweeps.items():
        cells = []
        for row in table.to_dict("records"):
            gain = interval_cell(row["gain"], row["gain_low"], row["gain_high"])
            cells.append(f"{gain} (n = {row['report_n']:.0f}), p {p_cell(row['p_holm'])}")
        columns[name] = pd.Series(cells, index=table["prompt"])
    return pd.DataFrame(columns).fillna(NOTHING)


def chosen_beside_print(sweeps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The prompt that was chosen of each data set: its mean where it was chosen and where
    it is reported, and the highest mean of the reporting half, which nobody could have
    known; beside it Table 6's best prompt and mean, over six models and on the paper's
    data, in percent ("–" where it prints none).
    """
    printed = printed_best_prompts().set_index("dataset")
    rows = {}
    for name, table in sweeps.items():
        chosen = table[table["chosen"]]
        row = {"chosen": str(chosen["prompt"].iloc[0])}
        for half, said in ((CHOOSE, "where it was chosen"), (REPORT, "where it is reported")):
            row[said] = _cell(chosen, half)
        row["the highest reported"] = f"{table[REPORT].max():.1f}"
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
