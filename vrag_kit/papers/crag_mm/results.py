"""Truthfulness by the paper's rules: means of every arm, by slice, and paired differences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import paired_differences
from vrag_kit.analysis.comparisons import REPEATS, cluster_difference, holm_by_family
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import NOTHING, TableRow, ci_cells, report_table
from vrag_kit.benchmarks import entity_names
from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.crag_mm.conversations import (
    NEEDS_HISTORY,
    NOT_ANNOTATED,
    SELF_CONTAINED,
    conversation_means,
    conversation_values,
    early_stopping_rule,
)
from vrag_kit.papers.published import format_spread, published
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate
from vrag_kit.types import Benchmark, Query, QueryId

COMPARED = ("truthfulness", "accuracy", "missing", "hallucination")
"""Metrics by which arms are compared."""
STEPS = {
    "task_1, mm_llm": "image search − no search",
    "task_2, mm_llm": "both searches − no search",
    "task_2, task_1": "both searches − image search",
}
"""Differences between settings on single questions: arm and baseline → name."""
_OF_STOPS = ("early_stop", "early_stop_before_last_turn", "successful_turns")


def truthfulness_means(
    judged: pd.DataFrame, benchmark: Benchmark, *, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Computes `conversation_means` with the paper's `early_stopping_rule`. For single questions
    the metrics of early stopping are dropped.
    """
    means = conversation_means(judged, benchmark, early_stopping_rule, by=by)
    if any(query.conversation_id for query in benchmark.queries.values()):
        return means
    return means[~means["metric"].isin(_OF_STOPS)].reset_index(drop=True)


def truthfulness_by_slice(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Computes `conversation_means` by slice with the paper's early stopping; `labels` map queries
    to slices."""
    return conversation_means(judged, benchmark, early_stopping_rule, by=by, slices=labels)


def truthfulness_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
    metrics: Sequence[str] = COMPARED,
) -> pd.DataFrame:
    """Computes paired differences of each arm from `baseline` for `metrics`: metric, baseline, arm,
    `by`, value, ci_low, ci_high, n, n_failed, p, p_holm (see `paired_differences`), as shares.

    Truthfulness is paired by conversations, shares of turns by turns; intervals and tests are over
    conversations. p_holm corrects within one metric, arm and baseline. Raises `VragError` if
    `baseline` has no answers.
    """
    values = {}
    for metric in metrics:
        values[metric] = conversation_values(
            judged, benchmark, early_stopping_rule, metric=metric, by=[*by, arm]
        )
    return _gains(values, baseline=baseline, arm=arm, by=by)


def gains_by_slice(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    *,
    baseline: str,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes `truthfulness_gains` within each slice of `labels` (query → slice). Columns: metric,
    baseline, arm, `by`, slice and the numbers, as shares.

    Truthfulness is that of `truthfulness_by_slice`, paired by conversations; accuracy, missing and
    hallucination are of all turns, without early stopping. p_holm corrects within one metric, arm,
    baseline and slice. Raises as `conversation_values` does, and if `baseline` has no answers.
    """
    values = {}
    for metric in COMPARED:
        values[metric] = _slice_values(judged, benchmark, labels, metric, [*by, arm])
    return _gains(values, baseline=baseline, arm=arm, by=[*by, "slice"])


def _gains(
    values: Mapping[str, pd.DataFrame], *, baseline: str, arm: str, by: Sequence[str]
) -> pd.DataFrame:
    """Metric → what `paired_differences` takes: all differences in one table, metric and baseline
    first.
    """
    tables = []
    for metric, rows in values.items():
        table = paired_differences(rows, arm=arm, by=list(by), baseline=baseline)
        tables.append(table.assign(metric=metric))
    both = pd.concat(tables, ignore_index=True)
    return both[["metric", "baseline", *both.columns.drop(["metric", "baseline"])]]


def _slice_values(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, str],
    metric: str,
    by: Sequence[str],
) -> pd.DataFrame:
    """What `paired_differences` takes of a metric, with the column slice."""
    if metric == "truthfulness":
        return conversation_values(judged, benchmark, early_stopping_rule, by=by, slices=labels)
    values = conversation_values(judged, benchmark, early_stopping_rule, metric=metric, by=by)
    return values.assign(slice=values["query_id"].map(labels))


