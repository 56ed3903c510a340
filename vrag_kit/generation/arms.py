"""Sets of contexts that are used together: the baselines, and the settings of gCUE."""

from __future__ import annotations

import pandas as pd

from vrag_kit.generation.contexts import DRAWS, gt_clue, non_clue, one_in_k, top_k, zero_shot
from vrag_kit.types import Benchmark, Context


def baseline_contexts(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """Return the contexts of `zero_shot`, `gt_clue` and `non_clue`; raises as they do."""
    clues = gt_clue(benchmark, draws=draws, seed=seed)
    return zero_shot(benchmark) + clues + non_clue(benchmark, draws=draws, seed=seed)


def gcue_contexts(
    benchmark: Benchmark, run: pd.DataFrame, *, k: int, seed: int = 0
) -> list[Context]:
    """Return the contexts for gCUE at k, and those with the top k of a run, one draw each.

    They are the contexts of `zero_shot`, `gt_clue`, `non_clue`, `one_in_k` and `top_k`. Raises as
    they do.
    """
    arms = baseline_contexts(benchmark, draws=1, seed=seed)
    arms += one_in_k(benchmark, ks=[k], draws=1, seed=seed)
    return arms + top_k(benchmark, run, ks=[k])
