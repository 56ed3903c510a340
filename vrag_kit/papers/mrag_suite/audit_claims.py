"""Checks of the paper's claim metrics against its own equations, RAGChecker's, and each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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

Tables = Mapping[int, pd.DataFrame]
CLAIM_TABLES = (3, 14, 15)
"""Numbers of the tables of claim metrics."""
_ROW = ["dataset", "model", "setting", "modality"]
_HAIR = 1e-6
_HARMONIC = Tolerance(0.15)
_OF_GAPS = Tolerance(0.0551, 0.1051)  # of one printed number with one digit, and of two
_READ_AS = "RAGChecker: "
_PAIR = 'hallucination is printed as "41.4/0"'
_SELF = "an entailed claim has an item that entails it"
_ATTRIBUTED = "a claim labelled NEUTRAL has no item that entails it"
_PER_ITEM = "a mean of F1 over answers need not be the F1 of two means"
_NO_MODE = "Table 3 does not state its retrieval mode"


def row_labels(rows: pd.DataFrame, *more: str) -> list[str]:
    """Returns a label of each row: data set, model, setting, modality, and `more`."""
    names = [name for name in (*_ROW, *more) if name in rows]
    return [", ".join(row) for row in rows[names].itertuples(index=False)]


def pivot_claim_metrics(table: pd.DataFrame) -> pd.DataFrame:
    """Pivots a table of claim metrics to one row per data set, model, setting and modality, with
    metrics as columns.

    If one metric is published as a pair and the others as one value (the hallucination of Claude on
    VisRAG-ArXiv), the first of the pair is in their row.
    """
    same = [name for name in ("dataset", "model", "setting", "metric") if name in table]
    whole = table[table["modality"] == "single"][["dataset", "model"]].drop_duplicates()
    odd = table.merge(whole, on=["dataset", "model"]).query("modality != 'single'")
    firsts = odd.drop_duplicates(same).assign(modality="single")
    plain = table.merge(odd, how="left", indicator=True).query("_merge == 'left_only'")
    told = pd.concat([plain.drop(columns="_merge"), firsts], ignore_index=True)
    keys = [name for name in _ROW if name in table]
    wide = told.pivot_table(index=keys, columns="metric", values="value", sort=False)
    return wide.reset_index()


def check_definitions(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks each row of the claim tables: shares of one label, RAGChecker's inequalities, the
    paper's self-knowledge, and F1.

    reported is the smaller side of an inequality, recomputed the largest value that the rest
    allows. The metrics are interpreted twice: by the paper's equations, and as RAGChecker's of the
    same names, for answers that all had some evidence.
    """
    for number in CLAIM_TABLES:
        rows = pivot_claim_metrics(tables[number])
        where = row_labels(rows)
        odd = (rows["dataset"] == "VisRAG-ArXiv") & (rows["model"] == "Claude 3.5")
        for check, (low, high, parts) in _bounds(rows).items():
            allowed = Tolerance(_HAIR, 0.05 * parts + _HAIR)
            found = audit_rows(check, number, where, low, np.minimum(low, high), allowed)
            pair = odd & ("H" in check) & (number == 3)
            yield found.assign(note=np.where(pair, _PAIR, ""))
        own, f1 = rows["self_knowledge"], rows["f1"]
        zero = Tolerance(0.05 + _HAIR)
        found = audit_rows("the paper's equations: SK is 0", number, where, own, 0.0, zero)
        yield found.assign(note=_SELF)
        both = 2 * rows["precision"] * rows["recall"] / (rows["precision"] + rows["recall"])
        found = audit_rows("F1 from reported P and R", number, where, f1, both, _HARMONIC)
        yield _at_most(found, _PER_ITEM)


Bound = tuple[pd.Series, pd.Series, int]
"""An inequality: smaller side, larger side, and the number of published values in them."""


def _bounds(rows: pd.DataFrame) -> dict[str, Bound]:
    """The inequalities of the rows of a claim table, by the name of their check."""
    h, f = rows["hallucination"], rows["faithfulness"]
    p, recall = rows["precision"], rows["recall"]
    own, most = rows["self_knowledge"], pd.Series(100.0, rows.index)
    return {
        "the paper's equations: H + F at most 100": (h + f, most, 2),
        "RAGChecker: H + F + SK at most 100": (h + f + own, most, 3),
        "RAGChecker: H + P at most 100": (h + p, most, 2),
        "RAGChecker: SK at most P": (own, p, 2),
        "RAGChecker: P at most F + SK": (p, f + own, 3),
        "F1 at most the mean of P and R": (rows["f1"], (p + recall) / 2, 2),
    }


def inequalities(tables: Tables) -> pd.DataFrame:
    """Evaluates RAGChecker's inequalities on the rows of the claim tables. Columns: table, cell,
    inequality, excess (smaller side minus larger side in points; above 0 is a violation), holds (up
    to rounding).
    """
    parts = []
    for number in CLAIM_TABLES:
        rows = pivot_claim_metrics(tables[number])
        named = pd.DataFrame({"table": str(number), "cell": row_labels(rows)})
        for check, (low, high, count) in _bounds(rows).items():
            if check.startswith(_READ_AS):
                excess = low - high
                holds = excess <= 0.05 * count + _HAIR
                name = check.removeprefix(_READ_AS)
                parts.append(named.assign(inequality=name, excess=excess, holds=holds))
    return pd.concat(parts, ignore_index=True)


