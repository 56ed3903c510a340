"""Figures of the paper's questions: the benchmark, baselines, images shown, gCUE, and clues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import ci_cells, setting_name
from vrag_kit.papers.visual_rag.error_budget import first_clue_rank
from vrag_kit.papers.visual_rag.pipeline import NAMES
from vrag_kit.plotting.images import Tile, document_tile, image_grid
from vrag_kit.plotting.panels import forest_plot, line_plot
from vrag_kit.plotting.style import DARK, MODEL, SMALL, display_name, new_figure, set_caption
from vrag_kit.types import Benchmark, Context

_BASELINES = {"zero_shot": "no image", "gt_clue": "one clue", "non_clue": "non-clue"}
_SHOWN = {"top_k": "top-k: the first k retrieved", "one_in_k": "1-in-k: one clue, k − 1 others"}
_EXPLAINED = {"gt_clue": "one clue (shows the answer)", "non_clue": "one non-clue (does not)"}
_NAMED = ["Gemini", "GPT-4o", "Phi4-MM"]
"""The paper's models whose grey lines have a name over k."""


def benchmark_figure(shares: pd.DataFrame, queries: pd.DataFrame) -> Figure:
    """Draws Figure 2 of the paper and a histogram of clues per question, from the tables
    `distribution` and `query_table` of a benchmark.
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
    caption = f"{queries['entity'].nunique()} species. A bar of the histogram is 3 clues wide."
    caption = f"{caption} Clue: an image that shows the answer."
    set_caption(figure, title, caption)
    return figure


def baselines_figure(means: pd.DataFrame) -> Figure:
    """Draws each model's accuracy without an image, with a clue and with a non-clue, the rows
    under their `source`.
    """
    before, after = (means[means["setting"] == each] for each in ("zero_shot", "gt_clue"))
    model = before["model"].iloc[0]
    words = _changes(before[before["model"] == model], after, ["model", "source"])
    return forest_plot(
        means[means["setting"].isin(list(_BASELINES))],
        rows=["source", "model"],
        xlabel="Accuracy (%)",
        color="setting",
        names=_BASELINES | _EXPLAINED,
        limits=(-2, 102),
        title=f"One clue instead of no image takes accuracy {words}",
        caption="Questions by what a model knew; the paper's models on its own data.",
    )


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


def accuracy_over_k_figure(
    means: pd.DataFrame, reported: pd.DataFrame | None = None, *, note: str = ""
) -> Figure:
    """Draws accuracy over the images shown, top-k and 1-in-k, with the baselines as dashed lines: a
    panel for each model, and for each `stratum` if there is that column. The paper's `reported`
    means are grey, in panels of their own. Draws the first models that fit into six panels. The
    caption ends with `note`.
    """
    columns = ["model", "stratum"] if "stratum" in means else ["model"]
    means, left_out = _first_models(means, 3 if "stratum" in means else 4)
    means = means.assign(panel=_joined(means, columns))
    named = means[means["model"] == means["model"].iloc[0]] if "stratum" in means else means
    last = named[(named["setting"] == "one_in_k") & (named["k"] == means["k"].max())]
    if reported is not None:
        reported = reported[reported["setting"].isin(["top_k", "one_in_k"])]
        panel = "the paper's models: " + reported["setting"].map(setting_name)
        models = reported["model"]
        label = models.where(models.isin(_NAMED), "")
        reported = reported.assign(panel=panel, setting=models, label=label)
        note += f" Named: {len(_NAMED)} of the paper's {models.nunique()} models."
    places = means.loc[means["setting"] == "one_in_k", "clue_position"].unique()
    words = _changes(named[named["setting"] == "gt_clue"], last, columns)
    flat = means["setting"].isin(list(_BASELINES))
    return line_plot(
        means[~flat],
        x="k",
        color="setting",
        panels="panel",
        names=_BASELINES | _SHOWN,
        xlabel="Images shown, k",
        ylabel="Accuracy (%)",
        levels=means[flat],
        reported=reported,
        limits=(0, 104),
        height=2.1,
        title=f"One clue among {means['k'].max()} images instead of alone takes accuracy {words}",
        caption=f"""Dashed: one image or none. The clue of 1-in-k is {", ".join(places)}.
        {left_out}{note}""",
    )


def gcue_figure(
    curves: pd.DataFrame,
    reported: pd.DataFrame | None = None,
    *,
    lam: float = 0.5,
    panels: str = "source",
    note: str = "",
) -> Figure:
    """Draws gCUE at one λ over k, tables of `gcue`: a panel for each value of `panels` with a
    ratio, and the paper's, grey, in its own. The caption, which begins with `note`, names models
    without a ratio and those of the paper that lie above the axis.
    """
    curves = curves[curves["lambda"] == lam]
    undefined = curves[curves["value"].isna()].drop_duplicates(["model", panels])
    defined = curves.dropna(subset="value")
    lines = ["model", panels] if panels == "stratum" else ["model"]
    last = defined[defined["k"] == curves["k"].max()]
    cells = ci_cells(last, decimals=2).str.replace("-", "−")
    rows = zip(cells, _joined(last, lines), strict=True)
    words = " and ".join(f"{cell} ({row})" for cell, row in rows) or "an undefined share"
    if len(undefined):
        note += f" Undefined: {'; '.join(_joined(undefined, [*lines, 'interval']))}."
    if reported is not None:
        reported = reported[reported["lambda"] == lam].assign(label=reported["model"])
        lowest = reported.groupby("model")["value"].transform("min")
        if above := list(dict.fromkeys(reported.loc[lowest > 1.5, "model"])):
            note += f" Above the axis: {', '.join(above)}."
        reported = reported[lowest <= 1.5].assign(**{panels: "the paper's models"})
    base = "no image" if lam == 1 else f"{lam:g} × no image\n+ {1 - lam:g} × non-clue"
    level = ["as one clue alone", f"as {base}"]
    ends = pd.DataFrame({"value": [1, 0], "model": "", "level": level})
    theirs = ends.assign(level="", **{panels: "the paper's models"})  # the same lines, not named
    ends = pd.concat([theirs, ends.merge(curves[[panels]].drop_duplicates(), how="cross")])
    return line_plot(
        curves if defined.empty else defined,
        x="k",
        xlabel="Images shown, k (one of them a clue)",
        panels=panels,
        ylabel=f"Share of one clue's benefit\nthat is kept (gCUE, λ = {lam:g})",
        levels=ends,
        reported=reported,
        limits=(-0.25, 1.5),
        title=f"Among {curves['k'].max()} images one clue keeps {words} of its benefit",
        caption=note.strip(),
    )


def number_of_clues_figure(means: pd.DataFrame, reported: pd.DataFrame) -> Figure:
    """Draws accuracy over the number of clues m, alone and among other images, of the first two
    models in each stratum, and the paper's.
    """
    means, left_out = _first_models(means[means["stratum"] != "all questions"], 2)
    means = means.assign(panel=_joined(means, ["model", "stratum"]))
    alone = means[(means["setting"] == "m_gt") & (means["model"] == means["model"].iloc[0])]
    most = alone[alone["m"] == alone["m"].max()]
    words = _changes(alone[alone["m"] == 1], most, ["model", "stratum"])
    reported = reported[reported["setting"].isin(["m_gt", "m_in_k"])]
    label = reported["setting"].map({"m_gt": "alone", "m_in_k": "among 10"})
    reported = reported.assign(panel=reported["model"] + ", reported", label=label)
    order = list(means["panel"].unique())
    order.insert(2, reported["panel"].iloc[0])  # ours in two columns, the paper's in the third
    clues = means["setting"].isin(["m_gt", "m_in_k"])
    among = means.loc[means["setting"] == "m_in_k", "k"].max()
    names = {"zero_shot": "no image", "rag_best": "retrieved (best k)", "m_gt": "m clues alone"}
    names |= {"m_in_k": f"m clues among {among} images"} | {each: each for each in order}
    return line_plot(
        means[clues],
        x="m",
        color="setting",
        panels="panel",
        names=names,
        xlabel="Clues shown, m",
        ylabel="Accuracy (%)",
        levels=means[~clues],
        reported=reported,
        limits=(0, 104),
        height=1.9,
        title=f"{alone['m'].max()} clues alone instead of one take accuracy {words}",
        caption=f"""Only questions with at least {alone["m"].max()} clues. Best k: on these
        questions, of the first k retrieved. Bands, too, are 95 % intervals.{left_out}""",
    )


def _first_models(means: pd.DataFrame, count: int) -> tuple[pd.DataFrame, str]:
    """The means of the first models, for a figure has at most six panels, and a note if others
    are left out.
    """
    models = means["model"].unique()
    note = f" Drawn: {count} of {len(models)} models." if len(models) > count else ""
    return means[means["model"].isin(models[:count])], note


def _joined(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Each row's values of some columns."""
    rows = table[list(columns)].itertuples(index=False, name=None)
    return [", ".join(row) for row in rows]


