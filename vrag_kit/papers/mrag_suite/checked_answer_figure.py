"""Figures of single answers: one whose claims were checked, and those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.claims.verdicts import ClaimVerdicts
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.plotting.images import Tile, answer_gallery, document_tile
from vrag_kit.plotting.style import DARK, LIGHT, OUTCOME, PAGE, SMALL, fit, new_figure, set_caption
from vrag_kit.types import Benchmark

_VERDICTS = {
    1.0: ("supported", OUTCOME["correct"], "white"),
    0.0: ("neutral", LIGHT, DARK),
    -1.0: ("contradicted", OUTCOME["incorrect"], "white"),
}
_UNPARSED = ("unparsed", "white", DARK)
_MIDDLE = {"ha": "center", "va": "center", "fontsize": SMALL}


def checked_answer(
    checked: pd.DataFrame, answers: Mapping[str, tuple[Benchmark, pd.DataFrame]]
) -> tuple[Figure, pd.DataFrame]:
    """Draws the checker's verdicts on one answer: its claims down, the accepted answers and the
    documents shown across. A true label that differs stands below the verdict. Drawn is the answer
    of at most four claims with the most kinds of verdicts, the first with gold and distractors if
    any. Returns the figure and the verdicts: dataset, query_id, claim, doc_id, verdict, true_label
    (the verdict where no truth is known), model, setting.
    """
    sheets = checked.dropna(subset="sheet")
    mixed = sheets[sheets["setting"] == MODES[1]]
    sheets = mixed if mixed["sheet"].map(_kinds).any() else sheets
    row = sheets.iloc[int(sheets["sheet"].map(_kinds).to_numpy().argmax())]
    sheet, true = row["sheet"], row.get("true_sheet")
    documents = [item.doc_id for item in sheet.items]
    cells = product(sheet.claims, ["accepted answers", *documents])
    table = pd.DataFrame(cells, columns=["claim", "doc_id"]).assign(
        **{key: row[key] for key in ("dataset", "query_id", "model", "setting")}
    )
    for name, of in (("verdict", sheet), ("true_label", true if pd.notna(true) else sheet)):
        scores = of.verdicts[: len(sheet.claims)].ravel()
        table[name] = [_VERDICTS.get(score, _UNPARSED)[0] for score in scores.tolist()]
    benchmark = answers[row["dataset"]][0]
    query = benchmark.queries[sheet.query_id]
    heads = [
        Tile(None, "question", query.text),
        Tile(None, "accepted", next(iter(query.answers), "")),
        *(document_tile(benchmark, sheet.query_id, doc_id) for doc_id in documents),
    ]
    figure = _draw_matrix(heads, table)
    right = (table["verdict"] == table["true_label"]).sum()
    title = f"the checker is right in {right} of {len(table)} verdicts on one answer"
    if pd.isna(true):
        title = f"the checker's verdicts on the {len(sheet.claims)} claims of one answer"
    caption = f"{row['dataset']}, model {row['model']}; documents without “gold” are distractors."
    set_caption(figure, title, caption)
    return figure, table


def _draw_matrix(heads: Sequence[Tile], table: pd.DataFrame) -> Figure:
    """Verdicts below the heads of their columns, of which the first is that of the claims."""
    claims, room = table["claim"].unique(), PAGE / (len(heads) + 1)
    widths, heights = [2, *[1] * (len(heads) - 1)], [2.2, *[1] * len(claims)]
    height = 1.4 + 0.55 * len(claims)
    figure, axes = new_figure(
        1 + len(claims), len(heads), height=height, width_ratios=widths, height_ratios=heights
    )
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
    for axis, head in zip(axes[0], heads, strict=True):
        if head.image:
            axis.imshow(np.asarray(head.image.open()))
            axis.set_anchor("N")
        words = fit(head.below, 2 * room if axis is axes[0][0] else room)
        axis.text(0.5, 1, words, transform=axis.transAxes, **_MIDDLE | {"va": "top"})
        axis.set_title(head.title or "distractor", fontsize=SMALL, loc="center")
    for place, (axis, claim) in enumerate(zip(axes[1:, 0], claims, strict=True), start=1):
        axis.text(0.5, 0.5, fit(f"Claim {place}: {claim}", 2 * room), **_MIDDLE)
    looks = {name: colors for name, *colors in [*_VERDICTS.values(), _UNPARSED]}
    for axis, cell in zip(axes[1:, 1:].flat, table.to_dict("records"), strict=True):
        wrong = cell["verdict"] != cell["true_label"]
        words = cell["verdict"] + f"\n(true:\n{cell['true_label']})" * wrong
        background, color = looks[cell["verdict"]]
        axis.set_facecolor(background)
        axis.text(0.5, 0.5, words, color=color, **_MIDDLE)
    return figure


def suite_errors(
    datasets: Mapping[str, Benchmark], judged: Mapping[str, pd.DataFrame], *, seed: int = 0
) -> tuple[Figure, pd.DataFrame]:
    """Draws answers with gold evidence alone that score 0, of the data sets whose documents are
    images: a random sample, one a question. Returns the figure and all such answers.
    """
    with_images = [
        name
        for name, benchmark in datasets.items()
        if any(document.image for document in benchmark.corpus.values())
    ]
    every = pd.concat({name: judged[name] for name in with_images}, names=["dataset"])
    only = every[every["setting"] == MODES[2]].reset_index("dataset")
    wrong = only[only["score"] == 0].sample(frac=1, random_state=seed)
    one = wrong[wrong["dataset"] == wrong["dataset"].iloc[0]] if len(wrong) else wrong
    benchmark = datasets[one["dataset"].iloc[0] if len(one) else with_images[0]]
    title = f"{len(wrong)} of {len(only)} answers with gold only score 0 (in quotes: some of these)"
    figure = answer_gallery(benchmark, one, title=title, caption=f"Drawn: {benchmark.name}.")
    columns = ["dataset", "model", "setting", "query_id", "answer", "verdict", "score"]
    return figure, wrong[columns]


def _kinds(sheet: ClaimVerdicts) -> int:
    """The number of kinds of verdicts on an answer's claims; 0 for more than four claims."""
    if not 1 < len(sheet.claims) <= 4:
        return 0
    return len(np.unique(sheet.on_claims))
