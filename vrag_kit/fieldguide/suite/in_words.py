"""MRAG-Suite's documents as their words: captions, sentences, and what pages and charts
say, shown as passages to models that read no print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks import captions_only
from vrag_kit.fieldguide.suite.opening import MRAG_BENCH, VISUAL_RAG
from vrag_kit.generation import ask_models, gcue_arms
from vrag_kit.judging import RuleJudge, judge_all
from vrag_kit.options import Entry
from vrag_kit.order import ordered
from vrag_kit.papers.mrag_suite import DATASETS
from vrag_kit.papers.visual_rag.wording import WORDING
from vrag_kit.retrieval import bm25_run
from vrag_kit.types import Benchmark

WITH_WORDS = tuple(name for name in DATASETS if name not in (VISUAL_RAG, MRAG_BENCH))
"""The data sets whose documents all say something."""
PASSAGES = WORDING.only("text_passages")
"""One wording for every arm that shows passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InWords:
    """Which questions are asked, and with how many passages."""

    k: int = 3
    """Found by words (`bm25_run`), or one gold passage and k − 1 others."""
    questions: int = 0
    """Of each data set at most; 0: all that have a gold document."""
    seed: int = 0
    """Of which questions, and of what is drawn."""

    def ask(
        self,
        datasets: Mapping[str, Benchmark],
        models: Sequence[Entry],
        answers_dir: Path | str,
        *,
        run_with: Mapping[str, Any] | None = None,  # a notebook's parameter
    ) -> dict[str, tuple[Benchmark, pd.DataFrame]]:
        """Data set → the questions asked, over words alone, and their judged answers: in
        the settings top_k and those that gCUE needs, judged by rule.

        Raises `VragError` for a document without text.
        """
        found = {}
        for name, benchmark in datasets.items():
            few = captions_only(benchmark.subset(self.chosen(benchmark)))
            run = bm25_run(few.queries.values(), few.corpus, self.k)
            arms = gcue_arms(few, run, k=self.k, seed=self.seed)
            answers = ask_models(
                models, few, arms, answers_dir, wording=PASSAGES, run_with=run_with
            )
            found[name] = (few, judge_all(RuleJudge(), few, answers))
        return found

    def chosen(self, benchmark: Benchmark) -> list[str]:
        """Questions in an order in which another number of them moves none."""
        there = [name for name in benchmark.queries if benchmark.relevant(name)]
        return ordered(there, self.seed, "in words")[: self.questions or None]
