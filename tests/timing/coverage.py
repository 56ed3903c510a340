"""How often 95 % intervals hold the truth: `python tests/timing/coverage.py [trials]`.

Clusters hold one to four queries, which half follow their cluster. Most differences are
0, the others ±0.5 or ±1; scores are 0 or 1. Where the true mean is 0, 100 less the share is
the size of the test. 2,000 trials take two minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vrag_kit.analysis.estimates import cluster_mean
from vrag_kit.judging import Scale

MOVES = (-1.0, -0.5, 0.5, 1.0)


@dataclass(frozen=True)
class Population:
    """Values of queries: 0, or with the chance `moving` one of `values`."""

    values: Sequence[float]
    odds: Sequence[float]  # of each of the values, adding up to 1
    moving: float
    scale: Scale

    @property
    def mean(self) -> float:
        return self.moving * float(np.dot(self.values, self.odds))

    def draw(self, clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(values, cluster of each) of 1 to 4 queries a cluster."""
        member = np.repeat(np.arange(clusters), rng.integers(1, 5, clusters))
        own, shared = self._some(len(member), rng), self._some(clusters, rng)
        return np.where(rng.random(len(member)) < 0.5, shared[member], own), member

    def _some(self, n: int, rng: np.random.Generator) -> np.ndarray:
        moved = rng.choice(self.values, n, p=self.odds)
        return np.where(rng.random(n) < self.moving, moved, 0.0)


DIFFERENCES, SHARES = Scale(-1.0, 1.0), Scale(0.0, 1.0)
EVEN, UP = (0.25,) * 4, (0.05, 0.15, 0.3, 0.5)
POPULATIONS = {
    "moves of either sign, one in ten": Population(MOVES, EVEN, 0.1, DIFFERENCES),
    "moves of either sign, one in five": Population(MOVES, EVEN, 0.2, DIFFERENCES),
    "moves of either sign, two in five": Population(MOVES, EVEN, 0.4, DIFFERENCES),
    "rare falls by 1, more rises by 0.5": Population((-1.0, 0.5), (1 / 3, 2 / 3), 0.3, DIFFERENCES),
    "moves mostly up, one in ten": Population(MOVES, UP, 0.1, DIFFERENCES),
    "moves mostly up, one in five": Population(MOVES, UP, 0.2, DIFFERENCES),
    "moves mostly up, two in five": Population(MOVES, UP, 0.4, DIFFERENCES),
    "right 5 % of the time": Population((1.0,), (1.0,), 0.05, SHARES),
    "right 10 % of the time": Population((1.0,), (1.0,), 0.1, SHARES),
    "right 20 % of the time": Population((1.0,), (1.0,), 0.2, SHARES),
    "right 50 % of the time": Population((1.0,), (1.0,), 0.5, SHARES),
    "right or half right 10 % of the time": Population((0.5, 1.0), (0.5, 0.5), 0.1, SHARES),
}


def held(population: str, clusters: int, *, trials: int) -> float:
    """Share of the trials whose interval, `ClusterMean`'s, holds the true mean."""
    found, rng = POPULATIONS[population], np.random.default_rng(clusters)
    inside = 0
    for _ in range(trials):
        values, member = found.draw(clusters, rng)
        low, high = cluster_mean(values, member, found.scale).interval()
        inside += low - 1e-9 <= found.mean <= high + 1e-9
    return inside / trials


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'':38}{'mean':>6}  clusters  covered (%)")
    for name, population in POPULATIONS.items():
        for clusters in (12, 48):
            share = held(name, clusters, trials=trials)
            line = f"{name:38}{population.mean:6.3f}  {clusters:8}  {100 * share:11.1f}"
            print(line, flush=True)
