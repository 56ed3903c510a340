"""Search is exact to the last bit, in candidate pools and everywhere, ties by doc_id descending."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from retrieval_data import ColorEncoder, ask, pictures, refused

from vrag_kit.retrieval import dense, embed_documents
from vrag_kit.retrieval.dense import dense_run, nearest_neighbors
from vrag_kit.retrieval.shards import Embeddings, write_shard

Hits = list[list[tuple[float, str]]]


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    return embed_documents(ColorEncoder(), pictures(folder / "x", 40), folder / "store")


def test_search_agrees_with_a_plain_loop_in_pools_and_everywhere(embeddings):
    encoder, rng, ids = ColorEncoder(), np.random.default_rng(0), tuple(embeddings.ids)
    queries = [ask(rng.normal(size=3), f"q{i}") for i in range(4)]
    pools = {"q0": None, "q1": ids[:15], "q2": ids[10:30], "q3": None}
    run = dense_run(encoder, embeddings, queries, 10, pools.__getitem__)
    for query in queries:
        names = pools[query.query_id] or ids
        products = embeddings.rows(embeddings.positions(names)) @ encoder.encode_queries([query])[0]
        best = np.argsort(-products)[:10]
        found = run[run["query_id"] == query.query_id]
        assert list(found["doc_id"]) == [names[place] for place in best]
        np.testing.assert_allclose(found["score"], products[best], rtol=1e-4, atol=1e-3)


def test_what_is_excluded_is_not_found_and_takes_no_rank(embeddings):
    encoder = ColorEncoder()
    queries = [ask([1, 2, 3], "q0"), ask([3, 1, 0], "q1"), ask([1, 2, 3], "q2")]
    everything = dense_run(encoder, embeddings, queries, 40)
    order = everything.groupby("query_id")["doc_id"].agg(list)
    out = {"q0": frozenset(order["q0"][:2]), "q1": frozenset(order["q1"][5:6])}
    run = dense_run(encoder, embeddings, queries, 8, left_out=out)
    for query, found in run.groupby("query_id"):
        kept = [doc_id for doc_id in order[query] if doc_id not in out.get(query, ())]
        assert list(found["doc_id"]) == kept[:8]


def test_few_candidates_are_all_found_whatever_else_is_asked(embeddings):
    encoder, rng = ColorEncoder(), np.random.default_rng(0)
    pools = {"many": None, "two": tuple(embeddings.ids)[:2], "none": ()}
    queries = [ask(rng.normal(size=3), name) for name in pools]
    run = dense_run(encoder, embeddings, queries, 30, pools.__getitem__)
    assert run.groupby("query_id").size().to_dict() == {"many": 30, "two": 2}
    queries = [ask(rng.normal(size=3), f"q{number}") for number in range(60)]
    alone = [dense_run(encoder, embeddings, [query], 5) for query in queries]
    together = dense_run(encoder, embeddings, queries, 5)
    assert together.equals(pd.concat(alone, ignore_index=True))


def test_no_query_and_a_vector_without_direction_are_refused(embeddings):
    encoder, nan = ColorEncoder(), ask([float("nan"), 0, 0], "overflown")
    refused(lambda: dense_run(encoder, embeddings, [], 3), "0 queries")
    refused(lambda: dense_run(encoder, embeddings, [nan], 1), "'overflown' has length nan")


def on_disk(folder: str, names: Sequence[str], rows: np.ndarray, size: int) -> Embeddings:
    """Embeddings in shards of `size` rows."""
    shards = []
    for start in range(0, len(names), size):
        part = names[start : start + size]
        vectors = rows[start : start + size]
        shards.append(write_shard(Path(folder), part, [""] * len(part), vectors))
    return Embeddings(pd.Index(names, dtype=object), np.arange(len(names)), shards)


def obvious(vectors: np.ndarray, names: Sequence[str], rows: np.ndarray, k: int) -> Hits:
    """Every product, one pair at a time by FAISS, sorted."""
    found = []
    for vector in vectors:
        scores, order = faiss.knn(vector[None], rows, len(rows), metric=faiss.METRIC_INNER_PRODUCT)
        pairs = zip(scores[0].tolist(), order[0], strict=True)
        found.append(sorted(((score, names[i]) for score, i in pairs), reverse=True)[:k])
    return found


LIMITS = {"FEW": (0, 45), "DOCUMENTS": (1, 45), "MARGIN": (0, 4), "QUERIES": (1, 8)}
"""Least and most of: documents compared one by one, rows a shard, documents beyond k, queries
at once.
"""


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_searching_in_blocks_agrees_with_every_pair_ties_included(data):
    """Whole numbers as components: every product is exact, and many are equal."""
    count, dim, asked, k = (data.draw(st.integers(1, most)) for most in (40, 4, 7, 12))
    whole = arrays(np.int8, (count + asked, dim), elements=st.integers(-2, 2))
    numbers = data.draw(whole).astype(np.float32)
    rows, vectors = numbers[:count], numbers[count:]
    names = data.draw(st.permutations([f"d{i:02d}" for i in range(count)]))
    limits = {name: data.draw(st.integers(*ends)) for name, ends in LIMITS.items()}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for name, limit in limits.items():
            patch.setattr(dense, name, limit)
        known = on_disk(folder, names, rows, limits["DOCUMENTS"])
        assert nearest_neighbors(vectors, known, k) == obvious(vectors, names, rows, k)


def tied(rows: np.ndarray, kind: str, rng: np.random.Generator) -> None:
    if kind == "all equal":
        rows[:] = rows[0]
    elif kind == "many equal at the cut":
        rows[5:] = rows[4]
        rows[rng.permutation(900)[:300]] *= 0.9
    elif kind == "last bits":  # each vector a neighbour of the same one
        rows[:] = rows[0]
        at = rng.integers(48, size=900)
        rows[np.arange(900), at] = np.nextafter(rows[0, at], np.float32(9))
    elif kind == "any scale":
        rows *= np.exp(rng.normal(scale=9, size=(900, 1))).astype(np.float32)


@pytest.mark.parametrize(
    "kind", ["all equal", "many equal at the cut", "last bits", "any scale", "no ties"]
)
def test_ties_to_the_last_bit(kind, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 48)).astype(np.float32)
    tied(rows, kind, rng)
    rows = rows[rng.permutation(900)]
    names = [f"d{i:03d}" for i in rng.permutation(900)]
    vectors = np.stack([rows[0], rows[1], -rows[2], *rng.normal(size=(25, 48)).astype(np.float32)])
    monkeypatch.setattr(dense, "FEW", 8)
    found = nearest_neighbors(vectors, on_disk(str(tmp_path), names, rows, 128), 30)
    assert found == obvious(vectors, names, rows, 30)
