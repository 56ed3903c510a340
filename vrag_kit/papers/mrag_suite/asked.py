"""Evaluation of all data sets of a suite: contexts by modality, and answers by data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.config import Entry
from vrag_kit.generation.evidence_modes import GT_ONLY, top_k_per_modality
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging.judge import Judge
from vrag_kit.papers.mrag_suite.modes import judge_suite
from vrag_kit.retrieval.hybrid import search_by_modality
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId, ordered

DEPTH = 20
"""Number of documents per modality that a search ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridContexts:
    """Searches for evidence by modality, and builds contexts of the first k."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Retrievers of each modality, as in `search_by_modality`; several are fused."""
    k: Mapping[str, int]
    """Number of documents of each modality in a context."""
    cache_dir: Path | str = "runs/embeddings"
    device: str = "cpu"

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """Returns one context per query with the first documents of each modality that the
        benchmark has (`top_k_per_modality`). Raises as `search_by_modality` does.
        """
        runs = search_by_modality(
            benchmark, self.retrievers, k=DEPTH, cache_dir=self.cache_dir, device=self.device
        )
        last = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        there = {modality: k for modality, k in self.k.items() if modality in last}
        return top_k_per_modality(benchmark, last, ks=there)

    def gold(self, benchmark: Benchmark) -> list[Context]:
        """Returns contexts with gold documents only, in the order of the labels, at most k of each
        modality: one per query that has any, in the setting "gt_only".
        """
        contexts = []
        for query_id in benchmark.queries:
            shown: tuple[DocId, ...] = ()
            for modality in MODALITIES:
                gold = [
                    name
                    for name in benchmark.relevant(query_id)
                    if benchmark.corpus[name].modality == modality
                ]
                shown += tuple(gold[: self.k[modality]])
            if shown:
                k = sum(self.k.values())
                contexts.append(Context(query_id=query_id, setting=GT_ONLY, k=k, doc_ids=shown))
        return contexts


def ask_suite(
    models: Sequence[Entry],
    suite: Mapping[str, Benchmark],
    contexts: Mapping[str, Sequence[Context]],
    answers_dir: Path | str,
    *,
    prompt_sets: Mapping[str, PromptSet],
    decoding: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None,
) -> dict[str, pd.DataFrame]:
    """Runs `ask_models` on each data set, with its contexts and its prompts; raises as
    that does.
    """
    found = {}
    for name, benchmark in suite.items():
        what = (models, benchmark, contexts[name], answers_dir)
        found[name] = ask_models(
            *what, prompts=prompt_sets[name], decoding=decoding, hardware=hardware
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEvaluation:
    """Models, prompts and judges of an evaluation of the suite."""

    models: Sequence[Entry]
    prompt_sets: Mapping[str, PromptSet]
    """Prompts by data set."""
    judges: Mapping[str, Judge]
    """Judges by data set; a data set with its own metric is scored by that."""
    scored_as: Mapping[str, Benchmark]
    """Original questions by data set: answers to any version are scored against them."""
    answers_dir: Path | str
    decoding: Mapping[str, Any] | None = None  # a notebook's parameter: values of any type
    hardware: Mapping[str, Any] | None = None

    def evaluate(
        self, suite: Mapping[str, Benchmark], contexts_of: Callable[[Benchmark], list[Context]]
    ) -> dict[str, pd.DataFrame]:
        """Maps each data set to judged answers (`judge_suite`) over the contexts of `contexts_of`,
        such as `HybridContexts`. Answers are judged as answers to `scored_as`; raises as
        `ask_suite` and `judge_answers` do.
        """
        contexts = {name: contexts_of(benchmark) for name, benchmark in suite.items()}
        what = (self.models, suite, contexts, self.answers_dir)
        answers = ask_suite(
            *what,
            prompt_sets=self.prompt_sets,
            decoding=self.decoding,
            hardware=self.hardware,
        )
        return judge_suite(self.scored_as, answers, self.judges)


def sample_per_dataset(
    suite: Mapping[str, Benchmark], questions: int | None, *, seed: int = 0
) -> dict[str, Benchmark]:
    """Samples at most `questions` questions of each data set, the first in an order by hash, so
    samples are nested; None: all.
    """
    if questions is None:
        return dict(suite)
    return {
        name: benchmark.subset(ordered(benchmark.queries, seed, "some of each")[:questions])
        for name, benchmark in suite.items()
    }
