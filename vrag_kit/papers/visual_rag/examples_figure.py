"""Figures of what one question's settings show, and of what retrievers find for two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.visual_rag.pipeline import NAMES
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.style import display_name
from vrag_kit.types import Benchmark, Context


def settings_images(benchmark: Benchmark, contexts: Sequence[Context], most: int = 5) -> Figure:
    """Draws the images that each setting shows for the benchmark's first question: of each setting
    the context of its first draw with the most images, at most `most`.
    """
    query_id = next(iter(benchmark.queries))
    mine = [each for each in contexts if each.query_id == query_id and each.draw == 0]
    widest = {NAMES[each.setting].format(k=most): each.doc_ids for each in mine if each.k <= most}
    gold = set(benchmark.relevant(query_id))
    rows: dict[str, list[Tile]] = {"one image or none": []}
    for name, documents in widest.items():
        tiles = [document_tile(benchmark, query_id, each, gold="clue") for each in documents]
        if len(tiles) > 1:
            rows[name] = tiles
        else:
            tiles = tiles or [Tile(None, below="(the question alone)")]
            rows["one image or none"] += [replace(tile, title=name) for tile in tiles]
    held = "; ".join(f"{name}: {len(gold & set(ids))}" for name, ids in widest.items())
    return image_grid(
        rows,
        height=1.5,
        title=f"Clues among the images shown – {held}\n{benchmark.queries[query_id].text}",
        caption=f"""One question of {benchmark.name}. At most {most} images a setting. Framed:
        clues, images that show the answer.""",
    )


def retrieval_examples(
    benchmark: Benchmark, runs: Mapping[str, pd.DataFrame], k: int = 5
) -> tuple[Figure, pd.DataFrame]:
    """Draws the first `k` images of each retriever for two questions: the first one whose first
    image is gold by the first retriever, and the one whose first gold image comes last, or never.
    Returns the figure and the ranks of the first gold images (0: none): retriever, query_id, rank.
    """
    first: dict[tuple[str, str], int] = {}
    for name, run in runs.items():
        for query_id, found in run.sort_values("rank").groupby("query_id", sort=False):
            gold = found["doc_id"].isin(benchmark.relevant(str(query_id)))
            first[name, str(query_id)] = int(found["rank"][gold].min()) if gold.any() else 0
    judge = next(iter(runs))
    ranks = {query_id: first[judge, query_id] for query_id in benchmark.queries}
    best = min(ranks, key=lambda each: ranks[each] or len(benchmark.corpus))
    worst = max(ranks, key=lambda each: ranks[each] or len(benchmark.corpus))
    missed = f"not in the first {runs[judge]['rank'].max()}"
    places = {key: f"at rank {rank}" if rank else missed for key, rank in first.items()}
    rows = {}
    for question, query_id in {"A": best, "B": worst}.items():
        for name, run in runs.items():
            label = f"{question}, {display_name(name)}: first clue {places[name, query_id]}"
            found = run[(run["query_id"] == query_id) & (run["rank"] <= k)].sort_values("rank")
            rows[label] = [
                document_tile(benchmark, query_id, doc_id, f"rank {rank}", gold="clue")
                for rank, doc_id in enumerate(found["doc_id"], 1)
            ]
    table = [(*key, rank) for key, rank in first.items() if key[1] in (best, worst)]
    figure = image_grid(
        rows,
        height=1.5,
        title=f"With {display_name(judge)} the first clue of question A is {places[judge, best]},"
        f" that of B {places[judge, worst]}\nA: {benchmark.queries[best].text}\n"
        f"B: {benchmark.queries[worst].text}",
        caption=f"The first {k} images. Framed: clues, images that show the answer.",
    )
    return figure, pd.DataFrame(table, columns=["retriever", "query_id", "rank"])
