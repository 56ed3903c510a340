"""Figure of one example question per scenario, as in the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from string import ascii_uppercase
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from PIL import ImageOps

from vrag_kit.papers.mrag_bench.audit import QUESTIONS
from vrag_kit.papers.mrag_bench.choices import ANOTHER, AS_LABELLED, ASKS, CRASH, RIGHT, WRONG
from vrag_kit.papers.mrag_bench.results import CHANCE, OVERALL
from vrag_kit.papers.mrag_bench.retrieval import is_evaluated_retriever
from vrag_kit.papers.mrag_bench.settings import SETTINGS, scores_by_setting
from vrag_kit.plotting import outcome_bars
from vrag_kit.plotting.panels import forest_plot
from vrag_kit.plotting.style import (
    DARK,
    EVIDENCE,
    MODEL,
    OUTCOME,
    SMALL,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.retrieval.encoders.base import QUERY_PARTS
from vrag_kit.types import Benchmark, LazyImage

_WIDE, _LINE = 2.1, 0.17
"""The width of a card in inches, and the height of a line, of an image's side."""
_FRAMES = {"gold": "gold image", "other": "left: the question's; right: retrieved first"}


def examples_figure(
    benchmark: Benchmark, judged: pd.DataFrame, query_ids: Sequence[str], model: str, title: str
) -> Figure:
    """Plots a card for each question, three in a row: its image, a gold one and the first that was
    retrieved (green frame: gold); below each image whether the model is correct without examples,
    with gold or with retrieved ones; then the question and its options, the correct one bold.
    """
    scores = scores_by_setting(judged[judged["model"] == model]).set_index("query_id")
    figure, axes = new_figure(-(-len(query_ids) // 3), 3, height=0.7 * len(query_ids) + 0.35)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, query_id in zip(axes.flat, query_ids, strict=False):
        query, gold = benchmark.queries[query_id], benchmark.relevant(query_id)
        found = tuple(query.metadata.get("retrieved", ()))[:1]
        tiles = [(query.image, False)]
        tiles += [(benchmark.corpus[each].image, each in gold) for each in (*gold[:1], *found)]
        outcomes = scores.loc[query_id, list(SETTINGS)].to_numpy(float)
        for place, (image, is_gold) in enumerate(tiles):
            _image(axis, place, image, "gold" if is_gold else "other")
            _outcome(axis, place, float(outcomes[place]))
        lines = [(line, "normal") for line in fit(query.text, _WIDE).splitlines()]
        for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
            weight = "bold" if choice in query.answers else "normal"
            lines.append((shorten(f"({letter}) {choice}", 40, placeholder=" …"), weight))
        for place, (line, weight) in enumerate(lines):
            axis.text(0, 1.35 + _LINE * place, line, fontsize=SMALL, weight=weight, color=DARK)
        axis.text(0, -0.08, query.metadata["scenario"], fontsize=8, weight="bold", color=DARK)
        axis.set(xlim=(0, 3), ylim=(1.3 + 6 * _LINE, -0.25))
    caption = (
        f"{benchmark.name}: a question of each scenario, answered by {model} without examples,"
        " with gold and with retrieved ones. Bold: the correct option."
    )
    handles = [Patch(fill=False, color=EVIDENCE[kind], label=_FRAMES[kind]) for kind in _FRAMES]
    set_caption(figure, title, caption, handles)
    return figure


def _image(axis: Axes, place: int, image: LazyImage | None, kind: str) -> None:
    if image is not None:
        square = ImageOps.pad(image.open(), (150, 150), color="white")
        axis.imshow(np.asarray(square), extent=(place + 0.03, place + 0.97, 0.97, 0.03))
    frame = Rectangle((place + 0.03, 0.03), 0.94, 0.94, fill=False, color=EVIDENCE[kind])
    frame.set_linewidth(2 if kind == "gold" else 0.6)
    axis.add_patch(frame)


def _outcome(axis: Axes, place: int, score: float) -> None:
    mark, outcome = ("✓", "correct") if score > 0 else ("✗", "incorrect")
    if pd.isna(score):
        mark, outcome = "–", "missing"
    name = list(SETTINGS.values())[place]
    text = axis.text(place + 0.5, 1.14, f"{mark} {name}", fontsize=SMALL, ha="center")
    text.set(color=OUTCOME[outcome], weight="bold")


_PANELS = {"retrieval_score": "Gold image among the five", "accuracy": "Correct answer (accuracy)"}
_RUN, _SHIPPED = "retrievers run here", "retrieved set of the data"
_PAPER = "reported by the paper"


def retriever_ranking(ours: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """Plots hit rate and accuracy over all questions, a row for each retriever, that with the best
    hit rate first; below, the retrieved set of the data, with gold images inserted if any, and the
    paper's retrievers. Both are tables of `retrieval_vs_accuracy`.
    """
    both = pd.concat([ours.assign(kind=""), reported.assign(kind=_PAPER)], ignore_index=True)
    both = both[(both["scenario"] == OVERALL) & (both["metric"] == "hit@5")]
    both = both.sort_values("retrieval_score", ascending=False)
    kinds = is_evaluated_retriever(both["retriever"]).map({True: _RUN, False: _SHIPPED})
    both["kind"] = both["kind"].where(both["kind"] == _PAPER, kinds)
    parts = []
    for name in _PANELS:
        ends = {name: "value", f"{name}_low": "ci_low", f"{name}_high": "ci_high"}
        parts.append(both.rename(columns=ends).assign(panel=name))
    rows = pd.concat(parts, ignore_index=True)
    rows[["value", "ci_low", "ci_high"]] *= 100
    theirs, (model, *_) = rows["kind"] == _PAPER, [*ours["model"], "reported"]
    table = rows.assign(value=rows["value"].mask(theirs), model=rows["model"].mask(theirs, model))
    names = dict.fromkeys((_RUN, _SHIPPED, _PAPER), "") | _PANELS
    names |= {"reported": "reported (Figure 5)"}
    names |= {name: _label(name, set(both["retriever"])) for name in both["retriever"]}
    readers = [", ".join(each["model"].unique()) for each in (ours, reported)]
    return forest_plot(
        table,
        rows=["kind", "retriever"],
        panels="panel",
        names=names,
        reported=rows[theirs],
        limits=(0, 100),
        unit="",
        xlabel="Percent of questions",
        title=_title(both[both["kind"] == _RUN]),
        caption="All questions, in the paper's proportions of scenarios. Left: hit@5, which the"
        f" paper calls Recall@5. Right: answers of {readers[0]}; of the paper's, {readers[1]}.",
    )


def _label(name: str, names: Collection[str]) -> str:
    """A retriever with the part of the query that it is shown: "clip by image", and of a name
    beside both other parts, as in "clip", the third, "clip by text".
    """
    left = [part for part in QUERY_PARTS if f"{name}-by-{part}" not in names]
    if len(left) == 1:
        return f"{name} by {left[0]}"
    if name == "rows":
        return "as shipped"
    name = name.replace("rows, ", "gold inserted for ").replace(" planted", " of questions")
    return name.replace("-by-", " by ")


def _title(listed: pd.DataFrame) -> str:
    """Which retriever finds most, and with which the answers are best."""
    if listed.empty:
        return "No retriever was evaluated here: the paper's numbers alone"
    found, best = listed.iloc[0], listed.sort_values("accuracy").iloc[-1]
    return (
        f"Of {listed['retriever'].nunique()} retrievers run here {found['retriever']} finds a gold"
        f" image most often ({100 * found['retrieval_score']:.0f} %), and accuracy is highest with"
        f" {best['retriever']} ({100 * best['accuracy']:.0f} %)"
    )


_CLASSES = {RIGHT: "correct", AS_LABELLED: "correct", WRONG: "incorrect", ANOTHER: "incorrect"}
_CLASSES |= {ASKS: "asks", CRASH: "crash"}
_NAMES = {"missing": "no option found", "asks": "falls back to GPT-3.5", "crash": "crashes"}
_COLORS = {**OUTCOME, "asks": MODEL[4], "crash": DARK}


def extraction_shares(read: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns the shares, in percent, of what each extraction finds in answers: `by`, extraction
    ("official", "ours"), n, metric ("correct", "incorrect", "missing" where it finds no option,
    "asks", "crash"), value. All of them are given for each extraction, 0 where there is none.

    `read` comes from `evaluate_extractors` (then "correct" is as labelled), or from
    `with_official_score`, whose failed calls are left out.
    """
    long = read.melt(by, ["official_is", "ours_is"], "extraction", "metric").dropna()
    long["metric"] = long["metric"].map(_CLASSES).fillna("missing")
    long["extraction"] = long["extraction"].str.removesuffix("_is")
    counts = long.groupby([by, "extraction", "metric"]).size().unstack("metric", fill_value=0)
    counts = counts.reindex(columns=["correct", "incorrect", *_NAMES], fill_value=0)
    n = counts.sum(axis=1)
    shares = counts.mul(100).div(n, axis=0).assign(n=n).reset_index()
    return shares.melt([by, "extraction", "n"], var_name="metric")


def extraction_figure(shares: pd.DataFrame, right: str, wrong: str, title: str) -> Figure:
    """Draws `extraction_shares`, of which `right` and `wrong` name the first two outcomes."""
    names = {"correct": right, "incorrect": wrong, **_NAMES}
    return outcome_bars(
        shares,
        rows=[shares.columns[0], "extraction"],
        outcomes=names,
        colors=_COLORS,
        names={"ours": "our parser"},
        title=title,
        caption="What each extraction makes of the same answers; those of a row sum to 100 %.",
    )


_FORMATS = {"original": "original options", "planted": "planted format cue"}


def option_format_figure(guessed: Mapping[str, pd.DataFrame]) -> Figure:
    """Plots the accuracy from option format alone, a row for all questions and for each scenario,
    a colour for each of `guessed` (option format → `option_format_by_scenario`) but normalised
    options, which have no format to guess from. Dashed: chance.
    """
    table = pd.concat(guessed, names=["format"]).reset_index("format")
    table = table[table["format"].isin(_FORMATS)]
    means = table[table["scenario"] == OVERALL].set_index("format")["value"]
    found = [f"{value:.0f} % ({_FORMATS[str(name)]})" for name, value in means.items()]
    figure = forest_plot(
        table,
        rows="scenario",
        color="format",
        names={OVERALL: "all questions", **dict.fromkeys(QUESTIONS, ""), **_FORMATS},
        limits=(0, 100),
        xlabel="Accuracy from option format alone (%)",
        title=f"Option format alone answers {' and '.join(found)} of questions",
        caption="Guesses without image or model. All questions: in the paper's proportions.",
    )
    (axis,) = figure.axes
    axis.axvline(CHANCE, color=DARK, linewidth=0.8, linestyle="--", zorder=1)
    axis.text(CHANCE, -0.7, "chance", fontsize=SMALL, ha="center", color=DARK)
    return figure
