"""Figures of the data and of one question's way to its scores, and sentences of captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import ImageOps

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import SETTING_NAMES, finding
from vrag_kit.plotting.images import draw_thumbnail
from vrag_kit.plotting.style import (
    DARK,
    GREY,
    MODEL,
    SMALL,
    display_name,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark, DocId

STEPS = {
    "open_benchmark": "data: queries, images, labels",
    "search_one": "retriever: rank and score of each image",
    "top_k": "prompt: the first images",
    "ask_models": "multimodal model: one answer a prompt",
    "judge_answers": "judge: score and abstention",
    "mean_scores": "analysis: mean, interval, n",
}
"""The kit's function between two cards → who does its work: the table that it returns."""
NAMES = {"zero_shot": "no image", "gt_clue": "one clue", "non_clue": "one non-clue"}
NAMES |= {"top_k": "top-{k}", "one_in_k": "1-in-{k}"}
"""What the card of scores calls a setting of `k` images."""
TERMS = {
    "clue": "clue: an image that shows the answer",
    "distractors": "distractors: images of the species that do not",
    "top_k": "top-k: the k images ranked first",
    "one_in_k": "1-in-k: one clue and k − 1 distractors",
    "recall": "recall: the share of a question's clues among the first k",
    "perfect": "perfect order: all clues first",
    "altered": "altered clue: the same image with the part in question redrawn in another color or"
    " pattern (the new value)",
    "original": "original value: the answer of the unaltered image",
    "in training data": "in training data: questions on facts that the model was trained on",
}
"""How a caption defines a term, or a stratum."""
CORRECTED = (
    " Intervals are not corrected; the title says if a difference does not last Holm's correction."
)
"""What a caption says of tests of `paired_differences`."""
_WIDTHS = (1.25, 0.78, 0.78, 0.52, 0.65, 0.75, 1.1)
"""Of the cards, in inches."""
_GAP, _MIDDLE = 0.22, 1.75
"""In inches: between cards, and from the bottom to the middle of the cards."""
_THUMBNAIL = 0.25


def benchmark_figure(shares: pd.DataFrame, queries: pd.DataFrame) -> Figure:
    """Draws Figure 2 of the paper and a histogram of clues per question, from the tables
    `label_counts` and `question_table` of a benchmark, with its clues.
    """
    figure, (axes,) = new_figure(1, 3, height=2.4)
    titles = {"organism": "Organism group", "question": "Question type"}
    for axis, (facet, title) in zip(axes, titles.items(), strict=False):
        part = shares[shares["facet"] == facet]
        bars = axis.barh(part["label"], part["share"], color=MODEL[0], linewidth=0)
        labels = [f" {row.share:.0f}\u00a0% ({row.n})" for row in part.itertuples()]
        axis.bar_label(bars, labels, fontsize=SMALL)
        axis.set(
            title=title, xlim=(0, 1.4 * shares["share"].max()), xlabel="% of questions (number)"
        )
        axis.invert_yaxis()
        axis.grid(visible=False)
    clues = queries["clues"].to_numpy()
    axes[2].hist(clues, bins=np.arange(0, clues.max() + 4, 3), color=MODEL[0])
    axes[2].axvline(np.median(clues), color=DARK, linestyle="--", linewidth=1)
    axes[2].margins(y=0.2)
    at = (np.median(clues), 0.92)
    axes[2].annotate(f" median {at[0]:g}", at, xycoords=axes[2].get_xaxis_transform())
    axes[2].set(title="Clue images per question", xlabel="Clue images", ylabel="Questions")
    axes[2].yaxis.set_major_locator(MaxNLocator(integer=True))
    title = f"Half of the {len(queries)} questions have at most {np.median(clues):g} clue images"
    caption = f"""{queries["entity"].nunique()} species. A bar of the histogram is 3 clues wide.
        Clue: an image that shows the answer."""
    set_caption(figure, title, caption)
    return figure


def empty_note(judged: pd.DataFrame) -> str:
    """A sentence of a caption on empty answers: the most of a model in a setting at one k, of all
    its answers there; "" where no answer is empty.
    """
    empty = judged["status"].eq("empty")
    counts = judged.assign(empty=empty).groupby(ARM)["empty"].agg(["sum", "size"]).reset_index()
    most = counts.sort_values("sum", kind="stable").iloc[-1]
    where = f"{display_name(most['model'])}, {NAMES[most['setting']].format(k=most['k'])}"
    words = f" Empty answers count as wrong: at most {most['sum']} of {most['size']} ({where})."
    return words * bool(empty.any())


def define(*terms: str, strata: Iterable[str] = ()) -> str:
    """A sentence of a caption that defines terms, and those of the strata that are in `TERMS`; ""
    where nothing needs it.
    """
    needed = [*terms, *(name for name in dict.fromkeys(strata) if name in TERMS)]
    words = "; ".join(TERMS[name] for name in needed)
    return words[:1].upper() + words[1:] + "." * bool(words)


