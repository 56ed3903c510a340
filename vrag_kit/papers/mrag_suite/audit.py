"""Audit of the paper: the tables that `checks.csv` and `text_numbers.csv` compare. Each number of
Tables 1 to 8 and 13 to 15 that follows from others is recomputed, and inequalities implied by
definitions are checked.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.papers.audit import (
    Frames,
    cell_labels,
    check_text_numbers,
    evaluate,
    read_checks,
    run_checks,
)
from vrag_kit.papers.published import published

Tables = Mapping[int, pd.DataFrame]
_DATASETS = {
    1: {"Chart-MRAG": "Chart-RAG", "VisRAG-ArXiv": "VisRAG-Arxiv"},
    15: {"Chart-MRAG": "ChartMRAG-Bench"},
}
"""Maps a table to its names of data sets, where they differ from Table 2's."""
_OURS = {"Chart-RAG": "Chart-MRAG", "ChartMRAG-Bench": "Chart-MRAG", "VisRAG-Arxiv": "VisRAG-ArXiv"}
_MODALITIES = {"image": "img", "text": "txt", "all": "single"}
_BASELINE = "LLaVa-v1.6-34B"
"""The main baseline; the text calls it LLaVA-2."""
_ROW = ["dataset", "model", "setting", "modality"]
DAMAGED = 'hallucination is printed as "41.4/0"'
_MRAG_BENCH = {
    "n_full": "questions",
    "avg_image_width_px": "width of a picture, mean",
    "avg_image_height_px": "height of a picture, mean",
    "max_question_length": "words of a question, most",
    "max_answer_length": "words of an answer, most",
    "avg_question_length": "words of a question, mean",
    "avg_answer_length": "words of an answer, mean",
}
"""Maps a number of Table 1 to the statistic in MRAG-Bench's own paper."""


def published_tables() -> dict[int, pd.DataFrame]:
    """Returns the tables with numbers: number → table, as `published` gives them, but with data
    sets and modalities as printed.
    """
    tables = {}
    for number in (*range(1, 9), 13, 14, 15):
        names = {"dataset": _DATASETS.get(number, {}), "modality": _MODALITIES}
        tables[number] = published("mrag_suite", number).replace(names)
    return tables


def frames(tables: Tables) -> dict[str, pd.DataFrame]:
    """Returns what the checks compare, name → table with one row per cell; `tables` are
    `published_tables()`. The expressions of the checks are over the columns of these.
    """
    claims = _claims(tables)
    gaps = _gaps(tables[4], claims)
    return {**claims, **gaps, **_accuracy(tables), **_modes(tables), **_counts(tables)}


def audit(frames: Frames) -> pd.DataFrame:
    """Runs every check over `frames`. Columns: check, table, cell, reported, recomputed, tolerance,
    finding, note; as in the other papers' audits (`audit_table`).

    Values are in percent, points, or counts. Checks of what definitions imply begin with
    "RAGChecker:" or "the paper's equations:". Of an inequality, reported is one side, and
    recomputed the nearest value that the rest allows. The metrics are interpreted twice: by the
    paper's equations, and as RAGChecker's of the same names, for answers that all had some
    evidence. Statements of the text about rows of a table begin with "text:"; those about single
    numbers are in "text vs. tables".
    """
    checks = [*run_checks("mrag_suite", frames), *check_text_numbers("mrag_suite", frames)]
    return pd.concat(checks, ignore_index=True)


def pivot_claim_metrics(table: pd.DataFrame) -> pd.DataFrame:
    """Pivots a table of claim metrics to one row per data set, model, setting and modality, with
    metrics as columns.

    If one metric is published as a pair and the others as one value (the hallucination of Claude on
    VisRAG-ArXiv), the first of the pair is in their row.
    """
    rows = [name for name in _ROW[:3] if name in table]
    singles = table.groupby(rows)["modality"].transform(lambda each: (each == "single").any())
    table = table.assign(modality=table["modality"].mask(singles, "single"))
    wide = table.pivot_table(
        index=[*rows, "modality"], columns="metric", values="value", aggfunc="first", sort=False
    )
    return wide.reset_index()


def inequalities(frames: Frames) -> pd.DataFrame:
    """Evaluates RAGChecker's inequalities on the rows of the claim tables. Columns: table, cell,
    inequality, excess (smaller side minus larger side in points; above 0 is a violation), holds (up
    to rounding).
    """
    parts = []
    for check in read_checks("mrag_suite"):
        name = check["check"].removeprefix("RAGChecker: ")
        if name != check["check"]:
            rows = frames[check["rows"]]
            part = pd.DataFrame({"table": check["table"], "cell": cell_labels(rows)})
            part["inequality"] = name
            part["excess"] = evaluate(check["reported"], rows) - evaluate(check["recomputed"], rows)
            part["holds"] = part["excess"] <= float(check["rounding"])
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _claims(tables: Tables) -> dict[str, pd.DataFrame]:
    """The claim tables, a row an arm ("t14"); the baseline's claims, those with gold evidence."""
    frames = {f"t{number}": pivot_claim_metrics(tables[number]) for number in (3, 14, 15)}
    odd = frames["t3"][["dataset", "model"]].eq(["VisRAG-ArXiv", "Claude 3.5"]).all(axis=1)
    frames["t3"]["remark"] = odd.map({True: DAMAGED, False: ""})
    both = pd.concat([frames["t14"], frames["t15"]])
    gold = both.query("setting == 'gt_only'")
    return {**frames, "claims": frames["t3"].query("model == @_BASELINE"), "gold": gold}


