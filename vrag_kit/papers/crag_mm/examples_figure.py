"""Figures of one question's evidence in each task, and of one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch

from vrag_kit.benchmarks import entity_names
from vrag_kit.papers.crag_mm.search import setting_names
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.style import DARK, LIGHT, OUTCOME
from vrag_kit.retrieval.services import annotated_region
from vrag_kit.types import Benchmark

_VERDICTS = {1: "correct", 0: "missing", -1: "incorrect"}
_FRAMES = "Green frame: gold, of the question's entity. Frame of an answer: its verdict."


def task_images(benchmark: Benchmark, judged: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a question with its image and, below, a row for each task: the first entity and page
    that it finds, and its answer. The question is the first one for which the image search finds
    something and whose answer with both searches is correct, else the first. Returns the figure and
    the rows of `judged` that it shows.
    """
    found = judged[judged["doc_ids"].map(len) > 0]
    both = found[(found["setting"] == "task_2") & (found["score"] > 0)]
    both = both[both["query_id"].isin(found.query("setting == 'task_1'")["query_id"])]
    query_id = (both if len(both) else judged)["query_id"].iloc[0]
    mine = judged[judged["query_id"] == query_id].drop_duplicates("setting")
    names, query = setting_names(mine["setting"]), benchmark.queries[query_id]
    accepted = Tile(None, "accepted answer", shorten(" | ".join(query.answers), 100))
    rows = {"": [Tile(query.image, "image"), Tile(None, "question", query.text), accepted]}
    words = []
    for row in mine.to_dict("records"):
        name = names[row["setting"]]
        words.append(f"{_VERDICTS.get(row['score'], 'failed')} with {name}")
        rows[name] = _cells(benchmark, row, heads=len(rows) == 1)
    title = f"The answer to this question is {', '.join(words)}"
    figure = image_grid(rows, height=1.2, title=title, caption=f"{benchmark.name}. {_FRAMES}")
    return figure, mine[["model", "setting", "query_id", "doc_ids", "answer", "verdict", "score"]]


def conversation_card(benchmark: Benchmark, turns: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a conversation turn by turn: question, entity found by the image search, page found by
    the web search, and answer, framed by its verdict; the image is beside the first turn, its
    annotated region, if any, marked, and a line is below the turn at which the conversation stops.
    `turns` are one setting's, from `apply_early_stop`; drawn is the first conversation with a
    correct turn that stops before its last one, else the first. Returns the figure and the rows of
    the conversation.
    """
    scored = turns.assign(right=turns["score"] > 0).groupby("conversation", sort=False)
    ends = scored.agg({"right": "any", "stopped_at": "first", "turns": "first"})
    stops = ends[ends["right"] & (ends["stopped_at"] < ends["turns"] - 1)]
    chosen = (stops if len(stops) else ends).index[0]
    mine = turns[turns["conversation"] == chosen].drop_duplicates("turn").sort_values("turn")
    stop = mine["stopped_at"].iloc[0]
    rows: dict[str, list[Tile]] = {}
    for row in mine.to_dict("records"):
        query, head = benchmark.queries[row["query_id"]], not rows
        ended = "stopped: two turns in a row not correct" if row["turn"] == stop + 1 else ""
        region = next(iter(annotated_region(query)), ())
        rows[f"turn {row['turn'] + 1}"] = [
            Tile(query.image, "image", region=region) if head else Tile(None, below=ended),
            Tile(None, "question" * head, shorten(query.text, 100, placeholder=" …")),
            *_cells(benchmark, row, heads=head, counted=not row["turn"] > stop),
        ]
    end = f"stops after turn {stop + 1:.0f} of {len(mine)}" if stop == stop else "does not stop"
    correct, count = (int((mine[name] > 0).sum()) for name in ("score", "after_stop"))
    title = f"This conversation {end}: {count} of {correct} correct answers count"
    caption = f"{benchmark.name}. Box in the image: its annotated region. {_FRAMES}"
    figure = image_grid(rows, height=1.05, title=title, caption=caption)
    if stop < len(mine) - 1:
        left, right = (figure.axes[5 * int(stop + 1) + place] for place in (0, 4))
        line = ConnectionPatch((0, 1.27), (1, 1.27), "axes fraction", axesA=left, axesB=right)
        line.set(color=DARK, linestyle="--")
        figure.add_artist(line)
    columns = ["model", "setting", "conversation", "turn", "query_id", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score", "stopped_at", "after_stop"]]


def _cells(
    benchmark: Benchmark, row: Mapping[str, Any], *, heads: bool, counted: bool = True
) -> list[Tile]:
    """The first entity and the first page of an answer's evidence, and the answer itself."""
    outcome = _VERDICTS.get(row["score"], "failed")
    found = {each: benchmark.corpus[each] for each in row["doc_ids"] if each in benchmark.corpus}
    entity = next((name for name, each in found.items() if each.image), "none")
    page = next((name for name, each in found.items() if not each.image), "none")
    called = next(iter(entity_names(found[entity])), "") if entity in found else ""
    return [
        document_tile(benchmark, row["query_id"], entity, "entity found\n" * heads + called),
        document_tile(benchmark, row["query_id"], page, "page found" * heads),
        Tile(
            None,
            "answer: " * heads + outcome + ", not counted" * (not counted),
            shorten(str(row["answer"]), 100, placeholder=" …"),
            OUTCOME[outcome] if counted else LIGHT,
        ),
    ]
