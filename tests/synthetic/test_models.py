"""The bundled models on species that they never saw: evidence helps them, and another query's
does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import WEIGHTS
from scipy import stats

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.benchmarks import load_mrag_bench, load_mrag_texts
from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.generation import ConversationConfig, ask_conversations, ask_models
from vrag_kit.judging import TruthfulnessRuleJudge, judge_answers
from vrag_kit.papers.crag_mm.parameters import load_prompts
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.papers.mrag_bench.choices import MultipleChoiceJudge
from vrag_kit.papers.mrag_bench.results import with_scenarios
from vrag_kit.papers.mrag_bench.settings import (
    PROMPT_SETS,
    gt_rag,
    gt_text,
    mismatched_rag,
    no_rag,
    with_passages,
)
from vrag_kit.retrieval import image_service, text_service
from vrag_kit.synthetic.crag_mm import open_single_turn
from vrag_kit.synthetic.mrag_bench.passages import TEXTS
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

pytestmark = pytest.mark.slow
MODEL = str(WEIGHTS / "field-guide-vlm-conversation")
ENCODER = {"model": str(WEIGHTS / "field-guide-egocentric")}


@dataclass(frozen=True, slots=True)
class Small:
    """The small edition, its searches, and where answers are kept."""

    folder: Path
    single: Benchmark
    arms: SearchPipeline

    def scores(self, benchmark: Benchmark, arm: str) -> pd.Series:
        """Truthfulness by query: right 1, missing 0, wrong −1."""
        prompts = load_prompts(image_context_chars=1600, web_context_chars=3600)
        answers = ask_conversations(
            [MODEL],
            benchmark,
            self.arms.contexts(benchmark, [arm]),
            Workspace(answers_dir=self.folder / "answers"),
            conversation=ConversationConfig(prompts=prompts, search=self.arms),
            decoding={"max_new_tokens": 64},
        )
        return judge_answers(TruthfulnessRuleJudge(), benchmark, answers).set_index("query_id")[
            "score"
        ]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder: Path = tmp_path_factory.mktemp("egocentric")
    single = open_single_turn("field-guide-crag-mm-small", "public_test")
    by_source = {"image_search": {}, "web_search": {}}
    for doc_id, document in single.corpus.items():
        by_source[document.metadata["source"]][doc_id] = document
    arms = SearchPipeline(
        images=image_service(
            by_source["image_search"], ENCODER, Workspace(cache_dir=folder / "cache")
        ),
        web=text_service(
            by_source["web_search"],
            "bm25",
            Workspace(cache_dir=folder / "cache"),
            chunks=page_chunks,
        ),
        image_k=10,
        web_k=10,
        similarity_threshold=0.75,
        rewrite="reference",
    )
    return Small(folder, single, arms)


def test_the_image_search_helps_both_help_more_and_another_picture_does_not(small: Small) -> None:
    alone, image, both = (
        small.scores(small.single, arm).mean() for arm in ("mm_llm", "task_1", "task_2")
    )
    assert alone < image < both
    assert both > alone + 0.2
    queries = list(small.single.queries.values())
    swapped = {}
    for before, query in zip([queries[-1], *queries], queries, strict=False):
        swapped[query.query_id] = replace(query, image=before.image)
    other = replace(small.single, name="swapped", queries=swapped)
    assert small.scores(other, "task_2").mean() < alone + 0.1


# multiple choice


@pytest.fixture(scope="module")
def judged(mrag_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Answers on the small MRAG-Bench, in the wording of the paper's appendix."""
    folder = tmp_path_factory.mktemp("drawn")
    benchmark = load_mrag_bench(mrag_folder, mrag_folder, cache_dir=folder)
    texts = load_mrag_texts(benchmark, mrag_folder / TEXTS)
    contexts = [*no_rag(benchmark), *gt_rag(benchmark), *mismatched_rag(benchmark), *gt_text(texts)]
    models = [str(WEIGHTS / "field-guide-vlm-choice")]
    prompts = PROMPT_SETS["paper"]
    both = with_passages(benchmark, texts)
    answers = ask_models(
        models, both, contexts, Workspace(answers_dir=folder / "answers"), prompts=prompts
    )
    return with_scenarios(judge_answers(MultipleChoiceJudge(), benchmark, answers), benchmark)


def by_luck(n: int) -> float:
    """The number of `n` answers that a random letter gets right at most, but once in 1,000."""
    return float(stats.binom.isf(0.001, n, 0.25))


def test_examples_and_passages_of_unseen_species_help_and_mismatched_examples_do_not(
    judged: pd.DataFrame,
) -> None:
    assert judged["answer"].str.fullmatch(r"It is .+, answer [A-D]").all()
    new = judged[judged["stratum"] == "unseen species"]
    right, n = new.groupby("setting")["score"].sum(), new["query_id"].nunique()
    assert right["mismatched_rag"] <= by_luck(n) < right["gt_rag"]
    told = new[new["scenario"] != "incomplete"]  # no passage says which chip is missing
    assert told.query("setting == 'gt_text'")["score"].sum() > by_luck(told["query_id"].nunique())
    examples, passages = (
        paired_differences(
            per_query(some, by=["model", "setting"]), arm="setting", by=["model"], baseline="no_rag"
        ).set_index("setting")
        for some in (new, told)
    )
    assert examples.loc["gt_rag", "ci_low"] > max(0, examples.loc["mismatched_rag", "value"])
    assert passages.loc["gt_text", "ci_low"] > 0.2
