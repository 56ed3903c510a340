"""How often 95 % intervals hold the truth: `python tests/timing/coverage.py [trials]`.

Clusters hold one to four queries, which half follow their cluster. Most differences are
0, the others ±0.5 or ±1; scores are 0 or 1. Where the true mean is 0, 100 less the share is
the size of the test. 2,000 trials take two minutes.
"""

from __future__ import annotations

import sys

import numpy as np

from vrag_kit.analysis.estimates import cluster_mean
from vrag_kit.judging import Scale

MOVES = (-1.0, -0.5, 0.5, 1.0)
DIFFERENCES, SHARES = Scale(-1.0, 1.0), Scale(0.0, 1.0)
EVEN, UP = (0.25,) * 4, (0.05, 0.15, 0.3, 0.5)
POPULATIONS = {
    "moves of either sign, one in ten": (MOVES, EVEN, 0.1, DIFFERENCES),
    "moves of either sign, one in five": (MOVES, EVEN, 0.2, DIFFERENCES),
    "moves of either sign, two in five": (MOVES, EVEN, 0.4, DIFFERENCES),
    "rare falls by 1, more rises by 0.5": ((-1.0, 0.5), (1 / 3, 2 / 3), 0.3, DIFFERENCES),
    "moves mostly up, one in ten": (MOVES, UP, 0.1, DIFFERENCES),
    "moves mostly up, one in five": (MOVES, UP, 0.2, DIFFERENCES),
    "moves mostly up, two in five": (MOVES, UP, 0.4, DIFFERENCES),
    "right 5 % of the time": ((1.0,), (1.0,), 0.05, SHARES),
    "right 10 % of the time": ((1.0,), (1.0,), 0.1, SHARES),
    "right 20 % of the time": ((1.0,), (1.0,), 0.2, SHARES),
    "right 50 % of the time": ((1.0,), (1.0,), 0.5, SHARES),
    "right or half right 10 % of the time": ((0.5, 1.0), (0.5, 0.5), 0.1, SHARES),
}
"""Values of queries: 0, or with the chance in the third place one of the first, by their odds."""


def draw(name: str, clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(values, cluster of each) of 1 to 4 queries a cluster."""
    values, odds, moving, _ = POPULATIONS[name]

    def some(n: int) -> np.ndarray:
        moved = rng.choice(values, n, p=odds)
        return np.where(rng.random(n) < moving, moved, 0.0)

    member = np.repeat(np.arange(clusters), rng.integers(1, 5, clusters))
    own, shared = some(len(member)), some(clusters)
    return np.where(rng.random(len(member)) < 0.5, shared[member], own), member


def true_mean(name: str) -> float:
    values, odds, moving, _ = POPULATIONS[name]
    return moving * float(np.dot(values, odds))


def held(population: str, clusters: int, *, trials: int) -> float:
    """Share of the trials whose interval, `ClusterMean`'s, holds the true mean."""
    mean, rng = true_mean(population), np.random.default_rng(clusters)
    scale, inside = POPULATIONS[population][-1], 0
    for _ in range(trials):
        low, high = cluster_mean(*draw(population, clusters, rng), scale).interval()
        inside += low - 1e-9 <= mean <= high + 1e-9
    return inside / trials


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'':38}{'mean':>6}  clusters  covered (%)")
    for name in POPULATIONS:
        for clusters in (12, 48):
            share = held(name, clusters, trials=trials)
            line = f"{name:38}{true_mean(name):6.3f}  {clusters:8}  {100 * share:11.1f}"
            print(line, flush=True)
