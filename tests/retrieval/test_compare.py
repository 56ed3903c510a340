"""A finished search is read back without its model, and made again when anything changed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import factories
import pandas as pd
import pytest
import tiny_retrievers as tiny
from retrieval_data import refused
from tiny_retrievers import entry

from vrag_kit.retrieval import search_one
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace


@pytest.fixture
def benchmark(documents: list[Document]) -> Benchmark:
    """Three questions with images to four documents with images and texts."""
    pairs = zip(tiny.queries(), documents, strict=False)
    queries = [replace(query, image=document.image) for query, document in pairs]
    return factories.benchmark(queries, documents)


class Searches:
    """Searches in one workspace; `output` is what the last one printed."""

    def __init__(self, at: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
        self.at, self.capsys = at, capsys

    def __call__(self, benchmark: Benchmark, spec: object, k: int = 2) -> pd.DataFrame:
        run = search_one(benchmark, spec, at=self.at, k=k)
        self.output = "".join(self.capsys.readouterr())
        return run

    @property
    def read_back(self) -> bool:
        return "found before" in self.output


@pytest.fixture
def search(at: Workspace, capsys: pytest.CaptureFixture[str]) -> Searches:
    return Searches(at, capsys)


@pytest.mark.slow
def test_a_search_is_made_again_when_something_that_determines_it_has_changed(
    benchmark: Benchmark, retrievers_made: Path, search: Searches
) -> None:
    first, *_, last = benchmark.queries.values()
    reworded = {**benchmark.queries, first.query_id: replace(first, text="Which bird?")}
    some = {name: benchmark.corpus[name] for name in ("d0", "d1", "d2")}
    made = partial(entry, retrievers_made)
    cases: list[tuple[Benchmark, Any, int]] = [
        (benchmark, made("clip"), 2),
        (benchmark, made("clip"), 3),
        (benchmark, made("clip", query_prompt="a photo of {text}"), 2),
        (benchmark, made("siglip"), 2),
        (replace(benchmark, queries=reworded), made("clip"), 2),
        (replace(benchmark, queries={last.query_id: last}), made("clip"), 2),
        (replace(benchmark, corpus=some), made("clip"), 2),
        (replace(benchmark, pools=dict.fromkeys(benchmark.queries, tuple(some))), made("clip"), 2),
    ]
    runs = []
    for case in cases:
        runs.append(search(*case))
        assert not search.read_back
    for case, run in zip(cases, runs, strict=True):
        assert search(*case).equals(run)  # to the last bit
        assert search.read_back


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "qwen2_vl"])
def test_documents_are_embedded_once_for_all_parts_of_a_question(
    family: str, benchmark: Benchmark, retrievers_made: Path, tmp_path: Path, search: Searches
) -> None:
    prompts = {"image": "<|image_pad|> Find this.", "both": "<|image_pad|> Find this: {text}"}
    if family == "clip":
        prompts = {}
    runs = {}
    for part in ("image", "both", "text"):
        more = {"query_prompt": prompts[part]} if part in prompts else {}
        spec = entry(retrievers_made, family, query=part, **more)
        runs[part] = search(benchmark, spec, 4)
        assert ("4 from disk, 0 new" in search.output) == (part != "image")
        apart = Workspace(cache_dir=tmp_path / part)
        assert runs[part].equals(search_one(benchmark, spec, at=apart, k=4))  # to the last bit
    assert not runs["image"]["score"].equals(runs["both"]["score"])


def test_a_damaged_run_is_made_again(
    benchmark: Benchmark, retrievers_made: Path, tmp_path: Path, search: Searches
) -> None:
    clip = str(retrievers_made / "clip")
    found = search(benchmark, clip)
    (stored,) = tmp_path.glob("clip-*/runs/*.json.gz")
    content = stored.read_bytes()
    flipped = bytes([*content[:-12], content[-12] ^ 1, *content[-11:]])
    for damage in (b"", flipped):
        stored.write_bytes(damage)
        for again in (False, True):
            assert search(benchmark, clip).equals(found)
            assert search.read_back == again


def test_a_missing_image_is_named(
    benchmark: Benchmark, retrievers_made: Path, search: Searches
) -> None:
    spec = entry(retrievers_made, "clip", query="image")
    search(benchmark, spec)
    bare = replace(benchmark, queries={"q": Query(query_id="q", text="Which?")})
    refused(lambda: search(bare, spec), "query 'q' has no image")