def findings(differences: pd.DataFrame, arm: str, baseline: str) -> str:
    """Formats a line for each row of `to_percent(paired_differences(…))`: its model, and the
    `finding` about `arm` and `baseline`, in which {names} of columns become their values.
    """
    rows = differences.replace(SETTING_NAMES).to_dict("records")
    lines = [finding(row, arm.format_map(row), baseline.format_map(row)) for row in rows]
    return "\n".join(f"{row['model']}: {line}" for row, line in zip(rows, lines, strict=True))


def pipeline_diagram(
    benchmark: Benchmark, query_id: str, run: pd.DataFrame, judged: pd.DataFrame, k: int = 5
) -> Figure:
    """Draws one question's way to its scores as a row of cards: question, corpus, images retrieved
    and shown (clues framed), answer, verdict, and the scores by setting. Below each arrow: the
    function of the kit, and the table that it returns.

    `judged` holds one model's judged answers to the question, one of them to the first `k`
    retrieved images (setting top_k); raises IndexError if it does not.
    """
    query, labels = benchmark.queries[query_id], benchmark.qrels[query_id]
    here = (judged["setting"] == "top_k") & (judged["k"] == k)
    answer = judged[here].iloc[0]
    found = list(run[run["query_id"] == query_id].sort_values("rank")["doc_id"])
    names = [NAMES[name].format(k=n) for name, n in judged[["setting", "k"]].to_numpy()]
    scores = here.map({True: "▶ ", False: ""}) + names + ": " + judged["score"].map("{:g}".format)
    cards: dict[str, str | list[DocId]] = {
        "Question": query.text,
        "Corpus": list(labels)[:18],
        "Retrieved": found[:18],
        "Shown": found[:k],
        "Answer": f"“{answer['answer'] or '(empty)'}”",
        "Verdict": f"accepted: {', '.join(query.answers[:2])}\nscore {answer['score']:g}",
        "Scores": "\n".join(scores),
    }
    figure, axes = new_figure(height=3.1)
    axis = axes[0][0]
    left, steps = 0.0, iter(STEPS.items())
    for (name, content), width in zip(cards.items(), _WIDTHS, strict=True):
        if left:
            _draw_step(axis, left - _GAP, *next(steps))
        middle = left + width / 2
        axis.text(middle, 2.65, name, ha="center", weight="bold", fontsize=8)
        if isinstance(content, str):
            text = axis.text(middle, _MIDDLE, fit(content, width, 7.5), fontsize=7.5)
            text.set(ha="center", va="center")
        else:
            _draw_images(axis, left, width, benchmark, query_id, content)
        left += width + _GAP
    axis.set(xlim=(0, left - _GAP), ylim=(0.08, 2.8), aspect="equal")
    axis.set_axis_off()
    gold = sum(labels.get(each, 0) > 0 for each in found[:k])
    set_caption(
        figure,
        f"From question to score: {gold} of {k} images shown are clues (framed), and the answer"
        f" scores {answer['score']:g} (▶)",
        f"""{benchmark.name}, model {answer["model"]}. Corpus: {len(cards["Corpus"])} of
        {len(labels)} images. Framed: clues (gold images), which show the
        answer. Below each arrow: the kit's function, who does its work, and the table that it
        returns. Scores: those of this question, by setting; ▶: the setting that is drawn. top-k:
        the first k retrieved; 1-in-k: one clue and k − 1 others.""",
    )
    return figure


def _draw_step(axis: Axes, left: float, function: str, table: str) -> None:
    start, end = (left + 0.02, _MIDDLE), (left + _GAP - 0.02, _MIDDLE)
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": DARK})
    at = left + _GAP / 2
    axis.text(at, 0.72, function, ha="center", family="monospace", fontsize=SMALL)
    axis.text(at, 0.66, fit(table, 0.74), ha="center", va="top", fontsize=SMALL, color=GREY)


def _draw_images(
    axis: Axes, left: float, width: float, benchmark: Benchmark, query_id: str, ids: Sequence[DocId]
) -> None:
    """Draws thumbnails in rows from the left, in the middle of the cards' height."""
    across = int(width / _THUMBNAIL)
    top = _MIDDLE + _THUMBNAIL * -(-len(ids) // across) / 2
    for place, doc_id in enumerate(ids):
        image = benchmark.corpus[doc_id].image
        if image is None:
            continue
        x = left + _THUMBNAIL * (place % across)
        y = top - _THUMBNAIL * (1 + place // across)
        picture = ImageOps.fit(image.open().convert("RGB"), (96, 96))
        framed = benchmark.qrels[query_id].get(doc_id, 0) > 0
        draw_thumbnail(axis, picture, (x, y), _THUMBNAIL - 0.03, framed=framed)
