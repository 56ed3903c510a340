"""Truthfulness by the paper's rules: paired differences, slices, retrieved entities, tables, and
checks of the paper's statements; verdicts on the paper's data only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from vrag_kit.analysis import paired_differences, to_percent
from vrag_kit.analysis.comparisons import cluster_difference, holm_by_family
from vrag_kit.analysis.means import ARM
from vrag_kit.benchmarks import entity_names
from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers import statements
from vrag_kit.papers.crag_mm.audit import CONVERSATIONS
from vrag_kit.papers.crag_mm.conversations import conversation_means, conversation_values
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.papers.crag_mm.statistics import KINDS, image_type
from vrag_kit.papers.published import format_spread, published
from vrag_kit.papers.statements import data_columns, select_differences
from vrag_kit.retrieval.entity_hit_rate import entity_coverage, entity_hit_rate
from vrag_kit.types import Benchmark, QueryId
from vrag_kit.workspace import Workspace

COMPARED = ("truthfulness", "accuracy", "missing", "hallucination")
"""Metrics by which arms are compared."""


def truthfulness_gains(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    baselines: Sequence[str],
    *,
    arm: str = "setting",
    by: Sequence[str] = ("model",),
    slices: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Computes paired differences, in points, of each arm from each of `baselines` that comes
    before it in `judged`, for the metrics of `COMPARED`: metric, baseline, arm, `by`, value,
    ci_low, ci_high, n, n_failed, p, p_holm, unit (see `paired_differences`).

    Truthfulness is paired by conversations, shares of turns by turns, without early stopping;
    intervals and tests are over conversations. With `slices` (query → slice) they are within each
    slice, in the column slice after `by`. p_holm corrects within one metric, arm, baseline and
    slice. Raises as `conversation_values` does, and `VragError` if a baseline has no answers.
    """
    values = conversation_values(judged, benchmark, metrics=COMPARED, by=[*by, arm], slices=slices)
    keys = ["metric", *by, *(["slice"] if slices else [])]
    order = list(judged[arm].unique())
    tables = []
    for baseline in baselines:
        gains = paired_differences(values, arm=arm, by=keys, baseline=baseline)
        tables.append(gains[gains[arm].map(order.index) > order.index(baseline)])
    gains = pd.concat(tables, ignore_index=True)
    gains = gains.iloc[gains["metric"].map(COMPARED.index).argsort(kind="stable")]
    first = ["metric", "baseline"]
    return to_percent(gains[[*first, *gains.columns.drop(first)]].reset_index(drop=True))


NOT_ANNOTATED = "not annotated"
RETRIEVED = "retrieved"
Labels = Mapping[QueryId, str]
_FACETS: Mapping[str, Sequence[str]] = {
    "low_quality": ("normal", "low quality"),
    "image_quality": NAMES["image_quality"],
    "image_type": KINDS,
    "domain": NAMES["domain"],
    "query_category": NAMES["query_category"],
    "dynamism": NAMES["dynamism"],
    "popularity": ("head", "torso", "tail"),
    "history": ("self-contained", "needs history"),
    "entity": (RETRIEVED, "below threshold", "in index, not retrieved", "not in index"),
}
"""Facet → its slices, in the order of the paper's figures."""


def needs_history(benchmark: Benchmark) -> dict[QueryId, str]:
    """Maps each query to "needs history", "self-contained", or "not annotated", as are all single
    questions.
    """
    words = {True: "needs history", False: "self-contained", None: NOT_ANNOTATED}
    return {
        name: words[query.metadata.get("needs_history") if query.conversation_id else None]
        for name, query in benchmark.queries.items()
    }