def _gaps(table: pd.DataFrame, claims: Frames) -> dict[str, pd.DataFrame]:
    """Table 4 with a row a cell, and what Tables 14 and 15 give for it; and by model."""
    wide = table.pivot(index=["dataset", "model"], columns="metric", values="value")
    frames = {"t4": wide.reset_index()}
    for name in ("t14", "t15"):
        rows = claims[name].query("setting == 'gt_plus_distractors'")
        rows = rows.replace({"dataset": _OURS, "model": {"Claude 3.5": "Claude 2.5"}})
        rows = rows.set_index(["dataset", "model"])
        image, text = (rows[rows["modality"] == kind] for kind in ("img", "txt"))
        follows = {
            "delta_cr": image["claim_recall"] - text["claim_recall"],
            "delta_cp": image["context_precision"] - text["context_precision"],
            "vis_hit_at_k": image["context_precision"],
            "txt_miss_rate": 100 - text["context_precision"],
        }
        own = pd.concat(follows, names=["metric"]).rename("own").reset_index()
        both = table.drop(columns="setting").merge(own, on=["dataset", "model", "metric"])
        both = both.sort_values(["dataset", "model"], kind="stable")
        frames[f"t4_{name}"] = both.rename(columns={"metric": "scenario"})
    return frames


def _accuracy(tables: Tables) -> dict[str, pd.DataFrame]:
    """Table 2 by split, with the numbers of questions behind it; what repeats its cells; and the
    baseline's accuracy.
    """
    counts = tables[1].pivot(index="dataset", columns="metric", values="value").reset_index()
    keys = ["dataset", "model"]
    wide = tables[2].pivot(index=keys, columns="split", values="value").reset_index()
    wide = wide.merge(counts.replace({"dataset": _OURS}), on="dataset")
    share = wide["n_filtered"] / wide["n_full"]
    rest = (wide["full"] - wide["filtered"] * share) / (1 - share)
    wide = wide.assign(share=share, rest=rest)
    both = tables[13].merge(tables[2], on=[*keys, "split"], suffixes=("", "_main"))
    means = wide.groupby("dataset")["filtered"].mean()
    queries = published("visual_rag", "section3").set_index("statistic")["value"]
    baseline = wide.query("model == @_BASELINE").set_index("dataset")
    return {
        "accuracy": baseline.assign(place=baseline["filtered"].rank(ascending=False)),
        "t1": counts.assign(visual_rag=queries["queries"]),
        "t1_own": wide.drop_duplicates("dataset").drop(columns="model"),
        "t2": wide,
        "t13": both.rename(columns={"split": "scenario"}),
        "t6": tables[6].assign(main=tables[6]["dataset"].map(means)),
    }


def _modes(tables: Tables) -> dict[str, pd.DataFrame]:
    """Tables 5, 14 and 15 by mode, drops by mode, and the range of the three modes compared with
    Tables 2 and 3.
    """
    keys, metrics = ["dataset", "model"], ["dataset", "model", "modality", "metric"]
    wide = tables[5].pivot(index=keys, columns="setting", values="value").reset_index()
    ends = wide[["distractors_only", "gt_only"]]
    lost = (wide["gt_only"] - wide["gt_plus_distractors"]).groupby(wide["dataset"]).mean()
    frames = {"drops": lost.rank(ascending=False).to_frame("place")}
    frames["t5"] = wide.assign(low=ends.min(axis=1), high=ends.max(axis=1))
    for number in (14, 15):
        gold = tables[number].query("setting == 'gt_only'")[[*metrics, "value"]]
        others = tables[number].query("setting != 'gt_only'")
        frames[f"t{number}_gold"] = others.merge(gold, on=metrics, suffixes=("", "_gold"))
    claims = pd.concat([tables[14], tables[15]]).replace({"dataset": _OURS})
    filtered = tables[2].query("split == 'filtered'").drop(columns="metric")
    for name, cells, modes in (
        ("t3_modes", tables[3], claims.groupby(metrics)),
        ("t2_modes", filtered, tables[5].groupby(keys)),
    ):
        spread = modes["value"].agg(low="min", high="max").reset_index()
        both = cells.merge(spread, on=modes.keys)
        frames[name] = both.rename(columns={"metric": "scenario"})
    return frames


def _counts(tables: Tables) -> dict[str, pd.DataFrame]:
    """Tables 7 and 8 by metric, and MRAG-Bench's row of Table 1 beside its own paper."""
    of_sets = tables[1].groupby("metric")["value"].sum()
    seven = tables[7].pivot(index="metric", columns="modality", values="value")
    seven["parts"] = seven.drop(columns="total").sum(axis=1)
    seven["of_sets"] = of_sets.rename({"n_full": "candidates", "n_ambiguous": "marked_ambiguous"})
    eight = tables[8].pivot(index="metric", columns="split", values="value")
    row = tables[1].query("dataset == 'MRAG-Bench'").set_index("metric")["value"]
    theirs = published("mrag_bench", 2).set_index("statistic")["value"]
    bench = pd.Series(_MRAG_BENCH, name="statistic").to_frame().assign(value=row)
    bench["own"] = bench["statistic"].map(theirs)
    return {
        "t7": seven.reset_index(),
        "t8": eight.reset_index(),
        "mrag_bench": bench.rename_axis("metric").reset_index(),
    }
