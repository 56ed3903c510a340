"""What the figures of this paper have in common: outcomes with their colours, rows and titles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis import finding, report_table
from vrag_kit.benchmarks import entity_names
from vrag_kit.papers.crag_mm.judge import OUTCOMES
from vrag_kit.papers.crag_mm.search import SETTING_NAMES
from vrag_kit.papers.crag_mm.statistics import LABEL_NAMES
from vrag_kit.plotting.diagnostics import outcome_bars
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.panels import Names, line_plot
from vrag_kit.plotting.style import (
    COLUMN,
    DARK,
    FEW,
    LIGHT,
    OUTCOME,
    SMALL,
    count_label,
    display_name,
)
from vrag_kit.retrieval import best_threshold
from vrag_kit.retrieval.services import annotated_region
from vrag_kit.types import Benchmark, Query

_OUTCOMES = {name: name for name in ("accuracy", "missing", "hallucination")}
"""The metrics that add up to 100 %, in the order of their bars, by name."""
_COLORS = {
    "accuracy": OUTCOME["correct"],
    "missing": OUTCOME["missing"],
    "hallucination": OUTCOME["incorrect"],
}
COUNTED = {
    "truthfulness": "truthfulness, conversations",
    "accuracy": "accuracy, turns",
    "missing": "missing, turns",
    "hallucination": "hallucination, turns",
}
"""Metrics of conversations → their names with what n counts."""
BOTH_COUNTS = (
    "Truthfulness: mean score of a conversation's turns after early stopping, then over"
    " conversations. Other metrics: shares of turns without early stopping."
)
"""Sentences for a caption of `truthfulness_gains`: what each metric is a mean of."""
HOLM = "Correction of p: Holm, over models."
"""A sentence for a caption whose title may say that a difference does not last."""
TRUTHFULNESS = "Truthfulness (mean score × 100)"
NAMES: Names = {
    **SETTING_NAMES,
    **LABEL_NAMES,
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
    named = ["setting", "baseline", "arm", "image", "metric"]
    texts = {
        name: table[name].map(lambda value: display_name(value, NAMES))
        for name in named
        if name in table
    }
    return report_table(table.assign(**texts), rows=rows, columns=columns)


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
    names = {"truthfulness": "truthfulness =\naccuracy − hallucination", **names}
    look: dict[str, Any] = {"outcomes": _OUTCOMES, "colors": _COLORS, "panels": panels}
    look |= {"names": names, "beside": beside, "xlabel": f"{unit.capitalize()} (%)"}
    look |= {"unit": unit, "title": title, "caption": f"{of_models(shares)} {caption}".strip()}
    rows = ["model", row] if shares["model"].nunique() > 1 else row
    return outcome_bars(shares, rows=rows, **look)


def of_models(table: pd.DataFrame) -> str:
    """Sentences for a caption: the models of a table, its control and its early stopping."""
    words = [f"Models: {', '.join(table['model'].unique())}."]
    if "image" in table:
        words.append("Control: asked with the image of another question, of another entity.")
    if "early_stopping" in table:
        words.append("Early stopping: after two turns in a row that are not correct, all later")
        words.append("turns count as missing.")
    return " ".join(words)


def headline(gains: pd.DataFrame, arm: str, baseline: str) -> str:
    """The title for `to_percent(paired_differences(…))` of one metric and arm: `finding` for one
    model; for several, for how many the 95 % interval is above 0.
    """
    if len(gains) == 1:
        return finding(gains.iloc[0].to_dict(), arm, baseline)
    higher = int((gains["ci_low"] > 0).sum())
    return f"{arm} is higher than {baseline} for {higher} of {len(gains)} models"


def count_texts(gains: pd.DataFrame) -> pd.Series:
    """What n counts in each row of `truthfulness_gains`, with an image, as text: questions; in
    conversations these for truthfulness, and turns for the other metrics.
    """
    texts = pd.Series("", index=gains.index)
    for key, part in gains.groupby(["setting", "baseline", "image"], sort=False):
        means = part["metric"].eq("truthfulness")
        units = ("conversations", "turns") if key[0] == "task_3" else ("questions",) * 2
        counts = [
            count_label(part.loc[rows, "n"], unit)
            for rows, unit in zip((means, ~means), units, strict=True)
            if rows.any()
        ]
        texts[part.index] = "; ".join(dict.fromkeys(counts))
    return texts


def extremes(
    means: pd.DataFrame, what: str, column: str, names: Names = NAMES, unit: str = " %"
) -> str:
    """The title for means in percent: for which value of `column` `what` is lowest and highest,
    of those with at least `FEW` cases, if any. `unit` follows the numbers.
    """
    known = means[means["n"] >= FEW].dropna(subset="value").sort_values("value")
    if known.empty:
        return f"{what} is unknown: no mean has {FEW} cases"
    ends = [
        f"({row['value']:.0f}{unit}) for “{display_name(row[column], names)}”".replace("(-", "(−")
        for row in known.iloc[[0, -1]].to_dict("records")
    ]
    return f"{what} is lowest {ends[0]} and highest {ends[1]}"


def oracles_title(truthfulness: pd.DataFrame) -> str:
    """The title for the means of truthfulness with each oracle: `extremes` of the oracles, and
    beside them no oracle, as a range of several models.
    """
    without = truthfulness["setting"].eq("no oracle")
    title = extremes(truthfulness[~without], "With an oracle, truthfulness", "setting")
    known = truthfulness[without & truthfulness["n"].ge(FEW)]["value"].dropna()
    if known.empty:
        return title
    ends = dict.fromkeys(f"{value:.0f} %".replace("-", "−") for value in (known.min(), known.max()))
    return f"{title}; with no oracle it is {' to '.join(ends)}"


_OF_ENTRIES = (
    "Of the first 10 entries found for each of {}: precision, the share of those above the"
    " threshold that show the image's entity; recall, the share of those that show it that are"
    " above the threshold; both over all images together."
)


def threshold_figure(
    curve: pd.DataFrame, chosen: Mapping[str, float], n: int, images: str
) -> Figure:
    """Draws precision, recall and F1 of `threshold_curve` at every fifth threshold, and vertical
    lines at `chosen` (name → threshold), the first of which is in the title. `n` counts images;
    `images` says which. An empty curve gives an empty figure.
    """
    (name, used), best = next(iter(chosen.items())), best_threshold(curve)
    lines = curve.iloc[::5].melt("threshold", ["precision", "recall", "f1"], var_name="metric")
    at = 100 * curve[np.isclose(curve["threshold"], used)][["precision", "recall"]]
    numbers = " and ".join(
        f"{value:.0f} % {metric}" for metric, value in at.mean().dropna().items()
    )
    highest = f"Best F1: at {best:.2f} (steps of 0.01; drawn: 0.05)."
    title = f"The threshold {name}, {used:.2f}, has {numbers or 'no images with an entity'}"
    caption = f"{_OF_ENTRIES.format(images)} {highest}" if best == best else ""
    look: dict[str, Any] = {"x": "threshold", "xlabel": "Similarity threshold", "color": "metric"}
    names = {"precision": "precision", "recall": "recall", "f1": "F1"}  # in the order of the key
    look |= {"ylabel": "Share (%)", "names": names, "unit": "images", "width": COLUMN}
    lines = lines.assign(value=100 * lines["value"], n=n)
    figure = line_plot(lines, **look, title=title, caption=caption)
    axis = figure.axes[0]
    for name, value in chosen.items():
        axis.axvline(value, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
        axis.text(value, 1.01, name, transform=axis.get_xaxis_transform(), ha="center", size=SMALL)
    return figure


_FRAMES = (
    "Green frame: an entry or page about the entity in the image (gold). Frame of an answer:"
    " blue if correct, light grey if missing, another colour if hallucinated. Text of a page: its"
    " first sentence that shares most words with an accepted answer."
)

_GREY = "Grey frame of an answer: missing, or after the stop and not counted."


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
    words = []
    for row in mine.to_dict("records"):
        name = SETTING_NAMES[row["setting"]]
        words.append(f"{OUTCOMES.get(row['score'], 'failed')} with {name}")
        rows[name] = _cells(benchmark, row, heads=len(rows) == 1)
    title = f"The answer to this question is {', '.join(words)}"
    figure = image_grid(rows, height=1.2, title=title, caption=f"{benchmark.name}. {_FRAMES}")
    columns = ["model", "setting", "query_id", "search_query", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score"]]


def conversation_card(benchmark: Benchmark, turns: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draws a conversation turn by turn: question, entity found by the image search, page found by
    the web search, and answer, framed by its verdict; the image is beside the first turn, its
    annotated region, if any, marked, and a note is beside the first turn that does not count.
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
    caption = f"{benchmark.name}. Box in the image: its annotated region. {_FRAMES} {_GREY}"
    figure = image_grid(rows, height=1.05, title=title, caption=caption)
    columns = ["model", "setting", "conversation", "turn", "query_id", "doc_ids", "answer"]
    return figure, mine[[*columns, "verdict", "score", "stopped_at", "after_stop"]]


def _cells(
    benchmark: Benchmark, row: Mapping[str, Any], *, heads: bool, counted: bool = True
) -> list[Tile]:
    """The first entity and the first page of an answer's evidence, and the answer itself."""
    outcome = OUTCOMES.get(row["score"], "failed")
    found = {each: benchmark.corpus[each] for each in row["doc_ids"] if each in benchmark.corpus}
    entity = next((name for name, each in found.items() if each.image), "none")
    page = next((name for name, each in found.items() if not each.image), "none")
    tile = document_tile(benchmark, row["query_id"], page, "page found" * heads)
    if page in found:
        text = _excerpt(found[page].text or page, benchmark.queries[row["query_id"]])
        tile = replace(tile, below=text)
    called = next(iter(entity_names(found[entity])), "") if entity in found else ""
    return [
        document_tile(benchmark, row["query_id"], entity, "entity found\n" * heads + called),
        tile,
        Tile(
            None,
            "answer: " * heads + outcome + ", not counted" * (not counted),
            _both_ends(str(row["answer"])),
            OUTCOME[outcome] if counted else LIGHT,
        ),
    ]


def _excerpt(text: str, query: Query, most: int = 90) -> str:
    """The first sentence of a text that shares most words with an accepted answer, shortened."""
    words = set(re.findall(r"\w+", " ".join(query.answers).casefold()))
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    best = max(sentences, key=lambda each: len(words & set(re.findall(r"\w+", each.casefold()))))
    before = "… " * (best != sentences[0])
    return before + shorten(best, most, placeholder=" …")


def _both_ends(text: str, most: int = 100) -> str:
    """The text in `most` characters: of a longer one, the words at its beginning and its end."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    first, last = text[: half + 1].rpartition(" ")[0], text[-half - 1 :].partition(" ")[2]
    return f"{first or text[:half]} … {last or text[-half:]}"