def consistent_definitions(tables: Tables) -> pd.DataFrame:
    """Counts the complete rows of the claim tables that are consistent with either definition:
    table, rows, ragchecker, paper. Excluded is the row of Table 3 with a damaged cell, Claude on
    VisRAG-ArXiv, whose hallucination is published as "41.4/0".

    A row counts if it passes, up to rounding, all of `check_definitions` that name the definition.
    """
    checks = pd.concat(list(check_definitions(tables)), ignore_index=True)
    named = pd.MultiIndex.from_frame(checks[["table", "cell"]])
    checks = checks[~named.isin(named[checks["note"] == _PAIR])]
    odd = checks["finding"] == CONTRADICTS
    columns = {}
    for name, start in (("ragchecker", _READ_AS), ("paper", "the paper's equations:")):
        part = checks[checks["check"].str.startswith(start)]
        fails = odd[part.index].groupby([part["table"], part["cell"]]).any()
        of_tables = fails.groupby(level="table")
        columns["rows"] = of_tables.size()
        columns[name] = of_tables.size() - of_tables.sum()
    table = pd.DataFrame(columns).reindex([str(number) for number in CLAIM_TABLES])
    return table.rename_axis("table").reset_index()


def check_gaps(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks Table 4 by the paper's equations: from Tables 14 and 15, and within itself."""
    wide = tables[4].pivot(index=["dataset", "model"], columns="metric", values="value")
    told = wide.reset_index()
    own = pd.concat([pivot_claim_metrics(tables[number]) for number in (14, 15)])
    own = own[own["setting"] == "gt_plus_distractors"].set_index(["dataset", "model", "modality"])
    for row in told.to_dict("records"):
        place = (
            {"Chart-MRAG": "ChartMRAG-Bench"}.get(row["dataset"], row["dataset"]),
            row["model"].replace("Claude 2.5", "Claude 3.5"),
        )
        image, text = own.xs((*place, "img")), own.xs((*place, "txt"))
        follows = {
            "delta_cr": image["claim_recall"] - text["claim_recall"],
            "delta_cp": image["context_precision"] - text["context_precision"],
            "vis_hit_at_k": image["context_precision"],
            "txt_miss_rate": 100 - text["context_precision"],
        }
        where = [f"{row['dataset']}, {row['model']}, {name}" for name in follows]
        printed = [row[name] for name in follows]
        number = "4, 15" if "ChartMRAG-Bench" in place else "4, 14"
        check = "Table 4 recomputed from its rows"
        yield audit_rows(check, number, where, printed, list(follows.values()), _OF_GAPS)
    gap = told["vis_hit_at_k"] - (100 - told["txt_miss_rate"])
    check = "the paper's equations: ΔCP of Table 4"
    where = row_labels(told)
    yield audit_rows(check, 4, where, told["delta_cp"], gap, Tolerance(0.0151))
    for name, equation in (("v_hr", 10), ("d_hr", 11)):
        check = "the paper's equations: V-HR and D-HR are 0"
        rows = audit_rows(check, 4, where, told[name], 0.0, Tolerance(0.005 + _HAIR))
        yield rows.assign(note=f"eq. {equation}: {_ATTRIBUTED}")


def check_mode_ranges(tables: Tables) -> Iterable[pd.DataFrame]:
    """Checks that Table 3's cells lie within the range of the three modes of Tables 14 and 15."""
    both = pd.concat([tables[14], tables[15]]).replace(
        {"dataset": {"ChartMRAG-Bench": "Chart-MRAG"}}
    )
    key = ["dataset", "model", "modality", "metric"]
    spread = both.groupby(key)["value"].agg(["min", "max"]).reset_index()
    cells = tables[3].merge(spread, on=key)
    nearest = cells["value"].clip(cells["min"], cells["max"])
    where = row_labels(cells, "metric")
    check = "Table 3 within the three modes"
    yield _at_most(audit_rows(check, "3, 14, 15", where, cells["value"], nearest, SAME), _NO_MODE)


def near_duplicate_rows(tables: Tables) -> pd.DataFrame:
    """Compares the near-duplicate rows of two data sets: Chart-MRAG's images (Table 15) and
    VisRAG-Plot (Table 14), over 18 models and modes.

    One row per metric: metric, n, lowest and highest (of VisRAG-Plot), least and most (the
    difference, in points), pearson; text_least and text_most (Chart-MRAG's text minus its images).
    """
    key = ["model", "setting", "metric"]
    plots = tables[14][tables[14]["dataset"] == "VisRAG-Plot"][[*key, "value"]]
    charts = tables[15][tables[15]["dataset"] == "ChartMRAG-Bench"]
    charts = charts.pivot(index=key, columns="modality", values="value").reset_index()
    both = plots.merge(charts, on=key)
    rows = []
    for metric, part in both.groupby("metric", sort=False):
        apart, text = part["img"] - part["value"], part["txt"] - part["img"]
        rows.append(
            {
                "metric": metric,
                "n": len(part),
                "lowest": part["value"].min(),
                "highest": part["value"].max(),
                "least": apart.min(),
                "most": apart.max(),
                "pearson": part["value"].corr(part["img"]),
                "text_least": text.min(),
                "text_most": text.max(),
            }
        )
    return pd.DataFrame(rows)


def _at_most(rows: pd.DataFrame, why: str) -> pd.DataFrame:
    """Rows whose differences are no contradictions, as the note says."""
    odd = rows["finding"] == CONTRADICTS
    note = np.where(rows["finding"] == AGREES, "", why)
    return rows.assign(finding=rows["finding"].mask(odd, NOT_COMPARABLE), note=note)