def slice_labels(benchmark: Benchmark, searches: SearchPipeline) -> dict[str, dict[QueryId, str]]:
    """Maps each facet to the slice of each query: image quality in two levels and in all, image
    type, domain, query category, dynamism, popularity, history, and entity, its retrieval status.

    A query without the annotation is in the slice "not annotated"; a facet without any annotated
    query is absent, as popularity, history and entity are in the public data. Slices are in the
    order of the paper's figures.

    The status of an entity is that among the first `image_k` entries of the image search. Above the
    threshold it is "retrieved", and the prompt contains it. Otherwise it is "below threshold", not
    among the entries ("in index, not retrieved"), or "not in index".
    """
    history = needs_history(benchmark)
    entity = _entity_status(benchmark, searches)
    marks = {}
    for name, query in benchmark.queries.items():
        quality = query.metadata.get("image_quality")
        low = quality not in ("normal", None, "")
        own = {"low_quality": "low quality" if low else quality}
        own |= {"image_type": image_type(query), "history": history[name]}
        marks[name] = {**query.metadata, **own, "entity": entity.get(name)}
    found = {}
    for facet, slices in _FACETS.items():
        labels = {name: each.get(facet) or NOT_ANNOTATED for name, each in marks.items()}
        if set(labels.values()) != {NOT_ANNOTATED}:
            found[facet] = _sorted_by_label(labels, [*slices, NOT_ANNOTATED])
    return found


def _sorted_by_label(labels: Labels, order: Sequence[str]) -> dict[QueryId, str]:
    return dict(sorted(labels.items(), key=lambda each: order.index(each[1])))


def _entity_status(benchmark: Benchmark, searches: SearchPipeline) -> dict[QueryId, str]:
    """The retrieval status of each entity that the data name; none without an image search."""
    images = searches.images
    queries = list(benchmark.queries.values())
    if images is None or not any(query.entity for query in queries):
        return {}
    run = images.search(queries, searches.image_k)
    coverage = entity_coverage(queries, images.corpus, entity_names)
    words = {True: "in index, not retrieved", False: "not in index"}
    labels = {name: words[held] for name, held in coverage.items()}
    kept = run[run["score"] > searches.similarity_threshold]
    known = queries, images.corpus, entity_names
    for label, hits in (("below threshold", run), (RETRIEVED, kept)):
        found = entity_hit_rate(hits, *known, cutoffs=[searches.image_k])
        labels |= dict.fromkeys(found.loc[found["value"] == 1, "query_id"], label)
    return labels


def slice_means(
    judged: pd.DataFrame,
    benchmark: Benchmark,
    facets: Mapping[str, Labels],
    *,
    by: Sequence[str] = ARM,
) -> pd.DataFrame:
    """Computes truthfulness by slice of each of the `facets`, in percent: the columns of
    `conversation_means` with slices, facet, and source, the benchmark's name. Queries without the
    annotation are left out.
    """
    tables = [
        conversation_means(judged, benchmark, by=by, slices=labels).assign(facet=facet)
        for facet, labels in facets.items()
    ]
    means = to_percent(pd.concat(tables, ignore_index=True)).assign(source=benchmark.name)
    return means[means["slice"] != NOT_ANNOTATED]


def slice_contrast(
    judged: pd.DataFrame, benchmark: Benchmark, labels: Labels, pair: tuple[str, str]
) -> pd.DataFrame:
    """Computes truthfulness in one slice minus that in another, in points. Columns: model, arm (the
    setting of the answers), k, metric, setting and baseline (the two slices of `pair`), value,
    ci_low, ci_high, n, n_baseline, p, p_holm, unit.

    The slices have different questions, whose conversations may overlap, so nothing is paired:
    interval and p are of `ClusterDifference`, over groups. p_holm corrects within one question,
    that is over models. n and n_baseline count conversations. No row if a slice is empty.
    """
    values = conversation_values(judged, benchmark, slices=labels)
    known = values[values["slice"].isin(pair)].dropna(subset="value")
    rows = []
    for key, part in known.groupby(ARM, sort=False, dropna=False):
        first = part["slice"].eq(pair[0]).to_numpy(bool)
        if first.all() or not first.any():
            continue
        scores = part["value"].to_numpy(float)
        found = cluster_difference(scores, part["group"], first, scale_of(part))
        counts = int(first.sum()), int((~first).sum())
        rows.append((*key, *pair, found.value, *found.interval(), *counts, found.p_value()))
    columns = ["model", "arm", "k", "setting", "baseline", "value", "ci_low", "ci_high"]
    table = pd.DataFrame(rows, columns=[*columns, "n", "n_baseline", "p"])
    table = table.assign(metric="truthfulness", p_holm=holm_by_family(table, ["arm"]))
    return to_percent(table)


