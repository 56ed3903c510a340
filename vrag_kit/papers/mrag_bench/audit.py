"""Audit of the paper: each number of Tables 3, 4, 6 and 7, of Figure 2 and of the text that follows
from others is recomputed, as `checks.csv` and `text_numbers.csv` say.

It shows that two published numbers contradict each other, not which of them is incorrect, nor why.
Differences explained by rounding or truncation are no contradictions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import check_text_numbers, possible_denominators, run_checks
from vrag_kit.papers.published import published

QUESTIONS = {
    "angle": 322,
    "partial": 246,
    "scope": 102,
    "occlusion": 108,
    "temporal": 149,
    "deformation": 102,
    "incomplete": 102,
    "biological": 102,
    "others": 120,
}
"""Number of questions of each scenario (Figure 3 and Table 3): the whole numbers behind Figure 2's
shares.
"""
ASPECTS = {
    "perspective": ("angle", "partial", "scope", "occlusion"),
    "transformative": ("temporal", "deformation", "incomplete", "biological"),
    "others": ("others",),
}
"""Maps each aspect to its scenarios."""
ASPECT_OF: dict[str, str] = {}
"""Maps each scenario to its aspect."""
for _aspect, _names in ASPECTS.items():
    ASPECT_OF |= dict.fromkeys(_names, _aspect)
_CELL = ["model", "setting", "modality"]
_DIGIT = 0.0051
"""Half a unit of the last published digit, with a small margin."""
_PRINTED = {
    "retrieved_text": "retrieved_rag",
    "gt_text": "gt_rag",
    "gt_image_and_text": "gt_rag",
}
_OURS = {"LLaVA-Next-Interleave": "LLaVA-NeXT-Interleave-7B"}
Tables = Mapping[int | str, pd.DataFrame]


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables: number → table, and "figure02". They are as `published` gives
    them, but settings of Table 4 differ by their modality alone, as in print.
    """
    tables = {name: published("mrag_bench", name) for name in (2, 3, 4, 6, 7, "figure02")}
    return tables | {4: tables[4].replace({"setting": _PRINTED})}


