"""Does the paper add up?

Every printed number of Visual-RAG that follows from its other printed numbers, computed
again.

An audit is a table with one row a checked quantity. It tells that two printed numbers
do not fit together, never which of them is wrong, nor why. A number that is nowhere
printed, or lost from the text that the tables were read from, is absent, which is no
mismatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import READINGS, STRICT, agreement, pairs_of
from vrag_kit.papers.published import published
from vrag_kit.papers.visual_rag.ndcg_bound import HALF_UNIT, ndcg_bounds
from vrag_kit.papers.visual_rag.printed import PAPER_QUERIES, gcue_printed
from vrag_kit.papers.visual_rag.query_counts import query_counts
from vrag_kit.papers.visual_rag.statements import STATEMENTS, Tables

CELL = ["model", "setting", "k"]
RUNS, JUDGED_BY_HAND, MACRO_F1 = 5, 200, 0.92
"""Runs a cell (footnotes 4 and 6), answers that a person judged too (section 5.1), and
how well the two agree (Table 9).
"""
ROUNDING = {"avg": 0.0051, "std": 0.0006}
"""How far a recomputed number may be from a printed one: half a unit of its last digit,
and a hair.
"""
_PARTS = ("retriever", "model", "setting", "m", "k")


def paper_tables() -> dict[int | str, pd.DataFrame]:
    """The tables of the Visual-RAG paper that are audited, as `published` gives them:
    number → table, and "section3".
    """
    return {
        name: published("visual_rag", name)
        for name in (2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, "section3")
    }


def audit(tables: Tables | None = None) -> pd.DataFrame:
    """Every check of every printed number: check, table, where, printed, recomputed,
    tolerance, ok, note.

    Values are in the unit of the table. `ok` is whether the two agree within the
    tolerance; it is missing (NA) where nothing is printed to compare with. Where odd
    cells are counted, `printed` is 0, the count to expect. An upper bound agrees with
    what is not above it. A statement of the text prints no number: its `note` says the
    range in which `recomputed` must lie. `tables` are `paper_tables()` unless given,
    and hold all of those.
    """
    tables = paper_tables() if tables is None else tables
    checks = [
        *_runs(tables),
        *_repeats(tables),
        *_counts(tables),
        _queries(tables),
        _gcue(tables),
        _macro_f1(tables),
        _bounds(tables),
        _statements(tables),
    ]
    return pd.concat(checks, ignore_index=True)


def mismatches(checks: pd.DataFrame) -> pd.DataFrame:
    """The rows of an audit that do not agree."""
    return checks[~checks["ok"].fillna(True)]


def audit_summary(checks: pd.DataFrame) -> pd.DataFrame:
    """An audit in numbers: rows the checks, columns tables, checked, mismatches and
    absent (nothing printed to compare with).
    """
    marks = checks.assign(
        checked=checks["ok"].notna(),
        mismatches=~checks["ok"].fillna(True),
        absent=checks["ok"].isna(),
    ).groupby("check", sort=False)
    tables = marks["table"].agg(lambda names: "; ".join(dict.fromkeys(names))).rename("tables")
    return pd.concat([tables, marks[["checked", "mismatches", "absent"]].sum().astype(int)], axis=1)


def run_statistics(table: pd.DataFrame) -> pd.DataFrame:
    """The cells of one of Tables 13 to 16 that have runs: model, setting, k, runs (a
    tuple), mean, sd (by n − 1), sd_population (by n), avg and std (printed, or NaN).
    """
    runs = (
        table[table["run"].notna()]
        .sort_values("run", kind="stable")
        .groupby(CELL, sort=False, dropna=False)["value"]
    )
    cells = pd.DataFrame(
        {
            "runs": runs.agg(tuple),
            "mean": runs.mean(),
            "sd": runs.std(ddof=1),
            "sd_population": runs.std(ddof=0),
        }
    ).reset_index()
    for statistic in ROUNDING:
        summary = table[table["statistic"] == statistic].rename(columns={"value": statistic})
        cells = cells.merge(summary[[*CELL, statistic]], on=CELL, how="left")
    return cells


def _rows(
    check: str,
    table: int | str,
    where: pd.DataFrame | Sequence[str],
    printed: object,
    recomputed: object,
    tolerance: float,
    note: object = "",
) -> pd.DataFrame:
    """Rows of the audit, one for each row of a table or each name in `where`; the other
    columns are of that length, or one value for all.
    """
    names = _where(where) if isinstance(where, pd.DataFrame) else list(where)
    rows = pd.DataFrame(
        {
            "check": check,
            "table": str(table),
            "where": names,
            "printed": np.asarray(printed, float),
            "recomputed": np.asarray(recomputed, float),
            "tolerance": tolerance,
        },
        index=range(len(names)),
    )
    agree = (rows["printed"] - rows["recomputed"]).abs() <= tolerance
    return rows.assign(ok=agree.astype("boolean").mask(rows["printed"].isna()), note=note)


def _where(cells: pd.DataFrame) -> list[str]:
    """The place of each row in words: "Phi4-MM, one_in_k, k=10"."""
    return [
        ", ".join(
            f"{part}={value:g}" if part in "mk" else str(value)
            for part, value in row.items()
            if pd.notna(value)
        )
        for row in cells[[part for part in _PARTS if part in cells]].to_dict("records")
    ]


def _runs(tables: Tables) -> Iterable[pd.DataFrame]:
    """Means and deviations of Tables 13 to 16; Table 3 against the means; the same runs
    in two cells.
    """
    seen: dict[tuple[float, ...], str] = {}
    for number in (13, 14, 15, 16):
        cells = run_statistics(tables[number])
        yield _rows(
            "average of the runs",
            number,
            cells,
            cells["avg"],
            cells["mean"],
            ROUNDING["avg"],
            _same_as(cells, "avg", "mean"),
        )
        yield _rows(
            "deviation of the runs (n − 1)",
            number,
            cells,
            cells["std"],
            cells["sd"],
            ROUNDING["std"],
            _same_as(cells, "std", "sd"),
        )
        fits = ((cells["std"] - cells["sd_population"]).abs() <= ROUNDING["std"]).sum()
        yield _rows(
            "deviations that fit n instead of n − 1",
            number,
            [f"any of {len(cells)} cells"],
            0,
            fits,
            0,
        )
        if number in (13, 15):
            both = cells.merge(tables[3], on=CELL)
            yield _rows(
                "Table 3 = average of the runs",
                f"3, {number}",
                both,
                both["value"],
                both["mean"],
                ROUNDING["avg"],
            )
        notes = []
        for runs, where in zip(cells["runs"], _where(cells), strict=True):
            notes.append(
                f"the same {len(runs)} runs, in the same order, as {seen[runs]}"
                if runs in seen
                else ""
            )
            seen.setdefault(runs, f"{where} (Table {number})")
        yield _rows(
            "other cells with the same runs",
            number,
            cells,
            0,
            [bool(note) for note in notes],
            0,
            notes,
        )


def _same_as(cells: pd.DataFrame, printed: str, computed: str) -> list[str]:
    """For a printed summary that does not fit its runs: which cells of the same model
    it does fit.
    """
    names, close = pd.Series(_where(cells)), ROUNDING[printed]
    fitting = [
        names[(cells["model"] == row["model"]) & ((cells[computed] - row[printed]).abs() <= close)]
        for _, row in cells.iterrows()
    ]
    return [
        (
            ""
            if own in set(fits) or np.isnan(value)
            else (
                f"fits the runs of {'; '.join(fits)}"
                if len(fits)
                else "fits the runs of no cell of this model"
            )
        )
        for own, value, fits in zip(names, cells[printed], fitting, strict=True)
    ]


def _repeats(tables: Tables) -> Iterable[pd.DataFrame]:
    """Numbers that two tables print, or two rows of one."""
    main, subset = tables[3], tables[6]
    same_corpus, single = (
        tables[5][tables[5]["dataset"] == "iNat21"].drop(columns="dataset"),
        tables[13][tables[13]["run"].isna() & tables[13]["statistic"].isna()],
    )
    best = (
        subset[subset["setting"].isin(["zero_shot", "rag_best"])]
        .drop(columns="m")
        .replace({"setting": {"rag_best": "top_k"}})
    )
    for number, part in (
        (5, same_corpus),
        (7, tables[7][tables[7]["setting"] == "one_in_k"]),
        (13, single),
        (6, best),
    ):
        both = part.merge(main, on=CELL, suffixes=("", "_main"))
        yield _rows(
            "the same cell in two tables",
            f"{number}, 3",
            both,
            both["value"],
            both["value_main"],
            1e-9,
            f"Table {number} printed, Table 3 recomputed",
        )
    first = (
        tables[2][tables[2]["k"] == 1]
        .pivot(index="retriever", columns="metric", values="value")
        .reset_index()
    )
    yield _rows("nDCG@1 = Hit@1", 2, first, first["ndcg"], first["hit"], 1e-9)
    yield _rows(
        "hit count@1 = Hit@1", 2, first, first["hit_count"], first["hit"] / 100, ROUNDING["avg"]
    )


def _counts(tables: Tables) -> Iterable[pd.DataFrame]:
    """Shares that count queries or answers; and totals that the text prints."""
    hits, idk, single = (
        tables[2][tables[2]["metric"] == "hit"],
        tables[8],
        tables[8]["setting"].isin(["zero_shot", "non_clue", "top_k"]),
    )
    for number, part, n in (
        (2, hits, PAPER_QUERIES),
        (8, idk[single], PAPER_QUERIES),
        (8, idk[~single], RUNS * PAPER_QUERIES),
    ):
        nearest = 100 / n * np.round(part["value"] * n / 100)
        yield _rows(
            f"a whole number of {n:,}",
            number,
            part,
            part["value"],
            nearest,
            ROUNDING["avg"],
            [f"{share * n / 100:.2f} of {n:,}" for share in part["value"]],
        )
    known = tables["section3"].set_index("statistic")["value"]
    share = 100 * known["queries"] * known["clues a query, mean"] / known["query-image pairs"]
    yield _rows(
        "share of clues from counts",
        "section 3",
        ["all pairs"],
        [known["clue share of pairs"]],
        [share],
        ROUNDING["avg"],
    )
    yield _rows(
        "answers judged by hand",
        9,
        ["sum of the matrix"],
        JUDGED_BY_HAND,
        [tables[9]["count"].sum()],
        0,
    )


def _queries(tables: Tables) -> pd.DataFrame:
    """How many queries cells of one run rest on.

    The paper has 374; m-GT and m-in-10 are "on a subset", the size of which it does not
    give. Table 3 shows how well this works.
    """
    single, corpus, rows = ["zero_shot", "non_clue", "top_k"], tables[5]["dataset"], []
    groups = [
        (3, ", ".join(single), PAPER_QUERIES, tables[3]["setting"].isin(single)),
        *((5, name, PAPER_QUERIES, corpus == name) for name in ("iNat21", "iNat24")),
        *(
            (6, ", ".join(names), stated, tables[6]["setting"].isin(names))
            for names, stated in (
                (["zero_shot", "rag_best"], PAPER_QUERIES),
                (["text_rag"], PAPER_QUERIES),
                (["m_gt"], np.nan),
                (["m_in_10"], np.nan),
            )
        ),
    ]
    for number, name, stated, chosen in groups:
        counts = query_counts(tables[number].loc[chosen, "value"])
        best = counts[counts["fits"] == counts["fits"].max()].set_index("n")
        n = PAPER_QUERIES if PAPER_QUERIES in best.index else best.index[0]
        following = counts[counts["n"] != n].iloc[0]
        note = (
            f"{best['fits'][n]} of {chosen.sum()} cells are whole multiples of 0.5/{n},"
            f" {best['by_chance'][n]:.1f} by chance; "
        )
        note += f"next best {following['n']:.0f} with {following['fits']:.0f}"
        rows.append(_rows("number of queries", number, [name], stated, [n], 0, note))
    return pd.concat(rows, ignore_index=True)


def _gcue(tables: Tables) -> pd.DataFrame:
    """gCUE at λ = 0.5, which the paper draws but does not print."""
    table = gcue_printed(tables[3], lambdas=[0.5])
    return _rows(
        "gCUE(k; 0.5)",
        3,
        table,
        np.nan,
        table["value"],
        ROUNDING["avg"],
        "drawn in Figure 3, not printed",
    )


def _macro_f1(tables: Tables) -> pd.DataFrame:
    """The printed macro-F1 and the nearest one under the readings of "partial" that
    make it a wildcard, as the paper says it does, and under any reading.
    """
    scores = (
        agreement(pairs_of(tables[9]))
        .query("metric == 'macro_f1'")
        .set_index("reading")["value"]
        .reindex(list(READINGS))
    )
    wildcards = scores[
        [name for name in READINGS if name != STRICT and not name.startswith("partial is")]
    ]
    nearest = {
        f"{len(part)} readings {kind}": (part - MACRO_F1).abs().idxmin()
        for kind, part in (("with a wildcard", wildcards), ("of any kind", scores))
    }
    return _rows(
        "macro-F1 of the judge",
        9,
        list(nearest),
        MACRO_F1,
        scores[list(nearest.values())],
        HALF_UNIT,
        [f"nearest: {name}" for name in nearest.values()],
    )


def _bounds(tables: Tables) -> pd.DataFrame:
    """nDCG@30 of Table 2 against the largest value that any ranking could have."""
    clues = tables["section3"].set_index("statistic")["value"]["clues a query, mean"]
    bounds = ndcg_bounds(tables[2], clues=clues)
    notes = (
        "standard nDCG, any ranking; given "
        + bounds["given"]
        + np.where(bounds["bound"].isna(), ": no ranking has all of these", "")
    )
    rows = _rows(
        "nDCG@30 under its upper bound",
        2,
        bounds,
        bounds["printed"],
        bounds["bound"],
        HALF_UNIT,
        notes,
    )
    return rows.assign(ok=(rows["printed"] <= rows["recomputed"] + HALF_UNIT).astype("boolean"))


def _statements(tables: Tables) -> pd.DataFrame:
    """What the text says of its tables: see `STATEMENTS`."""
    rows = []
    for statement in STATEMENTS:
        numbers = pd.Series(statement.numbers(tables), dtype=float)
        inside = (numbers >= statement.low - 1e-9) & (numbers <= statement.high + 1e-9)
        note = f"section {statement.section}: {statement.says}, expected {statement.expected}"
        table = _rows(
            "text against tables", statement.table, numbers.index, np.nan, numbers, np.nan, note
        )
        rows.append(table.assign(ok=inside.to_numpy("bool")).astype({"ok": "boolean"}))
    return pd.concat(rows, ignore_index=True)
