"""Figure of what ambiguity costs: contrasts by data set and stratum."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vrag_kit.analysis.report_tables import LEVEL
from vrag_kit.papers.mrag_suite.datasets import metric_label
from vrag_kit.papers.mrag_suite.detection import CHECK, LESS_CLEAR, REWRITTEN_MINUS_ORIGINAL
from vrag_kit.papers.mrag_suite.filter import EASY, KNOWN, VERBATIM
from vrag_kit.papers.mrag_suite.modes import strata_or_pooled
from vrag_kit.papers.mrag_suite.sweep import HELD_OUT, PLANTED, SELECTION
from vrag_kit.plotting import outcome_bars
from vrag_kit.plotting.images import Tile, image_grid
from vrag_kit.plotting.panels import Series, draw_interval, forest_plot
from vrag_kit.plotting.style import MODEL, REPORTED, SMALL, count_label, new_figure, set_caption
from vrag_kit.types import Benchmark


def ambiguity_figure(contrasts: pd.DataFrame, who: str) -> Figure:
    """Draws `to_percent(ambiguity_contrasts(…))` of both sources of evidence, by stratum; all
    questions of a data set only where it has no strata. The title counts intervals on either side
    of 0; `who` says who rewrites.
    """
    drawn = strata_or_pooled(contrasts)
    drawn = drawn.assign(part=drawn["dataset"] + ", " + drawn["stratum"])
    drawn = drawn.replace({CHECK: "control: restored − clear"})
    cost = drawn[drawn["contrast"] == LESS_CLEAR]
    gain = drawn[drawn["contrast"] == REWRITTEN_MINUS_ORIGINAL]
    title = (
        f"ambiguity costs in {(cost['ci_high'] < 0).sum()} of {len(cost)} comparisons, rewriting"
        f" helps in {(gain['ci_low'] > 0).sum()} of {len(gain)} (intervals beyond 0)"
    )
    return forest_plot(
        drawn,
        rows=["contrast", "part"],
        xlabel="Difference in the data set's own metric (percentage points)",
        color="evidence_source",
        style="model",
        names={"retrieved": "retrieved evidence", "gold": "gold evidence"},
        unit="pairs",
        title=title,
        caption=f"The intervals are not corrected for their number. Rewritten: {who}. In the"
        " control what was left out is put back; a difference of 0 is expected.",
    )


_PARTS = {
    "n_kept": "kept",
    KNOWN: "dropped, step 1: correct without evidence",
    VERBATIM: "dropped, step 1: answer in the question",
    EASY: "dropped, step 2: easiest of its domain",
}


def kept_figure(shares: pd.DataFrame) -> Figure:
    """Draws a bar per data set of all its questions (percent), split into kept and dropped by
    reason; the caption has the shares that the paper keeps. `shares` comes from `kept_shares`.
    """
    parts = shares.melt(["dataset", "n"], list(_PARTS), var_name="metric")
    parts["value"] = 100 * parts["value"] / parts["n"]
    kept, known = shares["share_kept"], shares.dropna(subset="published")
    pairs = zip(known["dataset"], known["published"], strict=True)
    theirs = ", ".join(f"{share:.0f} % of {name}" for name, share in pairs)
    return outcome_bars(
        parts,
        rows="dataset",
        outcomes=_PARTS,
        xlabel="Questions (%)",
        unit="questions",
        title=f"The filter keeps {kept.min():.0f} to {kept.max():.0f} % of a data set's questions",
        caption=f"Reported (Table 1), by another filter: {theirs}." if theirs else "",
    )


_PANELS = {
    "n_full": "Questions\n(log scale)",
    "avg_image_width_px": "Mean image width\n(pixels)",
    "avg_question_length": "Mean length of\na question (words)",
    "avg_answer_length": "Mean length of\nan answer (words)",
}

_REPORTED = "reported (Table 1, the paper's data)"


def statistics_figure(statistics: pd.DataFrame) -> Figure:
    """Draws the number of questions and three means of each data set, a panel each, with the
    paper's as grey diamonds. `statistics` comes from `describe_suite`.
    """
    names = list(dict.fromkeys(statistics["dataset"]))
    figure, (axes,) = new_figure(1, len(_PANELS), height=0.24 * len(names) + 1.1, sharey=True)
    for axis, (metric, panel) in zip(axes, _PANELS.items(), strict=True):
        part = statistics[statistics["metric"] == metric].set_index("dataset").reindex(names)
        rows = np.arange(len(part), dtype=float)
        axis.plot(part["published"], rows, "D", color=REPORTED, markersize=4, fillstyle="none")
        draw_interval(axis, rows, part, Series(MODEL[0]), flat=True)
        axis.set_title(panel)
        axis.margins(x=0.12)
        axis.set_xscale("log" if metric == "n_full" else "linear")
        axis.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    sizes = statistics[statistics["metric"] == "n_full"]
    title = f"A data set holds {_reach(sizes['value'])} questions"
    if sizes["published"].notna().any():
        title += f", the paper's {_reach(sizes['published'])}"
    handles = [
        Line2D([], [], color=MODEL[0], marker="o", ls="", label="these data sets"),
        Line2D([], [], color=REPORTED, marker="D", ls="", fillstyle="none", label=_REPORTED),
    ]
    caption = "Widths are means over gold images, lengths over questions; n is in the table."
    set_caption(figure, title, caption, handles)
    return figure


def _reach(counts: pd.Series) -> str:
    return f"{counts.min():,.0f} to {counts.max():,.0f}"


def example_per_dataset_figure(suite: Mapping[str, Benchmark]) -> Figure:
    """Draws a question of each data set, the first that needs both images and texts, else the
    first: a gold document, with an image if there is any, the question, and its first accepted
    answer. A data set without gold documents is left out.
    """
    tiles = []
    for name, benchmark in suite.items():
        queries = list(benchmark.queries.values())
        queries.sort(key=lambda each: each.metadata["required_modality"] != "both")
        golds = (
            (query, [benchmark.corpus[each] for each in benchmark.relevant(query.query_id)])
            for query in queries
        )
        query, gold = next((pair for pair in golds if pair[1]), (None, []))
        if query is not None:
            document = min(gold, key=lambda each: each.modality)
            passage = "" if document.image else document.text or ""
            parts = {passage: 150, query.text: 230, f"→ {next(iter(query.answers), '')}": 170}
            below = [shorten(words, most, placeholder=" …") for words, most in parts.items()]
            tiles.append(Tile(document.image, name, "\n".join(below)))
    rows = {" " * place: tiles[place : place + 4] for place in range(0, len(tiles), 4)}
    images = sum(tile.image is not None for tile in tiles)
    title = f"In {images} of {len(tiles)} data sets an image answers the example (→: answer)"
    caption = "Above a question its gold document, below it (→) the first accepted answer."
    return image_grid(rows, title=title, caption=caption)


_HALVES = {SELECTION: "selection half", HELD_OUT: "held-out half"}
_SELECTED = MODEL[1]
_MIDDLE = {"ha": "center", "va": "center"}


def sweep_figure(sweeps: Mapping[str, pd.DataFrame], model: str) -> Figure:
    """Draws a line from each prompt's rank on the selection half to that on the held-out half, with
    its means, a panel for each data set (name → `prompt_sweep` in percent), without `PLANTED`.
    Of equal means the selected prompt is first. The title has its ranks on the held-out half;
    the caption names the answering `model`.
    """
    figure, (axes,) = new_figure(1, len(sweeps), height=3.6)
    found, chosen = [], []
    for axis, (name, table) in zip(axes, sweeps.items(), strict=True):
        prompts = table[~table["prompt"].isin(PLANTED)].sort_values(
            "selected", ascending=False, kind="stable"
        )
        ranks = prompts[list(_HALVES)].round(6).rank(ascending=False, method="first")
        place = ranks.iloc[0][HELD_OUT]
        ties = int((prompts[HELD_OUT].round(6) == prompts[HELD_OUT].round(6).iloc[0]).sum())
        tied = f" (tied to {place + ties - 1:.0f})" * (ties > 1)
        found.append(f"{place:.0f}{tied} of {len(prompts)} on {name}")
        selected = str(prompts["prompt"].iloc[0]).replace("-", ", ")
        chosen.append(f"{name}: {selected.replace('retrieve_then_reason', 'reasoning')}")
        for place, half in enumerate(_HALVES):
            for mean, rank in zip(prompts[half], ranks[half], strict=True):
                axis.text(1.3 * place - 0.15, rank, f"{mean:.1f} %", size=SMALL, **_MIDDLE)
        axis.plot([0, 1], ranks.T, "o-", color=REPORTED, linewidth=0.8, markersize=3)
        axis.plot([0, 1], ranks.iloc[0], "o-", color=_SELECTED, linewidth=2)
        counts = [count_label(prompts[f"{half}_n"], "questions") for half in _HALVES]
        ticks = [f"{name}\n{n}" for name, n in zip(_HALVES.values(), counts, strict=True)]
        axis.set_xticks([0, 1], ticks)
        axis.set_yticks(range(1, len(prompts) + 1))
        axis.set(xlim=(-0.4, 1.4), ylim=(len(prompts) + 0.5, 0.5))
        axis.grid(visible=False)
        axis.set_title(f"{name} ({metric_label(prompts['metric'].iloc[0])})")
    axes[0].set_ylabel("Rank of the prompt (1: highest mean)")
    labels = {_SELECTED: "prompt selected on the selection half", REPORTED: "other prompts"}
    handles = [Line2D([], [], color=hue, marker="o", label=each) for hue, each in labels.items()]
    title = f"the selected prompt has rank {', '.join(found)}, on the held-out half"
    caption = f"Of equal means the selected prompt is first. Selected: {'; '.join(chosen)}."
    set_caption(figure, title, f"{caption} Model: {model}. {_PROMPT_WORDS}", handles)
    return figure


_PROMPT_WORDS = (
    "A prompt: opening, answer style (ex1: question and answer; ex3: question, brief explanation,"
    " answer; ex6: dialogue), reasoning."
)
_CONTROL_WORDS = (
    "Training prompt: the words that the model was trained with, over the same evidence; no"
    " evidence: the same words alone."
)


def prompt_gain_figure(gains: pd.DataFrame) -> Figure:
    """Draws rows of `prompt_gains`, a panel for each data set; a prompt is named by its parts, as
    "plain, ex3, reasoning". The title counts the intervals beyond 0, and those that last after
    correction.
    """
    words = _CONTROL_WORDS if gains["prompt"].isin(PLANTED).all() else _PROMPT_WORDS
    beyond = (gains["ci_low"] > 0) | (gains["ci_high"] < 0)
    lasts = gains["p_holm"] < LEVEL
    names = gains["prompt"].str.replace("retrieve_then_reason", "reasoning").str.replace("-", ", ")
    return forest_plot(
        gains.assign(prompt=names),
        rows="prompt",
        xlabel="Score − mean of the prompts (percentage points)",
        color="stratum",
        style="model",
        panels="dataset",
        title=f"{beyond.sum()} of {len(gains)} scores differ from the mean of the prompts (interval"
        f" beyond 0), {lasts.sum()} after correction",
        caption=f"{words} Correction: Holm, over all prompts and controls of a data set and"
        " stratum.",
    )
