"""Audit of the paper: each number of Tables 1 to 8 and 13 to 15 that follows from others is
recomputed, and inequalities implied by definitions are checked.

It shows that two published numbers contradict each other, not which of them is incorrect, nor why.
Differences explained by rounding or truncation are no contradictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import (
    AGREES,
    CONTRADICTS,
    NOT_COMPARABLE,
    SAME,
    Tolerance,
    audit_rows,
)
from vrag_kit.papers.mrag_suite.audit_claims import (
    check_definitions,
    check_gaps,
    check_mode_ranges,
    row_labels,
)
from vrag_kit.papers.mrag_suite.printed_text import text_numbers
from vrag_kit.papers.published import published
from vrag_kit.papers.text_numbers import check_text_numbers

Tables = Mapping[int, pd.DataFrame]
_FULL_AND_PART = Tolerance(1e-6, 0.1 + 1e-6)
_ABOUT_TEN = Tolerance(1e-9, 5.0)  # "~10 %" as the nearest ten
_DATASETS = {
    1: {"Chart-MRAG": "Chart-RAG", "VisRAG-ArXiv": "VisRAG-Arxiv"},
    15: {"Chart-MRAG": "ChartMRAG-Bench"},
}
"""Maps a table to its names of data sets, where they differ from Table 2's."""
_MODALITIES = {"image": "img", "text": "txt", "all": "single"}
_MOVES = {"hallucination": ("raise", np.maximum), "context_precision": ("lower", np.minimum)}
"""Effect of distractors on a metric (section 5.6)."""
_NO_PROMPT = "Table 2 states neither its prompt nor its retrieval mode"


def published_tables() -> dict[int, pd.DataFrame]:
    """Returns the tables with numbers: number → table, as `published` gives them, but with data
    sets and modalities as printed.
    """
    tables = {}
    for number in (*range(1, 9), 13, 14, 15):
        names = {"dataset": _DATASETS.get(number, {}), "modality": _MODALITIES}
        tables[number] = published("mrag_suite", number).replace(names)
    return tables


def audit(tables: Tables | None = None) -> pd.DataFrame:
    """Runs every check of the audit. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_summary`, `contradictions`).

    Values are in percent, points, or counts. Checks of what definitions imply begin with
    "RAGChecker:" or "the paper's equations:"; statements of the text about rows of a table with
    "text:"; those about single numbers are in "text vs. tables". `tables` are `published_tables()`
    by default.
    """
    tables = published_tables() if tables is None else tables
    parts = chain.from_iterable(check(tables) for check in _CHECKS)
    return pd.concat(list(parts), ignore_index=True)


def _repeats(tables: Tables) -> Iterable[pd.DataFrame]:
    """Table 13 is Table 2 without its decimals."""
    key = ["dataset", "model", "split"]
    both = tables[13].merge(tables[2], on=key, suffixes=("", "_main"))
    cut = np.floor(both["value_main"])
    where = row_labels(both, "split")
    rows = audit_rows("the same cell, truncated decimals", "13, 2", where, both["value"], cut, SAME)
    odd = rows["finding"] == CONTRADICTS
    notes = [f"Table 2 prints {value:g}" for value in both["value_main"]]
    yield rows.assign(note=np.where(odd, notes, ""))


def _filtered(tables: Tables) -> Iterable[pd.DataFrame]:
    """Filtered questions are a part of all, and harder, as the text says; and a tenth of
    each domain is dropped.
    """
    wide = _splits(tables)
    where = row_labels(wide)
    share = wide["n"] / wide["of"]
    least, most = share * wide["filtered"], share * wide["filtered"] + 100 * (1 - share)
    nearest = wide["full"].clip(least, most)
    rows = audit_rows(
        "part not larger than whole", "2, 1", where, wide["full"], nearest, _FULL_AND_PART
    )
    rest = (wide["full"] * wide["of"] - wide["filtered"] * wide["n"]) / (wide["of"] - wide["n"])
    notes = [f"{value:.0f} % of what was dropped" for value in rest]
    yield rows.assign(note=np.where(rows["finding"] == AGREES, "", notes))
    harder = np.minimum(wide["filtered"], wide["full"])
    check = "text: filtered questions are harder"
    yield audit_rows(check, 2, where, wide["filtered"], harder, SAME).assign(note="section 5.2")
    sets = wide.drop_duplicates("dataset")
    kept = 100 * sets["n"] / sets["of"]
    check = "text: the easiest tenth is dropped"
    rows = audit_rows(
        check, 1, sets["dataset"].astype(str).to_list(), kept, np.minimum(kept, 90), _ABOUT_TEN
    )
    yield rows.assign(note="section 3.4: step 2 drops about 10 % of each domain")


def _splits(tables: Tables) -> pd.DataFrame:
    """Table 2 with a row a data set and model: filtered, full, and the questions behind
    them, n and of.
    """
    own = {name: ours for ours, name in _DATASETS[1].items()}
    counts = tables[1].replace({"dataset": own})
    counts = counts.pivot(index="dataset", columns="metric", values="value")
    wide = tables[2].pivot(index=["dataset", "model"], columns="split", values="value")
    wide = wide.reset_index()
    n, of = wide["dataset"].map(counts["n_filtered"]), wide["dataset"].map(counts["n_full"])
    return wide.assign(n=n, of=of)


