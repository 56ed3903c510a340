"""Audit of the paper: each number of Tables 2 to 11 and of the figures' labels that follows from
others is recomputed, as `checks.csv` and `text_numbers.csv` say.

It shows that two published numbers contradict each other, not which of them is incorrect, nor why.
Differences explained by rounding or by another definition are no contradictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import check_text_numbers, run_checks
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.papers.published import published

LENGTHS = {2: 3, 3: 7, 4: 20, 5: 37, 6: 33}
"""Maps the number of turns of a conversation to its weight. The weights are ours: 2 to 6 turns,
mean 4.9, as in the paper.
"""


def independent_turns_early_stop(rates: tuple[float, float, float]) -> float:
    """Computes the exact share of conversations, in [0, 1], that the paper's rule stops early if
    turns are independent and correct, missing or incorrect with the same `rates`, and conversations
    have `LENGTHS`.

    Rates are normalised. Every sequence of turns is enumerated, 3 to the power of their number.
    """
    chances = dict(zip((1.0, 0.0, -1.0), (rate / sum(rates) for rate in rates), strict=True))
    stopped = 0.0
    for length, weight in LENGTHS.items():
        for scores in product(chances, repeat=length):
            if early_stopping_rule(scores) is not None:
                stopped += weight * prod(chances[each] for each in scores)
    return stopped / sum(LENGTHS.values())


Tables = Mapping[int | str, pd.DataFrame]
RESULTS = (4, 5, 8, 9, 10, 11)
"""Numbers of the tables of results."""
CONVERSATIONS = 586
"""Size of the public test set: all early-stop rates of Table 9 are whole shares of it."""
OF_TABLES = {9: CONVERSATIONS, 11: 495, 5: 587}
"""Maps a table to the number of conversations behind its early-stop rates: all of them, Table 11's
part (505 fits as well), and those of Table 5's four industry systems.
"""
LEADERBOARD = ("Llama 3.2 11B RAG", "Winning team")
EGOCENTRIC_SHARE = 0.62
"""Share of egocentric images for which the two image types give each whole-image recall."""


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables, as `published` gives them: number → table, "figure03_curves" and
    "figure07".
    """
    names: tuple[int | str, ...] = (2, 3, *RESULTS, 7, "figure03_curves", "figure07")
    return {name: published("crag_mm", name) for name in names}


def audit(tables: Tables) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_table`).

    Values are in percent, or counts. Statements of the text are in the check "text vs. tables".
    `tables` are `published_tables()`.
    """
    frames = {**_results(tables), **_repeats(tables), **_counts(tables)}
    checks = [*run_checks("crag_mm", frames), *check_text_numbers("crag_mm", frames)]
    return pd.concat(checks, ignore_index=True)


def early_stop_rates(tables: Tables) -> dict[int, pd.DataFrame]:
    """Returns the early-stop rates of Tables 9 and 11, and of Table 5's industry systems: model,
    setting, value.
    """
    wanted = "metric == 'early_stop' and model not in @LEADERBOARD"
    return {number: tables[number].query(wanted).reset_index(drop=True) for number in OF_TABLES}


def _results(tables: Tables) -> dict[str, pd.DataFrame]:
    """Tables of results with a row an arm ("t8"), also by setting or split ("t8_task_2"), and the
    early stops of Tables 5, 9 and 11.
    """
    frames = {}
    for number in RESULTS:
        table = tables[number]
        keys = [name for name in ("split", "model", "setting") if name in table]
        wide = table.pivot_table(index=keys, columns="metric", values="value", sort=False)
        frames[f"t{number}"] = arms = wide.reset_index()
        for name, rows in arms.groupby(keys[-1] if "setting" in table else "split"):
            frames[f"t{number}_{name}"] = rows.set_index("model")
    for number, rows in early_stop_rates(tables).items():
        n = OF_TABLES[number]
        frames[f"t{number}_counts"] = rows.assign(n=n, count=(rows["value"] * n / 100).round())
    for number in (5, 9):
        stops = frames[f"t{number}"].dropna(subset="early_stop")
        rates = stops[["accuracy", "missing", "hallucination"]].itertuples(index=False, name=None)
        own = [100 * independent_turns_early_stop(each) for each in rates]
        stops = stops.assign(independent=own, remark="")
        few = stops["early_stop"] < stops["independent"] - 5
        stops.loc[few, "remark"] = "far fewer than independent turns would stop"
        frames[f"t{number}_stops"] = stops
    return frames


def _repeats(tables: Tables) -> dict[str, pd.DataFrame]:
    """Cells that two tables print ("t4_t8"), or one of a part and one of the whole ("t10_t8")."""
    base = tables[5].query("model == 'Llama 3.2 11B RAG'").assign(model="Llama 3.2 11B")
    base["setting"] = base["split"].map({"single_turn": "task_2", "multi_turn": "task_3"})
    keys, frames = ["split", "setting", "model", "metric"], {}
    for number, main in ((4, 8), (4, 9), (5, 8), (5, 9), (10, 8), (11, 9)):
        table = base if number == 5 else tables[number]
        both = table.merge(tables[main], on=keys, suffixes=("", "_main"))
        frames[f"t{number}_t{main}"] = both.rename(columns={"metric": "scenario"})
    for name, share in (("t10_t8", 0.65), ("t11_t9", 0.85)):
        both, least = frames[name], share - 0.005  # the smallest part that is rounded to its share
        lowest = np.where(both["scenario"] == "truthfulness", -100, 0)
        frames[name] = both.assign(
            low=least * both["value"] + (1 - least) * lowest,
            high=least * both["value"] + (1 - least) * 100,
            rest=(both["value_main"] - share * both["value"]) / (1 - share),
        )
    return frames


def _counts(tables: Tables) -> dict[str, pd.DataFrame]:
    """Tables 2, 3 and 7, their totals and averages, and recall of Figures 3 and 7."""
    frames = {}
    for name, number, rows, column in (
        ("t2", 2, ["image_quality"], "image_type"),
        ("t2_columns", 2, ["image_type"], "image_quality"),
        ("t3_rows", 3, ["domain", "split"], "question_type"),
        ("t3_columns", 3, ["question_type", "split"], "domain"),
        ("t7", 7, ["label"], "metric"),
        ("t7_columns", 7, ["metric"], "label"),
    ):
        wide = tables[number].pivot_table(index=rows, columns=column, values="value", sort=False)
        parts = wide.drop(columns=["total", "average"], errors="ignore")
        wide = wide.assign(parts=parts.sum(axis=1, min_count=1), mean_of_parts=parts.mean(axis=1))
        frames[name] = wide.dropna(subset="parts").reset_index().set_index(rows[0], drop=False)
    questions = tables[3].query("domain == 'total'")
    frames["t3"] = questions.pivot(index="question_type", columns="split", values="value")
    curves = tables["figure03_curves"]
    kinds = tables["figure07"].pivot(index="k", columns="setting", values="value")
    own = EGOCENTRIC_SHARE * kinds["egocentric"] + (1 - EGOCENTRIC_SHARE) * kinds["non-egocentric"]
    whole = curves.query("setting == 'whole image'")
    frames["recall"] = whole.assign(own=whole["k"].map(own))
    frames["highest_recall"] = curves.groupby("setting")[["value"]].max()
    return {**frames, "questions": tables[3]}
