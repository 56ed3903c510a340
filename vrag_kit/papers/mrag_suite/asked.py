"""All data sets asked at once: evidence side by side, and a table of answers for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.generation.evidence import GT_ONLY, side_by_side
from vrag_kit.generation.experiment import ask_models
from vrag_kit.generation.wording import Wording
from vrag_kit.judging.judge import Judge
from vrag_kit.options import Entry
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_suite.modes import judged_by_own
from vrag_kit.retrieval.by_modality import search_each
from vrag_kit.types import MODALITIES, Benchmark, Context, DocId

DEPTH = 20
"""Documents of a modality that a search ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """How evidence is searched, and how much of it is shown."""

    retrievers: Mapping[str, Sequence[Entry]]
    """Of each modality, as `search_each` takes them; several are fused."""
    k: Mapping[str, int]
    """Documents of each modality that are shown."""
    cache_dir: Path | str = "runs/embeddings"
    device: str = "cpu"

    def contexts(self, benchmark: Benchmark) -> list[Context]:
        """The first documents of each modality that the benchmark has, one context a
        query (`side_by_side`). Raises as `search_each` does.
        """
        runs = search_each(
            benchmark, self.retrievers, k=DEPTH, cache_dir=self.cache_dir, device=self.device
        )
        last = {modality: list(by_name.values())[-1] for modality, by_name in runs.items()}
        there = {modality: k for modality, k in self.k.items() if modality in last}
        return side_by_side(benchmark, last, ks=there)

    def gold(self, benchmark: Benchmark) -> list[Context]:
        """The gold documents alone, in the order of the labels, at most so many of each
        modality: one context a query that has any, in the setting "gt_only".
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
    wordings: Mapping[str, Wording],
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> dict[str, pd.DataFrame]:
    """`ask_models` for each data set, with its contexts and its wording; raises as that
    does.
    """
    found = {}
    for name, benchmark in suite.items():
        what = (models, benchmark, contexts[name], answers_dir)
        found[name] = ask_models(*what, wording=wordings[name], run_with=run_with)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Which models are asked, in which words, and who judges."""

    models: Sequence[Entry]
    wordings: Mapping[str, Wording]
    """By data set."""
    judges: Mapping[str, Judge]
    """By data set; those with a metric of their own are scored by that."""
    scored_as: Mapping[str, Benchmark]
    """By data set: the whole questions, to which answers to any version of them are scored:
    metrics read the question too, such as what it tells already (`keypoint_coverage`)."""
    answers_dir: Path | str
    run_with: Mapping[str, Any] | None = None  # a notebook's parameter: values of any type

    def judged(
        self, suite: Mapping[str, Benchmark], contexts_of: Callable[[Benchmark], list[Context]]
    ) -> dict[str, pd.DataFrame]:
        """Data set → judged answers (`judged_by_own`), asked with what `contexts_of` shows,
        as `SideBySide` does, and judged as answers to `scored_as`; raises as `ask_suite` and
        `judge_all` do.
        """
        contexts = {name: contexts_of(benchmark) for name, benchmark in suite.items()}
        answers = ask_suite(
            self.models,
            suite,
            contexts,
            self.answers_dir,
            wordings=self.wordings,
            run_with=self.run_with,
        )
        return judged_by_own(self.scored_as, answers, self.judges)


def some_of_each(
    suite: Mapping[str, Benchmark], questions: int, *, seed: int = 0
) -> dict[str, Benchmark]:
    """At most so many questions of each data set, those first in an order by hash, so that
    more of them hold fewer; 0: all.
    """
    if questions == 0:
        return dict(suite)
    return {
        name: benchmark.subset(ordered(benchmark.queries, seed, "some of each")[:questions])
        for name, benchmark in suite.items()
    }
