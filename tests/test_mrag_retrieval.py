"""What retrievers find of MRAG-Bench's examples, against counting by hand and Table 6."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.papers.mrag_bench import (
    QUESTIONS,
    printed_hits,
    retrieval_by_scenario,
    rows_run,
)
from vrag_kit.retrieval import make_run
from vrag_kit.types import Benchmark

OVERLAPS = {  # questions whose `retrieved_images` hold ground truth, byte for byte
    "angle": 226,
    "partial": 134,
    "scope": 73,
    "occlusion": 79,
    "temporal": 66,
    "deformation": 32,
    "incomplete": 7,
    "biological": 41,
    "others": 98,
}


@pytest.fixture
def benchmark() -> Benchmark:
    return four_questions()


def value(table: pd.DataFrame, retriever: str, scenario: str, metric: str) -> float:
    row = table[
        (table["retriever"] == retriever)
        & (table["scenario"] == scenario)
        & (table["metric"] == metric)
    ]
    return float(row["value"].item())


def test_clips_printed_recall_is_the_share_of_rows_whose_retrieved_pictures_hold_ground_truth() -> (
    None
):
    """All but Incomplete, which prints 69 of 102 where the overlap is 7 of 102."""
    printed = printed_hits()
    clip = printed[printed["retriever"] == "CLIP"].set_index("scenario")
    assert set(clip["metric"]) == {"hit@5"}
    assert {name: clip["n"][name] for name in OVERLAPS} == QUESTIONS
    differ = {}
    for name, count in OVERLAPS.items():
        if round(100 * count / QUESTIONS[name], 2) != round(100 * clip["value"][name], 2):
            differ[name] = round(clip["value"][name] * QUESTIONS[name])
    assert differ == {"incomplete": 69}


def test_the_rows_own_pictures_are_a_run_in_which_hit_and_recall_are_different_things(
    benchmark: Benchmark,
) -> None:
    """One of five ground-truth pictures is found in each row, in Incomplete one of one."""
    table = retrieval_by_scenario(benchmark, {"rows": rows_run(benchmark)})
    assert value(table, "rows", "angle", "hit@5") == 1
    assert value(table, "rows", "angle", "recall@5") == pytest.approx(1 / 5)
    assert value(table, "rows", "incomplete", "recall@5") == 1
    assert value(table, "perfect order", "overall", "recall@5") == 1
    assert list(table["scenario"].unique()) == [
        "overall",
        "angle",
        "partial",
        "incomplete",
        "others",
    ]


def test_overall_weighs_scenarios_as_the_papers_questions(benchmark: Benchmark) -> None:
    """Two hits of two in Angle, none in the other three scenarios, one question each."""
    angle = benchmark.queries["0"]
    twice = replace(
        benchmark,
        queries={**benchmark.queries, "0b": replace(angle, query_id="0b")},
        qrels={**benchmark.qrels, "0b": benchmark.qrels["0"]},
    )
    run = make_run([("0", "gt0-3", 1.0), ("0b", "gt0-4", 1.0), ("1", "no1-0", 1.0)])
    table = retrieval_by_scenario(twice, {"ours": run})
    counts = [QUESTIONS[name] for name in ("angle", "incomplete", "others", "partial")]
    assert value(table, "ours", "overall", "hit@5") == pytest.approx(counts[0] / sum(counts))
    overall = table[(table["scenario"] == "overall") & (table["retriever"] == "ours")]
    assert set(overall["n"]) == {5}
    assert (overall["ci_low"] <= overall["value"]).all()
    assert (overall["value"] <= overall["ci_high"]).all()
