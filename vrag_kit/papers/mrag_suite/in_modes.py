"""Contexts in the three modes of evidence (section 3.5), with distractors from retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.config import Entry
from vrag_kit.generation import evidence_modes
from vrag_kit.retrieval.hybrid import search_by_modality
from vrag_kit.types import Benchmark, Context, ordered

_BEYOND = 20
"""Number of documents ranked beyond the gold ones, for enough distractors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceModes:
    """Samples questions and builds their contexts in the modes of evidence."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Retrievers of each modality, as in `search_by_modality`; distractors are the best ranked,
    after fusion if there are several.
    """
    k: Mapping[str, int]
    """Number of documents of a modality in a context, where a data set has it."""
    questions: int | None = None
    """Maximum number of questions per data set; None: all that have gold evidence."""
    seed: int = 0
    """Seed of the sample of questions, and of the order of documents."""
    cache_dir: Path | str
    device: str = "cpu"

    def sample(self, benchmark: Benchmark) -> Benchmark:
        """Samples the questions; a larger sample contains a smaller one."""
        there = [each for each in benchmark.queries if benchmark.relevant(each)]
        return benchmark.subset(ordered(there, self.seed, "in modes")[: self.questions])

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """Returns each sampled question's contexts in the modes of `evidence_modes`, over the data
        set's modalities. Raises `VragError` as that and `search_by_modality` do.
        """
        few = self.sample(benchmark)
        most = max((len(few.relevant(each)) for each in few.queries), default=0)
        k = most + max(_BEYOND, *self.k.values())
        runs = search_by_modality(
            benchmark, self.retrievers, k=k, cache_dir=self.cache_dir, device=self.device
        )
        ranked = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        ks = {modality: self.k[modality] for modality in ranked if self.k[modality] > 0}
        return evidence_modes(few, ranked, ks=ks, seed=self.seed)
