"""Audit of the paper: each number of Tables 3, 4, 6 and 7, of Figure 2 and of the text that follows
from others is recomputed.

It shows that two published numbers contradict each other, not which of them is incorrect, nor why.
Differences explained by rounding or truncation are no contradictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import cast

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import (
    CONTRADICTS,
    SAME,
    Tolerance,
    audit_rows,
)
from vrag_kit.papers.mrag_bench.printed_text import text_numbers
from vrag_kit.papers.published import published
from vrag_kit.papers.text_numbers import check_text_numbers

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
_CELL = ["model", "setting", "modality"]
_UNIT = 0.01
_DIGIT = Tolerance(_UNIT / 2 + 1e-4, _UNIT + 1e-4)
_MEAN = Tolerance(_UNIT / 2 + 1e-4, 1.5 * _UNIT + 1e-4)
_SHARE = Tolerance(0.0501)
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


def audit(tables: Tables | None = None) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_summary`, `contradictions`).

    Values are in percent, or questions. The check "overall, all questions" weights scenarios by
    their questions (micro average), as the models' rows do; its `note` says if the published number
    is the macro average of the nine. Statements of the text are in the check "text vs. tables".
    `tables` are `published_tables()` by default.
    """
    tables = published_tables() if tables is None else tables
    checks = (_deltas, _shares, _whole_numbers, _overall, _human_gains, _repeats, _statements)
    parts = chain.from_iterable(check(tables) for check in checks)
    return pd.concat(list(parts), ignore_index=True)


def overall_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Computes the overall means of a table by scenario: its key columns, `reported` (overall),
    `weighted` (micro average over questions) and `plain` (macro average of nine scenarios).
    """
    names = [name for name in ("retriever", *_CELL) if name in cells]
    wide = cells.pivot_table(index=names, columns="scenario", values="value", sort=False)
    scenarios = wide[list(QUESTIONS)]
    weights = np.array(list(QUESTIONS.values()))
    return pd.DataFrame(
        {
            "reported": wide["overall"],
            "weighted": scenarios.to_numpy() @ weights / weights.sum(),
            "plain": scenarios.mean(axis=1),
        }
    ).reset_index()


def smallest_denominator(values: Iterable[float], most: int = 400) -> int | None:
    """Returns the smallest number of questions of which all values, in percent to two digits, are
    whole shares; None if there is none up to `most`.
    """
    shares = np.array(list(values))
    for n in range(1, most + 1):
        nearest = 100 / n * np.round(shares * n / 100)
        if (np.abs(nearest - shares) <= _DIGIT.exact).all():
            return n
    return None


def _deltas(tables: Tables) -> Iterable[pd.DataFrame]:
    """Printed differences from the same model without examples."""
    for number in (3, 4):
        table = tables[number]
        alone = table[table["setting"] == "no_rag"][["model", "scenario", "value"]]
        both = table[table["delta"].notna()].merge(
            alone, on=["model", "scenario"], suffixes=("", "_alone")
        )
        own = both["value"] - both["value_alone"]
        rows = audit_rows("difference from no RAG", number, both, both["delta"], own, _DIGIT)
        yield rows.assign(note=_swapped(both, rows["finding"] == CONTRADICTS))


def _swapped(both: pd.DataFrame, odd: pd.Series) -> list[str]:
    """For odd differences: which other scenario's value without RAG gives them."""
    notes = []
    for (_, row), is_odd in zip(both.iterrows(), odd, strict=True):
        others = both[(both["model"] == row["model"]) & (both["setting"] == row["setting"])]
        wanted = float(row["value"] - row["delta"])
        fits = (others["value_alone"] - wanted).abs() <= _DIGIT.exact
        names = ", ".join(others[fits]["scenario"]) if is_odd else ""
        notes.append(f"fits the value without RAG of {names}" if names else "")
    return notes


