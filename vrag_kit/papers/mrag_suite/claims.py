"""Claim metrics in the modes of evidence: their names, strata, and differences between modes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm_by_family, paired_differences
from vrag_kit.analysis.estimates import cluster_means
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import NOTHING, ci_cells
from vrag_kit.analysis.strata import ALL, expand_strata
from vrag_kit.claims.label_agreement import KIND_AND_LABELS, verdict_confusion_matrix, verdict_pairs
from vrag_kit.claims.means import METRIC, claim_values
from vrag_kit.claims.metrics import (
    MetricValue,
    any_entails,
    combined_labels,
    difference,
    evidence_metrics,
    share,
)
from vrag_kit.claims.verdicts import VERDICT_SCORES, ClaimVerdicts, EntailmentLabel
from vrag_kit.config import Entry
from vrag_kit.papers.mrag_suite.datasets import MODES, published_range
from vrag_kit.papers.mrag_suite.modes import ARMS, memorised_in_suite
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
_KINDS = ("image", "text", "answer")


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
    told = memorised_in_suite(models, {name: benchmark for name, (benchmark, _) in answers.items()})
    if not set(checked["model"]) <= set(told):
        return checked.assign(stratum=POOLED)
    parts = [expand_strata(part, told) for _, part in checked.groupby("dataset", sort=False)]
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
    is_fixed = (means["label_source"] == "true") & np.isclose(means["value"], always)
    ends = {end: means[end].mask(is_fixed, means["value"]) for end in ("ci_low", "ci_high")}
    return means.assign(**ends, by_construction=is_fixed)


def best_available_labels(checked: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Returns (the rows with the verdict sheets to use, the source of their labels): true ones if
    the truth about answers is known (true_sheet), else the checker's.
    """
    if checked["true_sheet"].isna().all():
        return checked, "checker"
    return checked.assign(sheet=checked["true_sheet"]), "true"


