"""Claim metrics in the modes of evidence: their names, strata, and differences between modes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import NOTHING, ci_cells
from vrag_kit.analysis.strata import ALL
from vrag_kit.claims.label_agreement import verdict_confusion_matrix, verdict_pairs
from vrag_kit.claims.means import METRIC, MM_RAGCHECKER, claim_values
from vrag_kit.claims.metrics import (
    MetricValue,
    any_entails,
    combined_labels,
    difference,
    evidence_metrics,
    has_label,
    share,
)
from vrag_kit.claims.verdicts import ClaimVerdicts, EntailmentLabel
from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import GT_ONLY, MODES
from vrag_kit.papers.mrag_suite.datasets import published_range
from vrag_kit.papers.mrag_suite.modes import (
    ARMS,
    drop_same_documents,
    expand_known_strata,
    memorised_in_suite,
)
from vrag_kit.types import Benchmark

POOLED = ALL
CLAIM_METRICS = {
    ("mm_ragchecker", "claim_recall"): "claim recall",
    ("mm_ragchecker", "evidence_utilization"): "evidence utilization",
    ("mm_ragchecker", "entailed_share"): "faithfulness",
    ("ragchecker", "hallucination"): "hallucination (RAGChecker)",
    ("mm_ragchecker", "neutral_share"): "hallucination (MM-RAGChecker, eq. 1)",
}
"""Metrics in figures: (family, metric) → name. Claim recall and faithfulness are RAGChecker's too;
for an unparsed verdict this family excludes single claims, not answers.
"""
MODE_NAMES = {mode: ARMS[mode] for mode in MODES}
MODALITIES = {"image": "image evidence", "text": "text evidence", "all": "all evidence"}


def metric_names(table: pd.DataFrame) -> pd.Series:
    """Returns the name in `CLAIM_METRICS` of each row (family, metric); NaN if it has none."""
    keys = zip(table["family"], table["metric"], strict=True)
    return pd.Series([CLAIM_METRICS.get(key) for key in keys], table.index, dtype=object)


def with_claim_strata(
    checked: pd.DataFrame,
    models: Sequence[Entry],
    answers: Mapping[str, tuple[Benchmark, pd.DataFrame]],
) -> pd.DataFrame:
    """Adds the column stratum to `checked`: whether the question is about something in the model's
    training data (`memorised_in_suite`). All rows follow again as `POOLED`, the only stratum if the
    training data of some model are unknown.

    `checked` has dataset, model and group; `answers` maps each data set to its questions and their
    answers.
    """
    datasets = {name: benchmark for name, (benchmark, _) in answers.items()}
    trained = memorised_in_suite(models, datasets)
    parts = [
        expand_known_strata(part, trained) for _, part in checked.groupby("dataset", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def drop_redundant_pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Drops the rows of `POOLED` from `table` (dataset, stratum) for data sets with only one
    stratum, which has the same questions.
    """
    parts = table[table["stratum"] != POOLED].groupby("dataset")["stratum"].nunique()
    return table[(table["stratum"] != POOLED) | (table["dataset"].map(parts) != 1)]


