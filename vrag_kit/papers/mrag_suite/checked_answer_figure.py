"""Figures of single answers: one whose claims were checked, and those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.claims.verdicts import ClaimVerdicts
from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.plotting.images import Tile, answer_gallery, document_tile, image_grid
from vrag_kit.plotting.style import LIGHT, OUTCOME
from vrag_kit.types import Benchmark

VERDICTS = {
    1.0: ("supported", OUTCOME["correct"]),
    0.0: ("neutral", LIGHT),
    -1.0: ("contradicted", OUTCOME["incorrect"]),
}
_UNPARSED = ("unparsed", "")


def checked_answer(
    checked: pd.DataFrame, answers: Mapping[str, tuple[Benchmark, pd.DataFrame]], most: int = 5
) -> tuple[Figure, pd.DataFrame]:
    """Draws each claim of one answer beside the first `most` documents shown, framed by the
    checker's verdict. A claim is supported if some document entails it, else contradicted if some
    document contradicts it, else neutral. Drawn is the first answer of at most four claims with
    the most kinds of verdicts. Returns the figure and the verdicts: dataset, query_id, model,
    setting, claim, doc_id, verdict.
    """
    sheets = checked.dropna(subset="sheet")
    kinds = sheets["sheet"].map(_kinds)
    row = sheets.iloc[int(kinds.to_numpy().argmax())]
    sheet: ClaimVerdicts = row["sheet"]
    benchmark = answers[row["dataset"]][0]
    rows: dict[str, list[Tile]] = {}
    table, labels = [], []
    for claim, scores in zip(sheet.claims, sheet.on_claims, strict=True):
        named = [VERDICTS.get(float(score), _UNPARSED)[0] for score in scores]
        whole = max(scores, key=lambda score: (score > 0, score < 0), default=0.0)
        label, color = VERDICTS.get(float(whole), _UNPARSED)
        labels.append(label)
        tiles = [Tile(None, label, claim, color)]
        for item, score, verdict in zip(sheet.items, scores, named, strict=True):
            table.append((row["dataset"], sheet.query_id, claim, item.doc_id, verdict))
            tile = document_tile(benchmark, sheet.query_id, item.doc_id)
            tiles.append(Tile(tile.image, verdict, tile.below, VERDICTS.get(score, _UNPARSED)[1]))
        rows[f"claim {len(rows) + 1}"] = tiles[: most + 1]
    held = ", ".join(f"{labels.count(each)} {each}" for each in dict.fromkeys(labels))
    figure = image_grid(
        rows,
        height=1.3,
        title=f"Of {len(labels)} claims of one answer: {held}",
        caption=f"""{row["dataset"]}, model {row["model"]}. {benchmark.queries[sheet.query_id].text}
        At the left each claim, then the first {most} documents shown; frames: the checker's
        verdict on the claim.""",
    )
    columns = ["dataset", "query_id", "claim", "doc_id", "verdict"]
    return figure, pd.DataFrame(table, columns=columns).assign(
        model=row["model"], setting=row["setting"]
    )


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
    title = f"{len(wrong)} of {len(only)} answers with gold evidence alone score 0"
    figure = answer_gallery(benchmark, one, title=title, caption=f"Drawn: {benchmark.name}.")
    columns = ["dataset", "model", "setting", "query_id", "answer", "verdict", "score"]
    return figure, wrong[columns]


def _kinds(sheet: ClaimVerdicts) -> int:
    """The number of kinds of verdicts on an answer's claims; 0 for more than four claims."""
    if not 1 < len(sheet.claims) <= 4:
        return 0
    return len(np.unique(sheet.on_claims))
