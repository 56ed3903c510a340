"""Figures of one question's evidence in each task, and of one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.crag_mm.search import setting_names
from vrag_kit.plotting.images import Tile, document_tile, evidence_images, image_grid
from vrag_kit.plotting.style import LIGHT, OUTCOME
from vrag_kit.retrieval.services import annotated_region
from vrag_kit.types import Benchmark

_VERDICTS = {1: "correct", 0: "missing", -1: "incorrect"}


def task_images(
    benchmark: Benchmark, judged: pd.DataFrame, most: int = 4
) -> tuple[Figure, pd.DataFrame]:
    """Draws the first `most` documents that each task shows for one question, the first
    one for which the image search finds something and whose answer with both searches is correct,
    else the first. Returns the figure and the rows of `judged` that it shows.
    """
    found = judged[judged["doc_ids"].map(len) > 0]
    both = found[(found["setting"] == "task_2") & (found["score"] > 0)]
    both = both[both["query_id"].isin(found.query("setting == 'task_1'")["query_id"])]
    query_id = (both if len(both) else judged)["query_id"].iloc[0]
    mine = judged[judged["query_id"] == query_id].drop_duplicates("setting")
    names = setting_names(mine["setting"])
    shown = {names[row["setting"]]: row["doc_ids"][:most] for row in mine.to_dict("records")}
    words = [
        f"{_VERDICTS[int(row['score'])]} with {names[row['setting']]}"
        for row in mine.to_dict("records")
        if row["score"] == row["score"]
    ]
    figure = evidence_images(
        benchmark,
        query_id,
        shown,
        title=f"The answer to one question is {', '.join(words)}",
        caption=f"The question's image and the first {most} documents shown in each task.",
    )
    return figure, mine[["model", "setting", "query_id", "doc_ids", "answer", "verdict", "score"]]


def conversation_card(benchmark: Benchmark, turns: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a conversation turn by turn: question, entity found by the image search, page found by
    the web search, and answer, framed by its verdict; the image is beside the first turn, its
    annotated region, if any, marked. `turns` are one setting's, from `apply_early_stop`; drawn is
    the first conversation with a correct turn that stops before its last one, else the first.
    Returns the figure and the rows of the conversation.
    """
    scored = turns.assign(right=turns["score"] > 0).groupby("conversation", sort=False)
    ends = scored.agg({"right": "any", "stopped_at": "first", "turns": "first"})
    stops = ends[ends["right"] & (ends["stopped_at"] < ends["turns"] - 1)]
    chosen = (stops if len(stops) else ends).index[0]
    mine = turns[turns["conversation"] == chosen].drop_duplicates("turn").sort_values("turn")
    rows: dict[str, list[Tile]] = {}
    for row in mine.to_dict("records"):
        query, outcome = benchmark.queries[row["query_id"]], _VERDICTS.get(row["score"], "failed")
        region = next(iter(annotated_region(query)), ())
        after = row["turn"] > row["stopped_at"]
        answer = shorten(str(row["answer"]), 100, placeholder=" …")
        rows[f"turn {row['turn'] + 1}" + ", after the stop" * after] = [
            Tile(None if rows else query.image, region=region),
            Tile(None, below=shorten(query.text, 100, placeholder=" …")),
            *_first_documents(benchmark, str(row["query_id"]), row["doc_ids"]),
            Tile(None, outcome, answer, LIGHT if after else OUTCOME[outcome]),
        ]
    stop = mine["stopped_at"].iloc[0]
    end = f"stops after turn {stop + 1:.0f} of {len(mine)}" if stop == stop else "does not stop"
    right, count = (int((mine[name] > 0).sum()) for name in ("score", "after_stop"))
    figure = image_grid(
        rows,
        height=1.05,
        title=f"This conversation {end}: {count} of {right} correct answers count",
        caption=f"""{benchmark.name}, model {mine["model"].iloc[0]}. From the left: the image, its
        annotated region marked; question; entity found by the image search; page found by the web
        search; answer, framed by its verdict.""",
    )
    columns = ["model", "setting", "conversation", "turn", "query_id", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score", "stopped_at", "after_stop"]]


def _first_documents(benchmark: Benchmark, query_id: str, doc_ids: Sequence[str]) -> list[Tile]:
    """The first document with an image and the first without that a turn shows."""
    found = [benchmark.corpus[each] for each in doc_ids if each in benchmark.corpus]
    image = next((each for each in found if each.image), None)
    page = next((each for each in found if each.image is None), None)
    entities = image.metadata.get("entities", []) if image else []
    name = str(entities[0]["entity_name"]) if entities else ""
    return [
        Tile(image.image, name) if image else Tile(None, below="no entity found"),
        document_tile(benchmark, query_id, page.doc_id) if page else Tile(None, below="no page"),
    ]
