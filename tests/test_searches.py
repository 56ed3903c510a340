"""A finished search is read back without its model, and made again when anything changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_retrievers as tiny
from tiny_retrievers import entry

from vrag_kit.errors import VragError
from vrag_kit.retrieval import search_all, search_one
from vrag_kit.types import Benchmark, Document, Query

SHIPPED = "vrag_kit/synthetic/weights/field-guide-clip-32"
HEAVY = ("torch", "torchvision", "transformers", "open_clip", "faiss", "sentence_transformers")


@pytest.fixture
def asked(documents: list[Document]) -> Benchmark:
    """Three questions to four documents with pictures and texts."""
    queries = {
        query.query_id: replace(query, image=document.image)
        for query, document in zip(tiny.queries(), documents, strict=False)
    }
    return Benchmark(
        name="four",
        fingerprint="0",
        queries=queries,
        corpus={document.doc_id: document for document in documents},
        qrels={},
        pools=None,
    )


def reads(capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether the last search was read back."""
    return "found before" in capsys.readouterr().out


SEARCH = """
import sys
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.retrieval import score_runs, search_all
annotations, images, cache, retrievers, heavy = sys.argv[1:]
geese = load_visual_rag(annotations, images, name="geese")
for name, run in search_all(geese, retrievers.split(), k=3, cache_dir=cache).items():
    print(name, dict(run.dtypes), [score.hex() for score in run["score"]])
    print(run.to_json())
print("loaded:", *[name for name in heavy.split() if name in sys.modules])
"""


