"""Recall of image and web search, as in Figures 3 and 7, compared with the published labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.analysis import cluster_means, to_percent
from vrag_kit.benchmarks import entity_names
from vrag_kit.judging import Judge, TruthfulnessRuleJudge
from vrag_kit.judging.answer_metrics import has_new_words
from vrag_kit.judging.text import normalized_words
from vrag_kit.papers.crag_mm.statistics import image_type
from vrag_kit.papers.published import published
from vrag_kit.retrieval import SearchService
from vrag_kit.retrieval.entity_hit_rate import Relevance, entity_coverage, entity_hit_rate, hit_rate
from vrag_kit.types import Benchmark, Document, Query, ordered

IMAGE_CUTOFFS = (1, 5, 10, 15, 20, 25, 30)
WEB_CUTOFFS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
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


def web_queries(benchmark: Benchmark, count: int | None = None) -> dict[str, list[Query]]:
    """Returns the web search queries by kind: "original query" is the question, "reference query"
    the annotated one, for questions that have one.

    `count` samples that many questions at random, None takes all. "reference query" is absent if no
    question has one.
    """
    queries = [benchmark.queries[each] for each in ordered(benchmark.queries, 0, "web")[:count]]
    marked = [query for query in queries if query.metadata.get("reference_query")]
    rewritten = [replace(query, text=query.metadata["reference_query"]) for query in marked]
    return {"original query": queries} | ({"reference query": rewritten} if rewritten else {})


def page_relevance(judge: Judge, benchmark: Benchmark, part: str) -> Relevance:
    """Returns a function that decides whether a page contains the answer to a query, for
    `hit_rate`. `part` is "snippets", or "full pages" (the snippet of a page without full text).

    A text is judged as if it were the answer. It is relevant if the verdict is the best of the
    judge's scale, and None if that could not be parsed; each text is judged once. The truthfulness
    rule judge expects an answer of one sentence, and is replaced by `answer_in_page`. A page
    without text is not relevant.
    """

    def relevance(pairs: Sequence[tuple[Query, Document]]) -> list[bool | None]:
        texts = []
        for _, page in pairs:
            full = page.metadata.get("page_result") if part == "full pages" else ""
            texts.append(str(full or page.text or ""))
        if isinstance(judge, TruthfulnessRuleJudge):
            return [answer_in_page(*pair, text) for pair, text in zip(pairs, texts, strict=True)]
        asked = [(query.query_id, text) for (query, _), text in zip(pairs, texts, strict=True)]
        distinct = [each for each in dict.fromkeys(asked) if each[1]]
        table = pd.DataFrame(distinct, columns=["query_id", "answer"])
        scores = [verdict.score for verdict, *_ in judge.judge(benchmark, table)]
        best = [None if score is None else score == judge.scale.best for score in scores]
        found = dict(zip(distinct, best, strict=True))
        return [found.get(each, False) for each in asked]

    return relevance


def answer_in_page(query: Query, page: Document, text: str) -> bool:
    """Whether a page names the query's entity and contains an accepted answer.
    The entity may be in its title or text. The text must have every content word of an accepted
    answer that the question lacks; where it lacks none, every content word.

    A query without a known entity needs no name. This rule suits regular sentences: real pages
    paraphrase.
    """
    named = normalized_words(f"{page.metadata.get('page_name') or ''} {text}")
    has_answer = any(has_new_words(text, accepted, query.text) for accepted in query.answers)
    return has_answer and normalized_words(query.entity) <= named


def recall_lines(
    images: pd.DataFrame, pages: pd.DataFrame, name: str, *, web: str = "standard"
) -> pd.DataFrame:
    """Averages `image_recall` and `web_recall` by k, and adds the published lines of the same
    panels (`CURVES`, `BY_IMAGE`) and series. Columns: series, metric, k, value, ci_low, ci_high, n,
    panel, unit, source; in percent.

    The source is the benchmark's `name`, for pages with the `web` unless standard ("…, large web"),
    or `REPORTED`.
    """
    whole = images[images["setting"] == "whole image"]
    by_type, by_quality = BY_IMAGE
    of_pages = pages.assign(panel=f"{_PAGES}, " + pages["asked"] + " (Figure 3)")
    source = name if web == "standard" else f"{name}, {web} web"
    parts = [
        images.assign(panel=_ENTITY, series=images["setting"], source=name),
        whole.assign(panel=by_type, series=whole["image_type"], source=name),
        whole.assign(panel=by_quality, series=whole["image_quality"], source=name),
        of_pages.assign(series=pages["setting"], source=source),
    ]
    ours = cluster_means(pd.concat(parts), ["panel", "source", "series", "k", "metric"])
    paper = published("crag_mm", ["figure03_curves", "figure07"])
    paper = paper.rename(columns={"setting": "series"}).assign(source=REPORTED)
    drawn = ours.loc[ours["panel"].str.contains("Figure"), ["panel", "series"]].drop_duplicates()
    lines = pd.concat([to_percent(ours), drawn.merge(paper, on="series")])
    panels = list(ours["panel"].unique())
    lines = lines.sort_values("panel", key=lambda panel: panel.map(panels.index), kind="stable")
    columns = ["series", "metric", "k", "value", "ci_low", "ci_high", "n", "panel", "unit"]
    return lines[[*columns, "source"]].reset_index(drop=True)


def index_coverage(benchmark: Benchmark, service: SearchService) -> pd.DataFrame:
    """Computes the share of annotated entities with an image in the index, and the paper's
    published share, in percent: rows here and paper, columns value, n.
    """
    held = pd.Series(entity_coverage(benchmark.queries.values(), service.corpus, entity_names))
    reported = published("crag_mm", "figure03_caption", setting="oracle_index_coverage")
    values = {"here": 100 * held.astype(float).mean(), "paper": reported["value"].iloc[0]}
    n = pd.Series({"here": len(held)}, dtype="Int64")
    return pd.DataFrame({"value": values, "n": n})


def curves_title(drawn: pd.DataFrame) -> str:
    """The title for the drawn points of `CURVES`: the highest hit rate of each panel."""
    most = drawn.groupby("panel")["value"].max().dropna()
    parts = [f"{most[panel]:.0f} % by {name}" for panel, name in CURVES.items() if panel in most]
    return f"Highest hit rate: {', '.join(parts) or 'none is known'}"