def _changes(before: pd.DataFrame, after: pd.DataFrame, columns: Sequence[str]) -> str:
    """From which accuracy to which, for each row of two tables with equal `columns`, which are in
    brackets, as the end of a title.
    """
    both = before.merge(after, on=list(columns), suffixes=("_before", ""))
    rows = zip(both["value_before"], both["value"], _joined(both, columns), strict=True)
    each = [f"from {low:.0f} % to {high:.0f} % ({row})" for low, high, row in rows]
    return " and ".join(each) or "not measured"


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
    firsts = pd.DataFrame({name: first_clue_rank(benchmark, run) for name, run in runs.items()})
    judge = str(firsts.columns[0])
    ranks = firsts[judge].fillna(len(benchmark.corpus))
    best, worst = str(ranks.idxmin()), str(ranks.idxmax())
    missed = f"not in the first {runs[judge]['rank'].max()}"
    places = firsts.stack().dropna().map("at rank {:.0f}".format).to_dict()
    rows = {}
    for question, query_id in {"A": best, "B": worst}.items():
        for name, run in runs.items():
            place = places.get((query_id, name), missed)
            label = f"{question}, {display_name(name)}: first clue {place}"
            found = run[(run["query_id"] == query_id) & (run["rank"] <= k)].sort_values("rank")
            rows[label] = [
                document_tile(benchmark, query_id, doc_id, f"rank {rank}", gold="clue")
                for rank, doc_id in enumerate(found["doc_id"], 1)
            ]
    chosen = firsts.loc[list(dict.fromkeys([best, worst]))].fillna(0).astype(int)
    table = chosen.melt(var_name="retriever", value_name="rank", ignore_index=False).reset_index()
    figure = image_grid(
        rows,
        height=1.5,
        title=f"With {display_name(judge)} the first clue of question A is"
        f" {places.get((best, judge), missed)}, that of B {places.get((worst, judge), missed)}\n"
        f"A: {benchmark.queries[best].text}\nB: {benchmark.queries[worst].text}",
        caption=f"The first {k} images. Framed: clues, images that show the answer.",
    )
    return figure, table[["retriever", "query_id", "rank"]]
