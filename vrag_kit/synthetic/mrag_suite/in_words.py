"""MRAG-Suite's documents as models that read no print are asked with them: images where they
show no print, and what pages, charts and captions say as passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vrag_kit.benchmarks import captions_only
from vrag_kit.config import Entry
from vrag_kit.generation import ask_models, gcue_contexts
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import Judge, judge_answers, load_judge
from vrag_kit.papers.mrag_suite import DATASETS, dataset_metric
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.retrieval.hybrid import bm25_run
from vrag_kit.synthetic.mrag_suite.opening import MRAG_BENCH, VISUAL_RAG
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE, load_prompts
from vrag_kit.types import Benchmark, ordered

WITH_WORDS = tuple(name for name in DATASETS if name not in (VISUAL_RAG, MRAG_BENCH))
"""The data sets whose documents all say something."""
PASSAGES = PROMPTS.use_template("text_passages")
"""One template for every arm that shows passages."""
_ARMS = ("gt_clue", "non_clue", "one_in_k", "top_k")


def prompts_for(benchmark: Benchmark) -> PromptSet:
    """Visual-RAG's words for what the corpus holds: passages, images, or both at once as
    `load_prompts` has it.
    """
    kinds = {document.modality for document in benchmark.corpus.values()}
    if kinds == {"text"}:
        return PASSAGES
    if kinds == {"image"}:
        return PROMPTS
    mixed = load_prompts(FIELD_GUIDE, domain="")
    settings = dict(mixed.settings) | {arm: {None: "both"} for arm in _ARMS}
    return replace(mixed, settings=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOnlyEvaluation:
    """Which questions are asked, and with how many passages."""

    k: int = 3
    """Found by words (`bm25_run`), or one gold passage and k − 1 others."""
    questions: int | None = None
    """Of each data set at most; None: all that have a gold document."""
    seed: int = 0
    """Of which questions, and of what is drawn."""

    def ask(
        self,
        datasets: Mapping[str, Benchmark],
        models: Sequence[Entry],
        answers_dir: Path | str,
        *,
        decoding: Mapping[str, Any] | None = None,  # a notebook's parameter
        hardware: Mapping[str, Any] | None = None,
    ) -> dict[str, tuple[Benchmark, pd.DataFrame]]:
        """Row → the questions asked, and their judged answers: in the settings top_k (found
        by the documents' words) and those that gCUE needs, judged by the data set's own
        metric (`dataset_metric`), else by rule. A data set with images has two rows, its own
        with them, and "…, captions and snippets"; one without is called "…, text only".
        No question is shown what the data set leaves out for it (`Benchmark.left_out`).

        Raises `VragError` for a document without text.
        """
        rows: dict[str, Benchmark] = {}
        judges: dict[str, Judge] = {}
        for name, benchmark in datasets.items():
            few = benchmark.subset(self.sample(benchmark))
            named = {f"{name}, text only": few}
            if any(document.image for document in few.corpus.values()):
                named = {name: few, f"{name}, captions and snippets": captions_only(few)}
            rows |= named
            judges |= dict.fromkeys(named, load_judge(dataset_metric(name, few) or "rule"))
        found = {}
        for name, few in rows.items():
            arms = gcue_contexts(few, bm25_run(captions_only(few), self.k), **self._drawn)
            how: dict[str, Any] = {
                "prompts": prompts_for(few),
                "decoding": decoding,
                "hardware": hardware,
            }
            answers = ask_models(models, few, arms, answers_dir, **how)
            found[name] = (few, judge_answers(judges[name], few, answers))
        return found

    @property
    def _drawn(self) -> dict[str, int]:
        return {"k": self.k, "seed": self.seed}

    def sample(self, benchmark: Benchmark) -> list[str]:
        """Questions in an order in which another number of them moves none."""
        there = [name for name in benchmark.queries if benchmark.relevant(name)]
        return ordered(there, self.seed, "in words")[: self.questions]
