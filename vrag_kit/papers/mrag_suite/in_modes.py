"""Questions in the three modes of evidence (section 3.5), over what retrievers find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.generation import evidence_modes
from vrag_kit.options import Entry
from vrag_kit.order import ordered
from vrag_kit.retrieval import search_each
from vrag_kit.types import Benchmark, Context

_BEYOND = 20
"""Documents a search goes beyond the gold ones, so that distractors are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InModes:
    """Which questions are asked, and from where distractors come."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Of each modality, as `search_each` takes them; where there are several, distractors
    are the best of them fused.
    """
    k: Mapping[str, int]
    """Documents of a modality that are shown, where a data set has it."""
    questions: int = 0
    """Of each data set at most; 0: all that have gold evidence."""
    seed: int = 0
    """Of which questions, and of the order of what is shown."""
    cache_dir: Path | str
    device: str = "cpu"

    def chosen(self, benchmark: Benchmark) -> Benchmark:
        """The questions that are asked; a larger number of them holds a smaller one."""
        there = [each for each in benchmark.queries if benchmark.relevant(each)]
        return benchmark.subset(ordered(there, self.seed, "in modes")[: self.questions or None])

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """Each chosen question in the modes of `evidence_modes`, over the documents of the
        modalities that the data set has. Raises `VragError` as that and `search_each` do.
        """
        few = self.chosen(benchmark)
        most = max((len(few.relevant(each)) for each in few.queries), default=0)
        k = most + max(_BEYOND, *self.k.values())
        runs = search_each(
            benchmark, self.retrievers, k=k, cache_dir=self.cache_dir, device=self.device
        )
        ranked = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        ks = {modality: self.k[modality] for modality in ranked if self.k[modality] > 0}
        return evidence_modes(few, ranked, ks=ks, seed=self.seed)