@pytest.mark.slow
def test_the_second_search_loads_no_model_and_finds_the_same_to_the_last_bit(
    write_annotations: Callable[..., Path], tree: Path, tmp_path: Path
) -> None:
    shutil.copytree(SHIPPED, tmp_path / "mine")
    retrievers = f"{SHIPPED} {tmp_path / 'mine'}"
    data = [str(write_annotations({})), str(tree), str(tmp_path / "cache")]
    command = [sys.executable, "-c", SEARCH, *data, retrievers, " ".join(HEAVY)]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert "loaded: torch" in first
    assert second.splitlines()[-1].strip() == "loaded:"
    results = [
        [line for line in out.splitlines() if line.startswith(("{", "field-guide", "mine"))]
        for out in (first, second)
    ]
    assert len(results[0]) == 4
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_search_is_made_again_when_something_that_determines_it_has_changed(
    asked: Benchmark,
    retrievers_made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, *_, last = asked.queries.values()
    reworded = {**asked.queries, first.query_id: replace(first, text="Which bird?")}
    some = {name: asked.corpus[name] for name in ("d0", "d1", "d2")}
    pools = dict.fromkeys(asked.queries, ("d0", "d1", "d2"))
    changed = [
        (asked, "clip", {}, 2),
        (asked, "clip", {}, 3),
        (asked, "clip", {"query_prompt": "a photo of {text}"}, 2),
        (asked, "clip", {"query": "image"}, 2),
        (asked, "siglip", {}, 2),
        (replace(asked, queries=reworded), "clip", {}, 2),
        (replace(asked, queries={last.query_id: last}), "clip", {}, 2),
        (replace(asked, corpus=some), "clip", {}, 2),
        (replace(asked, pools=pools), "clip", {}, 2),
    ]
    runs = []
    for again in (False, True):
        for benchmark, family, options, k in changed:
            told = entry(retrievers_made, family, **options)
            runs += search_all(benchmark, [told], k=k, cache_dir=tmp_path).values()
            assert reads(capsys) == again
    for before, after in zip(runs[: len(changed)], runs[len(changed) :], strict=True):
        assert before.equals(after)


def test_the_run_of_one_retriever_is_that_of_several(
    asked: Benchmark, retrievers_made: Path, tmp_path: Path
) -> None:
    one = entry(retrievers_made, "clip")
    both = search_all(asked, [one, entry(retrievers_made, "siglip")], k=2, cache_dir=tmp_path)
    run, other = both.values()
    assert search_one(asked, one, k=2, cache_dir=tmp_path / "new").equals(run)
    assert not run.equals(other)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clip", "open_clip", "qwen2_vl"])
def test_documents_are_embedded_once_for_all_ways_to_ask(
    family: str,
    asked: Benchmark,
    retrievers_made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompts = tiny.PROMPTS if family == "qwen2_vl" else {}
    modes = {
        "image": {**prompts, "query": "image"},
        "both": {**prompts, "query": "both"},
        "text": prompts,
    }
    if family == "qwen2_vl":
        modes["image"]["query_prompt"] = "<|image_pad|> Find this."
        modes["both"]["query_prompt"] = "<|image_pad|> Find this: {text}"
    runs = {}
    own = {"model": SHIPPED} if family == "open_clip" else entry(retrievers_made, family)
    for place, (mode, options) in enumerate(modes.items()):
        told = {**own, **options}
        (runs[mode],) = search_all(asked, [told], k=4, cache_dir=tmp_path / "all").values()
        counts = "0 from disk, 4 new" if place == 0 else "4 from disk, 0 new"
        assert counts in capsys.readouterr().out
        (alone,) = search_all(asked, [told], k=4, cache_dir=tmp_path / mode).values()
        assert runs[mode].equals(alone)  # to the last bit, as without the others
    assert not runs["image"]["score"].equals(runs["both"]["score"])
    assert len(list((tmp_path / "all").glob("*/shard-*.json.gz"))) == 1
    if family != "qwen2_vl":  # whose prompt for both would be another one
        search_all(asked, [{**own, "document": "text"}], k=4, cache_dir=tmp_path / "all")
        assert "0 from disk, 4 new" in capsys.readouterr().out


def test_a_changed_picture_or_checkpoint_is_searched_anew(
    asked: Benchmark,
    copy_retriever: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = copy_retriever("clip")
    told = {"model": str(folder), "query": "image"}
    found = search_all(asked, [told], k=4, cache_dir=tmp_path)["clip-by-image"]
    picture = asked.corpus["d0"].image.path  # type: ignore[union-attr]
    stat = picture.stat()
    os.utime(picture, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    again = search_all(asked, [told], k=4, cache_dir=tmp_path)["clip-by-image"]
    assert not reads(capsys)
    assert list(again["doc_id"]) == list(found["doc_id"])
    tiny.edit_weights(folder / "model.safetensors", lambda state: state["logit_scale"].add_(1))
    search_all(asked, [told], k=4, cache_dir=tmp_path)
    assert not reads(capsys)
    assert len(list(tmp_path.glob("clip-by-image-*"))) == 2


@pytest.mark.slow
def test_a_damaged_run_is_made_again(
    asked: Benchmark,
    retrievers_made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def search() -> bool:
        runs = search_all(asked, [str(retrievers_made / "clip")], k=2, cache_dir=tmp_path)
        assert runs["clip"].equals(found)
        return reads(capsys)

    (found,) = search_all(asked, [str(retrievers_made / "clip")], k=2, cache_dir=tmp_path).values()
    (stored,) = tmp_path.glob("clip-*/runs/*.json.gz")
    content = stored.read_bytes()
    flipped = bytes([*content[:-12], content[-12] ^ 1, *content[-11:]])
    for damage in (b"", b"[]", content[:-10], flipped):
        stored.write_bytes(damage)
        assert not search()
        assert search()


def test_a_change_of_a_librarys_version_is_logged_once_and_vectors_are_reused(
    asked: Benchmark,
    retrievers_made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    retrievers = [str(retrievers_made / "clip")]
    search_all(asked, retrievers, k=2, cache_dir=tmp_path)
    (manifest,) = tmp_path.glob("clip-*/manifest.json")
    stated = json.loads(manifest.read_text(encoding="utf-8"))
    stated["versions"]["transformers"] = "4.0"
    manifest.write_text(json.dumps(stated), encoding="utf-8")
    capsys.readouterr()
    for k, logged in ((3, True), (4, False)):
        search_all(asked, retrievers, k=k, cache_dir=tmp_path)
        output = "".join(capsys.readouterr())
        assert "4 from disk, 0 new" in output
        assert ("transformers 4.0 → " in output) == logged
    manifest.write_text("{", encoding="utf-8")
    search_all(asked, retrievers, k=1, cache_dir=tmp_path)
    assert json.loads(manifest.read_text(encoding="utf-8"))["encoder"] == "clip"


def test_a_question_without_its_picture_is_named_before_anything_is_loaded(
    asked: Benchmark, retrievers_made: Path, tmp_path: Path
) -> None:
    told = entry(retrievers_made, "clip", query="image")
    search_all(asked, [told], k=2, cache_dir=tmp_path)
    bare = {"q": Query(query_id="q", text="Which?")}
    with pytest.raises(VragError, match="query 'q' has no image"):
        search_all(replace(asked, queries=bare), [told], k=2, cache_dir=tmp_path)
