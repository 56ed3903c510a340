"""The cost of distractors next to a clue: prompt length, interference by image content, and growth
with their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.analysis.comparisons import broadcast_baseline, paired_differences
from vrag_kit.analysis.means import per_query
from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import ALONE, BLANK, DUPLICATE, ELSEWHERE, NEAR, SAME
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.visual_rag.abstention import change_over_k

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
    tables = []
    for step, (baseline, compared) in _STEPS.items():
        chosen = compared or tuple(set(found) - {ALONE, BLANK, DUPLICATE})
        rows = together[together["distractors"].isin([baseline, *chosen])]
        if {baseline} < set(rows["distractors"]):
            differences = paired_differences(rows, arm="distractors", by=keys, baseline=baseline)
            tables.append(differences.assign(step=step))
    if not tables:
        raise VragError(
            f"distractor_cost: nothing to compare; found {', '.join(found)}. Expected {BLANK!r} or"
            f" {DUPLICATE!r} beside {ALONE!r}, {BLANK!r} beside others, or {ELSEWHERE!r} beside"
            f" {SAME!r} or {NEAR!r}. Ask for more with `clue_with_distractors`."
        )
    table = pd.concat(tables, ignore_index=True)
    first = ["step", "distractors", "baseline"]
    return table[[*first, *(column for column in table if column not in first)]]


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
