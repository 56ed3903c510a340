"""What the two searches find, as Figures 3 and 7 measure it, beside their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vrag_kit.analysis import in_percent, summarise
from vrag_kit.order import ordered
from vrag_kit.papers.crag_mm.printed import printed_recall
from vrag_kit.papers.published import published
from vrag_kit.retrieval import SearchService, entity_coverage, entity_recall, search_recall
from vrag_kit.retrieval.search_recall import Tells
from vrag_kit.types import Benchmark, Query

IMAGE_CUTOFFS = (1, 5, 10, 15, 20, 25, 30)
WEB_CUTOFFS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
_PAGES = "Answer told"
WHOLE, CROPPED = "whole image", "marked region"
WITH_MARGIN = "region with margin"
"""Ours: the marked region and some of what is around it."""
KINDS = {True: "egocentric", False: "normal"}
PRINTED = {
    "full_image_query": WHOLE,
    "manual_crop_query": CROPPED,
    "egocentric": "egocentric",
    "normal": "normal",
    "snippets": "snippets",
    "full_pages": "full pages",
}
"""Setting of `printed_recall` → the name of ours."""


def image_recall(
    benchmark: Benchmark, services: Mapping[str, SearchService], k: int = IMAGE_CUTOFFS[-1]
) -> pd.DataFrame:
    """Whether each service finds the asked entity among the first hits of a query's
    picture: `entity_recall` at `IMAGE_CUTOFFS` up to k, and k, with the columns setting (the
    services' names here), kind ("egocentric" or "normal") and image_quality.

    Queries whose entity the data do not tell are absent; the table may be empty.
    """
    queries = [query for query in benchmark.queries.values() if query.entity]
    cutoffs = [*(each for each in IMAGE_CUTOFFS if each < k), k]
    tables = []
    for setting, service in services.items():
        run = service.search(queries, k)
        found = entity_recall(run, queries, service.corpus, cutoffs=cutoffs)
        tables.append(found.assign(setting=setting))
    table = pd.concat(tables, ignore_index=True)
    asked = table["query_id"].map(benchmark.queries.get)
    return table.assign(
        kind=[KINDS[bool(query.metadata["egocentric"])] for query in asked],
        image_quality=[query.metadata["image_quality"] for query in asked],
    )


def web_recall(
    service: SearchService,
    asked: Mapping[str, Sequence[Query]],
    tells: Mapping[str, Tells],
    k: int = WEB_CUTOFFS[-1],
) -> pd.DataFrame:
    """Whether one of the first pages tells the answer: `search_recall` at `WEB_CUTOFFS`
    up to k, and k, with the columns setting (a name of `tells`: of what is read) and asked (a
    name of `asked`: of what is searched for).
    """
    cutoffs = [*(each for each in WEB_CUTOFFS if each < k), k]
    tables = []
    for name, queries in asked.items():
        run = service.search(queries, k)
        for setting, told in tells.items():
            found = search_recall(run, queries, service.corpus, told, cutoffs=cutoffs)
            tables.append(found.assign(setting=setting, asked=name))
    return pd.concat(tables, ignore_index=True)


def web_questions(benchmark: Benchmark, count: int = 0, *, seed: int = 0) -> dict[str, list[Query]]:
    """What the web is searched for: "as asked" the questions as they are, "as meant" with
    the reference query of the data, of questions that have one.

    `count` takes so many questions at random, 0 all. Without a reference query anywhere
    "as meant" is absent.
    """
    chosen = ordered(benchmark.queries, seed, "web")[: count or None]
    queries = [benchmark.queries[query_id] for query_id in chosen]
    meant = []
    for query in queries:
        if reference := query.metadata.get("reference_query"):
            meant.append(replace(query, text=str(reference)))
    return {"as asked": queries, **({"as meant": meant} if meant else {})}


def recall_means(values: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means of `image_recall` or `web_recall` by the columns `by` and k, in percent, with
    n and interval.
    """
    return in_percent(summarise(values, [*by, "k"]).assign(metric="recall"))


def recall_panels(images: pd.DataFrame, web: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Title → lines over k, ours and the printed ones (`printed` true), for
    `plotting.curves_figure`: whole images and marked regions, kinds of images, their
    qualities, and pages.
    """
    paper = printed_recall()
    paper = paper.assign(line=paper["setting"].map(PRINTED), printed=True, metric="recall")
    whole = images[images["setting"] == WHOLE]
    ours = {
        "Entity found, by image (Figure 3)": _lines(images, "setting"),
        "Whole image, by kind (Figure 7)": _lines(whole, "kind"),
        "Whole image, by quality": _lines(whole, "image_quality"),
    }
    for asked, part in web.groupby("asked", sort=False):
        ours[f"{_PAGES}, question {asked} (Figure 3)"] = _lines(part, "setting")
    panels = {}
    for title, lines in ours.items():
        theirs = paper[paper["line"].isin(lines["line"]) & ("Figure" in title)]
        panels[title] = pd.concat([lines, theirs], ignore_index=True)
    return panels


def recall_numbers(
    panels: Mapping[str, pd.DataFrame], name: str, *, web: str = "usual"
) -> pd.DataFrame:
    """All lines of `recall_panels` in one table, in percent, with the columns panel and
    source: the benchmark's `name`, of pages with a `web` that is not the usual one
    ("…, larger web"), or "CRAG-MM, as printed".
    """
    columns = ["line", "metric", "k", "value", "ci_low", "ci_high", "n"]
    tables = []
    for title, lines in panels.items():
        other_web = title.startswith(_PAGES) and web != "usual"
        ours = f"{name}, {web} web" if other_web else name
        source = np.where(lines["printed"], "CRAG-MM, as printed", ours)
        tables.append(lines[columns].assign(panel=title, unit="percent", source=source))
    return pd.concat(tables, ignore_index=True)


def recall_table(panels: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows (panel, line), columns k: cells "mean [low, high]" in percent; below each line
    what is printed, as "…, paper".
    """
    tables = []
    for title, lines in panels.items():
        named = lines["line"] + np.where(lines["printed"], ", paper", "")
        cells = [_cell(*row) for row in lines[["value", "ci_low", "ci_high"]].to_numpy(float)]
        tables.append(lines.assign(panel=title, line=named, cell=cells))
    table = pd.concat(tables, ignore_index=True)
    rows = ["panel", "line"]
    return table.pivot_table(
        index=rows, columns="k", values="cell", aggfunc="first", sort=False
    ).fillna("")


def coverage(benchmark: Benchmark, service: SearchService) -> pd.DataFrame:
    """Of how many asked entities the index holds a picture, beside what the paper prints
    of its own, in percent: a row each of index and paper, columns value, n.
    """
    held = entity_coverage(benchmark.queries.values(), service.corpus)
    printed = published("crag_mm", "figure03_caption").set_index("setting")["value"]
    share = 100 * float(np.mean(list(held.values()))) if held else np.nan
    rows = {"here": (share, len(held)), "paper": (printed["oracle_index_coverage"], np.nan)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "n"])
    return table.astype({"n": "Int64"})


def _lines(values: pd.DataFrame, line: str) -> pd.DataFrame:
    means = recall_means(values, [line]).rename(columns={line: "line"})
    return means.assign(printed=False)


def _cell(value: float, low: float, high: float) -> str:
    return f"{value:.1f}" if np.isnan(low) else f"{value:.1f} [{low:.1f}, {high:.1f}]"
