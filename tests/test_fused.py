"""The demo's fused retriever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vrag_kit.papers.mrag_bench.retrieval import retrieval_by_scenario
from vrag_kit.retrieval import search_all
from vrag_kit.synthetic.mrag_bench import open_mrag_bench
from vrag_kit.workspace import path as project_path


@pytest.mark.slow
def test_the_bundled_head_is_under_a_megabyte_and_finds_more_than_the_picture_alone(
    tmp_path: Path,
) -> None:
    files = [
        file for file in project_path("field-guide-composed").iterdir() if file.suffix != ".md"
    ]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    whole = open_mrag_bench("field-guide-mrag-bench-small", cache_dir=tmp_path)
    few = whole.subset(list(whole.queries)[::3])
    wanted = set().union(*few.qrels.values(), *few.left_out.values())
    corpus = {doc_id: each for doc_id, each in whole.corpus.items() if doc_id in wanted}
    picture = {"model": "field-guide-clip-64", "query": "image"}
    runs = search_all(
        replace(few, corpus=corpus), ["field-guide-composed", picture], k=5, cache_dir=tmp_path
    )
    table = retrieval_by_scenario(replace(few, corpus=corpus), runs)
    overall = table[(table["scenario"] == "overall") & (table["metric"] == "recall@5")]
    fused, alone = (overall.set_index("retriever")["value"][name] for name in runs)
    assert fused > alone + 0.1