def with_fixed(means: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """Adds the column by_construction to `means` of `compare_label_sources`: whether the true
    labels fix the value for any answer. Then nothing is estimated: the interval is the value.

    `fixed` has dataset, setting, family, metric, modality and value, as the synthetic suite's
    `fixed_means` gives them; without rows nothing is fixed. A mean that differs from its row is not
    fixed.
    """
    keys = ["dataset", "setting", *METRIC]
    always = means[keys].merge(fixed, how="left", on=keys)["value"].to_numpy(float)
    return _fix(means, (means["label_source"] == "true") & np.isclose(means["value"], always))


def _fix(table: pd.DataFrame, is_fixed: pd.Series) -> pd.DataFrame:
    """The table with by_construction, and no width of the intervals that are fixed."""
    ends = {end: table[end].mask(is_fixed, table["value"]) for end in ("ci_low", "ci_high")}
    return table.assign(**ends, by_construction=is_fixed)


def best_available_labels(checked: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Returns (the rows with the verdict sheets to use, the source of their labels): true ones if
    the truth about answers is known (true_sheet), else the checker's.
    """
    if checked["true_sheet"].isna().all():
        return checked, "checker"
    return checked.assign(sheet=checked["true_sheet"]), "true"


def confusion_counts(pairs: pd.DataFrame) -> pd.DataFrame:
    """Counts verdicts by mode and kind of evidence: setting, evidence_kind, true_label,
    checker_label ("unparsed" too), n, which may be 0. `pairs` are labelled answers with the column
    setting, as from `add_human_verdicts`.
    """
    tables = []
    for mode, kind in product(MODES, ("image", "text", "answer")):
        verdicts = verdict_pairs(pairs[pairs["setting"] == mode])
        matrix = verdict_confusion_matrix(verdicts[verdicts["evidence_kind"] == kind])
        counts = matrix.melt(ignore_index=False, value_name="n").reset_index()
        tables.append(counts.assign(setting=mode, evidence_kind=kind))
    table = pd.concat(tables, ignore_index=True)
    return table[["setting", "evidence_kind", "true_label", "checker_label", "n"]]


def mode_contrasts(checked: pd.DataFrame, fixed: pd.DataFrame) -> pd.DataFrame:
    """Computes the differences of both other modes from gold evidence alone, for every one of
    `CLAIM_METRICS`, on the questions with a value in both modes. Columns: setting, baseline,
    dataset, metric, model, stratum, value, ci_low, ci_high, n, n_failed (questions without a value
    in one of them), p, by_construction, p_holm, over the rows of a stratum that are not fixed.

    `checked` is a table of `with_claim_strata`; its column sheet has the verdicts. A question is
    excluded from the change to a mode that shows the same evidence as gold alone, as where there is
    no room for distractors. Rows without any question are dropped.

    A change is fixed if both of its means are, by `fixed` (`with_fixed`), which must have no rows
    for labels that are not true: it is no hypothesis, and has no p.
    """
    answers = drop_same_documents(checked, GT_ONLY)
    values = claim_values(answers, by=["dataset", "model", "setting", "stratum"])
    values = values.assign(metric=metric_names(values)).dropna(subset="metric")
    orders = {"dataset": list(checked["dataset"].unique()), "metric": list(CLAIM_METRICS.values())}
    values = values[values["modality"] == "all"].sort_values(
        list(orders), key=lambda column: column.map(orders[str(column.name)].index), kind="stable"
    )
    changes = paired_differences(
        values,
        arm="setting",
        by=["dataset", "metric", "model", "stratum"],
        baseline=GT_ONLY,
        repeats=["setting", "dataset", "metric", "model"],
    )
    changes = changes[changes["n"] > 0].drop(columns="p_holm")
    every = fixed[fixed["modality"] == "all"]
    means = every.assign(metric=metric_names(every)).set_index(["dataset", "metric", "setting"])
    change, gold = (
        means["value"].reindex(pd.MultiIndex.from_frame(changes[["dataset", "metric", mode]]))
        for mode in ("setting", "baseline")
    )
    is_fixed = np.isclose(changes["value"], change.to_numpy(float) - gold.to_numpy(float))
    changes = _fix(changes, pd.Series(is_fixed, changes.index))
    changes["p"] = changes["p"].mask(is_fixed)
    return changes.assign(p_holm=holm_by_family(changes, ["stratum"]))


_EQUATIONS: list[dict[str, str]] = json.loads(
    Path(__file__).with_name("equations.json").read_text(encoding="utf-8")
)["equations"]
IN_PLACE = {
    "delta_cr": ("claim_recall_gap", "all"),
    "v_hr": ("error_support", "image"),
    "d_hr": ("error_support", "text"),
}
"""Maps the name of a metric that is 0 by its equation to our metric of its possible meaning."""
_GAPS = ("delta_cr", "delta_cp")
_ALWAYS_0 = ["self_knowledge", "delta_cr", "v_hr", "d_hr"]
"""Metrics that are 0 wherever they have a value."""


def definitions_table() -> pd.DataFrame:
    """Returns the equations as text, one per row (equation, published name): as published, what
    follows, the metric of `evidence_metrics` that is the same or in its place, and RAGChecker's of
    that name; "" if there is none.
    """
    table = pd.DataFrame(_EQUATIONS).set_index(["equation", "name"])
    table.columns = pd.Index(["as printed", "what follows", "here", "RAGChecker's of that name"])
    return table


def paper_equations(sheet: ClaimVerdicts) -> dict[str, MetricValue]:
    """Maps each published name to its equation's value for an answer, over all evidence shown.
    Values are in [0, 1], delta_cr and delta_cp in [−1, 1]. NaN for a division by 0, and if no
    verdict that it needs is known.

    Three are 0 for every sheet, and so is delta_cr: see `definitions_table`. MRAG-Suite, section
    4.2.
    """
    metrics = evidence_metrics(sheet)
    images, texts = sheet.is_of("image"), sheet.is_of("text")
    verdicts = sheet.on_claims if sheet.items else sheet.on_claims[:0]
    labels = combined_labels(verdicts)
    entailed = verdicts[has_label(labels, EntailmentLabel.ENTAILMENT) == 1]
    neutral = verdicts[has_label(labels, EntailmentLabel.NEUTRAL) == 1]
    recall, read = metrics["answer_claim_recall", "all"], metrics["evidence_utilization", "text"]
    return {
        "hallucination": metrics["neutral_share", "all"],
        "faithfulness": metrics["entailed_share", "all"],
        "claim_recall": recall,
        "context_precision": metrics["evidence_utilization", "all"],
        "self_knowledge": share(1 - any_entails(entailed, axis=1)),
        "delta_cr": difference(recall, recall),
        "delta_cp": metrics["evidence_utilization_gap", "all"],
        "vis_hit_at_k": metrics["evidence_utilization", "image"],
        "txt_miss_rate": MetricValue(1 - read.value, read.unknown),
        "cma": metrics["cross_modal_agreement", "all"],
        "v_hr": share(any_entails(neutral[:, images], axis=1)),
        "d_hr": share(any_entails(neutral[:, texts], axis=1)),
    }


def equation_means(checked: pd.DataFrame, *, by: Sequence[str] = ARM) -> pd.DataFrame:
    """Averages every equation over answers with a value, with an interval over groups. Columns:
    `by`, metric (the published name), value, ci_low, ci_high, n, n_failed (queries without a
    value). A metric that is always 0 has the interval [0, 0].

    `checked` has the columns `by`, query_id, group and sheet; a query's draws are
    averaged first.
    """
    keys = list(dict.fromkeys([*by, "query_id", "group"]))
    rows: list[tuple[object, ...]] = []
    names = checked[keys].itertuples(index=False, name=None)
    for name, sheet in zip(names, checked["sheet"], strict=True):
        found = paper_equations(sheet) if isinstance(sheet, ClaimVerdicts) else {}
        rows += [(*name, metric, each.value) for metric, each in found.items()]
    table = pd.DataFrame(rows, columns=[*keys, "metric", "value"])
    values = table.groupby([*keys, "metric"], sort=False)["value"].mean().reset_index()
    lowest = -1.0 * values["metric"].isin(_GAPS)
    means = cluster_means(values.assign(score_min=lowest, score_max=1.0), [*by, "metric"])
    surely = means["metric"].isin(_ALWAYS_0) & (means["n"] > 0)
    means.loc[surely, ["ci_low", "ci_high"]] = 0.0
    return means


DEFINITIONS = {
    "recall": ("recall", ""),
    "precision": ("precision", ""),
    "f1": ("f1", ""),
    "hallucination": ("hallucination", "neutral_share"),
    "faithfulness": ("faithfulness", "entailed_share"),
    "self_knowledge": ("self_knowledge", ""),
    "claim_recall": ("claim_recall", "answer_claim_recall"),
    "context_precision": ("context_precision", "evidence_utilization"),
}
"""Maps a published metric to (RAGChecker's, the paper's equation by our name; "" where the paper
has none, or where it is 0 by definition, as self-knowledge is).
"""
_WITHOUT_ITEMS = {"precision", "recall", "f1", "answer_claim_recall"}
"""Metrics that use no evidence, and have no modality."""


def compare_claims_to_paper(
    means: pd.DataFrame, printed: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Compares the published claim metrics with ours: rows data set, published metric and modality.
    Columns are the range of the paper's models in each of `printed` (`published_range`), then for
    each model RAGChecker's metric of that name, and the value of the paper's equation.

    `means` has dataset, model, family ("ragchecker", "mm_ragchecker"), metric, modality ("all",
    "image", "text"), value, ci_low, ci_high and n, in percent, of one setting, as from
    `claim_means_by_modality`; `printed` maps a title to published claim metrics of one setting
    (Tables 3, 14 and 15). Data sets in none of `printed` are excluded. "–" where there is no such
    number.
    """
    row = ["dataset", "metric", "modality"]
    known = {title: published_range(table, row) for title, table in printed.items()}
    rows = pd.concat(list(known.values())).index.unique()
    rows = rows[rows.get_level_values("dataset").isin(means["dataset"])]
    columns = {f"paper, {title}": spread.reindex(rows) for title, spread in known.items()}
    ours = means.assign(cell=ci_cells(means, n=True)).set_index(row)
    for (model, family), part in ours.groupby(["model", "family"], sort=False):
        by_equation = family == MM_RAGCHECKER
        keys = []
        for dataset, metric, modality in rows:
            name = DEFINITIONS[metric][by_equation]
            keys.append((dataset, name, "all" if name in _WITHOUT_ITEMS else modality))
        column = part["cell"].reindex(keys).set_axis(rows)
        is_0 = by_equation & (rows.get_level_values("metric") == "self_knowledge")
        columns[f"{model}: {family}"] = column.mask(is_0, "0 by the equation")
    return pd.DataFrame(columns).fillna(NOTHING)


def compare_gaps_to_paper(
    equations: pd.DataFrame, means: pd.DataFrame, paper: pd.DataFrame
) -> pd.DataFrame:
    """Compares Table 4's diagnostics across modalities with ours: rows data set and published name.
    Columns are the published range (`published_range`), then for each model the equation's value,
    and our metric in place of those that are always 0.

    `equations` (as `equation_means` gives them) and `means` (as `claim_means` does) have
    dataset and model, and are in percent, of one setting; `paper` is `published("mrag_suite", 4)`.
    "–" where there is no such number.
    """
    row = ["dataset", "metric"]
    spread = published_range(paper[paper["dataset"].isin(equations["dataset"])], row)
    places = {key: name for name, key in IN_PLACE.items()}
    keys = zip(means["metric"], means["modality"], strict=True)
    placed = means.assign(metric=[places.get(key, "") for key in keys]).query("metric != ''")
    columns = {spread.name: spread}
    for model in equations["model"].unique():
        for title, table in (("by the equation", equations), ("in its place", placed)):
            part = table[table["model"] == model]
            cells = part.assign(cell=ci_cells(part, n=True)).set_index(row)["cell"]
            columns[f"{model}: {title}"] = cells.reindex(spread.index)
    return pd.DataFrame(columns).fillna(NOTHING)
