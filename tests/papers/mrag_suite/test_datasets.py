"""Each data set of the suite is judged by its own metric, free text by a rubric that knows no
subject; the published tables have one name per data set and fit our results.
"""

from __future__ import annotations

from dataclasses import replace

import factories
import pandas as pd
import pytest
from conftest import ROOT
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.datasets.collection import entry_keys
from vrag_kit.judging import UnparsedError
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers import published
from vrag_kit.papers.mrag_suite.datasets import DATASETS, OWN_METRIC, dataset_metric
from vrag_kit.papers.mrag_suite.prompts import SHORT_ANSWERS, domain_of, read_grade
from vrag_kit.runner.params import read_parameters
from vrag_kit.synthetic.mrag_suite import open_judges
from vrag_kit.types import Document, Query
from vrag_kit.workspace import Workspace

OF_ORGANISMS = "dark brown, dark grey, dark purple"
"""Words of Visual-RAG's Table 12."""


def test_a_data_set_is_judged_by_its_own_metric_and_no_other_by_visual_rags_rubric(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    query = Query(query_id="q", text="Which?", answers=("a",), choices=("a", "b"))
    one, at = factories.benchmark([query]), Workspace(answers_dir=tmp_path)
    judges = open_judges("gpt-4o@openai", dict.fromkeys([*DATASETS, "Own"], one), at)
    names = {name: judge.name for name, judge in judges.items()}
    assert names == {**OWN_METRIC, "Visual-RAG": "gpt-4o", "Own": "gpt-4o"}
    asked = {name: each.prompt_text for name, each in judges.items() if isinstance(each, LLMJudge)}
    assert {name for name, words in asked.items() if OF_ORGANISMS in words} == {"Visual-RAG"}
    assert open_judges("rule", {"Visual-RAG": one}, at)["Visual-RAG"].name == "rule"
    bare = factories.benchmark([replace(query, choices=())])
    assert dataset_metric("MRAG-Bench", bare) == "normalised_em"  # open answers, as in the paper


def test_free_text_is_judged_by_question_references_and_answer_each_on_a_line():
    query = Query(query_id="q", text="Who\nbuilt {it}?", answers=("Ann", "A. Lee"), group="g")
    (message,) = SHORT_ANSWERS.build_prompt(query, "Ann,\nI think")
    last = str(message.parts[0]).splitlines()[-3:]
    assert last == [
        "Question: Who built {it}?",
        'Accepted answers: ["Ann", "A. Lee"]',
        "Answer to grade: Ann, I think",
    ]


@pytest.mark.parametrize(
    ("raw", "score", "marks"),
    [
        ("Grade: CORRECT", 1, set()),
        ("It names one of two.\n**Grade: partial**", 0.5, set()),
        ("<think>Grade: CORRECT?</think>It is another year.\nGrade: INCORRECT.", 0, set()),
        ('It declines.\n"Grade: NO ANSWER"', 0, {"abstention"}),
    ],
)
def test_a_grade_is_the_last_line(raw, score, marks):
    verdict = SHORT_ANSWERS.parse_verdict(raw)
    assert (verdict.score, verdict.marks) == (score, marks)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "Grade: CORRECT\nas it says Ann",
        "Grade: CORRECT\nGrade: INCORRECT",
        "Grade: NOT CORRECT",
    ],
)
def test_anything_else_is_unreadable_and_no_number(raw):
    with pytest.raises(UnparsedError):
        read_grade(raw)


def test_our_means_have_the_published_names_by_either_definition():
    rows = [
        ("ragchecker", "hallucination", "image", 20.0),
        ("mm_ragchecker", "neutral_share", "image", 30.0),
        ("mm_ragchecker", "evidence_utilization", "image", 40.0),
        ("mm_ragchecker", "claim_recall", "all", 50.0),  # not the paper's equation 3
    ]
    means = pd.DataFrame(rows, columns=["family", "metric", "modality", "value"])
    named = paper.claims.with_published_names(means).set_index(["metric", "definition"])["value"]
    assert named.to_dict() == {
        ("hallucination", "RAGChecker's"): 20,
        ("hallucination", "the paper's equation"): 30,
        ("context_precision", "the paper's equation"): 40,
        ("vis_hit_at_k", "ours"): 40,
    }
    printed = {*published("mrag_suite", [3, 14, 15])["metric"]}
    assert printed == set(paper.claims.PUBLISHED)
    assert {*published("mrag_suite", 4)["metric"]} - {"txt_miss_rate"} == set(paper.claims.IN_PLACE)


def test_only_images_that_answer_are_measured(tmp_path):
    documents = [Document(doc_id="text", text="t")]
    for name, size in (("gold", (40, 20)), ("other", (400, 200))):
        Image.new("RGB", size).save(tmp_path / f"{name}.png")
        documents.append(Document(doc_id=name, image=ImageFile(tmp_path / f"{name}.png")))
    qrels = {"a": {"gold": 1, "text": 1, "other": 0}, "b": {}}
    suite = {"mine": factories.benchmark("ab", documents, qrels)}
    table = paper.datasets.describe_suite(suite).set_index("metric")
    assert table.loc["avg_image_width_px", ["value", "n"]].tolist() == [40, 1]


def test_parameter_files_name_the_papers_data_sets_and_domains():
    file = ROOT / "params" / "mrag_suite" / "paper.yaml"
    suite = read_parameters(file)["mrag_suite"]
    assert tuple(suite) == paper.datasets.DATASETS
    for dataset, entry in suite.items():
        assert entry["domain"] == domain_of(dataset)
        keys = entry_keys(entry["layout"])
        assert {key for key, is_needed in keys.items() if is_needed} <= set(entry) <= set(keys)