def audit(tables: Tables) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_summary`, `contradictions`).

    Values are in percent, or questions. The check "overall, all questions" weights scenarios by
    their questions (micro average), as the models' rows do; its `note` says if the published number
    is the macro average of the nine. Statements of the text are in the check "text vs. tables".
    `tables` are `published_tables()`.
    """
    frames = {**_shares(tables), **_overall(tables), **_repeats(tables), **_text(tables)}
    frames |= {f"t{number}_gains": _gains(tables[number]) for number in (3, 4)}
    frames |= {f"t{number}_cells": _whole_numbers(tables[number]) for number in (3, 4, 6, 7)}
    checks = [*run_checks("mrag_bench", frames), *check_text_numbers("mrag_bench", frames)]
    return pd.concat(checks, ignore_index=True)


def overall_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Computes the overall means of a table by scenario: its key columns, `reported` (overall),
    `weighted` (micro average over questions) and `plain` (macro average of nine scenarios).
    """
    names = [name for name in ("retriever", *_CELL) if name in cells]
    wide = cells.pivot_table(index=names, columns="scenario", values="value", sort=False)
    scenarios, n = wide[list(QUESTIONS)], pd.Series(QUESTIONS)
    means = {"reported": wide["overall"], "weighted": scenarios @ n / n.sum()}
    return pd.DataFrame(means | {"plain": scenarios.mean(axis=1)}).reset_index()


def retriever_correlations(tables: Tables) -> pd.DataFrame:
    """Correlates recall@5 (Table 6) with accuracy (Table 7) over the four retrievers: scenario
    ("overall" too), n, pearson, spearman. Four points each.
    """
    both = tables[6].merge(tables[7], on=["retriever", "scenario"], suffixes=("_recall", "_right"))
    rows = []
    for scenario, part in both.groupby("scenario", sort=False):
        pair = part[["value_recall", "value_right"]]
        found = pair.corr().iloc[0, 1], pair.corr("spearman").iloc[0, 1]
        rows.append((scenario, len(part), *found))
    return pd.DataFrame(rows, columns=["scenario", "n", "pearson", "spearman"])


def _gains(table: pd.DataFrame) -> pd.DataFrame:
    """Printed differences from the same model without examples; `swapped` names the scenarios whose
    value without examples would give them.
    """
    alone = table.query("setting == 'no_rag'")[["model", "scenario", "value"]]
    keys = ["model", "scenario"]
    both = table[table["delta"].notna()].merge(alone, on=keys, suffixes=("", "_alone"))
    swapped = []
    for row in both.to_dict("records"):
        fits = (alone["value"] - (row["value"] - row["delta"])).abs() <= _DIGIT
        swapped.append(", ".join(alone["scenario"][fits & (alone["model"] == row["model"])]))
    return both.assign(swapped=swapped)


def _shares(tables: Tables) -> dict[str, pd.DataFrame]:
    """Figure 2's shares and Table 2, with the whole numbers of questions behind them."""
    figure, counts = tables["figure02"], pd.Series(QUESTIONS)
    levels = {"scenario": counts, "aspect": counts.groupby(pd.Series(ASPECT_OF)).sum()}
    frames = {"questions": tables[2].query("statistic == 'questions'").assign(n=counts.sum())}
    for level, n in levels.items():
        rows = figure[figure["level"] == level]
        frames[level] = rows.assign(n=rows["scenario"].map(n), total=counts.sum())
    return frames


def _whole_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of scenarios with the nearest whole number of questions; `fit` names the number that
    all odd shares of the same model and scenario would fit, where there are at least two.
    """
    cells = table[table["scenario"] != "overall"].reset_index(drop=True)
    n = cells["scenario"].map(QUESTIONS)
    cells = cells.assign(n=n, count=(cells["value"] * n / 100).round(), fit="")
    odd = cells[(cells["value"] - 100 / n * cells["count"]).abs() > 2 * _DIGIT]
    for _, part in odd.groupby(["model" if "model" in cells else "retriever", "scenario"]):
        fits = possible_denominators(list(part["value"]), 1, 100, digits=2)
        if fits and len(part) > 1:
            shares = " and ".join(map(str, part["value"]))
            cells.loc[part.index, "fit"] = f"; {shares} fit {fits[0]}"
    return cells


def _overall(tables: Tables) -> dict[str, pd.DataFrame]:
    """The overall columns, and people's gains on the scale of the models' column."""
    frames = {}
    for number in (3, 4, 6, 7):
        rows = overall_means(tables[number])
        plain = (rows["reported"] - rows["plain"]).abs() <= 3 * _DIGIT
        note = np.where(plain, "it is the plain mean of the nine scenarios", "")
        frames[f"t{number}_overall"] = rows.assign(remark=note)
    people = tables[3].query("model == 'Human performance'")
    weighted = overall_means(people).set_index("setting")["weighted"]
    own = people["setting"].map(weighted - weighted["no_rag"])
    gains = people.assign(own=own).query("scenario == 'overall' and delta.notna()")
    return {**frames, "people": gains}


def _repeats(tables: Tables) -> dict[str, pd.DataFrame]:
    """Cells that two tables print."""
    main = tables[3][[*_CELL, "scenario", "value"]]
    clip = tables[7].query("retriever == 'CLIP'").replace({"model": _OURS})
    keys = ["model", "setting", "scenario"]
    return {
        "t4_t3": tables[4].merge(main, on=[*keys, "modality"], suffixes=("", "_main")),
        "t7_t3": clip.merge(main, on=keys, suffixes=("", "_main")),
    }


def _text(tables: Tables) -> dict[str, pd.DataFrame]:
    """Overall values by model of Table 3, by its groups and of Table 4, by its modalities; Table 7,
    and the correlations.
    """
    frames = {}
    for number, by in ((3, "model_group"), (4, "modality")):
        overall = tables[number].query("scenario == 'overall'")
        for name, rows in (("all", overall), *overall.groupby(by)):
            wide = rows.pivot_table(index="model", columns="setting", values="value")
            frames[f"t{number}_{name}"] = wide
    frames["t7"] = tables[7].query("scenario == 'overall'").set_index("retriever")
    return {**frames, "correlations": retriever_correlations(tables).set_index("scenario")}
