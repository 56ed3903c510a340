"""The bundled models on species that they never saw: evidence helps them, and another query's
does not.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from vrag_kit.analysis import paired_differences, per_query
from vrag_kit.benchmarks import load_mrag_bench, load_mrag_texts
from vrag_kit.generation import ConversationConfig, ask_conversations, ask_models
from vrag_kit.judging import TruthfulnessRuleJudge, judge_answers
from vrag_kit.papers.crag_mm.parameters import load_prompts, open_services
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
from vrag_kit.synthetic.crag_mm import open_single_turn
from vrag_kit.synthetic.mrag_bench.passages import TEXTS
from vrag_kit.types import Benchmark
from vrag_kit.workspace import Workspace

pytestmark = pytest.mark.slow


def test_the_image_search_helps_both_help_more_and_another_picture_does_not(tmp_path):
    single = open_single_turn("field-guide-crag-mm-small", "public_test")
    at = Workspace(cache_dir=tmp_path / "cache", answers_dir=tmp_path / "answers")
    services = {"image_service": "field-guide-egocentric", "web_service": "bm25"}
    depth = {"image_k": 10, "web_k": 10, "similarity_threshold": 0.75}
    search = open_services(single, {**services, **depth, "rewrite": "reference"}, at)
    prompts = load_prompts(image_context_chars=1600, web_context_chars=3600)

    def truthfulness(benchmark: Benchmark, arm: str) -> float:
        answers = ask_conversations(
            ["field-guide-vlm-conversation"],
            benchmark,
            search.contexts(benchmark, [arm]),
            at,
            conversation=ConversationConfig(prompts=prompts, search=search),
            decoding={"max_new_tokens": 64},
        )
        return judge_answers(TruthfulnessRuleJudge(), benchmark, answers)["score"].mean()

    alone, image = (truthfulness(single, arm) for arm in ("mm_llm", "task_1"))
    both = truthfulness(single, "task_2")
    assert alone < image < both
    assert both > alone + 0.2
    queries = list(single.queries.values())
    swapped = {}
    for before, query in zip([queries[-1], *queries], queries, strict=False):
        swapped[query.query_id] = replace(query, image=before.image)
    other = replace(single, name="swapped", queries=swapped)
    assert truthfulness(other, "task_2") < alone + 0.1


# multiple choice


def test_examples_and_passages_of_unseen_species_help_and_mismatched_examples_do_not(
    mrag_folder, tmp_path
):
    benchmark = load_mrag_bench(mrag_folder, mrag_folder, cache_dir=tmp_path)
    texts = load_mrag_texts(benchmark, mrag_folder / TEXTS)
    contexts = [*no_rag(benchmark), *gt_rag(benchmark), *mismatched_rag(benchmark), *gt_text(texts)]
    models, at = ["field-guide-vlm-choice"], Workspace(answers_dir=tmp_path / "answers")
    both = with_passages(benchmark, texts)
    answers = ask_models(models, both, contexts, at, prompts=PROMPT_SETS["paper"])
    assert answers["answer"].str.fullmatch(r"It is .+, answer [A-D]").all()
    judged = judge_answers(MultipleChoiceJudge(), benchmark, answers)
    new = with_scenarios(judged, benchmark).query("stratum == 'unseen species'")
    told = new[new["scenario"] != "incomplete"]  # no passage says which chip is missing
    right = new.groupby("setting")["score"].sum()
    luck = stats.binom.isf(0.001, new["query_id"].nunique(), 0.25)  # of a random letter
    assert right["mismatched_rag"] <= luck < right["gt_rag"]
    examples, passages = (
        paired_differences(
            per_query(some, by=["model", "setting"]), arm="setting", by=["model"], baseline="no_rag"
        ).set_index("setting")
        for some in (new, told)
    )
    assert examples.loc["gt_rag", "ci_low"] > max(0, examples.loc["mismatched_rag", "value"])
    assert passages.loc["gt_text", "ci_low"] > 0.2
