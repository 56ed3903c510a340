"""Gallery of incorrect answers, each with the image that the model saw.

It follows Visual-RAG (Table 17).
"""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.cases import sample_cases
from vrag_kit.plotting.retrieval import draw_document_image
from vrag_kit.plotting.style import CLUE, GREY, new_figure
from vrag_kit.types import Benchmark

_COLUMNS = 4


def error_gallery(
    benchmark: Benchmark, cases: pd.DataFrame, *, most: int = 8, seed: int = 0
) -> Figure:
    """Draws up to `most` of the cases (from `error_cases`), as `sample_cases` chooses them, each
    with its first image. Clues have a green frame; below are the question, accepted answers and the
    model's answer.
    """
    chosen = sample_cases(cases, most, seed=seed)
    rows = max(1, -(-len(chosen) // _COLUMNS))
    figure, axes = new_figure(rows, _COLUMNS, (13, 4.55 * rows + 0.5))
    for axis in axes.flat[len(chosen) :]:
        axis.axis("off")
    for axis, (_, case) in zip(axes.flat, chosen.iterrows(), strict=False):
        clue = case["doc_ids"][0] in benchmark.relevant(case["query_id"])
        draw_document_image(
            axis,
            benchmark,
            case["doc_ids"][0],
            "clue" if clue else "non-clue",
            CLUE if clue else GREY,
        )
        words = [
            textwrap.fill(case["question"], 48),
            f"accepted answers: {textwrap.shorten(case['references'], 44)}",
            f"{case['model']}: {textwrap.shorten(case['answer'], 34) or '(empty)'}",
        ]
        axis.set_xlabel("\n".join(words), fontsize=8)
    declined = int((cases["outcome"] == "abstained").sum())
    figure.suptitle(
        f"{benchmark.name}: {len(chosen)} of the {len(cases) - declined} incorrect or partially"
        f" correct answers with one clue (random sample, seed {seed}), one a question;\n"
        f"{declined} abstentions excluded",
        fontsize=11,
    )
    return figure
