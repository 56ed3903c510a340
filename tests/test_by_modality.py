"""Pictures and texts are searched side by side, each among its own, and fused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval import reciprocal_rank_fusion
from vrag_kit.retrieval.hybrid import BM25, FUSED, score_by_modality, search_by_modality
from vrag_kit.types import Benchmark, Document, Query

WEIGHTS = Path(__file__).parent.parent / "vrag_kit" / "synthetic" / "weights"
CLIP = str(WEIGHTS / "field-guide-clip-32")


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Three pictures with captions, three texts; q0 is answered by a picture and a text."""
    folder = tmp_path_factory.mktemp("pictures")
    corpus: dict[str, Document] = {}
    for number, color in enumerate(("red", "green", "blue")):
        Image.new("RGB", (32, 32), color).save(folder / f"{color}.png")
        image = ImageFile(folder / f"{color}.png")
        caption = f"A {color} moth" if number else "The moth Talia"
        corpus[f"p{number}"] = Document(doc_id=f"p{number}", image=image, text=caption)
        corpus[f"t{number}"] = Document(doc_id=f"t{number}", text=f"In {color} woods it lives.")
    queries = {
        "q0": Query(query_id="q0", text="Where does Talia live, in red woods?", group="a"),
        "q1": Query(query_id="q1", text="Which moth is green?", group="b"),
    }
    qrels = {"q0": {"p0": 1, "t0": 1}, "q1": {"p1": 1}}
    return Benchmark(name="small", fingerprint="small", queries=queries, corpus=corpus, qrels=qrels)


def test_each_modality_is_searched_by_its_retrievers_and_fused_where_there_are_several(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    retrievers = {"image": [BM25, CLIP], "text": [BM25]}
    runs = search_by_modality(benchmark, retrievers, k=2, cache_dir=tmp_path)
    assert {modality: list(by_name) for modality, by_name in runs.items()} == {
        "image": [BM25, "field-guide-clip-32", FUSED],
        "text": [BM25],
    }
    for modality, by_name in runs.items():
        for run in by_name.values():
            shown = {benchmark.corpus[doc_id].modality for doc_id in run["doc_id"]}
            assert shown == {modality}
    image = dict(list(runs["image"].items())[:2])
    assert runs["image"][FUSED].equals(reciprocal_rank_fusion(image))
    first = runs["text"][BM25].drop_duplicates("query_id")
    assert dict(zip(first["query_id"], first["doc_id"], strict=True))["q0"] == "t0"
    scores = score_by_modality(benchmark, runs, cutoffs=[1])
    recall = scores[(scores["metric"] == "recall") & (scores["retriever"] == BM25)]
    found = recall.set_index(["modality", "query_id"])["value"]
    assert found["text", "q0"] == found["image", "q0"] == found["image", "q1"] == 1.0
    assert found["text"].isna().tolist() == [False, True]  # no text answers q1


def test_words_are_searched_among_candidates_and_not_in_what_is_left_out(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    pools = {"q0": ("p1", "t1", "t2"), "q1": ("p0", "p1", "p2")}
    bound = replace(benchmark, pools=pools, left_out={"q1": frozenset({"p1"})})
    runs = search_by_modality(bound, {"image": [BM25], "text": [BM25]}, k=2, cache_dir=tmp_path)
    image, text = runs["image"][BM25], runs["text"][BM25]
    assert set(image.loc[image["query_id"] == "q1", "doc_id"]) == {"p0", "p2"}
    assert set(text.loc[text["query_id"] == "q0", "doc_id"]) == {"t1", "t2"}
    assert list(image.loc[image["query_id"] == "q1", "rank"]) == [1, 2]


def test_what_says_nothing_is_not_searched_by_words(benchmark: Benchmark, tmp_path: Path) -> None:
    silent = {
        doc_id: replace(document, text=None)
        for doc_id, document in benchmark.corpus.items()
        if document.image is not None
    }
    bare = replace(benchmark, corpus=silent, qrels={"q0": {"p0": 1}, "q1": {"p1": 1}})
    assert (
        search_by_modality(bare, {"image": [BM25], "text": [BM25]}, k=2, cache_dir=tmp_path) == {}
    )
    with pytest.raises(VragError, match="found 'sound', expected image"):
        search_by_modality(bare, {"sound": [BM25]}, k=2, cache_dir=tmp_path)
