"""Truthfulness by the paper's rules: paired differences, slices, retrieved entities, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import paired_differences
from vrag_kit.analysis.comparisons import REPEATS, cluster_difference, holm_by_family
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import NOTHING, ci_cells, report_table
from vrag_kit.benchmarks import entity_names
from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.crag_mm.conversations import (
    NEEDS_HISTORY,
    NOT_ANNOTATED,
    SELF_CONTAINED,
    conversation_values,
    needs_history,
)
from vrag_kit.papers.crag_mm.statistics import KINDS, image_type
from vrag_kit.papers.published import format_spread, published
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate
from vrag_kit.types import Benchmark, QueryId

COMPARED = ("truthfulness", "accuracy", "missing", "hallucination")
"""Metrics by which arms are compared."""
STEPS = {
    "task_1, mm_llm": "image search − no search",
    "task_2, mm_llm": "both searches − no search",
    "task_2, task_1": "both searches − image search",
}
"""Differences between settings on single questions: arm and baseline → name."""


def truthfulness_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
    slices: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Computes paired differences of each arm from `baseline` for the metrics of `COMPARED`:
    metric, baseline, arm, `by`, value, ci_low, ci_high, n, n_failed, p, p_holm (see
    `paired_differences`), as shares.

    Truthfulness is paired by conversations, shares of turns by turns, without early stopping;
    intervals and tests are over conversations. With `slices` (query → slice) they are within each
    slice, in the column slice after `by`. p_holm corrects within one metric, arm, baseline and
    slice. Raises as `conversation_values` does, and `VragError` if `baseline` has no answers.
    """
    values = conversation_values(judged, benchmark, metrics=COMPARED, by=[*by, arm], slices=slices)
    keys = ["metric", *by, *([] if slices is None else ["slice"])]
    gains = paired_differences(values, arm=arm, by=keys, baseline=baseline)
    gains = gains.iloc[gains["metric"].map(COMPARED.index).argsort(kind="stable")]
    others = gains.columns.drop(["metric", "baseline"])
    return gains[["metric", "baseline", *others]].reset_index(drop=True)


LOW, NORMAL = "low quality", "normal"
LOW_LESS_NORMAL, NEEDS_LESS_ALONE = (LOW, NORMAL), (NEEDS_HISTORY, SELF_CONTAINED)
"""Pairs of slices that the paper compares: the harder one, and its baseline."""
Labels = Mapping[QueryId, str]
_FACETS: Mapping[str, Sequence[str]] = {
    "low_quality": (NORMAL, LOW),
    "image_quality": NAMES["image_quality"],
    "image_type": KINDS,
    "domain": NAMES["domain"],
    "query_category": NAMES["query_category"],
    "dynamism": NAMES["dynamism"],
    "popularity": ("head", "torso", "tail"),
    "history": (SELF_CONTAINED, NEEDS_HISTORY),
}
"""Facet → its slices, in the order of the paper's figures."""


def slice_labels(benchmark: Benchmark) -> dict[str, dict[QueryId, str]]:
    """Maps each facet to the slice of each query: image quality in two levels and in all, image
    type, domain, query category, dynamism, popularity, history.

    A query without the annotation is in the slice "not annotated"; a facet without any annotated
    query is absent, as popularity and history are in the public data. Slices are in the order of
    the paper's figures.
    """
    history, rows = needs_history(benchmark), {}
    for name, query in benchmark.queries.items():
        levels = {NORMAL: NORMAL, None: None, "": None}
        quality = levels.get(query.metadata.get("image_quality"), LOW)
        own = {"low_quality": quality, "image_type": image_type(query), "history": history[name]}
        marks = {**query.metadata, **own}
        rows[name] = [str(marks.get(facet) or NOT_ANNOTATED) for facet in _FACETS]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(_FACETS))
    found = {}
    for facet, order in _FACETS.items():
        ranks = {label: rank for rank, label in enumerate(order)}
        ranked = table[facet].sort_values(key=lambda each: each.map(ranks), kind="stable")
        if ranked.ne(NOT_ANNOTATED).any():
            found[facet] = {str(name): label for name, label in ranked.items()}
    return found


