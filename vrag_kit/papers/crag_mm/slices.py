"""Truthfulness by slices of the questions, as Figures 4 and 8 cut them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from vrag_kit.analysis import slice_values
from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.comparison import REPEATS, by_question
from vrag_kit.analysis.unpaired import cluster_difference
from vrag_kit.benchmarks.crag_mm_labels import NAMES
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.crag_mm.results import truth_slices
from vrag_kit.papers.crag_mm.stop_rule import two_not_right
from vrag_kit.papers.crag_mm.turn_slices import NEEDS_HISTORY, STANDS_ALONE, UNTOLD
from vrag_kit.types import Benchmark, Query, QueryId

LOW, NORMAL = "low quality", "normal"
LOW_LESS_NORMAL, NEEDS_LESS_ALONE = (LOW, NORMAL), (NEEDS_HISTORY, STANDS_ALONE)
"""Two slices that the paper's text compares: what is harder, and what it is held against."""
Labels = Mapping[QueryId, str]


def slice_labels(benchmark: Benchmark) -> dict[str, dict[QueryId, str]]:
    """What queries are sliced by → the slice of each query: image quality, kind of
    picture, domain, type, dynamism, popularity, history.

    A query that the data do not tell is in the slice "not told"; what they tell of no
    query is absent, as popularity and dependence on history are in the public data.
    Slices come in the order of the paper's figures.
    """
    found: dict[str, dict[QueryId, str]] = {}
    for name, (reading, order) in _SLICED.items():
        told = {each: reading(query) for each, query in benchmark.queries.items()}
        known = {each for each in told.values() if each != UNTOLD}
        if known:
            ranked = {label: place for place, label in enumerate(order)}
            places = {each: ranked.get(label, len(ranked)) for each, label in told.items()}
            found[name] = {each: told[each] for each in sorted(told, key=places.__getitem__)}
    return found


def sliced_truth(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Mapping[str, Labels],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """`truth_slices` of each way to slice in `labels`, which the column `of` names, one
    below the other; without the queries that are not told. Raises as `slice_means` does.
    """
    tables = []
    for name, told in labels.items():
        table = truth_slices(judged, benchmark, told, by=by)
        order = list(dict.fromkeys(told.values()))
        places = table["slice"].map(order.index)
        tables.append(table.iloc[places.argsort(kind="stable")].assign(of=name))
    if not tables:
        raise VragError(f"{benchmark.name}: there is nothing to slice by. Name some labels.")
    both = pd.concat(tables, ignore_index=True)
    return both[both["slice"] != UNTOLD].reset_index(drop=True)


def slice_contrast(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    labels: Labels,
    pair: tuple[str, str],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Truthfulness in one slice less that in another, in [−2, 2]: arm, which of `by`
    "setting" is called here, the other `by`, metric, setting and baseline (the two
    slices of `pair`), value, ci_low, ci_high, n, n_baseline, p, p_holm.

    The slices are of other questions, and may lie in the same conversations or not, so
    nothing is paired: interval and p are of `ClusterDifference`, over groups. p_holm
    corrects within one question, that is over models. n and n_baseline count
    conversations. No row where a slice is empty.
    """
    values = slice_values(judged, benchmark, two_not_right, labels, by=by)
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
        rows.append((*key, "truthfulness", *pair, *numbers, found.p()))
    named = ["arm" if name == "setting" else name for name in by]
    numbers_are = ["value", "ci_low", "ci_high", "n", "n_baseline", "p"]
    columns = [*named, "metric", "setting", "baseline", *numbers_are]
    table = pd.DataFrame(rows, columns=columns)
    asking = [name for name in named if name not in REPEATS]
    return table.assign(p_holm=by_question(table, asking))


def _named(column: str) -> Callable[[Query], str]:
    return lambda query: str(query.metadata.get(column) or UNTOLD)


def _quality(query: Query) -> str:
    """Whether the asked thing is seen well or badly."""
    quality = query.metadata.get("image_quality")
    if not quality:
        return UNTOLD
    return NORMAL if quality == "normal" else LOW


def _kind(query: Query) -> str:
    return "egocentric" if query.metadata.get("egocentric") else "usual picture"


def _history(query: Query) -> str:
    """Whether a turn of a conversation needs the turns before it."""
    needs = query.metadata.get("needs_history")
    if needs is None or query.conversation_id is None:
        return UNTOLD
    return NEEDS_HISTORY if needs else STANDS_ALONE


_SLICED: dict[str, tuple[Callable[[Query], str], Sequence[str]]] = {
    "quality": (_quality, (NORMAL, LOW)),
    "image quality": (_named("image_quality"), NAMES["image_quality"]),
    "picture": (_kind, ("egocentric", "usual picture")),
    "domain": (_named("domain"), NAMES["domain"]),
    "type": (_named("query_category"), NAMES["query_category"]),
    "dynamism": (_named("dynamism"), NAMES["dynamism"]),
    "popularity": (_named("popularity"), ("head", "torso", "tail")),
    "history": (_history, (STANDS_ALONE, NEEDS_HISTORY)),
}
"""What queries are sliced by → the slice of a query, and the order of the slices."""