LOW, NORMAL = "low quality", "normal"
EGOCENTRIC, OTHER = "egocentric", "non-egocentric"
LOW_LESS_NORMAL, NEEDS_LESS_ALONE = (LOW, NORMAL), (NEEDS_HISTORY, SELF_CONTAINED)
"""Pairs of slices that the paper compares: the harder one, and its baseline."""
Labels = Mapping[QueryId, str]


def slice_labels(benchmark: Benchmark) -> dict[str, dict[QueryId, str]]:
    """Maps each facet to the slice of each query: image quality in two levels and in all, image
    type, domain, query category, dynamism, popularity, history.

    A query without the annotation is in the slice "not annotated"; a facet without any annotated
    query is absent, as popularity and history are in the public data. Slices are in the order of
    the paper's figures.
    """
    found: dict[str, dict[QueryId, str]] = {}
    for name, (reading, order) in _SLICED.items():
        told = {each: reading(query) for each, query in benchmark.queries.items()}
        known = {each for each in told.values() if each != NOT_ANNOTATED}
        if known:
            ranked = {label: place for place, label in enumerate(order)}
            places = {each: ranked.get(label, len(ranked)) for each, label in told.items()}
            found[name] = {each: told[each] for each in sorted(told, key=places.__getitem__)}
    return found


def truthfulness_by_all_slices(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, Labels],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Computes `truthfulness_by_slice` for each facet in `labels`, named in the column facet,
    without the queries that are not annotated. Raises as `conversation_means` does.
    """
    tables = []
    for name, told in labels.items():
        table = truthfulness_by_slice(judged, benchmark, told, by=by)
        order = list(dict.fromkeys(told.values()))
        places = table["slice"].map(order.index)
        tables.append(table.iloc[places.argsort(kind="stable")].assign(facet=name))
    if not tables:
        raise VragError(f"{benchmark.name}: there is nothing to slice by. Name some labels.")
    both = pd.concat(tables, ignore_index=True)
    return both[both["slice"] != NOT_ANNOTATED].reset_index(drop=True)


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
    values = conversation_values(judged, benchmark, early_stopping_rule, by=by, slices=labels)
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


def _named(column: str) -> Callable[[Query], str]:
    return lambda query: str(query.metadata.get(column) or NOT_ANNOTATED)


def _quality(query: Query) -> str:
    """Whether the asked thing is seen well or badly."""
    quality = query.metadata.get("image_quality")
    if not quality:
        return NOT_ANNOTATED
    return NORMAL if quality == "normal" else LOW


def _kind(query: Query) -> str:
    return EGOCENTRIC if query.metadata.get("egocentric") else OTHER


def _history(query: Query) -> str:
    """Whether a turn of a conversation needs the turns before it."""
    needs = query.metadata.get("needs_history")
    if needs is None or query.conversation_id is None:
        return NOT_ANNOTATED
    return NEEDS_HISTORY if needs else SELF_CONTAINED


_SLICED: dict[str, tuple[Callable[[Query], str], Sequence[str]]] = {
    "low_quality": (_quality, (NORMAL, LOW)),
    "image_quality": (_named("image_quality"), NAMES["image_quality"]),
    "image_type": (_kind, (EGOCENTRIC, OTHER)),
    "domain": (_named("domain"), NAMES["domain"]),
    "query_category": (_named("query_category"), NAMES["query_category"]),
    "dynamism": (_named("dynamism"), NAMES["dynamism"]),
    "popularity": (_named("popularity"), ("head", "torso", "tail")),
    "history": (_history, (SELF_CONTAINED, NEEDS_HISTORY)),
}
"""Maps a facet to the function that gives a query's slice, and the order of the slices."""


