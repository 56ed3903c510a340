"""Evidence side by side and in modes: nested, paired, and as the definition says."""

from __future__ import annotations

from dataclasses import replace

import factories
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import evidence_modes, top_k_per_modality
from vrag_kit.retrieval import make_run
from vrag_kit.types import Benchmark, Context, Document

PICTURES = [f"p{number}" for number in range(6)]
TEXTS = [f"t{number}" for number in range(6)]
LABELS = {"q0": {"p4": 1, "p1": 2, "p0": 0, "p2": 1, "t3": 1}, "q1": {"t0": 1, "t1": 0}}


def small(**changes: object) -> Benchmark:
    """Two queries over six pictures and six texts; q0 has gold p4, p1, p2 and t3, q1 t0."""
    documents = [Document(doc_id=each, image=ImageFile(f"{each}.png")) for each in PICTURES]
    documents += [Document(doc_id=each, text=each) for each in TEXTS]
    return replace(factories.benchmark(("q0", "q1"), documents, LABELS), **changes)


def ranked(documents: list[str]) -> pd.DataFrame:
    """A run that finds these for both queries, in this order."""
    rows = [("q0", doc_id, -float(place)) for place, doc_id in enumerate(documents)]
    return make_run([*rows, *(("q1", *hit) for _, *hit in rows)])


RUNS = {"image": ranked(PICTURES), "text": ranked(TEXTS)}


def shown(contexts: list[Context], query_id: str) -> dict[str, tuple[str, ...]]:
    return {each.setting: each.doc_ids for each in contexts if each.query_id == query_id}


def test_the_modes_of_a_small_case_are_those_of_the_definition() -> None:
    contexts = evidence_modes(small(), RUNS, ks={"image": 2, "text": 3})
    found = {name: {m: set(d) for m, d in shown(contexts, name).items()} for name in ("q0", "q1")}
    assert found["q0"] == {
        "distractors_only": {"p0", "p3", "t0", "t1", "t2"},
        "gt_plus_distractors": {"p4", "p1", "t3", "t0", "t1"},
        "gt_only": {"p4", "p1", "t3"},  # at most two of three gold pictures
    }
    assert found["q1"] == {
        "distractors_only": {"p0", "p1", "t1", "t2", "t3"},
        "gt_plus_distractors": {"p0", "p1", "t0", "t1", "t2"},
        "gt_only": {"t0"},
    }
    for context in contexts:  # pictures come first
        assert context.k == 5
        assert [doc_id[0] for doc_id in context.doc_ids] == sorted(d[0] for d in context.doc_ids)
    one = evidence_modes(small().subset(["q1"]), RUNS, ks={"image": 2, "text": 3})
    assert one == [each for each in contexts if each.query_id == "q1"]
    assert evidence_modes(small(), RUNS, seed=1) != evidence_modes(small(), RUNS, seed=2)


@settings(max_examples=30, deadline=None)
@given(
    st.permutations(PICTURES),
    st.lists(st.sampled_from(PICTURES), min_size=1, max_size=6, unique=True),
    st.integers(1, 6),
    st.integers(0, 3),
)
def test_modes_are_nested_and_paired(order: list[str], gold: list[str], k: int, seed: int) -> None:
    benchmark, runs = (
        small(qrels={**LABELS, "q0": dict.fromkeys(gold, 1)}),
        {"image": ranked(order)},
    )
    arms, deeper = (
        shown(evidence_modes(benchmark, runs, ks={"image": n}, seed=seed), "q0") for n in (k, k + 1)
    )
    distractors = [each for each in order if each not in gold]
    assert set(arms["distractors_only"]) == set(distractors[:k])
    assert set(arms["gt_only"]) == set(gold[:k])
    plus = [each for each in arms["gt_plus_distractors"] if each not in gold]
    assert set(plus) == set(distractors[: max(0, k - len(gold))])
    assert [each for each in arms["distractors_only"] if each in plus] == plus
    for mode, documents in arms.items():
        assert set(documents) <= set(deeper[mode])


def test_a_pool_and_what_a_query_may_not_be_shown_bound_the_distractors() -> None:
    pools = {"q0": ("p0", "p1", "p3", "t3"), "q1": ("t0", "t1")}
    benchmark = small(pools=pools, left_out={"q0": frozenset({"p3"})})
    runs = {"image": make_run([("q0", "p0", 1.0)]), "text": make_run([("q1", "t1", 1.0)])}
    contexts = evidence_modes(benchmark, runs)
    assert shown(contexts, "q0")["distractors_only"] == ("p0",)
    assert set(shown(contexts, "q1")["gt_plus_distractors"]) == {"t0", "t1"}


def test_side_by_side_shows_the_best_of_each_run_pictures_first() -> None:
    both, _ = top_k_per_modality(small(), RUNS, ks={"text": 2, "image": 1})
    assert (both.setting, both.k, both.doc_ids) == ("both", 3, ("p0", "t0", "t1"))
    image, _ = top_k_per_modality(small(), RUNS, ks={"image": 7, "text": 0})
    assert (image.setting, image.doc_ids) == ("image", tuple(PICTURES))


@pytest.mark.parametrize(
    ("changes", "runs", "words"),
    [
        ({}, {**RUNS, "text": RUNS["text"][RUNS["text"]["rank"] <= 2]}, "'q1': found 1"),
        ({"qrels": {"q0": {"p1": 1}, "q1": {"t0": 0}}}, RUNS, "'q1': found no gold evidence"),
        ({}, {"image": RUNS["image"]}, "no run of the modality 'text'"),
    ],
)
def test_a_shallow_run_and_a_query_without_gold_are_refused_by_name(
    changes: dict[str, object], runs: dict[str, pd.DataFrame], words: str
) -> None:
    with pytest.raises(VragError, match=words):
        evidence_modes(small(**changes), runs, ks={"image": 1, "text": 2})
