"""What the figures of this paper have in common: outcomes with their colours, rows and titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis import finding, report_table
from vrag_kit.benchmarks import entity_names
from vrag_kit.papers.crag_mm.judge import OUTCOMES
from vrag_kit.plotting.diagnostics import outcome_bars
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.panels import Names, line_plot
from vrag_kit.plotting.style import COLUMN, DARK, FEW, OUTCOME, SMALL, display_name
from vrag_kit.retrieval import best_threshold
from vrag_kit.retrieval.services import annotated_region
from vrag_kit.types import Benchmark

_COLORS = {
    "accuracy": OUTCOME["correct"],
    "missing": OUTCOME["missing"],
    "hallucination": OUTCOME["incorrect"],
}
"""The metrics that add up to 100 %, in the order of their bars."""
BOTH_COUNTS = (
    "Truthfulness: mean score of a conversation's turns after early stopping, then over"
    " conversations; n counts these. Other metrics: shares of turns without early stopping."
)
"""Sentences for a caption of `truthfulness_gains`: what each metric is a mean of."""
TRUTHFULNESS = "Truthfulness (mean score × 100)"
NAMES: Names = {
    "mm_llm": "no search (MM-LLM)",
    "task_1": "image search (Task 1)",
    "task_2": "image and web search (Task 2)",
    "task_3": "image and web search (Task 3)",
    "image_quality": "image quality",
    "image_type": "image type",
    "domain": "domain",
    "query_category": "question type",
    "dynamism": "dynamism",
    "history": "dependence on earlier turns",
    "head": "head (popular)",
    "torso": "torso",
    "tail": "tail (rare)",
    "reported": "reported (the paper's data; one tick per model)",
    "matched": "own image",
    "mismatched": "another image (control)",
    "without": "without early stopping",
    "with": "with early stopping",
    "early_stop": "conversations ended early",
    "early_stop_before_last_turn": "ended with turns left",
    "successful_turns": "successful turns (number)",
    "task_1, mm_llm": "image search − no search",
    "task_2, mm_llm": "both searches − no search",
    "task_2, task_1": "both searches − image search",
    "task_3, mm_llm": "both searches − no search, conversations",
    "retrieved": "found, in the prompt",
    "below threshold": "found, not in the prompt",
    "in index, not retrieved": "in the index, not found",
    "not in index": "not in the index",
    "no oracle": "both searches, no oracle",
    "oracle region": "annotated region (oracle)",
    "oracle entity": "annotated entity (oracle)",
    "oracle query": "annotated query (oracle)",
    "oracle entity and query": "annotated entity and query (oracle)",
}
"""Names in figures and tables: settings, labels, controls, metrics, differences and cases."""


def named_table(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str] = ("metric",)
) -> pd.DataFrame:
    """Formats a table by `report_table`, settings, images and metrics by their `NAMES`."""
    named = dict.fromkeys(["setting", "baseline", "arm", "image", "metric"], NAMES)
    return report_table(table.replace(named), rows=rows, columns=columns)


def outcome_figure(
    shares: pd.DataFrame,
    row: str,
    unit: str,
    beside: str,
    title: str,
    *,
    panels: str = "",
    names: Names = NAMES,
    caption: str = "",
) -> Figure:
    """Draws `outcome_bars` of correct, missing and hallucinated answers, in percent: a bar for each
    value of the column `row`, with the metric `beside` at its end. `unit` is what n counts.
    """
    models = shares["model"].unique()
    shown = {name: name for name in _COLORS}
    look: dict[str, Any] = {"rows": ["model", row] if len(models) > 1 else row, "panels": panels}
    look |= {"outcomes": shown, "colors": _COLORS, "beside": beside, "unit": unit, "title": title}
    look |= {"names": {"truthfulness": "truthfulness =\naccuracy − hallucination", **names}}
    words = f"Models: {', '.join(models)}. {caption}".strip()
    return outcome_bars(shares, **look, xlabel=f"{unit.capitalize()} (%)", caption=words)


def headline(gains: pd.DataFrame, arm: str, baseline: str) -> str:
    """The title for `to_percent(paired_differences(…))` of one metric and arm: `finding` for one
    model; for several, for how many the 95 % interval is above 0.
    """
    if len(gains) == 1:
        return finding(gains.iloc[0].to_dict(), arm, baseline)
    higher = int((gains["ci_low"] > 0).sum())
    return f"{arm} is higher than {baseline} for {higher} of {len(gains)} models"


def extremes(
    means: pd.DataFrame, what: str, column: str, names: Names = NAMES, unit: str = " %"
) -> str:
    """The title for means in percent: for which value of `column` `what` is lowest and highest,
    of those with at least `FEW` cases, if any. `unit` follows the numbers.
    """
    known = means[means["n"] >= FEW].dropna(subset="value").sort_values("value")
    if known.empty:
        return f"{what} is unknown: no mean has {FEW} cases"
    ends = known[column].map(lambda value: f"“{display_name(value, names)}”")
    ends += known["value"].map(f" ({{:.0f}}{unit})".format).str.replace("-", "−")
    return f"{what} is lowest for {ends.iloc[0]} and highest for {ends.iloc[-1]}"


def threshold_figure(
    curve: pd.DataFrame, chosen: Mapping[str, float], n: int, images: str
) -> Figure:
    """Draws precision, recall and F1 of `threshold_curve` at every fifth threshold, and vertical
    lines at `chosen` (name → threshold), the first of which is in the title. `n` counts images;
    `images` says which. An empty curve gives an empty figure.
    """
    (name, used), best = next(iter(chosen.items())), best_threshold(curve)
    at = curve[np.isclose(curve["threshold"], used)][["precision", "recall"]].mean().dropna()
    numbers = " and ".join(f"{100 * value:.0f} % {metric}" for metric, value in at.items())
    caption = f"""Of the first 10 entries found for each of {images}: precision, the share of those
    above the threshold that show the image's entity; recall, the share of those that show it that
    are above the threshold; both over all images together. Best F1: at {best:.2f}."""
    lines = curve.iloc[::5].melt("threshold", ["precision", "recall", "f1"], var_name="metric")
    lines = lines.assign(value=100 * lines["value"], n=n)
    look: dict[str, Any] = {"x": "threshold", "xlabel": "Similarity threshold", "color": "metric"}
    look |= {"names": {"precision": "precision", "recall": "recall", "f1": "F1"}, "width": COLUMN}
    look |= {"title": f"The threshold {name}, {used:.2f}, has {numbers or 'no images'}"}
    figure = line_plot(lines, **look, ylabel="Share (%)", unit="images", caption=caption)
    axis = figure.axes[0]
    for name, value in chosen.items():
        axis.axvline(value, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
        axis.text(value, 1.01, name, transform=axis.get_xaxis_transform(), ha="center", size=SMALL)
    return figure


_FRAMES = (
    "Green frame: an entry or page about the entity in the image (gold). Frame of an answer:"
    " blue if correct, light grey if missing, another colour if hallucinated."
)


def task_images(benchmark: Benchmark, judged: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a question with its image and, below, a row for each task: the first entity and page
    that it finds, and its answer. The question is the first one that image search alone leaves
    without a correct answer and both searches answer correctly, else the first. Returns the figure
    and the rows of `judged` that it shows.
    """
    found = judged[judged["doc_ids"].map(len) > 0]
    failed = found.query("setting == 'task_1' and score <= 0")["query_id"]
    both = found[found["query_id"].isin(failed)].query("setting == 'task_2' and score > 0")
    query_id = (both if len(both) else judged)["query_id"].iloc[0]
    mine = judged[judged["query_id"] == query_id].drop_duplicates("setting")
    query = benchmark.queries[query_id]
    accepted = Tile(None, "accepted answer", shorten(" | ".join(query.answers), 100))
    rows = {"": [Tile(query.image, "image"), Tile(None, "question", query.text), accepted]}
    rows |= {NAMES[row["setting"]]: _answered(benchmark, row) for row in mine.to_dict("records")}
    outcomes = mine["score"].map(OUTCOMES).fillna("failed") + " with " + mine["setting"].map(NAMES)
    title = f"The answer to this question is {', '.join(outcomes)}"
    figure = image_grid(rows, height=1.2, title=title, caption=f"{benchmark.name}. {_FRAMES}")
    columns = ["model", "setting", "query_id", "search_query", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score"]]


def conversation_card(benchmark: Benchmark, turns: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a conversation turn by turn: question, entity found by the image search, page found by
    the web search, and answer, framed by its verdict; the image is beside the first turn, its
    annotated region, if any, marked. Turns after the stop are named as not counted. `turns` are one
    setting's, from `apply_early_stop`; drawn is the first conversation with a correct turn that
    stops before its last one, else the first. Returns the figure and the rows of the conversation.
    """
    right = turns.loc[turns["score"] > 0, "conversation"]
    early = turns["conversation"].isin(right) & (turns["stopped_at"] < turns["turns"] - 1)
    chosen = (turns[early] if early.any() else turns)["conversation"].iloc[0]
    mine = turns[turns["conversation"] == chosen].drop_duplicates("turn").sort_values("turn")
    stop = mine["stopped_at"].iloc[0]
    rows: dict[str, list[Tile]] = {}
    for row in mine.to_dict("records"):
        query = benchmark.queries[row["query_id"]]
        region = next(iter(annotated_region(query)), ())
        image = Tile(None) if rows else Tile(query.image, "image", region=region)
        question = Tile(None, "question", shorten(query.text, 100, placeholder=" …"))
        label = f"turn {row['turn'] + 1}" + "\n(not counted)" * bool(row["turn"] > stop)
        rows[label] = [image, question, *_answered(benchmark, row)]
    end = f"stops after turn {stop + 1:.0f} of {len(mine)}" if stop == stop else "does not stop"
    correct, count = (int((mine[name] > 0).sum()) for name in ("score", "after_stop"))
    title = f"This conversation {end}: {count} of {correct} correct answers count"
    caption = f"""{benchmark.name}. Box in the image: its annotated region. {_FRAMES} Stop: after
    two turns in a row that are not correct."""
    figure = image_grid(rows, height=1.05, title=title, caption=caption)
    columns = ["model", "setting", "conversation", "turn", "query_id", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score", "stopped_at", "after_stop"]]


def _answered(benchmark: Benchmark, row: Mapping[str, Any]) -> list[Tile]:
    """The first entity and the first page of an answer's evidence, and the answer itself."""
    found = [benchmark.corpus[each] for each in row["doc_ids"] if each in benchmark.corpus]
    entity = next((each for each in found if each.image), None)
    page = next((each.doc_id for each in found if not each.image), "none")
    named = f"entity found: {next(iter(entity_names(entity)), '')}" if entity else "entity found"
    outcome = OUTCOMES.get(row["score"], "failed")
    answer = shorten(str(row["answer"]), 100, placeholder=" …")
    return [
        document_tile(benchmark, row["query_id"], entity.doc_id if entity else "none", named),
        document_tile(benchmark, row["query_id"], page, "page found"),
        Tile(None, f"answer: {outcome}", answer, OUTCOME[outcome]),
    ]
