"""The shipped answerer of conversations on species it never saw: searches help it, and so
do its own answers to earlier turns; with another entity's picture the gain is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT, WEIGHTS

from vrag_kit.benchmarks.datasets.crag_mm import load_crag_mm
from vrag_kit.benchmarks.datasets.crag_mm_index import page_chunks
from vrag_kit.generation import ConversationConfig, ask_conversations
from vrag_kit.judging import TruthfulnessRuleJudge, judge_answers
from vrag_kit.papers.crag_mm.parameters import index_folders
from vrag_kit.papers.crag_mm.prompts import load_prompts
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.retrieval import image_service, text_service
from vrag_kit.synthetic.crag_mm import generate_crag_mm
from vrag_kit.types import Benchmark

pytestmark = pytest.mark.slow
SPLIT = "public_test"
MODEL = str(WEIGHTS / "field-guide-vlm-conversation")
ENCODER = {"model": str(WEIGHTS / "field-guide-egocentric")}


@dataclass(frozen=True, slots=True)
class Small:
    """The small edition, its searches, and where answers are kept."""

    folder: Path
    single: Benchmark
    multi: Benchmark
    arms: SearchPipeline

    def scores(self, benchmark: Benchmark, arm: str, history: str = "generated") -> pd.Series:
        """Truthfulness by query: right 1, missing 0, wrong −1."""
        prompts = load_prompts(image_chars=1600, web_chars=3600)
        answers = ask_conversations(
            [MODEL],
            benchmark,
            self.arms.contexts(benchmark, [arm]),
            self.folder / "answers",
            conversation=ConversationConfig(prompts=prompts, search=self.arms, history=history),
            decoding={"max_new_tokens": 64},
            hardware={"batch_size": 8},
        )
        return judge_answers(TruthfulnessRuleJudge(), benchmark, answers).set_index("query_id")[
            "score"
        ]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder: Path = tmp_path_factory.mktemp("worn")
    edition = generate_crag_mm("small", ROOT / "data" / "field-guide-crag-mm-small")
    images, web = index_folders(edition, SPLIT)
    single, multi = (
        load_crag_mm(edition / kind, SPLIT, image_index=images, web_index=web)
        for kind in ("single-turn", "multi-turn")
    )
    graph = {}
    pages = {}
    for doc_id, document in single.corpus.items():
        of_graph = document.metadata["source"] == "image_search"
        (graph if of_graph else pages)[doc_id] = document
    arms = SearchPipeline(
        images=image_service(graph, ENCODER, folder / "cache"),
        web=text_service(pages, "bm25", folder / "cache", chunks=page_chunks),
        image_k=10,
        web_k=10,
        threshold=0.75,
        rewrite="reference",
    )
    return Small(folder, single, multi, arms)


@pytest.mark.slow
def test_the_image_search_helps_both_help_more_and_another_picture_does_not(small: Small) -> None:
    alone, image, both = (
        small.scores(small.single, arm).mean() for arm in ("mm_llm", "task_1", "task_2")
    )
    assert alone < image < both
    assert both > alone + 0.2
    queries = list(small.single.queries.values())
    swapped = {
        query.query_id: replace(query, image=queries[place - 1].image)
        for place, query in enumerate(queries)
    }
    other = replace(small.single, name="swapped", queries=swapped)
    assert small.scores(other, "task_2").mean() < alone + 0.1


@pytest.mark.slow
def test_turns_that_need_it_gain_from_the_models_own_answers(small: Small) -> None:
    needy = [
        query_id
        for query_id, query in small.multi.queries.items()
        if query.metadata.get("needs_history")
    ]
    own, none = (
        small.scores(small.multi, "task_3", history)[needy] for history in ("generated", "none")
    )
    assert own.mean() > none.mean()