def slice_contrast(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Labels,
    pair: tuple[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Computes truthfulness in one slice minus that in another, in [−2, 2]. Columns: arm (the
    "setting" of `by`), the other `by`, metric, setting and baseline (the two slices of `pair`),
    value, ci_low, ci_high, n, n_baseline, p, p_holm.

    The slices have different questions, whose conversations may overlap, so nothing is paired:
    interval and p are of `ClusterDifference`, over groups. p_holm corrects within one question,
    that is over models. n and n_baseline count conversations. No row if a slice is empty.
    """
    values = conversation_values(judged, benchmark, by=by, slices=labels)
    known = values[values["slice"].isin(pair)].dropna(subset="value")
    rows = []
    for key, part in known.groupby(list(by), sort=False, dropna=False):
        first = part["slice"].eq(pair[0]).to_numpy(bool)
        if first.all() or not first.any():
            continue
        found = cluster_difference(
            part["value"].to_numpy(float), part["group"], first, scale_of(part)
        )
        numbers = (found.value, *found.interval(), int(first.sum()), int((~first).sum()))
        rows.append((*key, "truthfulness", *pair, *numbers, found.p_value()))
    named = ["arm" if name == "setting" else name for name in by]
    numbers_are = ["value", "ci_low", "ci_high", "n", "n_baseline", "p"]
    columns = [*named, "metric", "setting", "baseline", *numbers_are]
    table = pd.DataFrame(rows, columns=columns)
    asking = [name for name in named if name not in REPEATS]
    return table.assign(p_holm=holm_by_family(table, asking))


RETRIEVED = "retrieved"
BELOW_THRESHOLD = "below threshold"
NOT_RETRIEVED = "in index, not retrieved"
NOT_IN_INDEX = "not in index"
_STATUSES = (RETRIEVED, BELOW_THRESHOLD, NOT_RETRIEVED, NOT_IN_INDEX, NOT_ANNOTATED)


def entity_retrieval_status(
    benchmark: Benchmark, images: SearchService, k: int, threshold: float
) -> dict[QueryId, str]:
    """Maps each query to the retrieval status of its entity among the first `k` entries of the
    image search. Above `threshold` it is `RETRIEVED`, and the answerer sees it. Otherwise it is
    `BELOW_THRESHOLD`, not among the entries (`NOT_RETRIEVED`), or not in the index
    (`NOT_IN_INDEX`); "not annotated" if the data do not name it. Worst last. Raises `VragError` if
    they name none.
    """
    queries = list(benchmark.queries.values())
    if not any(query.entity for query in queries):
        raise VragError(
            f"{benchmark.name}: found no query with an entity; expected marks.jsonl beside the"
            " rows. `vrag fetch crag-mm --diagnostic` brings some."
        )
    run = images.search(queries, k)
    coverage = entity_coverage(queries, images.corpus, entity_names)
    labels = {name: NOT_RETRIEVED if held else NOT_IN_INDEX for name, held in coverage.items()}
    for label, hits in ((BELOW_THRESHOLD, run), (RETRIEVED, run[run["score"] > threshold])):
        table = entity_hit_rate(hits, queries, images.corpus, entity_names, cutoffs=[k])
        labels |= dict.fromkeys(table.loc[table["value"] == 1, "query_id"], label)
    every = {name: labels.get(name, NOT_ANNOTATED) for name in benchmark.queries}
    return dict(sorted(every.items(), key=lambda each: _STATUSES.index(each[1])))


def with_entity_retrieved(judged: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Filters judged answers to the questions, or conversations, whose label in `labels` is
    `RETRIEVED`. All turns of a conversation have one image, and one label. Raises `VragError` if
    there are none; a dry run, which searches nothing, keeps all instead.
    """
    kept = judged[judged["query_id"].map(labels) == RETRIEVED].reset_index(drop=True)
    if kept.empty and current_dry_run():
        return judged
    if kept.empty:
        raise VragError(
            f"found no question with the label {RETRIEVED!r}; lower similarity_threshold, or"
            " search for more (image_k)."
        )
    return kept


def entity_retrieval_shares(benchmark: Benchmark, labels: Labels) -> pd.DataFrame:
    """Counts questions and conversations (or groups) by label: label, questions, groups, and share
    of the groups with an annotated entity, in percent.
    """
    table = pd.DataFrame({"entity": pd.Series(labels), "group": pd.Series(benchmark.groups)})
    by_label = table.groupby("entity")["group"].agg(["size", "nunique"])
    counts = by_label.reindex(list(dict.fromkeys(labels.values())))
    annotated = counts["nunique"].drop(NOT_ANNOTATED, errors="ignore")
    counts = counts.set_axis(["questions", benchmark.groups_are], axis=1)
    return counts.assign(share=100 * annotated / annotated.sum()).reset_index()


SHOWN = ("accuracy", "missing", "hallucination", "truthfulness", "early_stop")
"""Metrics of the published tables; early_stop only in those of conversations."""


def published_range(table: int) -> pd.DataFrame:
    """Formats the range of the paper's nine models in Table 8 (single questions) or 9
    (conversations), "−22.4 to 7.9, median −13.1": rows setting, columns `SHOWN`, in percent.
    """
    wide = format_spread(published("crag_mm", table), ["setting", "metric"]).unstack()
    return wide.reindex(columns=[name for name in SHOWN if name in wide])


def truthfulness_table(means: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Formats results: rows (source, model, setting), columns `SHOWN`, n and failed. Cells are
    "mean [low, high]" of `to_percent(conversation_means(…))`, followed, where conversations have no
    score, by the means if all of these were incorrect, or correct.

    `paper`, such as `published("crag_mm", 8)`, is added below as "reported, other data".
    """
    ours = means[means["metric"].isin(SHOWN)]
    bounds = [
        " ({bound_low:.1f} to {bound_high:.1f})".format_map(row) for _, row in ours.iterrows()
    ]
    cells = ci_cells(ours) + pd.Series(bounds, ours.index).where(ours["n_failed"] > 0, "")
    ours = ours.assign(source="here", cell=cells)
    keys, tables = ["source", "model", "setting"], [ours]
    counts = ours.groupby(keys, sort=False).agg(n=("n", "max"), failed=("n_failed", "max"))
    if paper is not None:
        cells = paper["value"].map("{:.1f}".format)
        tables.append(paper.assign(source="reported, other data", cell=cells))
    both = pd.concat(tables, ignore_index=True)
    wide = report_table(both, rows=keys, cells=both["cell"])
    wide = wide.reindex(columns=[name for name in SHOWN if name in wide])
    return wide.join(counts.astype(str)).fillna(NOTHING)