def confusions_by_mode(pairs: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Maps each mode and kind of evidence to a `verdict_confusion_matrix` of labelled answers with
    the column setting, as from `add_human_verdicts`.
    """
    found = {}
    for mode, name in MODE_NAMES.items():
        verdicts = verdict_pairs(pairs[pairs["setting"] == mode])
        parts = {kind: verdicts[verdicts["evidence_kind"] == kind] for kind in _KINDS}
        found[name] = {title: verdict_confusion_matrix(part) for title, part in parts.items()}
    return found


def confusion_counts(confusions: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """Lists `confusions_by_mode` as setting, evidence_kind, true_label, checker_label, n."""
    modes = {name: mode for mode, name in MODE_NAMES.items()}
    truth, checker = KIND_AND_LABELS[1:]
    tables = []
    for name, matrices in confusions.items():
        for kind, matrix in matrices.items():
            long = matrix.reset_index(names=truth).melt(truth, var_name=checker, value_name="n")
            tables.append(long.assign(setting=modes[name], evidence_kind=kind))
    columns = ["setting", "evidence_kind", truth, checker, "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def with_both_modalities(means: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of data sets that show images and texts; all rows if none does."""
    used = means[(means["metric"] == "evidence_utilization") & (means["n"] > 0)]
    counts = used.groupby("dataset")["modality"].nunique()
    both = means[means["dataset"].map(counts) == len(MODALITIES)]
    return both if len(both) else means


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
    values = claim_values(_shown_otherwise(checked), by=["dataset", "model", "setting", "stratum"])
    keys = pd.MultiIndex.from_frame(values[["family", "metric"]])
    values = values.assign(metric=keys.map(CLAIM_METRICS.get))
    values = values[values["metric"].notna() & (values["modality"] == "all")]
    orders = {"dataset": list(checked["dataset"].unique()), "metric": list(CLAIM_METRICS.values())}
    values = values.sort_values(
        list(orders), key=lambda column: column.map(orders[str(column.name)].index), kind="stable"
    )
    changes = paired_differences(
        values,
        arm="setting",
        by=["dataset", "metric", "model", "stratum"],
        baseline=MODES[2],
        repeats=["setting", "dataset", "metric", "model"],
    )
    changes = changes[changes["n"] > 0].drop(columns="p_holm")
    is_fixed = np.isclose(changes["value"], _fixed_changes(changes, fixed))
    ends = {end: changes[end].mask(is_fixed, changes["value"]) for end in ("ci_low", "ci_high")}
    changes = changes.assign(**ends, p=changes["p"].mask(is_fixed), by_construction=is_fixed)
    return changes.assign(p_holm=holm_by_family(changes, ["stratum"]))


def _shown_otherwise(checked: pd.DataFrame) -> pd.DataFrame:
    """The answers over gold evidence alone, and those that were shown anything else."""
    items = [each.items if isinstance(each, ClaimVerdicts) else () for each in checked["sheet"]]
    shown = pd.Series([frozenset(item.doc_id for item in each) for each in items], checked.index)
    keys = pd.MultiIndex.from_frame(checked[["dataset", "model", "query_id"]])
    is_gold = checked["setting"] == MODES[2]
    gold = dict(zip(keys[is_gold], shown[is_gold], strict=True))
    same = [bool(each) and each == gold.get(key) for key, each in zip(keys, shown, strict=True)]
    return checked[is_gold | ~np.array(same, bool)]


def _fixed_changes(changes: pd.DataFrame, fixed: pd.DataFrame) -> np.ndarray:
    """What each change is where both means are fixed; else NaN."""
    names = pd.MultiIndex.from_frame(fixed[["family", "metric"]]).map(CLAIM_METRICS.get)
    every = fixed.assign(metric=names)[fixed["modality"] == "all"]
    means = every.set_index(["dataset", "setting", "metric"])["value"]
    places = (
        pd.MultiIndex.from_frame(changes.assign(setting=mode)[means.index.names])
        for mode in (changes["setting"], MODES[2])
    )
    change, gold = (means.reindex(each).to_numpy(float) for each in places)
    differences: np.ndarray = change - gold
    return differences


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
    entailed = verdicts[labels == VERDICT_SCORES[EntailmentLabel.ENTAILMENT]]
    neutral = verdicts[labels == VERDICT_SCORES[EntailmentLabel.NEUTRAL]]
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


FAMILIES = ("ragchecker", "mm_ragchecker")
"""The two families of metrics: RAGChecker's, and those of the paper's equations."""
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
ALWAYS_0 = "0 by the equation"
_WITHOUT_ITEMS = {"precision", "recall", "f1", "answer_claim_recall"}
"""Metrics that use no evidence, and have no modality."""


def compare_claims_to_paper(
    means: pd.DataFrame, printed: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Compares the published claim metrics with ours: rows data set, published metric and modality.
    Columns are the range of the paper's models in each of `printed` (`published_range`), then for
    each model RAGChecker's metric of that name, and the value of the paper's equation.

    `means` has dataset, model, family (of `FAMILIES`), metric, modality ("all", "image", "text"),
    value, ci_low, ci_high and n, in percent, of one setting, as from `claim_means_by_modality`;
    `printed` maps a title to published claim metrics of one setting (Tables 3, 14 and 15). Data
    sets in none of `printed` are excluded. "–" where there is no such number.
    """
    row = ["dataset", "metric", "modality"]
    known = {title: published_range(table, row) for title, table in printed.items()}
    rows = pd.concat(list(known.values())).index.unique()
    rows = rows[rows.get_level_values("dataset").isin(means["dataset"])]
    columns = {f"paper, {title}": spread.reindex(rows) for title, spread in known.items()}
    told = means.assign(cell=ci_cells(means, n=True))
    for (model, family), part in told.groupby(["model", "family"], sort=False):
        cells = part.set_index(row)["cell"]
        names = [_sought(each, str(family)) for each in rows]
        column = cells.reindex(names).set_axis(rows)
        zero = (family == FAMILIES[1]) & (rows.get_level_values("metric") == "self_knowledge")
        columns[f"{model}: {family}"] = column.mask(zero, ALWAYS_0)
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
    columns = {spread.name: spread}
    ours = means.assign(cell=ci_cells(means, n=True))
    for model, part in equations.groupby("model", sort=False):
        said = part.assign(cell=ci_cells(part, n=True)).set_index(row)["cell"]
        columns[f"{model}: by the equation"] = said.reindex(spread.index)
        own = ours[ours["model"] == model].set_index(["metric", "modality"])
        placed = [own.loc[[key]].assign(metric=name) for name, key in IN_PLACE.items()]
        cells = pd.concat(placed).set_index(row)["cell"]
        columns[f"{model}: in its place"] = cells.reindex(spread.index)
    return pd.DataFrame(columns).fillna(NOTHING)


def _sought(row: tuple[str, str, str], family: str) -> tuple[str, str, str]:
    """What a printed row is called in a family: data set, metric, modality."""
    name = DEFINITIONS[row[1]][FAMILIES.index(family)]
    return row[0], name, "all" if name in _WITHOUT_ITEMS else row[2]
