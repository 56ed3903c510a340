"""The figure of one question's way from a corpus to its scores, and sentences of captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image, ImageOps

from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import SETTING_NAMES, finding
from vrag_kit.plotting.style import (
    EVIDENCE,
    GREY,
    SMALL,
    display_name,
    fit,
    new_figure,
    set_caption,
)
from vrag_kit.types import Benchmark

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
}
"""How a caption defines a term."""
STRATA = {"in training data": "in training data: questions on facts that the model was trained on"}
"""How a caption defines a stratum."""
CORRECTED = (
    " Intervals are not corrected; the title says if a difference does not last Holm's correction."
)
"""What a caption says of tests of `paired_differences`."""
_WIDTHS = {
    **{"Question": 1.25, "Corpus": 0.78, "Retrieved": 0.78, "Shown": 0.52},
    **{"Answer": 0.65, "Verdict": 0.75, "Scores": 1.1},
}
"""The relative widths of the cards."""


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
    """A sentence of a caption that defines `TERMS`, and `STRATA` where their names hold one; ""
    where nothing needs it.
    """
    found = [TERMS[term] for term in terms]
    found += [words for name, words in STRATA.items() if name in set(strata)]
    words = "; ".join(found)
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
    found = run[run["query_id"] == query_id].sort_values("rank")["doc_id"]
    cards: dict[str, str | list[str]] = {
        "Question": query.text,
        "Corpus": list(labels)[:18],
        "Retrieved": list(found)[:18],
        "Shown": list(found)[:k],
        "Answer": f"“{answer['answer'] or '(empty)'}”",
        "Verdict": f"accepted: {', '.join(query.answers[:2])}\nscore {answer['score']:g}",
    }
    rows = judged.assign(at=here.map({True: "▶ ", False: ""})).to_dict("records")
    scores = [f"{r['at']}{NAMES[r['setting']].format_map(r)}: {r['score']:g}" for r in rows]
    cards["Scores"] = "\n".join(scores)
    widths = list(_WIDTHS.values())
    grid = {"width_ratios": widths, "height_ratios": [2.2, 1]}
    figure, (above, below) = new_figure(2, len(cards), height=3.1, gridspec_kw=grid)
    for axis in (*above, *below):
        axis.set_axis_off()
    for axis, width, (name, content) in zip(above, widths, cards.items(), strict=True):
        axis.set_title(name, loc="center")
        if isinstance(content, str):
            text = axis.text(0.5, 0.5, fit(content, width, 7.5), fontsize=7.5, ha="center")
            text.set(va="center", transform=axis.transAxes)
        else:
            axis.imshow(_contact_sheet(benchmark, query_id, content, across=int(4 * width)))
            axis.set_adjustable("datalim")
    for card, axis, step in zip(above[1:], below[1:], STEPS.items(), strict=True):
        card.text(-0.1, 0.5, "→", fontsize=12, ha="right", va="center", transform=card.transAxes)
        axis.text(-0.1, 1, step[0], fontsize=SMALL, ha="center", va="top", family="monospace")
        axis.text(-0.1, 0.8, fit(step[1], 0.74), fontsize=SMALL, ha="center", va="top", color=GREY)
    gold = sum(labels.get(each, 0) > 0 for each in found[:k])
    set_caption(
        figure,
        f"From question to score: {gold} of {k} images shown are clues (framed), and the answer"
        f" scores {answer['score']:g} (▶)",
        f"""{benchmark.name}, model {answer["model"]}. Corpus: {len(cards["Corpus"])} of
        {len(labels)} images. Framed: clues (gold images), which show the answer. Below each arrow:
        the kit's function, who does its work, and the table that it returns. Scores: those of this
        question, by setting; ▶: the setting that is drawn. top-k: the first k retrieved; 1-in-k:
        one clue and k − 1 others.""",
    )
    return figure


def _contact_sheet(
    benchmark: Benchmark, query_id: str, ids: Sequence[str], across: int
) -> Image.Image:
    """Thumbnails in six rows from the left, centred; gold ones are framed."""
    sheet = Image.new("RGB", (110 * across, 660), "white")
    top = 55 * (6 - -(-len(ids) // across))
    for place, doc_id in enumerate(ids):
        image = benchmark.corpus[doc_id].image
        if image is not None:
            gold = benchmark.qrels[query_id].get(doc_id, 0) > 0
            tile = ImageOps.fit(image.open().convert("RGB"), (92, 92))
            tile = ImageOps.expand(tile, 8, EVIDENCE["gold"] if gold else "white")
            sheet.paste(tile, (110 * (place % across), top + 110 * (place // across)))
    return sheet