def _modes(tables: Tables) -> Iterable[pd.DataFrame]:
    """The order of the three modes that the text tells (sections 4.3, 5.4 and 5.6)."""
    wide = tables[5].pivot(index=["dataset", "model"], columns="setting", values="value")
    wide = wide.reset_index()
    alone, gold = wide["distractors_only"], wide["gt_only"]
    mixed = wide["gt_plus_distractors"]
    where = row_labels(wide)
    between = mixed.clip(np.minimum(alone, gold), np.maximum(alone, gold))
    rows = audit_rows("text: GPD lies between DO and GO", 5, where, mixed, between, SAME)
    yield rows.assign(note="sections 4.3 and 5.4")
    lower = np.minimum(alone, gold)
    rows = audit_rows("text: distractors alone are worse", 5, where, alone, lower, SAME)
    yield rows.assign(note="sections 4.3 and 5.4")
    for number in (14, 15):
        yield from _after_distractors(tables[number], number)


def _after_distractors(table: pd.DataFrame, number: int) -> Iterable[pd.DataFrame]:
    """Whether metrics move as section 5.6 says, from gold evidence alone to the modes
    with distractors.
    """
    key = ["dataset", "model", "modality"]
    for metric, (verb, moved) in _MOVES.items():
        cells = table[table["metric"] == metric]
        gold = cells[cells["setting"] == "gt_only"][[*key, "value"]]
        others = cells[cells["setting"] != "gt_only"]
        both = others.merge(gold, on=key, suffixes=("", "_gold"))
        check = f"text: distractors {verb} {metric.replace('_', ' ')}"
        own = moved(both["value"], both["value_gold"])
        rows = audit_rows(check, number, row_labels(both), both["value"], own, SAME)
        yield rows.assign(note="section 5.6")


def _best_prompts(tables: Tables) -> Iterable[pd.DataFrame]:
    """The best of twelve prompts is no worse than the one of Table 2."""
    means = tables[2][tables[2]["split"] == "filtered"].groupby("dataset")["value"].mean()
    best = tables[6]
    other = np.maximum(best["value"], best["dataset"].map(means))
    check = "best prompt's mean vs. Table 2"
    rows = audit_rows(
        check,
        "6, 2",
        best["dataset"].astype(str).to_list(),
        best["value"],
        other,
        Tolerance(0.1001),
    )
    yield rows.assign(note="if the prompt of Table 2 is one of the twelve")
    modes = tables[5].groupby(["dataset", "model"])["value"].agg(["min", "max"]).reset_index()
    filtered = tables[2][tables[2]["split"] == "filtered"]
    both = filtered.merge(modes, on=["dataset", "model"])
    inside = both["value"].clip(both["min"], both["max"])
    check = "Table 2 within the three modes"
    rows = audit_rows(check, "2, 5", row_labels(both), both["value"], inside, SAME)
    odd = rows["finding"] == CONTRADICTS
    rows = rows.assign(note=np.where(odd, _NO_PROMPT, ""))
    yield rows.assign(finding=rows["finding"].mask(odd, NOT_COMPARABLE))


def _counts(tables: Tables) -> Iterable[pd.DataFrame]:
    """Tables 1, 7 and 8: sums and differences."""
    one = tables[1].pivot(index="dataset", columns="metric", values="value")
    of, full = one["n_ambiguous_denominator"], one["n_full"]
    yield audit_rows("ambiguous questions are a subset", 1, [*map(str, one.index)], of, full, SAME)
    sums = one.sum()
    seven = tables[7].pivot(index="modality", columns="metric", values="value")
    printed = seven.loc["total", ["candidates", "marked_ambiguous"]]
    own = sums[["n_full", "n_ambiguous"]]
    yield audit_rows(
        "sum over the data sets", "7, 1", [*map(str, printed.index)], printed, own, SAME
    )
    parts = seven.drop(index="total").sum()
    yield audit_rows(
        "sum over the modalities", 7, [*map(str, seven)], seven.loc["total"], parts, SAME
    )
    eight = tables[8].pivot(index="metric", columns="split", values="value").astype(float)
    own = eight["ambiguous"] - eight["clear"]
    printed = eight["difference"]
    check = "ambiguous − clear"
    yield audit_rows(check, 8, [*map(str, eight.index)], printed, own, Tolerance(0.0501, 0.1501))


def _other_papers(tables: Tables) -> Iterable[pd.DataFrame]:
    """What Table 1 prints of two data sets beside what their own papers print."""
    wide = tables[1].pivot(index="dataset", columns="metric", values="value")
    queries = published("visual_rag", "section3").set_index("statistic")["value"]["queries"]
    own = published("mrag_bench", 2).set_index("statistic")["value"]
    check = "the data set's own paper"
    where = ["Visual-RAG, questions"]
    yield audit_rows(check, "1", where, wide.loc["Visual-RAG", "n_full"], [queries], SAME)
    pairs = {
        "n_full": "questions",
        "avg_image_width_px": "width of a picture, mean",
        "avg_image_height_px": "height of a picture, mean",
        "max_question_length": "words of a question, most",
        "max_answer_length": "words of an answer, most",
        "avg_question_length": "words of a question, mean",
        "avg_answer_length": "words of an answer, mean",
    }
    where = [f"MRAG-Bench, {name}" for name in pairs]
    theirs = own[list(pairs.values())].to_numpy()
    yield audit_rows(check, "1", where, wide.loc["MRAG-Bench", list(pairs)], theirs, Tolerance(0.5))


def _statements(tables: Tables) -> Iterable[pd.DataFrame]:
    """What the text says of its tables: see `claims`."""
    return check_text_numbers(text_numbers(tables))


_OF_CLAIMS = (check_definitions, check_gaps, check_mode_ranges)
_OF_ANSWERS = (_repeats, _filtered, _modes, _best_prompts)
_CHECKS = (*_OF_CLAIMS, *_OF_ANSWERS, _counts, _other_papers, _statements)
