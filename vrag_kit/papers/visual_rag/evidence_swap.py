"""Outcomes of answers to counterfactual images: whether they follow the image, or what the model
knows without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.analysis.comparisons import broadcast_baseline, paired_differences
from vrag_kit.analysis.means import per_query
from vrag_kit.analysis.report_tables import ci_cells
from vrag_kit.analysis.strata import ALL
from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import ALONE, BLANK, DUPLICATE, ELSEWHERE, NEAR, SAME
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.visual_rag.abstention import change_over_k
from vrag_kit.plotting.diagnostics import outcome_bars
from vrag_kit.plotting.images import Tile, image_grid
from vrag_kit.plotting.style import GREY, LIGHT, OUTCOME, display_name
from vrag_kit.types import Benchmark, Context

NAMED = ("counterfactual_value", "original_value")
OUTCOMES = (*NAMED, "abstains", "other_answer")
"""The outcomes of an answer, exactly one each. With a counterfactual image the first follows the
image, the second keeps the fact.
"""


def counterfactual_outcomes(own: pd.DataFrame, swapped: pd.DataFrame) -> pd.DataFrame:
    """Adds a column for each of `OUTCOMES` to the judged answers `own`: 1.0 for the outcome of the
    answer, 0.0 for the others. NaN where one of the verdicts is missing.

    `own` and `swapped` are the same answers, row by row, judged by the original value and by the
    counterfactual one. An answer abstains when at least half of its verdicts in either table say
    so; it names a value by which it scores at least the middle of the judge's scale, and more than
    by the other. Anything else is a third value, both, or empty. Raises `VragError` for tables of
    different answers.
    """
    same = ["model", "query_id", "answer"]
    swapped = swapped.reset_index(drop=True).set_axis(own.index[: len(swapped)])
    if not own[same].equals(swapped[same]):
        raise VragError(
            f"counterfactual_outcomes: {len(own)} and {len(swapped)} rows that are not the same"
            " answers; expected one table of answers, judged twice."
        )
    middle = scale_of(own).middle
    as_own, as_swapped = own["score"], swapped["score"]
    declines = (own["abstained"] >= 0.5) | (swapped["abstained"] >= 0.5)
    follows = ~declines & (as_swapped >= middle) & (as_swapped > as_own)
    keeps = ~declines & (as_own >= middle) & (as_own > as_swapped)
    columns = (follows, keeps, declines, ~(follows | keeps | declines))
    found = pd.DataFrame(dict(zip(OUTCOMES, columns, strict=True)), dtype=float)
    return own.assign(**found.mask(as_own.isna() | as_swapped.isna()))


def counterfactual_effect(outcomes: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Causal effect of counterfactual evidence on answers: outcome, image, model, `by`, value,
    ci_low, ci_high, n, n_failed, p, p_holm.

    `outcomes` of `counterfactual_outcomes` has a column `image`, "original" or "counterfactual".
    The value is the share of answers with an outcome given the counterfactual image minus the share
    given the original, paired over queries as in `paired_differences`. For "counterfactual_value"
    it is P(v | v is shown) − P(v | the original value is shown), a causal effect since the two
    images differ in nothing else. 1 is a model that only follows the image, 0 one that ignores it.
    """
    arms = ["model", *by, "image"]
    pictures = outcomes[outcomes["image"].isin(["original", "counterfactual"])]
    shares = pictures.assign(score_min=0.0, score_max=1.0)
    values = {name: per_query(shares.assign(score=shares[name]), by=arms) for name in NAMED}
    table = pd.concat(values, names=["outcome"]).reset_index("outcome")
    return paired_differences(table, arm="image", by=["outcome", *arms[:-1]], baseline="original")


