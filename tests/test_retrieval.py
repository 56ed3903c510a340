"""Encoding, storing and searching: exact, resumable, and loud about anything wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.retrieval import dense, embed_documents, embedding_cache
from vrag_kit.retrieval.dense import dense_run, nearest_neighbors
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.retrieval.shards import Embeddings, write_shard
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Benchmark, Document, Query

Hits = list[list[tuple[float, str]]]


class ColorEncoder:
    """Embeds a picture as its mean colour and a query as the colour it names; counts
    what it encodes.
    """

    name, fingerprint, normalized = "color", "0" * 64, False

    def __init__(self) -> None:
        self.modalities = InputModalities()
        self.document_key = DocumentKey(self.name, self.fingerprint)
        self.prompts = {"query": "the colour {text}"}
        self.encoded = 0
        self.fail_after: int | None = None
        self.bad: float | None = None

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        return np.array([json.loads(query.text) for query in queries], dtype=np.float32).reshape(
            -1, 3
        )

    def prepare(self, document: Document) -> Any:
        assert document.image is not None
        return np.asarray(document.image.open(), dtype=np.float32).mean(axis=(0, 1)) + 1

    def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
        if self.fail_after is not None and self.encoded >= self.fail_after:
            raise KeyboardInterrupt
        self.encoded += len(prepared)
        rows = np.stack(prepared).astype(np.float32)
        if self.bad is not None:
            rows[0] = self.bad
        return rows


def pictures(folder: Path, count: int) -> list[Document]:
    folder.mkdir(exist_ok=True)
    for i in range(count):
        Image.new("RGB", (4, 4), (i % 250, (7 * i) % 250, (13 * i) % 250)).save(
            folder / f"{i:03d}.png"
        )
    return pictures_there(folder, count)


def pictures_there(folder: Path, count: int) -> list[Document]:
    return [
        Document(doc_id=f"{folder.name}/{i:03d}.png", image=ImageFile(folder / f"{i:03d}.png"))
        for i in range(count)
    ]


def ask(color: Sequence[float], query_id: str = "q") -> Query:
    return Query(query_id=query_id, text=json.dumps(list(color)))


def test_embeddings_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_cache, "BATCH", 4)
    documents = pictures(tmp_path / "x", 10)
    first, again = ColorEncoder(), ColorEncoder()
    before = embed_documents(first, documents, tmp_path / "store")
    after = embed_documents(again, documents, tmp_path / "store")
    assert (first.encoded, again.encoded) == (10, 0)
    np.testing.assert_array_equal(before.vectors(before.doc_ids), after.vectors(after.doc_ids))


def test_only_new_and_changed_pictures_are_embedded_again(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 6)
    embed_documents(ColorEncoder(), documents, tmp_path / "store")
    Image.new("RGB", (5, 5), (255, 0, 0)).save(tmp_path / "x" / "002.png")
    encoder = ColorEncoder()
    more = pictures(tmp_path / "y", 8)[6:]  # the first ones show what those of x do
    embeddings = embed_documents(encoder, [*documents, *more], tmp_path / "store")
    assert encoder.encoded == 3
    np.testing.assert_allclose(embeddings.vectors(["x/002.png"]), [[256, 1, 1]])


def test_a_picture_that_changes_while_it_is_embedded_is_embedded_again_next_time(
    tmp_path: Path,
) -> None:
    class Late(ColorEncoder):
        def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
            rows = super().encode_documents(prepared)
            Image.new("RGB", (5, 5), (255, 0, 0)).save(tmp_path / "x" / "002.png")
            return rows

    documents = pictures(tmp_path / "x", 6)
    embed_documents(Late(), documents, tmp_path / "store")
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 1
    np.testing.assert_allclose(embeddings.vectors(["x/002.png"]), [[256, 1, 1]])


def test_a_changed_text_of_the_same_length_is_embedded_again(tmp_path: Path) -> None:
    class Letters(ColorEncoder):
        def prepare(self, document: Document) -> Any:
            return np.array([ord(letter) for letter in document.text or ""], np.float32)

    before, after = (
        embed_documents(Letters(), [Document(doc_id="x", text=text)], tmp_path / "store")
        for text in ("owl", "elk")
    )
    np.testing.assert_array_equal(before.vectors(["x"]), [[ord(letter) for letter in "owl"]])
    np.testing.assert_array_equal(after.vectors(["x"]), [[ord(letter) for letter in "elk"]])


def test_the_manifest_records_the_prompts(tmp_path: Path) -> None:
    folder = embed_documents(ColorEncoder(), pictures(tmp_path / "x", 2), tmp_path / "store").folder
    assert json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["prompts"] == {
        "query": "the colour {text}"
    }


def test_an_interrupted_run_goes_on_from_its_last_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_cache, "SHARD", 8)
    monkeypatch.setattr(embedding_cache, "BATCH", 4)
    documents = pictures(tmp_path / "x", 30)
    stopped = ColorEncoder()
    stopped.fail_after = 20
    with pytest.raises(KeyboardInterrupt):
        embed_documents(stopped, documents, tmp_path / "store")
    resumed = ColorEncoder()
    embeddings = embed_documents(resumed, documents, tmp_path / "store")
    assert resumed.encoded == 30 - 16  # 20 were embedded, 16 of them in finished shards of 8
    fresh = embed_documents(ColorEncoder(), documents, tmp_path / "other")
    np.testing.assert_array_equal(
        embeddings.vectors(embeddings.doc_ids), fresh.vectors(fresh.doc_ids)
    )


@pytest.mark.parametrize(
    "damage",
    ["cut vectors", "no vectors", "empty vectors", "no columns", "half of them", "fewer rows"],
)
def test_every_kind_of_damaged_shard_is_set_aside_and_embedded_again(
    tmp_path: Path, damage: str
) -> None:
    documents = pictures(tmp_path / "x", 6)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    (vectors,) = folder.glob("*.npy")
    index = vectors.with_suffix(".json.gz")
    if damage == "cut vectors":
        vectors.write_bytes(vectors.read_bytes()[:-20])
    elif damage == "no vectors":
        vectors.unlink()
    elif damage == "empty vectors":
        vectors.write_bytes(b"")
    elif damage == "no columns":
        index.write_text("[]", encoding="utf-8")
    elif damage == "half of them":
        index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
    else:
        other = embed_documents(ColorEncoder(), documents[:2], tmp_path / "other").folder
        (fewer,) = other.glob("*.json.gz")
        index.write_bytes(fewer.read_bytes())
    encoder = ColorEncoder()
    embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 6
    assert list(folder.glob("*.damaged"))
    embed_documents(encoder, documents, tmp_path / "store")


def test_two_documents_of_one_id_are_refused(tmp_path: Path) -> None:
    first, second = pictures(tmp_path / "x", 2)
    twins = [first, replace(second, doc_id=first.doc_id)]
    with pytest.raises(VragError, match=f"two documents '{first.doc_id}'"):
        embed_documents(ColorEncoder(), twins, tmp_path / "store")


LIMITED = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
import test_retrieval as t
import vrag_kit.retrieval.embedding_cache as store
place, shards, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store.SHARD = store.BATCH = 1
documents = t.pictures(place / "x", shards)
store.embed_documents(t.ColorEncoder(), documents, place / "store")
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
encoder = t.ColorEncoder()
embeddings = store.embed_documents(encoder, documents, place / "store")
vectors = embeddings.vectors(embeddings.doc_ids)
assert encoder.encoded == 0
assert np.array_equal(vectors, np.stack([encoder.prepare(each) for each in documents]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX resource limits")
def test_there_may_be_more_shards_than_a_process_may_hold_open(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path), "80", "48"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "store").glob("*/shard-*.npy"))) == 80


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX resource limits")
def test_a_file_that_cannot_be_opened_is_an_error_and_no_damage(tmp_path: Path) -> None:
    documents = pictures(tmp_path / "x", 3)
    folder = embed_documents(ColorEncoder(), documents, tmp_path / "store").folder
    (shard,) = folder.glob("*.npy")
    shard.rename(folder / "elsewhere")
    shard.symlink_to(shard)  # a ring of links: there, and not to be opened
    with pytest.raises(VragError, match=rf"{shard.name}: this shard .* cannot be opened"):
        embed_documents(ColorEncoder(), documents, tmp_path / "store")
    shard.unlink()
    (folder / "elsewhere").rename(shard)
    encoder = ColorEncoder()
    embed_documents(encoder, documents, tmp_path / "store")
    assert encoder.encoded == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_vector_that_is_not_a_direction_is_an_error_that_names_the_document(
    tmp_path: Path, bad: float
) -> None:
    encoder = ColorEncoder()
    encoder.bad = bad
    with pytest.raises(VragError, match=r"x/000\.png"):
        embed_documents(encoder, pictures(tmp_path / "x", 3), tmp_path / "store")


def test_a_damaged_picture_stops_the_run_and_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_cache, "SHARD", 4)
    monkeypatch.setattr(embedding_cache, "BATCH", 4)
    documents = pictures(tmp_path / "x", 12)
    (tmp_path / "x" / "010.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(VragError, match=r"010\.png: not a readable picture"):
        embed_documents(ColorEncoder(), documents, tmp_path / "store")
    encoder = ColorEncoder()
    embed_documents(encoder, documents[:8], tmp_path / "store")
    assert encoder.encoded == 0


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="corpus is empty"):
        embed_documents(ColorEncoder(), [], tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_store_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    with pytest.raises(VragError, match="cannot be stored"):
        embed_documents(ColorEncoder(), pictures(tmp_path / "x", 2), blocked)


def test_search_agrees_with_a_plain_loop_over_candidates_and_over_the_whole_corpus(
    tmp_path: Path,
) -> None:
    documents = pictures(tmp_path / "x", 40)
    encoder, rng = ColorEncoder(), np.random.default_rng(0)
    embeddings = embed_documents(encoder, documents, tmp_path / "store")
    queries = [ask(rng.normal(size=3), f"q{i}") for i in range(4)]
    pools = {
        "q0": None,
        "q1": tuple(d.doc_id for d in documents[:15]),
        "q2": tuple(d.doc_id for d in documents[10:30]),
        "q3": None,
    }
    run = dense_run(encoder, embeddings, queries, 10, pools.__getitem__)
    for query in queries:
        names = pools[query.query_id] or embeddings.doc_ids
        scores = {
            name: float(np.dot(encoder.encode_queries([query])[0], embeddings.vectors([name])[0]))
            for name in names
        }
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:10]
        found = run[run["query_id"] == query.query_id]
        assert list(found["doc_id"]) == best
        np.testing.assert_allclose(
            found["score"], [scores[name] for name in best], rtol=1e-4, atol=1e-3
        )


def test_a_query_does_not_find_what_is_left_out_of_its_candidates_and_loses_no_rank_by_it(
    tmp_path: Path,
) -> None:
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, pictures(tmp_path / "x", 40), tmp_path / "store")
    queries = [ask([1, 2, 3], "q0"), ask([3, 1, 0], "q1"), ask([1, 2, 3], "q2")]
    all_found = dense_run(encoder, embeddings, queries, 40)
    order = {query: list(run["doc_id"]) for query, run in all_found.groupby("query_id")}
    out = {"q0": frozenset(order["q0"][:2]), "q1": frozenset(order["q1"][5:6])}
    run = dense_run(encoder, embeddings, queries, 8, left_out=out)
    for query, found in run.groupby("query_id"):
        kept = [doc_id for doc_id in order[query] if doc_id not in out.get(query, ())]
        assert list(found["doc_id"]) == kept[:8]


def on_disk(folder: str, names: Sequence[str], rows: np.ndarray, size: int) -> Embeddings:
    """Embeddings in shards of `size` rows."""
    shards = []
    for start in range(0, len(names), size):
        part = names[start : start + size]
        versions = [""] * len(part)
        shard = write_shard(Path(folder), part, versions, rows[start : start + size], "")
        shards.append(shard)
    counts = [len(part)] if len(shards) == 1 else [size] * (len(shards) - 1) + [len(part)]
    return Embeddings(StringIndex(names), np.arange(len(names)), shards, counts, rows.shape[1])


def obvious(vectors: np.ndarray, names: Sequence[str], rows: np.ndarray, k: int) -> Hits:
    """Every product, one pair at a time, sorted."""
    found = []
    for vector in vectors:
        pairs = zip(rows, names, strict=True)
        scored = [(float(np.dot(vector, row)), name) for row, name in pairs]
        found.append(sorted(scored, reverse=True)[:k])
    return found


LIMITS = ((0, 45), (1, 45), (0, 4), (1, 8))
"""Least and most of: documents compared one by one, rows a shard, documents beyond k, queries
at once.
"""


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_searching_in_blocks_agrees_with_the_slow_obvious_way_ties_included(
    data: st.DataObject,
) -> None:
    """Whole numbers as components: every product is exact, and many are equal."""
    count, dim, asked, k = (data.draw(st.integers(1, most)) for most in (40, 4, 7, 12))
    whole = arrays(np.int8, (count + asked, dim), elements=st.integers(-2, 2))
    numbers = data.draw(whole).astype(np.float32)
    rows, vectors = numbers[:count], numbers[count:]
    names = data.draw(st.permutations([f"d{i:02d}" for i in range(count)]))
    few, size, margin, together = (data.draw(st.integers(low, most)) for low, most in LIMITS)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(dense, "FEW", few)
        patch.setattr(dense, "QUERIES", together)
        patch.setattr(dense, "DOCUMENTS", size)
        patch.setattr(dense, "MARGIN", margin)
        found = nearest_neighbors(vectors, on_disk(folder, names, rows, size), k)
    assert found == obvious(vectors, names, rows, k)


def test_searching_in_blocks_agrees_with_one_flat_index_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import faiss

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 96)).astype(np.float32)
    rows[300:340] = rows[299]  # 41 documents alike, in several blocks
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = np.concatenate([rng.normal(size=(30, 96)).astype(np.float32), rows[299:300]])
    names = [f"d{i:03d}" for i in rng.permutation(700)]
    monkeypatch.setattr(dense, "FEW", 64)
    found = nearest_neighbors(vectors, on_disk(str(tmp_path), names, rows, 64), 30)
    index = faiss.IndexFlatIP(96)
    index.add(rows)
    for vector, hits in zip(vectors, found, strict=True):
        scores, order = index.search(vector[None], 700)
        pairs = zip(scores[0], order[0], strict=True)
        everything = sorted(((float(score), names[i]) for score, i in pairs), reverse=True)
        assert hits == everything[:30]


@pytest.mark.parametrize("kind", ["all equal", "many equal at the cut", "last bits", "any scale"])
def test_as_many_ties_as_there_may_be_are_cut_by_doc_id_to_the_last_bit(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import faiss

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 48)).astype(np.float32)
    if kind == "all equal":
        rows[:] = rows[0]
    elif kind == "many equal at the cut":
        rows[5:] = rows[4]
        rows[rng.permutation(900)[:300]] *= 0.9
    elif kind == "last bits":  # each vector a neighbour of the same one
        rows[:] = rows[0]
        at = rng.integers(48, size=900)
        rows[np.arange(900), at] = np.nextafter(rows[0, at], np.float32(9))
    else:
        rows *= np.exp(rng.normal(scale=9, size=(900, 1))).astype(np.float32)
    rows = rows[rng.permutation(900)]
    names = [f"d{i:03d}" for i in rng.permutation(900)]
    vectors = np.stack([rows[0], rows[1], -rows[2], *rng.normal(size=(25, 48)).astype(np.float32)])
    monkeypatch.setattr(dense, "FEW", 8)
    known = on_disk(str(tmp_path), names, rows, 128)
    for vector, hits in zip(vectors, nearest_neighbors(vectors, known, 30), strict=True):
        scores, order = faiss.knn(vector[None], rows, 900, metric=faiss.METRIC_INNER_PRODUCT)
        pairs = zip(scores[0].tolist(), order[0], strict=True)
        assert hits == sorted(((score, names[i]) for score, i in pairs), reverse=True)[:30]


@pytest.mark.slow
def test_company_does_not_change_a_score(tmp_path: Path) -> None:
    encoder, rng = ColorEncoder(), np.random.default_rng(0)
    embeddings = embed_documents(encoder, pictures(tmp_path / "x", 40), tmp_path / "store")
    queries = [ask(rng.normal(size=3), f"q{i}") for i in range(60)]
    together = dense_run(encoder, embeddings, queries, 5)
    alone = [dense_run(encoder, embeddings, [query], 5) for query in queries]
    assert together.equals(pd.concat(alone, ignore_index=True))


def test_a_query_with_few_candidates_gets_them_all_and_one_without_gets_none(
    tmp_path: Path,
) -> None:
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, pictures(tmp_path / "x", 5), tmp_path / "store")
    names = embeddings.doc_ids
    pools = {"many": None, "two": names[:2], "none": ()}
    queries = [ask([1, 0, 0], name) for name in pools]
    run = dense_run(encoder, embeddings, queries, 30, pools.__getitem__)
    assert run.groupby("query_id").size().to_dict() == {"many": 5, "two": 2}
    with pytest.raises(VragError, match="0 queries"):
        dense_run(encoder, embeddings, [], 3)


def test_a_query_vector_that_is_not_a_direction_is_an_error_that_names_the_query(
    tmp_path: Path,
) -> None:
    encoder = ColorEncoder()
    embeddings = embed_documents(encoder, pictures(tmp_path / "x", 3), tmp_path / "store")
    queries = [ask([1, 0, 0]), ask([float("nan"), 0, 0], "overflown")]
    with pytest.raises(VragError, match="the embedding of 'overflown' has length nan"):
        dense_run(encoder, embeddings, queries, 1)


@pytest.mark.parametrize(
    "kind", ["upright", "turned", "grey", "palette", "transparent", "16-bit", "cmyk", "webp"]
)
def test_every_kind_of_picture_is_decoded_as_pillow_does_upright_and_rgb(kind: str) -> None:
    import io

    from vrag_kit.benchmarks.images import decode
    from vrag_kit.retrieval.encoders.pixels import decode_rgb

    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    ).resize((60, 40))
    exif = Image.Exif()
    exif[0x0112] = 6
    options = (
        {"format": "JPEG", "quality": 95, "exif": exif}
        if kind == "turned"
        else {"format": "JPEG", "quality": 95}
        if kind in ("upright", "cmyk")
        else {"format": "PNG"}
    )
    mode = {"grey": "L", "palette": "P", "transparent": "RGBA", "cmyk": "CMYK"}.get(kind, "RGB")
    converted = (
        Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
        if kind == "16-bit"
        else picture.convert(mode)
    )
    file = io.BytesIO()
    converted.save(file, **({"format": "WEBP", "lossless": True} if kind == "webp" else options))
    theirs = np.array(decode(file.getvalue(), kind), int).transpose(2, 0, 1)
    ours = decode_rgb(file.getvalue(), kind).numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 2


@pytest.mark.slow
def test_the_shipped_retrievers_beat_a_random_order_on_the_small_guide(
    guide: Benchmark, tmp_path: Path
) -> None:
    from vrag_kit.retrieval import RANDOM_BASELINE, score_runs, search_all

    some = guide.subset(list(guide.queries)[::3])
    shown = set().union(*some.pools.values())
    some = replace(some, corpus={name: guide.corpus[name] for name in shown})
    names = ["field-guide-clip-64", "field-guide-clip-32"]
    scores = score_runs(some, search_all(some, names, k=30, cache_dir=tmp_path))
    recall = scores.query("metric == 'recall' and k == 5").groupby("retriever")["value"].mean()
    assert all(recall[name] > 1.5 * recall[RANDOM_BASELINE] for name in names)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX resource limits")
def test_a_disk_that_takes_no_more_is_an_error_that_says_what_is_kept(tmp_path: Path) -> None:
    """The operating system refuses files over 100 kB, as a full disk would; the first
    shards fit, a later one does not.
    """
    script = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_retrieval as t
import vrag_kit.retrieval.embedding_cache as store
documents = t.pictures(Path({str(tmp_path / "x")!r}), 40)
store.SHARD = store.BATCH = 8
class Wide(t.ColorEncoder):
    def encode_documents(self, prepared):
        rows = super().encode_documents(prepared)
        return t.np.tile(rows, (1, 400 if self.encoded <= 24 else 40_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
store.embed_documents(Wide(), documents, {str(tmp_path / "store")!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "embeddings cannot be stored (File too large)" in done.stderr
    assert "finished shards are kept" in done.stderr
    assert len(list((tmp_path / "store").glob("*/shard-*.json.gz"))) == 3
    assert not list((tmp_path / "store").rglob("*.part"))
