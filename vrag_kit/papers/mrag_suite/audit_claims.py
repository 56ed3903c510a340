"""The paper's claim metrics held against its own equations, RAGChecker's, and each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from vrag_kit.papers.audit_rows import (
    AGREES,
    CONTRADICTS,
    NOT_COMPARABLE,
    SAME,
    Allowed,
    rows_of,
)

Tables = Mapping[int, pd.DataFrame]
CLAIM_TABLES = (3, 14, 15)
"""The tables of claim metrics."""
_ROW = ["dataset", "model", "setting", "modality"]
_HAIR = 1e-6
_HARMONIC = Allowed(0.15)
_OF_GAPS = Allowed(0.0551, 0.1051)  # of one printed number with one digit, and of two
_READ_AS = "RAGChecker: "
_PAIR = 'hallucination is printed as "41.4/0"'
_SELF = "an entailed claim has an item that entails it"
_ATTRIBUTED = "a claim labelled NEUTRAL has no item that entails it"
_PER_ITEM = "a mean of F1 over answers need not be the F1 of two means"
_NO_MODE = "Table 3 does not state its retrieval mode"


def places(rows: pd.DataFrame, *more: str) -> list[str]:
    """The place of each row in words: data set, model, setting, modality, and `more`."""
    names = [name for name in (*_ROW, *more) if name in rows]
    return [", ".join(row) for row in rows[names].itertuples(index=False)]


def claim_rows(table: pd.DataFrame) -> pd.DataFrame:
    """A table of claim metrics with one row a data set, model, setting and modality, and
    its metrics as columns.

    Where one metric is printed as a pair and the others as one value (the hallucination
    of Claude on VisRAG-ArXiv), the first of the pair stands in their row.
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


def definitions(tables: Tables) -> Iterable[pd.DataFrame]:
    """What each row of the claim tables must obey: shares of one label, RAGChecker's
    inequalities, the paper's self-knowledge, and F1.

    printed is the side that must not be more, recomputed the most that the rest allows.
    The metrics are read twice: by the paper's equations, and as RAGChecker's of the same
    names, of answers that were all shown some evidence.
    """
    for number in CLAIM_TABLES:
        rows = claim_rows(tables[number])
        where = places(rows)
        odd = (rows["dataset"] == "VisRAG-ArXiv") & (rows["model"] == "Claude 3.5")
        for check, (low, high, parts) in _bounds(rows).items():
            allowed = Allowed(_HAIR, 0.05 * parts + _HAIR)
            found = rows_of(check, number, where, low, np.minimum(low, high), allowed)
            pair = odd & ("H" in check) & (number == 3)
            yield found.assign(note=np.where(pair, _PAIR, ""))
        own, f1 = rows["self_knowledge"], rows["f1"]
        zero = Allowed(0.05 + _HAIR)
        found = rows_of("the paper's equations: SK is 0", number, where, own, 0.0, zero)
        yield found.assign(note=_SELF)
        both = 2 * rows["precision"] * rows["recall"] / (rows["precision"] + rows["recall"])
        found = rows_of("F1 of printed P and R", number, where, f1, both, _HARMONIC)
        yield _at_most(found, _PER_ITEM)


Bound = tuple[pd.Series, pd.Series, int]
"""What must not be more than what, and how many printed numbers are in them."""


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
    """The rows of the claim tables, read as RAGChecker's: table, where, inequality, above
    (by how many points what must not be more is more; below 0 where it is less), obeys
    (up to rounding).
    """
    parts = []
    for number in CLAIM_TABLES:
        rows = claim_rows(tables[number])
        named = pd.DataFrame({"table": str(number), "where": places(rows)})
        for check, (low, high, count) in _bounds(rows).items():
            if check.startswith(_READ_AS):
                above = low - high
                obeys = above <= 0.05 * count + _HAIR
                name = check.removeprefix(_READ_AS)
                parts.append(named.assign(inequality=name, above=above, obeys=obeys))
    return pd.concat(parts, ignore_index=True)


def readings(tables: Tables) -> pd.DataFrame:
    """How many complete rows of the claim tables could be what either reading says: table,
    rows, ragchecker, paper. Left out is the row of Table 3 with a damaged cell, Claude on
    VisRAG-ArXiv, whose hallucination is printed as "41.4/0".

    A row counts where it passes, up to rounding, all of `definitions` that name the
    reading.
    """
    checks = pd.concat(list(definitions(tables)), ignore_index=True)
    named = pd.MultiIndex.from_frame(checks[["table", "where"]])
    checks = checks[~named.isin(named[checks["note"] == _PAIR])]
    odd = checks["finding"] == CONTRADICTS
    columns = {}
    for name, start in (("ragchecker", _READ_AS), ("paper", "the paper's equations:")):
        part = checks[checks["check"].str.startswith(start)]
        fails = odd[part.index].groupby([part["table"], part["where"]]).any()
        of_tables = fails.groupby(level="table")
        columns["rows"] = of_tables.size()
        columns[name] = of_tables.size() - of_tables.sum()
    table = pd.DataFrame(columns).reindex([str(number) for number in CLAIM_TABLES])
    return table.rename_axis("table").reset_index()


def gaps(tables: Tables) -> Iterable[pd.DataFrame]:
    """Table 4 by the paper's equations: from Tables 14 and 15, and within itself."""
    wide = tables[4].pivot(index=["dataset", "model"], columns="metric", values="value")
    told = wide.reset_index()
    own = pd.concat([claim_rows(tables[number]) for number in (14, 15)])
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
        check = "Table 4 from the rows of its tables"
        yield rows_of(check, number, where, printed, list(follows.values()), _OF_GAPS)
    gap = told["vis_hit_at_k"] - (100 - told["txt_miss_rate"])
    check = "the paper's equations: ΔCP of Table 4"
    where = places(told)
    yield rows_of(check, 4, where, told["delta_cp"], gap, Allowed(0.0151))
    for name, equation in (("v_hr", 10), ("d_hr", 11)):
        check = "the paper's equations: V-HR and D-HR are 0"
        rows = rows_of(check, 4, where, told[name], 0.0, Allowed(0.005 + _HAIR))
        yield rows.assign(note=f"eq. {equation}: {_ATTRIBUTED}")


def between_modes(tables: Tables) -> Iterable[pd.DataFrame]:
    """Table 3's cells beside the least and most of the three modes of Tables 14 and 15."""
    both = pd.concat([tables[14], tables[15]]).replace(
        {"dataset": {"ChartMRAG-Bench": "Chart-MRAG"}}
    )
    key = ["dataset", "model", "modality", "metric"]
    spread = both.groupby(key)["value"].agg(["min", "max"]).reset_index()
    cells = tables[3].merge(spread, on=key)
    nearest = cells["value"].clip(cells["min"], cells["max"])
    where = places(cells, "metric")
    check = "Table 3 within the three modes"
    yield _at_most(rows_of(check, "3, 14, 15", where, cells["value"], nearest, SAME), _NO_MODE)


def near_copies(tables: Tables) -> pd.DataFrame:
    """The rows of two data sets that go together too well: Chart-MRAG's images (Table 15)
    beside VisRAG-Plot (Table 14), over 18 models and modes.

    One row a metric: metric, n, lowest and highest (of VisRAG-Plot), least and most (the
    difference, in points), pearson; text_least and text_most (Chart-MRAG's text less its
    images).
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