def counterfactual_images(
    benchmark: Benchmark, world: Benchmark, pairs: Sequence[tuple[Context, Context]]
) -> Figure:
    """Draws the first image of up to six contexts, spread evenly over `pairs`, above that of the
    same contexts in another `world`. Each is titled with the answer that it shows.
    """
    chosen = list(pairs)[:: max(1, len(pairs) // 6)][:6]
    rows: dict[str, list[Tile]] = {"original clue": [], "altered clue": []}
    for before, after in chosen:
        original, altered = benchmark.queries[before.query_id], world.queries[after.query_id]
        image = benchmark.corpus[before.doc_ids[0]].image
        again = world.corpus[after.doc_ids[0]].image
        question = shorten(original.text, 70, placeholder=" …")
        rows["original clue"].append(Tile(image, original.answers[0]))
        rows["altered clue"].append(Tile(again, altered.answers[0], question))
    return image_grid(
        rows,
        height=1.65,
        title="The altered clue differs from the original only in the part that is asked about;"
        " above each: the answer that it shows",
        caption=f"{len(chosen)} of {len(pairs)} pairs; below: the question.",
    )


_NAMES = {
    "original_value": "original value",
    "counterfactual_value": "new value",
    "other_answer": "other answer",
    "abstains": "abstains",
}
_COLORS = dict(zip(_NAMES, (OUTCOME["correct"], OUTCOME["incorrect"], GREY, LIGHT), strict=True))
_IMAGES = {"none": "no image", "original": "original clue", "counterfactual": "altered clue"}


def counterfactual_bars(shares: pd.DataFrame) -> Figure:
    """Draws the share of each of `OUTCOMES` by image and model, a panel for each stratum. `shares`
    are `to_percent(column_means(…))` by model, stratum and image; "all questions" are not drawn.
    """
    drawn = shares[shares["stratum"] != ALL]
    altered = drawn.query("image == 'counterfactual' and metric == 'counterfactual_value'")
    altered = altered[altered["model"] == altered["model"].iloc[0]]
    values = ci_cells(altered, decimals=0) + " % (" + altered["stratum"] + ")"
    order = {image: place for place, image in enumerate(_IMAGES)}
    return outcome_bars(
        drawn.sort_values("image", key=lambda image: image.map(order), kind="stable"),
        rows=["image", "model"],
        outcomes=_NAMES,
        colors=_COLORS,
        panels="stratum",
        names=_IMAGES,
        beside="counterfactual_value",
        unit="questions",
        title=f"When the clue is altered, {display_name(altered['model'].iloc[0])} names the new"
        f" value in {' and '.join(values)}",
        caption="Answers to the original clue, to the same clue with another value, and to none.",
    )


LENGTH = "length"
INTERFERENCE = "interference"
HARDNESS = "hardness"
_STEPS = {
    LENGTH: (ALONE, (BLANK, DUPLICATE)),
    INTERFERENCE: (BLANK, None),
    HARDNESS: (ELSEWHERE, (SAME, NEAR)),
}
"""Step → its baseline, and the distractors compared with it; None for all with other content than
the clue.
"""


def distractor_cost(judged: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Paired differences of accuracy between kinds of distractors of one clue: step, distractors,
    baseline, model, `by`, k, clue_position, value, ci_low, ci_high, n, n_failed, p, p_holm (see
    `paired_differences`).

    `judged` are the judged answers of `clue_with_distractors`, with its keys in the columns
    distractors and clue_position. length: blank images, and the clue repeated, minus the clue
    alone; interference: images with content minus as many blanks at the same k and clue_position;
    hardness: images of the same group minus those of others. Where images of the same group help by
    contrast, interference by them is positive, and rises with k. A step whose distractors were not
    run has no rows. Raises `VragError` when no step has any, or without answers to the clue alone.
    """
    keys = ["model", *by, "k", "clue_position"]
    values = per_query(judged, by=["distractors", *keys])
    found = sorted(set(values["distractors"]))
    if ALONE not in found:
        raise VragError(
            f"distractor_cost: no answers with distractors {ALONE!r}; found {', '.join(found)}."
        )
    together = broadcast_baseline(
        values, arm="distractors", baseline=ALONE, over=["k", "clue_position"]
    )
    tables = {}
    for step, (baseline, compared) in _STEPS.items():
        chosen = compared or tuple(set(found) - {ALONE, BLANK, DUPLICATE})
        rows = together[together["distractors"].isin([baseline, *chosen])]
        if {baseline} < set(rows["distractors"]):
            tables[step] = paired_differences(rows, arm="distractors", by=keys, baseline=baseline)
    if not tables:
        raise VragError(
            f"distractor_cost: nothing to compare; found {', '.join(found)}. Expected {BLANK!r} or"
            f" {DUPLICATE!r} beside {ALONE!r}, {BLANK!r} beside others, or {ELSEWHERE!r} beside"
            f" {SAME!r} or {NEAR!r}. Ask for more with `clue_with_distractors`."
        )
    table = pd.concat(tables, names=["step"]).reset_index("step")
    table.insert(2, "baseline", table.pop("baseline"))
    return table.reset_index(drop=True)


def distractor_cost_by_k(judged: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Change of interference with the number of images: distractors, model, `by`, clue_position, ks
    ("5 to 10"), value, ci_low, ci_high, n, n_failed, p, p_holm (see `paired_differences`); no row
    for a single k. Raises `VragError` without answers to blank distractors.

    The difference to as many blanks at the largest k minus that at the smallest, paired over
    queries. Above 0, more images help by contrast; below 0 each further one costs.
    """
    arm, scale = ["model", *by, "clue_position"], scale_of(judged).differences
    values = per_query(judged, by=["distractors", "k", *arm])
    is_blank = values["distractors"] == BLANK
    if not is_blank.any():
        raise VragError(
            f"distractor_cost_by_k: no answers beside {BLANK!r}; found"
            f" {', '.join(sorted(set(values['distractors'])))}. Ask `clue_with_distractors` of a"
            " benchmark `with_blank_images`."
        )
    others = values[~values["distractors"].isin([ALONE, BLANK, DUPLICATE])]
    same = [*arm, "query_id", "group", "k"]
    pairs = others.merge(values[is_blank], on=same, suffixes=("", "_of_blank"))
    pairs["value"] -= pairs["value_of_blank"]
    pairs = pairs.assign(score_min=scale.worst, score_max=scale.best)
    return change_over_k(pairs, by=["distractors", *arm])