def with_entity_retrieved(judged: pd.DataFrame, facets: Mapping[str, Labels]) -> pd.DataFrame:
    """Filters judged answers to the questions, or conversations, whose label in the facet "entity"
    is `RETRIEVED`. All turns of a conversation have one image, and one label. Raises `VragError` if
    there are none; a dry run, which searches nothing, keeps all instead.
    """
    kept = judged[judged["query_id"].map(facets.get("entity", {})) == RETRIEVED]
    if kept.empty and not current_dry_run():
        raise VragError(
            f"found no question with the label {RETRIEVED!r}; lower similarity_threshold, raise"
            " image_k, or name entities in marks.jsonl beside the rows."
        )
    return judged if kept.empty else kept.reset_index(drop=True)


SHOWN = ("accuracy", "missing", "hallucination", "truthfulness", "early_stop")
"""Metrics of the published tables; early_stop only in those of conversations."""


def published_range(table: int) -> pd.DataFrame:
    """Formats the range of the paper's nine models in Table 8 (single questions) or 9
    (conversations), "−22.4 to 7.9, median −13.1": rows setting, columns `SHOWN`, in percent.
    """
    wide = format_spread(published("crag_mm", table), ["setting", "metric"]).unstack()
    return wide.reindex(columns=[name for name in SHOWN if name in wide])


_OF_CONVERSATIONS = ("task_3", "needs history")
_EDITION = "CRAG-MM, public test, told by name and count; release not known"
_SESSIONS = {
    "crag-mm-single-turn-public-test": 1938,  # 30 % of 6,462
    "crag-mm-multi-turn-public-test": CONVERSATIONS,
}
_FEWEST, _MOST = 0.95, 1.01  # of these: pictures may be missing; neither count is printed


def data_source(benchmark: Benchmark) -> dict[str, str]:
    """Returns the columns of statement checks on a benchmark (`data_columns`): the paper's public
    test set, on which all its tables are based, or data without a verdict. The released files'
    hashes are unknown here. It is identified by its loader's name, which any rows in this layout
    get, and its approximate number of questions or conversations.
    """
    share = len(set(benchmark.groups.values())) / _SESSIONS.get(benchmark.name, math.inf)
    return data_columns(benchmark, _EDITION if _FEWEST <= share <= _MOST else "")


def check_statements(
    notebook: str, differences: pd.DataFrame, single: Benchmark, multi: Benchmark, at: Workspace
) -> Styler:
    """Checks the paper's statements that a notebook's differences can test, one row per statement
    and model, by `check_statements` of `papers.statements`.

    `notebook` is its number ("52"); `differences` are `truthfulness_gains` or `slice_contrast`:
    model, metric, setting, baseline, value, ci_low, ci_high, n, in points. Statements about
    task_3 or history are about `multi`, the others about `single`; a verdict is given on the
    paper's own data only. Raises `VragError` if the folder cannot be written.
    """
    numbers = select_differences("crag_mm", notebook, differences)
    on_turns = numbers["setting"].isin(_OF_CONVERSATIONS)
    parts = [numbers[~on_turns].assign(**data_source(single))]
    parts.append(numbers[on_turns].assign(**data_source(multi)))
    return statements.check_statements("crag_mm", notebook, pd.concat(parts), at)
