"""A finished search is read back without its model, and made again when anything changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import factories
import pytest
import tiny_retrievers as tiny
from retrieval_data import refused
from tiny_retrievers import entry

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.config import Workspace
from vrag_kit.retrieval import search_one
from vrag_kit.types import Benchmark, Document, Query

SHIPPED = "vrag_kit/synthetic/weights/field-guide-clip-32"
HEAVY = ("torch", "torchvision", "transformers", "open_clip", "faiss", "sentence_transformers")
Output = pytest.CaptureFixture[str]


@pytest.fixture
def asked(documents: list[Document]) -> Benchmark:
    """Three questions with images to four documents with images and texts."""
    pairs = zip(tiny.queries(), documents, strict=False)
    queries = [replace(query, image=document.image) for query, document in pairs]
    return factories.benchmark(queries, documents)


def reads(capsys: Output) -> bool:
    """Whether the last search was read back."""
    return "found before" in capsys.readouterr().out


@pytest.mark.slow
def test_the_second_search_loads_no_library_and_finds_the_same_to_the_last_bit(
    write_annotations: Callable[..., Path], tree: Path, tmp_path: Path
) -> None:
    script = """
import sys
from vrag_kit import Workspace
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.retrieval import search_all
annotations, images, cache, retriever, heavy = sys.argv[1:]
geese = load_visual_rag(annotations, images, name="geese")
(run,) = search_all(geese, [retriever], k=3, at=Workspace(cache_dir=cache)).values()
print("run:", [score.hex() for score in run["score"]], run.to_json())
print("loaded:", *[name for name in heavy.split() if name in sys.modules])
"""
    data = [write_annotations({}), tree, tmp_path / "cache", SHIPPED, " ".join(HEAVY)]
    geese = load_visual_rag(data[0], tree, name="geese")
    run = search_one(geese, SHIPPED, at=Workspace(cache_dir=tmp_path / "cache"), k=3)
    command = [sys.executable, "-c", script, *data]
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    scores = [score.hex() for score in run["score"]]
    assert again.splitlines()[-2:] == [f"run: {scores} {run.to_json()}", "loaded:"]


@pytest.mark.slow
def test_a_search_is_made_again_when_something_that_determines_it_has_changed(
    asked: Benchmark, retrievers_made: Path, at: Workspace, capsys: Output
) -> None:
    first, *_, last = asked.queries.values()
    reworded = {**asked.queries, first.query_id: replace(first, text="Which bird?")}
    some = {name: asked.corpus[name] for name in ("d0", "d1", "d2")}
    changed: list[tuple[Benchmark, str, dict[str, Any], int]] = [
        (asked, "clip", {}, 2),
        (asked, "clip", {}, 3),
        (asked, "clip", {"query_prompt": "a photo of {text}"}, 2),
        (asked, "siglip", {}, 2),
        (replace(asked, queries=reworded), "clip", {}, 2),
        (replace(asked, queries={last.query_id: last}), "clip", {}, 2),
        (replace(asked, corpus=some), "clip", {}, 2),
        (replace(asked, pools=dict.fromkeys(asked.queries, tuple(some))), "clip", {}, 2),
    ]
    runs = []
    for again in (False, True):
        for benchmark, family, options, k in changed:
            told = entry(retrievers_made, family, **options)
            runs.append(search_one(benchmark, told, at=at, k=k))
            assert reads(capsys) == again
    for before, after in zip(runs[: len(changed)], runs[len(changed) :], strict=True):
        assert before.equals(after)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "qwen2_vl"])
def test_documents_are_embedded_once_for_all_parts_of_a_question(
    family: str, asked: Benchmark, retrievers_made: Path, tmp_path: Path, capsys: Output
) -> None:
    own = entry(retrievers_made, family)
    prompts = {"image": "<|image_pad|> Find this.", "both": "<|image_pad|> Find this: {text}"}
    runs = {}
    for place, part in enumerate(["image", "both", "text"]):
        told = {**own, "query": part}
        if family == "qwen2_vl" and part in prompts:
            told["query_prompt"] = prompts[part]
        runs[part] = search_one(asked, told, at=Workspace(cache_dir=tmp_path / "all"), k=4)
        counts = "0 from disk, 4 new" if place == 0 else "4 from disk, 0 new"
        assert counts in capsys.readouterr().out
        alone = search_one(asked, told, at=Workspace(cache_dir=tmp_path / part), k=4)
        assert runs[part].equals(alone)  # to the last bit
    assert not runs["image"]["score"].equals(runs["both"]["score"])
    assert len(list((tmp_path / "all").glob("*/shard-*.json.gz"))) == 1


def test_a_touched_image_and_a_changed_checkpoint_are_searched_again(
    asked: Benchmark,
    copy_retriever: Callable[[str], Path],
    tmp_path: Path,
    capsys: Output,
    at: Workspace,
) -> None:
    folder = copy_retriever("clip")
    told = {"model": str(folder), "query": "image"}
    found = search_one(asked, told, at=at, k=4)
    path = asked.corpus["d0"].image.path  # type: ignore[union-attr]
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    again = search_one(asked, told, at=at, k=4)
    assert list(again["doc_id"]) == list(found["doc_id"])
    assert "3 from disk, 1 new" in capsys.readouterr().out
    tiny.edit_weights(folder / "model.safetensors", lambda state: state["logit_scale"].add_(1))
    search_one(asked, told, at=at, k=4)
    assert not reads(capsys)
    assert len(list(tmp_path.glob("clip-by-image-*"))) == 2


def test_a_damaged_run_is_made_again(
    asked: Benchmark, retrievers_made: Path, tmp_path: Path, capsys: Output, at: Workspace
) -> None:
    clip = str(retrievers_made / "clip")
    found = search_one(asked, clip, at=at, k=2)
    (stored,) = tmp_path.glob("clip-*/runs/*.json.gz")
    content = stored.read_bytes()
    flipped = bytes([*content[:-12], content[-12] ^ 1, *content[-11:]])
    for damage in (b"", flipped):
        stored.write_bytes(damage)
        for again in (False, True):
            assert search_one(asked, clip, at=at, k=2).equals(found)
            assert reads(capsys) == again


def test_a_changed_library_version_is_logged_once_and_vectors_are_reused(
    asked: Benchmark, retrievers_made: Path, tmp_path: Path, capsys: Output, at: Workspace
) -> None:
    clip = str(retrievers_made / "clip")
    search_one(asked, clip, at=at, k=2)
    (manifest,) = tmp_path.glob("clip-*/manifest.json")
    stated = json.loads(manifest.read_text(encoding="utf-8"))
    stated["versions"]["transformers"] = "4.0"
    manifest.write_text(json.dumps(stated), encoding="utf-8")
    capsys.readouterr()
    for k, logged in ((3, True), (4, False)):
        search_one(asked, clip, at=at, k=k)
        output = "".join(capsys.readouterr())
        assert "4 from disk, 0 new" in output
        assert ("transformers 4.0 → " in output) == logged


def test_a_question_without_its_image_is_named_though_the_search_is_stored(
    asked: Benchmark, retrievers_made: Path, at: Workspace
) -> None:
    told = entry(retrievers_made, "clip", query="image")
    search_one(asked, told, at=at, k=2)
    bare = replace(asked, queries={"q": Query(query_id="q", text="Which?")})
    refused(
        lambda: search_one(bare, told, at=at, k=2),
        "query 'q' has no image",
    )