def _shares(tables: Tables) -> Iterable[pd.DataFrame]:
    """Figure 2's shares from whole numbers of questions, and their sum."""
    figure = tables["figure02"]
    total = sum(QUESTIONS.values())
    for level, counts in (("scenario", QUESTIONS), ("aspect", _of_aspects())):
        part = figure[figure["level"] == level]
        own = [100 * counts[name] / total for name in part["scenario"]]
        yield audit_rows(f"share of each {level}", "figure 2", part, part["value"], own, _SHARE)
    table = tables[2].set_index("statistic")["value"]
    yield audit_rows("sum of the scenarios", 2, ["all"], table["questions"], [total], SAME)


def _of_aspects() -> dict[str, int]:
    counts = {}
    for aspect, scenarios in ASPECTS.items():
        counts[aspect] = sum(QUESTIONS[name] for name in scenarios)
    return counts


def _whole_numbers(tables: Tables) -> Iterable[pd.DataFrame]:
    """Whether each scenario's share is one of a whole number of its questions."""
    for number in (3, 4, 6, 7):
        cells = tables[number][tables[number]["scenario"] != "overall"].reset_index(drop=True)
        n = cells["scenario"].map(QUESTIONS)
        nearest = 100 / n * (cells["value"] * n / 100).round()
        check = "count consistency (questions)"
        rows = audit_rows(check, number, cells, cells["value"], nearest, _DIGIT)
        odd = rows["finding"] == CONTRADICTS
        notes = [
            f"nearest: {share * of / 100:.0f} of {of}" for share, of in zip(nearest, n, strict=True)
        ]
        yield rows.assign(note=_with_others(cells, odd, notes))


def _with_others(cells: pd.DataFrame, odd: pd.Series, notes: list[str]) -> list[str]:
    """The notes, with the number of questions that all odd cells of the same model and
    scenario would fit, where there are at least two.
    """
    said = list(notes)
    who = "model" if "model" in cells else "retriever"
    for _, part in cells[odd].groupby([who, "scenario"]):
        n = smallest_denominator(part["value"], most=100)
        if n and len(part) > 1:
            for place in part.index:
                said[cast(int, place)] += f"; {' and '.join(map(str, part['value']))} fit {n}"
    return said


def _overall(tables: Tables) -> Iterable[pd.DataFrame]:
    """The overall column as a mean over questions."""
    for number in (3, 4, 6, 7):
        rows = overall_means(tables[number])
        check = "overall, all questions"
        table = audit_rows(check, number, rows, rows["reported"], rows["weighted"], _MEAN)
        plain = (rows["reported"] - rows["plain"]).abs() <= _MEAN.exact
        odd = (table["finding"] == CONTRADICTS) & plain
        yield table.assign(note=np.where(odd, "it is the plain mean of the nine scenarios", ""))


def _human_gains(tables: Tables) -> Iterable[pd.DataFrame]:
    """People's gains on the scale of the models' overall column."""
    people = tables[3][tables[3]["model"] == "Human performance"]
    means = overall_means(people).set_index("setting")
    told = people[(people["scenario"] == "overall") & people["delta"].notna()]
    own = means["weighted"].reindex(told["setting"]) - means["weighted"]["no_rag"]
    check = "human gain, all questions"
    rows = audit_rows(check, 3, told, told["delta"], own.to_numpy(), _MEAN)
    yield rows.assign(note="the models' overall column weighs scenarios by their questions")


def _repeats(tables: Tables) -> Iterable[pd.DataFrame]:
    """Rows that two tables print."""
    check = "the same cell in two tables"
    key = [*_CELL, "scenario"]
    main = tables[3][[*key, "value"]]
    both = tables[4].merge(main, on=key, suffixes=("", "_main"))
    yield audit_rows(check, "4, 3", both, both["value"], both["value_main"], SAME)
    clip = tables[7][tables[7]["retriever"] == "CLIP"].replace({"model": _OURS})
    both = clip.merge(main, on=["model", "setting", "scenario"], suffixes=("", "_main"))
    yield audit_rows(check, "7, 3", both, both["value"], both["value_main"], SAME)


def _statements(tables: Tables) -> Iterable[pd.DataFrame]:
    """What the text says of its tables: see `claims`."""
    return check_text_numbers(text_numbers(tables, _of_aspects()))
