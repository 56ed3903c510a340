"""Which documents a question gets: draws that are nested, paired and stable; evidence in modes; and
distractors beside a clue.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

import factories
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.benchmarks import ImageFile
from vrag_kit.building.requirements import notebook_requirements
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    build_prompt,
    clue_with_distractors,
    cutoffs_above_one,
    distractor_sets,
    evidence_modes,
    first_clue,
    gt_clue,
    m_gt,
    m_in_k,
    non_clue,
    one_in_k,
    one_in_k_easy,
    top_k,
    top_k_per_modality,
    with_blank_images,
    with_min_clues,
)
from vrag_kit.generation import contexts as kinds
from vrag_kit.generation.contexts import blank_id
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import make_run
from vrag_kit.retrieval.metrics import oracle_run
from vrag_kit.synthetic.visual_rag.counterfactual import (
    counterfactual_id,
    with_contradicting_images,
)
from vrag_kit.types import Benchmark, Context, Document, Query


def benchmark(clues: int, others: int) -> Benchmark:
    docs = [f"c{i}" for i in range(clues)] + [f"n{i}" for i in range(others)]
    names = ("q1", "q2")
    labels = {q: {d: int(d.startswith("c")) for d in docs} for q in names}
    return factories.benchmark(names, docs, labels, pools=dict.fromkeys(names, tuple(docs)))


def several(groups: int, images: int) -> Benchmark:
    """One query a group, the first image of each its only clue."""
    docs = {f"q{g}": tuple(f"g{g}-{i}" for i in range(images)) for g in range(groups)}
    queries = [Query(query_id=q, text="What?", group=q.replace("q", "g")) for q in docs]
    labels = {q: {d: int(d.endswith("-0")) for d in each} for q, each in docs.items()}
    return factories.benchmark(queries, chain.from_iterable(docs.values()), labels, pools=docs)


Drawn = dict[tuple[int, int], tuple[str, ...]]


def by_draw(contexts: list[Context], query_id: str = "q1") -> Drawn:
    """(draw, k) → documents."""
    return {(c.draw, c.k): c.doc_ids for c in contexts if c.query_id == query_id}


@given(st.integers(1, 8))
def test_draws_use_every_clue_before_any_comes_again(clues):
    drawn = [docs[0] for docs in by_draw(gt_clue(benchmark(clues, 3), draws=2 * clues)).values()]
    assert sorted(drawn[:clues]) == sorted(f"c{i}" for i in range(clues))
    assert drawn[clues:] == drawn[:clues]


def test_the_clue_moves_and_the_others_keep_their_order():
    b = benchmark(2, 30)
    first, *others = by_draw(one_in_k(b, ks=[5], draws=1))[0, 5]
    for position in (0, 1, -1, 4):
        moved = list(by_draw(one_in_k(b, ks=[5], draws=1, clue_position=position))[0, 5])
        assert moved.pop(position) == first
        assert moved == others


def test_retrieved_evidence_is_the_head_of_a_run_and_the_first_clue_its_best_ranked_one():
    run = make_run(
        [("q0", "g0-3", 0.9), ("q0", "g0-0", 0.5), ("q1", "g1-2", 0.9), ("q1", "g1-1", 0.8)]
    )
    b = several(3, 4)
    best = {(c.query_id, c.k): c.doc_ids for c in top_k(b, run, ks=[1, 5])}
    assert best["q0", 1] == ("g0-3",)
    assert best["q1", 5] == ("g1-2", "g1-1")  # the run is as shallow as this
    assert best["q2", 5] == ()
    assert [(c.query_id, c.doc_ids) for c in first_clue(b, run)] == [("q0", ("g0-0",))]


def test_what_is_left_out_is_searched_neither_in_a_pool_nor_in_the_corpus():
    left_out = {"q1": frozenset({"c0", "n2"})}
    pooled = replace(benchmark(1, 3), left_out=left_out, pools={"q1": ("n2", "n1"), "q2": ()})
    assert [pooled.searchable(query_id) for query_id in ("q1", "q2")] == [["n1"], []]
    whole = replace(pooled, pools=None)
    assert whole.searchable("q1") == ["n0", "n1"]
    assert whole.searchable("q2") == ["c0", "n0", "n1", "n2"]


@given(st.integers(3, 30), st.integers(2, 6))
@settings(max_examples=20)
def test_easy_negatives_are_of_as_many_groups_as_possible(groups, images):
    b = several(groups, max(images, 20))
    most = min(20, (groups - 1) * images + 1)
    ks = sorted({3, most})
    easy, same = by_draw(one_in_k_easy(b, ks=ks, draws=2)), by_draw(one_in_k(b, ks=[3], draws=2))
    for draw in range(2):
        for k in ks:
            clue, *others = easy[draw, k]
            assert clue == same[draw, 3][0]
            assert len(set(others)) == k - 1
            assert not any(d.startswith("g1-") for d in others)
            assert len({d.split("-")[0] for d in others}) == min(k - 1, groups - 1)
        assert easy[draw, most][:3] == easy[draw, 3]


def test_a_seed_moves_clues_non_clues_and_easy_negatives_alike():
    b, others = benchmark(5, 30), several(8, 6)
    for setting in (gt_clue, non_clue):
        assert by_draw(setting(b, seed=1)) != by_draw(setting(b, seed=2))
    one, two = (one_in_k_easy(others, ks=[5], draws=1, seed=seed) for seed in (1, 2))
    assert [context.doc_ids[1:] for context in one] != [context.doc_ids[1:] for context in two]


def test_a_notebooks_needs_are_compared_with_what_a_benchmark_has():
    table = notebook_requirements(benchmark(2, 10)).set_index("notebook")
    needs = table.loc["04_top_k_vs_one_in_k", ["candidates", "non_clues", "cut"]]
    assert needs.tolist() == [20, 19, True]
    few = notebook_requirements(benchmark(2, 10), ks=[1, 3, 5]).set_index("notebook")
    cut = ["02_retriever_comparison", "15_error_budget", "19_abstention_as_detection"]
    assert list(few.index[few["cut"]]) == cut  # whose other k are their own


def test_adding_a_query_or_a_document_or_a_k_moves_nothing_else():
    b = benchmark(3, 300)
    before = by_draw(one_in_k(b))
    more = {"queries": {**b.queries, "q0": Query(query_id="q0", text="?")}}
    more |= {
        name: {**getattr(b, name), "q0": getattr(b, name)["q1"]} for name in ("qrels", "pools")
    }
    assert by_draw(one_in_k(replace(b, **more))) == before
    more_ks = by_draw(one_in_k(b, ks=(3, 4, 5, 7, 10, 15, 20)))
    assert {key: docs for key, docs in more_ks.items() if key[1] != 4} == before
    unused = set(b.corpus).difference(*before.values()).pop()
    pools = {q: tuple(d for d in docs if d != unused) for q, docs in b.pools.items()}
    assert by_draw(one_in_k(replace(b, pools=pools))) == before


@given(st.integers(1, 8), st.integers(19, 40), st.integers(0, 99))
@settings(max_examples=30)
def test_one_in_k_has_its_clue_first_and_is_nested(clues, others, seed):
    b = benchmark(clues, others)
    contexts, single = by_draw(one_in_k(b, seed=seed)), by_draw(gt_clue(b, seed=seed))
    distractors = by_draw(non_clue(b, seed=seed))
    for draw in range(5):
        previous: tuple[str, ...] = ()
        for k in (3, 5, 7, 10, 15, 20):
            docs = contexts[draw, k]
            assert len(set(docs)) == k
            assert [d[0] for d in docs] == ["c"] + ["n"] * (k - 1)
            assert docs[: len(previous)] == previous
            previous = docs
        # the clue of a draw is the same in both settings, and so is its first non-clue
        assert contexts[draw, 3][:2] == (single[draw, 1][0], distractors[draw, 1][0])


@given(st.integers(5, 9), st.integers(20, 30), st.integers(0, 9))
@settings(max_examples=20)
def test_m_clues_are_nested_alone_and_among_others(clues, others, seed):
    b = benchmark(clues, others)
    alone = by_draw(m_gt(b, seed=seed))
    shown = [c for c in m_in_k(b, seed=seed) if c.query_id == "q1"]
    mixed = {(c.draw, c.m): c.doc_ids for c in shown}
    single, one = by_draw(gt_clue(b, seed=seed)), by_draw(one_in_k(b, ks=[10], seed=seed))
    for draw in range(5):
        assert alone[draw, 1] == single[draw, 1]
        assert mixed[draw, 1] == one[draw, 10]
        for m in (1, 2, 3, 4, 5):
            assert len(set(alone[draw, m])) == m == str(mixed[draw, m]).count("'c")
            assert mixed[draw, m][:m] == alone[draw, m]
            assert len(set(mixed[draw, m])) == 10
            assert alone[draw, m][: m - 1] == alone[draw, max(1, m - 1)][: m - 1]


def test_a_k_beyond_the_pool_is_cut_and_said(capsys):
    b = benchmark(2, 10)
    shown = [(len(each.doc_ids), each.k) for each in one_in_k(b, ks=[3, 15, 20], draws=1)]
    assert shown == [(3, 3), (11, 11)] * 2
    ranked = top_k(b, oracle_run(b.qrels), ks=[3, 15, 20], full_depth=True)
    assert {(len(each.doc_ids), each.k) for each in ranked} == {(3, 3), (12, 12)}
    assert {context.k for context in one_in_k_easy(several(2, 2), ks=[5])} == {3}
    output = capsys.readouterr().out
    assert "k = 15, 20 is cut to 11" in output
    assert "k = 5 is cut to 3: query 'q0' has 2 images of other groups" in output


PICTURES = [f"p{number}" for number in range(6)]
TEXTS = [f"t{number}" for number in range(6)]
LABELS = {"q0": {"p4": 1, "p1": 2, "p0": 0, "p2": 1, "t3": 1}, "q1": {"t0": 1, "t1": 0}}


def small(**changes: object) -> Benchmark:
    """Two queries over six pictures and six texts; q0 has gold p4, p1, p2 and t3, q1 t0."""
    documents = [Document(doc_id=each, image=ImageFile(f"{each}.png")) for each in PICTURES]
    documents += [Document(doc_id=each, text=each) for each in TEXTS]
    return replace(factories.benchmark(("q0", "q1"), documents, LABELS), **changes)


def both_find(documents: list[str]) -> pd.DataFrame:
    """A run that finds these for both queries, in this order."""
    rows = [("q0", doc_id, -float(place)) for place, doc_id in enumerate(documents)]
    return make_run([*rows, *(("q1", *hit) for _, *hit in rows)])


RUNS = {"image": both_find(PICTURES), "text": both_find(TEXTS)}


def test_the_modes_of_a_small_case_are_those_of_the_definition():
    contexts = evidence_modes(small(), RUNS, ks={"image": 2, "text": 3})
    found = {}
    for context in contexts:
        assert context.k == 5
        assert list(context.doc_ids) == sorted(context.doc_ids, key=lambda doc_id: doc_id[0])
        found[context.query_id, context.setting] = set(context.doc_ids)
    assert found == {
        ("q0", "distractors_only"): {"p0", "p3", "t0", "t1", "t2"},
        ("q0", "gt_plus_distractors"): {"p4", "p1", "t3", "t0", "t1"},
        ("q0", "gt_only"): {"p4", "p1", "t3"},  # at most two of three gold pictures
        ("q1", "distractors_only"): {"p0", "p1", "t1", "t2", "t3"},
        ("q1", "gt_plus_distractors"): {"p0", "p1", "t0", "t1", "t2"},
        ("q1", "gt_only"): {"t0"},
    }
    for context in evidence_modes(small(), RUNS, ks={"image": 3, "text": 4}):  # nested
        assert found[context.query_id, context.setting] <= set(context.doc_ids)
    one = evidence_modes(small().subset(["q1"]), RUNS, ks={"image": 2, "text": 3})
    assert one == [each for each in contexts if each.query_id == "q1"]
    assert evidence_modes(small(), RUNS, seed=1) != evidence_modes(small(), RUNS, seed=2)


def test_a_pool_and_what_a_query_may_not_be_shown_bound_the_distractors():
    pools = {"q0": ("p0", "p1", "p3", "t3"), "q1": ("t0", "t1")}
    benchmark = small(pools=pools, left_out={"q0": frozenset({"p3"})})
    runs = {"image": make_run([("q0", "p0", 1.0)]), "text": make_run([("q1", "t1", 1.0)])}
    shown = {(c.query_id, c.setting): c.doc_ids for c in evidence_modes(benchmark, runs)}
    assert shown["q0", "distractors_only"] == ("p0",)
    assert set(shown["q1", "gt_plus_distractors"]) == {"t0", "t1"}


def test_side_by_side_shows_the_best_of_each_run_pictures_first():
    both, _ = top_k_per_modality(small(), RUNS, ks={"text": 2, "image": 1})
    assert (both.setting, both.k, both.doc_ids) == ("both", 3, ("p0", "t0", "t1"))
    image, _ = top_k_per_modality(small(), RUNS, ks={"image": 7, "text": 0})
    assert (image.setting, image.doc_ids) == ("image", tuple(PICTURES))


Arms = dict[tuple[str, str], list[Context]]
KINDS = (
    kinds.BLANK,
    kinds.ELSEWHERE,
    kinds.SAME,
    kinds.NEAR,
    kinds.CONTRADICTION,
)


def ranked(guide: Benchmark) -> pd.DataFrame:
    """A run in the order of the annotations."""
    rows = []
    for query_id, labels in guide.qrels.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(labels)]
    return make_run(rows)


@pytest.fixture(scope="module")
def arms(guide):
    stage, look_alikes = with_contradicting_images("field-guide-small", with_blank_images(guide))
    others = distractor_sets(guide, ranked(guide), most=4) | look_alikes
    return clue_with_distractors(stage, others, ks=[1, 3, 5])


def test_every_arm_has_the_clue_of_the_first_draw_in_place(guide, arms):
    clues = {context.query_id: context.doc_ids[0] for context in gt_clue(guide, draws=1)}
    alone, duplicate = (kinds.ALONE, "first"), (kinds.DUPLICATE, "first")
    assert set(arms) == {alone, duplicate, *product(KINDS, ("first", "last"))}
    for (kind, place), shown in arms.items():
        pairs = [(context.query_id, context.k) for context in shown]
        assert pairs == list(product(guide.queries, [1] if kind == kinds.ALONE else [3, 5]))
        assert {context.setting for context in shown} == {"one_in_k"}
        for context in shown:
            assert len(context.doc_ids) == context.k
            assert context.doc_ids[0 if place == "first" else -1] == clues[context.query_id]


def test_distractors_are_of_their_kind(guide, arms):
    run = ranked(guide)
    for place, context in enumerate(arms[kinds.SAME, "first"]):
        query_id, clue = context.query_id, context.doc_ids[0]
        every = (*KINDS, kinds.DUPLICATE)
        beside = {kind: arms[kind, "first"][place].doc_ids[1:] for kind in every}
        clues, group = set(guide.relevant(query_id)), clue.split("/")[0]
        assert set(beside[kinds.BLANK]) == {blank_id(clue)}
        assert set(beside[kinds.DUPLICATE]) == {clue}
        assert not any(doc_id.startswith(group) for doc_id in beside[kinds.ELSEWHERE])
        assert set(beside[kinds.SAME]) <= set(guide.qrels[query_id]) - clues
        order = [each for each in run[run["query_id"] == query_id]["doc_id"] if each not in clues]
        assert list(beside[kinds.NEAR]) == order[: len(beside[kinds.NEAR])]
        contradiction, *rest = beside[kinds.CONTRADICTION]
        assert contradiction == counterfactual_id(clue, query_id)
        assert set(rest) <= {blank_id(clue)}


def test_a_blank_is_grey_and_as_large_as_the_clue(guide, arms):
    stage, context = with_blank_images(guide), arms[kinds.BLANK, "last"][0]
    (message,) = build_prompt(stage, context, PROMPTS.use_template("several_images"))
    images = [part for part in message.parts if not isinstance(part, str)]
    blank, clue = images[0].open(), images[-1].open()
    assert blank.size == clue.size
    assert np.unique(np.asarray(blank)).tolist() == [128]
    assert len({each.stamp for each in images}) == 2
    assert stage.pools == guide.pools


def test_a_shallow_run_cuts_all_kinds(guide, capsys):
    clues = {(query_id, each) for query_id in guide.queries for each in guide.relevant(query_id)}
    run = ranked(guide)
    others = run[[each not in clues for each in zip(run["query_id"], run["doc_id"], strict=True)]]
    two = others.groupby("query_id").head(2)
    cut, whole = (distractor_sets(guide, each, most=4, seed=1) for each in (two, run))
    assert "k = 5 is cut to 3: query" in capsys.readouterr().out
    for kind in (
        kinds.DUPLICATE,
        kinds.ELSEWHERE,
        kinds.SAME,
        kinds.NEAR,
    ):
        assert cut[kind] == {query_id: shown[:2] for query_id, shown in whole[kind].items()}
    near = clue_with_distractors(guide, cut, ks=[1, 5])[kinds.NEAR, "last"]
    assert {each.k for each in near} == {3}


FEW, ONE = benchmark(2, 0), benchmark(1, 9)
RUN = make_run([("q1", "c0", 1.0)])
SHORT = RUNS["text"][RUNS["text"]["rank"] <= 2]
IMAGES, BARE = {"image": RUNS["image"]}, {"q0": {"p1": 1}, "q1": {"t0": 0}}
KS = {"image": 1, "text": 2}
UNKNOWN = Context(query_id="q", setting="zeroshot", k=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: non_clue(FEW), "found 0 images that are no clue; expected 1"),
        (lambda: one_in_k(ONE, ks=[3], clue_position=3), "is 3; expected -3 to 2"),
        (lambda: top_k(ONE, RUN, ks=[1], full_depth=True), "0 documents for query 'q2'"),
        (lambda: m_gt(ONE, ms=[3]), "'q1': found 1 clues; expected 3"),
        (lambda: with_min_clues(ONE, 4), "at most 1 clues .*`max_clues: 1`"),
        (lambda: one_in_k_easy(several(1, 2), ks=[5]), "0 images of other groups"),
        (lambda: cutoffs_above_one([1]), "expected a k above 1"),
        (lambda: distractor_sets(ONE, RUN.head(0), most=4), "found 0 documents in the run"),
        (lambda: PROMPTS.template_for(UNKNOWN), "'zeroshot'; expected one of zero_shot, gt_clue, "),
        (lambda: evidence_modes(small(), RUNS | {"text": SHORT}, ks=KS), "'q1': found 1"),
        (lambda: evidence_modes(small(qrels=BARE), RUNS, ks=KS), "'q1': found no gold evidence"),
        (lambda: evidence_modes(small(), IMAGES, ks=KS), "no run of the modality 'text'"),
    ],
)
def test_too_few_images_are_named_with_what_to_do(call, words):
    with pytest.raises(VragError, match=words):
        call()
