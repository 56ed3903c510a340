"""Contexts that are asked together: what others are held against, and the arms of gCUE."""

from __future__ import annotations

import pandas as pd

from vrag_kit.generation.contexts import DRAWS, gt_clue, non_clue, one_in_k, top_k, zero_shot
from vrag_kit.types import Benchmark, Context


def baselines(benchmark: Benchmark, *, draws: int = DRAWS, seed: int = 0) -> list[Context]:
    """The contexts of `zero_shot`, `gt_clue` and `non_clue`; raises as they do."""
    clues = gt_clue(benchmark, draws=draws, seed=seed)
    return zero_shot(benchmark) + clues + non_clue(benchmark, draws=draws, seed=seed)


def gcue_arms(benchmark: Benchmark, run: pd.DataFrame, *, k: int, seed: int = 0) -> list[Context]:
    """Every query once in each arm of gCUE at k, and with the first k of a run: the
    contexts of `zero_shot`, `gt_clue`, `non_clue`, `one_in_k` and `top_k`, one draw each.

    Raises as they do.
    """
    arms = baselines(benchmark, draws=1, seed=seed)
    arms += one_in_k(benchmark, ks=[k], draws=1, seed=seed)
    return arms + top_k(benchmark, run, ks=[k])