RETRIEVED = "retrieved"
BELOW_THRESHOLD = "below threshold"
NOT_RETRIEVED = "in index, not retrieved"
NOT_IN_INDEX = "not in index"


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
            f"{benchmark.name}: the data name no entity, so what was found cannot be told;"
            " expected marks.jsonl beside the rows. `vrag fetch crag-mm --diagnostic` brings some."
        )
    run = images.search(queries, k)
    kept = run[run["score"] > threshold]
    there = entity_coverage(queries, images.corpus, entity_names)
    found: dict[str, set[QueryId]] = {}
    for name, hits in ((RETRIEVED, kept), (BELOW_THRESHOLD, run)):
        table = entity_hit_rate(hits, queries, images.corpus, entity_names, cutoffs=[k])
        found[name] = set(table.loc[table["value"] == 1, "query_id"])
    by_label: dict[str, list[QueryId]] = defaultdict(list)
    for query_id in benchmark.queries:
        by_label[_label(query_id, there, found)].append(query_id)
    labels: dict[QueryId, str] = {}
    for label in (*found, NOT_RETRIEVED, NOT_IN_INDEX, NOT_ANNOTATED):
        labels |= dict.fromkeys(by_label[label], label)
    return labels


def with_entity_retrieved(
    judged: pd.DataFrame, labels: Labels, found: str = RETRIEVED
) -> pd.DataFrame:
    """Filters judged answers to the questions, or conversations, whose label in `labels` is
    `found`. All turns of a conversation have one image, and one label. Raises `VragError` if there
    are none; a dry run, which searches nothing, keeps all instead.
    """
    kept = judged[judged["query_id"].map(labels) == found].reset_index(drop=True)
    if kept.empty and current_dry_run():
        return judged
    if kept.empty:
        others = ", ".join(sorted(set(labels.values())))
        raise VragError(
            f"with_entity_retrieved: no question is {found!r}; they are {others}."
            " Lower similarity_threshold, or search for more (image_k)."
        )
    return kept


def entity_retrieval_shares(benchmark: Benchmark, labels: Labels) -> pd.DataFrame:
    """Counts questions and conversations (or groups) by label: label, questions, groups, and share
    of the groups with an annotated entity, in percent.
    """
    table = pd.DataFrame(
        [(labels[name], query.query_id, query.group) for name, query in benchmark.queries.items()],
        columns=["entity", "query_id", "group"],
    )
    order = list(dict.fromkeys(labels.values()))
    counts = table.groupby("entity")[["query_id", "group"]].nunique().reindex(order)
    counts = counts.rename(columns={"query_id": "questions", "group": benchmark.groups_are})
    told = counts.drop(index=NOT_ANNOTATED, errors="ignore").iloc[:, -1]
    return counts.assign(share=100 * told / told.sum()).reset_index()


def _label(query_id: QueryId, there: dict[QueryId, bool], found: dict[str, set[QueryId]]) -> str:
    if query_id not in there:
        return NOT_ANNOTATED
    for name, queries in found.items():
        if query_id in queries:
            return name
    return NOT_RETRIEVED if there[query_id] else NOT_IN_INDEX


SINGLE, MULTI = "single_turn", "multi_turn"
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
    cells = ci_cells(ours) + [_bounds(row) for row in ours.to_dict("records")]
    ours = ours.assign(source="here", cell=cells)
    counts = ours.groupby(["source", "model", "setting"], sort=False)
    told = counts.agg(n=("n", "max"), failed=("n_failed", "max")).astype(str)
    tables = [ours]
    if paper is not None:
        cells = paper["value"].map("{:.1f}".format)
        tables.append(paper.assign(source="reported, other data", cell=cells))
    both = pd.concat(tables, ignore_index=True)
    wide = report_table(both, rows=["source", "model", "setting"], cells=both["cell"])
    wide = wide.reindex(columns=[name for name in SHOWN if name in wide])
    return wide.join(told).fillna(NOTHING)


def _bounds(row: TableRow) -> str:
    bounds = f" ({row['bound_low']:.1f} to {row['bound_high']:.1f})"
    return bounds if row["n_failed"] else ""
