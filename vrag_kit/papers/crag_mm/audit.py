"""Audit of the paper: each number of Tables 2 to 11 and of the figures' labels that follows from
others is recomputed.

It shows that two published numbers contradict each other, not which of them is incorrect, nor why.
Differences explained by rounding or by another definition are no contradictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import (
    NOT_COMPARABLE,
    SAME,
    Tolerance,
    audit_rows,
)
from vrag_kit.papers.crag_mm.audit_counts import check_conversation_counts, check_remainders
from vrag_kit.papers.crag_mm.independent_turns import independent_turns_expectation
from vrag_kit.papers.crag_mm.printed import MULTI, SINGLE
from vrag_kit.papers.crag_mm.printed_text import text_numbers
from vrag_kit.papers.published import published
from vrag_kit.papers.text_numbers import check_text_numbers

Tables = Mapping[int | str, pd.DataFrame]
RESULTS = (4, 5, 8, 9, 10, 11)
"""Numbers of the tables of results."""
_SUM = Tolerance(1e-6, 0.15 + 1e-6)  # of three values, or of two against a third
_MEAN = Tolerance(0.05 + 1e-6, 0.1 + 1e-6)
_UNEQUAL = "shares are of turns before the stop, truthfulness is after it: other definitions"
_KEPT = (
    "section 5.2.1: kept are the questions whose entity image search finds; Figure 3: it finds"
    " that of 51.9 %"
)
EGOCENTRIC_SHARE = 0.62
"""Share of egocentric images for which the two image types give each whole-image recall."""


def published_tables() -> dict[int | str, pd.DataFrame]:
    """Returns the audited tables, as `published` gives them: number → table, "figure03_curves" and
    "figure07".
    """
    names: tuple[int | str, ...] = (2, 3, 4, 5, 7, 8, 9, 10, 11, "figure03_curves", "figure07")
    return {name: published("crag_mm", name) for name in names}


def audit(tables: Tables | None = None) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_summary`, `contradictions`).

    Values are in percent, or counts. Statements of the text are in the check "text vs. tables".
    `tables` are `published_tables()` by default.
    """
    tables = published_tables() if tables is None else tables
    parts = chain.from_iterable(check(tables) for check in _CHECKS)
    return pd.concat(list(parts), ignore_index=True)


def pivot_results(table: pd.DataFrame) -> pd.DataFrame:
    """Pivots a table of results to one row per arm: split, model, setting, and its metrics."""
    keys = [name for name in ("split", "model", "setting") if name in table]
    return table.pivot_table(index=keys, columns="metric", values="value", sort=False).reset_index()


def _shares(tables: Tables) -> Iterable[pd.DataFrame]:
    """Accuracy, missing and hallucination of each arm are all there is."""
    for number in RESULTS:
        arms = pivot_results(tables[number])
        total = arms["accuracy"] + arms["missing"] + arms["hallucination"]
        yield audit_rows("shares add up to 100", number, arms, 100.0, total, _SUM)


def _truthfulness(tables: Tables) -> Iterable[pd.DataFrame]:
    """Truthfulness of single questions is accuracy less hallucination; of conversations
    it is not, by definition.
    """
    for number in RESULTS:
        for split, arms in pivot_results(tables[number]).groupby("split", sort=False):
            own = arms["accuracy"] - arms["hallucination"]
            check = "truthfulness, single questions"
            if split == MULTI:
                check = "truthfulness, conversations"
            rows = audit_rows(check, number, arms, arms["truthfulness"], own, _SUM)
            if split == MULTI:
                rows = rows.assign(finding=NOT_COMPARABLE, note=_UNEQUAL)
            yield rows


def _repeats(tables: Tables) -> Iterable[pd.DataFrame]:
    """Rows that two tables print."""
    main = {SINGLE: 8, MULTI: 9}
    base = tables[5][tables[5]["model"] == "Llama 3.2 11B RAG"]
    setting = base["split"].map({SINGLE: "task_2", MULTI: "task_3"})
    base = base.assign(model="Llama 3.2 11B", setting=setting)
    for number, table in ((4, tables[4]), (5, base)):
        for split, other in main.items():
            key = ["setting", "model", "metric"]
            part = table[table["split"] == split][[*key, "value"]]
            both = part.merge(tables[other][[*key, "value"]], on=key, suffixes=("", "_main"))
            both = both.rename(columns={"metric": "scenario"})
            tables_of = f"{number}, {other}"
            check = "the same cell in two tables"
            yield audit_rows(check, tables_of, both, both["value"], both["value_main"], SAME)


