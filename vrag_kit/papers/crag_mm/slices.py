"""Truthfulness by slices of the questions, as in Figures 4 and 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from vrag_kit.analysis.comparisons import REPEATS, cluster_difference, holm_by_family
from vrag_kit.analysis.means import ARM
from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.crag_mm.conversation_means import conversation_values
from vrag_kit.papers.crag_mm.results import truthfulness_by_slice
from vrag_kit.papers.crag_mm.stop_rule import early_stopping_rule
from vrag_kit.papers.crag_mm.turn_slices import NEEDS_HISTORY, NOT_ANNOTATED, SELF_CONTAINED
from vrag_kit.types import Benchmark, Query, QueryId

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
