"""Retrievers of a suite: fused against each, apart and pooled."""

from __future__ import annotations

from itertools import product

import factories
import pandas as pd
import pytest

from vrag_kit.benchmarks import ImageFile
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.retrieval import make_run
from vrag_kit.retrieval.hybrid import FUSED
from vrag_kit.types import Benchmark, Document, Query

KS = {"image": 1, "text": 2}


def small(name: str, gold: list[str]) -> Benchmark:
    """As many questions as gold documents, over pictures p0 to p2 and texts t0 to t2."""
    pictures = [Document(doc_id=f"p{n}", image=ImageFile(f"p{n}.png")) for n in range(3)]
    texts = [Document(doc_id=f"t{n}", text=f"word{n}") for n in range(3)]
    queries = [Query(query_id=f"q{n}", text="?", group=f"g{n}") for n in range(len(gold))]
    labels = {f"q{n}": {doc_id: 1} for n, doc_id in enumerate(gold)}
    return factories.benchmark(queries, [*pictures, *texts], labels, name=name)


def ranked(benchmark: Benchmark, documents: list[str]) -> pd.DataFrame:
    """The same order for every question."""
    rows = product(benchmark.queries, enumerate(documents))
    return make_run((query_id, doc_id, -float(place)) for query_id, (place, doc_id) in rows)


DATASETS = {"A": small("A", ["p0", "p0", "t1"]), "B": small("B", ["p1"])}
RUNS = {
    name: {
        "image": {
            "words": ranked(benchmark, ["p0", "p1", "p2"]),
            "looks": ranked(benchmark, ["p1", "p2", "p0"]),
            FUSED: ranked(benchmark, ["p1", "p0", "p2"]),
        },
        "text": {"words": ranked(benchmark, ["t0", "t1", "t2"])},
    }
    for name, benchmark in DATASETS.items()
}


def test_fusing_is_set_against_each_retriever_apart_and_pooled():
    scores = paper.hybrid.score_suite(DATASETS, RUNS, KS)
    recall = scores[scores["metric"] == "recall"]
    assert set(zip(recall["modality"], recall["k"], strict=True)) == {("image", 1), ("text", 2)}
    gains = paper.hybrid.fusion_gains(recall)
    found = gains.set_index(["dataset", "modality", "baseline"])
    # A, pictures, two questions: words finds p0 first, looks and fused find p1
    # B, one question: words misses p1, looks and fused find it
    assert found["value"].to_dict() == {
        ("A", "image", "words"): -100.0,
        ("B", "image", "words"): 100.0,
        ("A", "image", "looks"): 0.0,
        ("B", "image", "looks"): 0.0,
        ("all", "image", "words"): pytest.approx(-100 / 3),  # (−1 − 1 + 1) / 3
        ("all", "image", "looks"): 0.0,
    }
    assert found.loc[("all", "image", "words"), "n"] == 3  # q0 of A is not q0 of B
    apart = gains[gains["dataset"] != "all"].dropna(subset="p").sort_values("p")
    smallest = apart.iloc[0]
    assert smallest["p_holm"] == pytest.approx(min(1.0, len(apart) * smallest["p"]))
