"""Recall of image and web search, as in Figures 3 and 7, compared with the published labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vrag_kit.analysis import cluster_means, to_percent
from vrag_kit.benchmarks import entity_names
from vrag_kit.papers.crag_mm.statistics import image_type
from vrag_kit.papers.published import published
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import Relevance, entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.types import Benchmark, Query, ordered

IMAGE_CUTOFFS = (1, 5, 10, 15, 20, 25, 30)
WEB_CUTOFFS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
DRAWN = (1, 5, 10, 20, 30, 40, 50)
"""Cutoffs at which curves are drawn."""
_PAGES = "answer hit rate"
_ENTITY = "entity hit rate, image search (Figure 3)"
CURVES = {
    _ENTITY: "image search",
    f"{_PAGES}, original query (Figure 3)": "web search (original query)",
    f"{_PAGES}, reference query (Figure 3)": "web search (reference query)",
}
BY_IMAGE = {
    "whole image, by image type (Figure 7)": "image type",
    "whole image, by image quality": "image quality",
}
"""The panels of `recall_lines` → their names: curves over k, and rows of images."""
REPORTED = "CRAG-MM, reported"
ONE_CURVE = (
    "Web search: the paper reports one curve per kind of page, and its Figure 3 does not say for"
    " which query; both panels repeat it."
)
"""A sentence for a caption: the paper's web curves are the same in both panels."""
QUERIES = (
    "Original query: the question as the user asks it. Reference query: the data's rewriting, which"
    " names the entity. Snippets: the few sentences of a page that a prompt holds."
)
"""Sentences for a caption: what the web search gets, and what is read of its pages."""
WHOLE, CROPPED = "whole image", "marked region"
WITH_MARGIN = "region with margin"
"""The annotated region with a margin around it (ours)."""


def image_recall(
    benchmark: Benchmark, services: Mapping[str, SearchService], k: int = IMAGE_CUTOFFS[-1]
) -> pd.DataFrame:
    """Computes whether each service returns the annotated entity among the first hits for a query's
    image. Columns are those of `entity_hit_rate` at `IMAGE_CUTOFFS` up to k, and k, with setting
    (the name of the service), image_type and image_quality.

    Queries without an annotated entity are excluded; the table may be empty.
    """
    queries = [query for query in benchmark.queries.values() if query.entity]
    cutoffs = [*(each for each in IMAGE_CUTOFFS if each < k), k]
    tables = []
    for setting, service in services.items():
        run = service.search(queries, k)
        found = entity_hit_rate(run, queries, service.corpus, entity_names, cutoffs=cutoffs)
        tables.append(found.assign(setting=setting))
    table = pd.concat(tables, ignore_index=True)
    asked = table["query_id"].map(benchmark.queries.get)
    quality = [query.metadata["image_quality"] for query in asked]
    return table.assign(image_type=asked.map(image_type), image_quality=quality)


def web_recall(
    service: SearchService,
    asked: Mapping[str, Sequence[Query]],
    relevance: Mapping[str, Relevance],
    k: int = WEB_CUTOFFS[-1],
) -> pd.DataFrame:
    """Computes whether one of the first pages contains the answer: `hit_rate` at `WEB_CUTOFFS` up
    to k, and k. The column setting is a name of `relevance` (the text that is read), and asked one
    of `asked` (the search queries).
    """
    cutoffs = [*(each for each in WEB_CUTOFFS if each < k), k]
    tables = []
    for name, queries in asked.items():
        run = service.search(queries, k)
        for setting, judge in relevance.items():
            found = hit_rate(run, queries, service.corpus, judge, cutoffs=cutoffs)
            tables.append(found.assign(setting=setting, asked=name))
    return pd.concat(tables, ignore_index=True)


def web_queries(
    benchmark: Benchmark, count: int | None = None, *, seed: int = 0
) -> dict[str, list[Query]]:
    """Returns the web search queries by kind: "original query" is the question, "reference query"
    the annotated one, for questions that have one.

    `count` samples that many questions at random, None takes all. "reference query" is absent if no
    question has one.
    """
    queries = [benchmark.queries[each] for each in ordered(benchmark.queries, seed, "web")[:count]]
    marked = [query for query in queries if query.metadata.get("reference_query")]
    rewritten = [replace(query, text=query.metadata["reference_query"]) for query in marked]
    return {"original query": queries} | ({"reference query": rewritten} if rewritten else {})


def recall_lines(
    images: pd.DataFrame, pages: pd.DataFrame, name: str, *, web: str = "standard"
) -> pd.DataFrame:
    """Averages `image_recall` and `web_recall` by k, and adds the published lines of the same
    panels (`CURVES`, `BY_IMAGE`) and series. Columns: series, metric, k, value, ci_low, ci_high, n,
    panel, unit, source; in percent.

    The source is the benchmark's `name`, for pages with the `web` unless standard ("…, large web"),
    or `REPORTED`.
    """
    paper = published("crag_mm", ["figure03_curves", "figure07"])
    paper = paper.rename(columns={"setting": "series"}).assign(source=REPORTED)
    whole = images[images["setting"] == WHOLE]
    panels = [(_ENTITY, images, "setting", name)]
    for panel, column in zip(BY_IMAGE, ("image_type", "image_quality"), strict=True):
        panels.append((panel, whole, column, name))
    of_pages = name if web == "standard" else f"{name}, {web} web"
    for asked, part in pages.groupby("asked", sort=False):
        panels.append((f"{_PAGES}, {asked} (Figure 3)", part, "setting", of_pages))
    tables = []
    for panel, values, column, source in panels:
        means = to_percent(cluster_means(values, [column, "k"]).assign(metric="hit_rate"))
        ours = means.rename(columns={column: "series"}).assign(source=source)
        theirs = paper[paper["series"].isin(ours["series"]) & ("Figure" in panel)]
        tables.append(pd.concat([ours, theirs]).assign(panel=panel, unit="percent"))
    columns = ["series", "metric", "k", "value", "ci_low", "ci_high", "n", "panel", "unit"]
    return pd.concat(tables, ignore_index=True)[[*columns, "source"]]


def index_coverage(benchmark: Benchmark, service: SearchService) -> pd.DataFrame:
    """Computes the share of annotated entities with an image in the index, and the paper's
    published share, in percent: rows here and paper, columns value, n.
    """
    held = entity_coverage(benchmark.queries.values(), service.corpus, entity_names)
    printed = published("crag_mm", "figure03_caption").set_index("setting")["value"]
    rows = [100 * float(np.mean(list(held.values()))) if held else np.nan, len(held)]
    paper = [printed["oracle_index_coverage"], np.nan]
    table = pd.DataFrame([rows, paper], index=["here", "paper"], columns=["value", "n"])
    return table.astype({"n": "Int64"})


def curves_title(drawn: pd.DataFrame) -> str:
    """The title for the drawn points of `CURVES`: the highest hit rate of each panel."""
    most = drawn.groupby("panel")["value"].max().dropna()
    parts = [f"{most[panel]:.0f} % by {name}" for panel, name in CURVES.items() if panel in most]
    return f"Highest hit rate: {', '.join(parts) or 'none is known'}"