def _stops(tables: Tables) -> Iterable[pd.DataFrame]:
    """Early stops beside those of turns that have nothing to do with each other."""
    for number in (5, 9):
        arms = pivot_results(tables[number])
        arms = arms[arms["split"] == MULTI].dropna(subset="early_stop")
        rates = arms[["accuracy", "missing", "hallucination"]].to_numpy()
        own = [100 * independent_turns_expectation(tuple(each))["early_stop"] for each in rates]
        check = "early stops, independent turns"
        rows = audit_rows(check, number, arms, arms["early_stop"], own, _MEAN)
        fewer = rows["reported"] < rows["recomputed"] - 5
        note = np.where(fewer, "far fewer than independent turns would stop", "")
        yield rows.assign(finding=NOT_COMPARABLE, note=note)


def _judge(tables: Tables) -> Iterable[pd.DataFrame]:
    """Table 7: averages over the three labels, and F1 from precision and recall."""
    scores = tables[7].pivot_table(index="label", columns="metric", values="value", sort=False)
    labels = scores.drop(index="average")
    check = "average of three labels"
    where = [f"{name}, average" for name in scores]
    yield audit_rows(check, 7, where, scores.loc["average"], labels.mean(), _MEAN)
    both = 2 * labels["precision"] * labels["recall"] / (labels["precision"] + labels["recall"])
    names = [f"F1, {label}" for label in labels.index]
    yield audit_rows("F1 from precision and recall", 7, names, labels["f1"], both, _MEAN)


def _distributions(tables: Tables) -> Iterable[pd.DataFrame]:
    """Tables 2 and 3: totals of rows and columns."""
    images = tables[2].rename(columns={"image_quality": "row", "image_type": "column"})
    questions = tables[3].rename(columns={"domain": "row", "question_type": "column"})
    for number, table in ((2, images), (3, questions)):
        for kept, summed in (("row", "column"), ("column", "row")):
            parts = table[table[summed] != "total"]
            keys = [kept, "split"] if "split" in table else [kept]
            totals = table[table[summed] == "total"].set_index(keys)["value"]
            own = parts.groupby(keys, sort=False)["value"].sum()
            totals = totals[totals.index.isin(own.index)]
            names = [" ".join(map(str, np.atleast_1d(name))) for name in totals.index]
            own = own.reindex(totals.index)
            yield audit_rows(f"sum over a {summed}", number, names, totals, own, SAME)


def _recall(tables: Tables) -> Iterable[pd.DataFrame]:
    """Whole-image recall as a mean over egocentric and normal images, and the share of
    them that this takes.
    """
    curves = tables["figure03_curves"]
    whole = curves[curves["setting"] == "whole image"].set_index("k")["value"]
    kinds = tables["figure07"].pivot_table(index="k", columns="setting", values="value")
    own = EGOCENTRIC_SHARE * kinds["egocentric"] + (1 - EGOCENTRIC_SHARE) * kinds["non-egocentric"]
    where = [f"whole image, k={k}" for k in whole.index]
    note = f"with {EGOCENTRIC_SHARE:.0%} egocentric images"
    allowed = Tolerance(0.05 + 1e-6, 0.1 + 1e-6)
    rows = audit_rows("recall from both image types", "figure 3, 7", where, whole, own, allowed)
    yield rows.assign(note=note)
    counts = tables[2].set_index(["image_quality", "image_type"])["value"]
    images = 100 * counts["total", "egocentric"] / counts["total", "total"]
    rows = audit_rows(
        "share of egocentric images", "2, 7", ["all"], images, [100 * EGOCENTRIC_SHARE], _MEAN
    )
    yield rows.assign(finding=NOT_COMPARABLE, note="of images; searched were those of questions")
    rows = audit_rows(
        "share with entity retrieved",
        "10, figure 3",
        ["questions kept, k=30"],
        65.0,
        [51.9],
        _MEAN,
    )
    yield rows.assign(note=_KEPT)


def _statements(tables: Tables) -> Iterable[pd.DataFrame]:
    """What the text says of its tables: see `claims`."""
    return check_text_numbers(text_numbers(tables))


_OF_RESULTS = (
    _shares,
    _truthfulness,
    _repeats,
    check_remainders,
    check_conversation_counts,
    _stops,
)
_OF_THE_REST = (_judge, _distributions, _recall, _statements)
_CHECKS = (*_OF_RESULTS, *_OF_THE_REST)
