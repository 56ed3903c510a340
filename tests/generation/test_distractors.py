"""Distractors beside a clue: the same clue in every arm, first or last, among images of a kind."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from vrag_kit.generation import (
    build_prompt,
    clue_with_distractors,
    distractor_sets,
    gt_clue,
    with_blank_images,
)
from vrag_kit.generation.contexts import (
    ALONE,
    BLANK,
    CONTRADICTION,
    DUPLICATE,
    ELSEWHERE,
    NEAR,
    SAME,
    blank_id,
)
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import make_run
from vrag_kit.synthetic.visual_rag.counterfactual import (
    counterfactual_id,
    with_contradicting_images,
)
from vrag_kit.types import Benchmark, Context

K = 5


def ranked(guide: Benchmark) -> pd.DataFrame:
    """A run in the order of the annotations."""
    rows = []
    for query_id, labels in guide.qrels.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(labels)]
    return make_run(rows)


@pytest.fixture(scope="module")
def arms(guide: Benchmark) -> dict[tuple[str, str], list[Context]]:
    stage, look_alikes = with_contradicting_images("field-guide-small", with_blank_images(guide))
    others = distractor_sets(guide, ranked(guide), most=K - 1) | look_alikes
    return clue_with_distractors(stage, others, ks=[1, 3, K])


def test_every_arm_has_the_clue_of_the_first_draw_where_it_says(
    guide: Benchmark, arms: dict[tuple[str, str], list[Context]]
) -> None:
    clues = {context.query_id: context.doc_ids[0] for context in gt_clue(guide, draws=1)}
    kinds = {BLANK, ELSEWHERE, SAME, NEAR, CONTRADICTION}
    assert set(arms) == {
        (ALONE, "first"),
        (DUPLICATE, "first"),
        *product(kinds, ("first", "last")),
    }
    for (kind, place), contexts in arms.items():
        asked = [(context.query_id, context.k) for context in contexts]
        assert asked == list(product(guide.queries, [1] if kind == ALONE else [3, K]))
        for context in contexts:
            assert len(context.doc_ids) == context.k
            assert context.doc_ids[0 if place == "first" else -1] == clues[context.query_id]


def test_company_is_of_its_kind(
    guide: Benchmark, arms: dict[tuple[str, str], list[Context]]
) -> None:
    run = ranked(guide)
    for contexts in zip(*(arms[kind, "first"] for kind in arms_of(arms)), strict=True):
        beside = {
            kind: context.doc_ids[1:] for kind, context in zip(arms_of(arms), contexts, strict=True)
        }
        query_id, clue = contexts[0].query_id, contexts[0].doc_ids[0]
        clues, group = set(guide.relevant(query_id)), clue.split("/")[0]
        assert set(beside[BLANK]) == {blank_id(clue)}
        assert set(beside[DUPLICATE]) == {clue}
        assert not any(doc_id.startswith(group) for doc_id in beside[ELSEWHERE])
        assert set(beside[SAME]) <= set(guide.qrels[query_id]) - clues
        order = list(run[run["query_id"] == query_id]["doc_id"])
        expected = [doc_id for doc_id in order if doc_id not in clues]
        assert list(beside[NEAR]) == expected[: len(beside[NEAR])]
        again, *rest = beside[CONTRADICTION]
        assert again == counterfactual_id(clue, query_id)
        assert set(rest) <= {blank_id(clue)}


def arms_of(arms: dict[tuple[str, str], list[Context]]) -> list[str]:
    """The kinds with every k."""
    return list(dict.fromkeys(kind for kind, _ in arms if kind != ALONE))


def test_all_arms_have_one_wording_and_a_blank_is_grey_and_as_large_as_the_clue(
    guide: Benchmark, arms: dict[tuple[str, str], list[Context]]
) -> None:
    stage = with_blank_images(guide)
    (message,) = build_prompt(stage, arms[BLANK, "last"][0], PROMPTS.use_template("several_images"))
    pictures = [part for part in message.parts if not isinstance(part, str)]
    blank, clue = pictures[0].open(), pictures[-1].open()
    assert blank.size == clue.size
    assert np.unique(np.asarray(blank)).tolist() == [128]
    assert np.ptp(np.asarray(clue)) > 50
    assert len({each.stamp for each in pictures}) == 2
    assert {context.setting for contexts in arms.values() for context in contexts} == {"one_in_k"}
    assert stage.pools == guide.pools


def test_a_shallow_run_cuts_all_company_alike_and_says_so(
    guide: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    clues = {(query_id, each) for query_id in guide.queries for each in guide.relevant(query_id)}
    run = ranked(guide)
    others = run[[each not in clues for each in zip(run["query_id"], run["doc_id"], strict=True)]]
    two = others.groupby("query_id").head(2)
    cut, whole = (distractor_sets(guide, each, most=4, seed=1) for each in (two, run))
    assert "k = 5 is cut to 3: query" in capsys.readouterr().out
    for kind in (DUPLICATE, ELSEWHERE, SAME, NEAR):
        assert cut[kind] == {query_id: shown[:2] for query_id, shown in whole[kind].items()}
    assert {each.k for each in clue_with_distractors(guide, cut, ks=[1, 5])[NEAR, "last"]} == {3}
