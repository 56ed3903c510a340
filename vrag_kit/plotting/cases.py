"""A sheet of wrong answers, each with the image that the model saw.

As Visual-RAG shows them (Table 17).
"""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.cases import sample_cases
from vrag_kit.plotting.retrieval import picture_on
from vrag_kit.plotting.style import CLUE, GREY, new_figure
from vrag_kit.types import Benchmark

COLUMNS = 4


def cases_figure(
    benchmark: Benchmark, cases: pd.DataFrame, *, most: int = 8, seed: int = 0
) -> Figure:
    """Up to `most` of the cases (from `error_cases`) that `sample_cases` draws, each
    with its first image: clues in a green frame, below it question, accepted answers
    and what was said.
    """
    chosen = sample_cases(cases, most, seed=seed)
    rows = max(1, -(-len(chosen) // COLUMNS))
    figure, axes = new_figure(rows, COLUMNS, (13, 4.55 * rows + 0.5))
    for axis in axes.flat[len(chosen) :]:
        axis.axis("off")
    for axis, (_, case) in zip(axes.flat, chosen.iterrows(), strict=False):
        clue = case["doc_ids"][0] in benchmark.relevant(case["query_id"])
        picture_on(
            axis,
            benchmark,
            case["doc_ids"][0],
            "clue" if clue else "not a clue",
            CLUE if clue else GREY,
        )
        words = [
            textwrap.fill(case["question"], 48),
            f"accepted: {textwrap.shorten(case['references'], 44)}",
            f"{case['model']}: {textwrap.shorten(case['answer'], 34) or '(not a word)'}",
        ]
        axis.set_xlabel("\n".join(words), fontsize=8)
    declined = int((cases["kind"] == "declined").sum())
    figure.suptitle(
        f"{benchmark.name}: {len(chosen)} of the {len(cases) - declined} different wrong or partly"
        f" right answers under one clue, drawn at random (seed {seed}), one a question;\n"
        f"{declined} that decline are left out",
        fontsize=11,
    )
    return figure
