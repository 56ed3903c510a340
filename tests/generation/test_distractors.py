"""Distractors beside a clue: the same clue in every arm, first or last, among images of a kind."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from vrag_kit.generation import (
    build_prompt,
    clue_with_distractors,
    contexts,
    distractor_sets,
    gt_clue,
    with_blank_images,
)
from vrag_kit.generation.contexts import blank_id
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import make_run
from vrag_kit.synthetic.visual_rag.counterfactual import (
    counterfactual_id,
    with_contradicting_images,
)
from vrag_kit.types import Benchmark, Context

KINDS = (contexts.BLANK, contexts.ELSEWHERE, contexts.SAME, contexts.NEAR, contexts.CONTRADICTION)
Arms = dict[tuple[str, str], list[Context]]


def ranked(guide: Benchmark) -> pd.DataFrame:
    """A run in the order of the annotations."""
    rows = []
    for query_id, labels in guide.qrels.items():
        rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(labels)]
    return make_run(rows)


@pytest.fixture(scope="module")
def arms(guide: Benchmark) -> Arms:
    stage, look_alikes = with_contradicting_images("field-guide-small", with_blank_images(guide))
    others = distractor_sets(guide, ranked(guide), most=4) | look_alikes
    return clue_with_distractors(stage, others, ks=[1, 3, 5])


def test_every_arm_has_the_clue_of_the_first_draw_in_place(guide: Benchmark, arms: Arms) -> None:
    clues = {context.query_id: context.doc_ids[0] for context in gt_clue(guide, draws=1)}
    alone, duplicate = (contexts.ALONE, "first"), (contexts.DUPLICATE, "first")
    assert set(arms) == {alone, duplicate, *product(KINDS, ("first", "last"))}
    for (kind, place), shown in arms.items():
        pairs = [(context.query_id, context.k) for context in shown]
        assert pairs == list(product(guide.queries, [1] if kind == contexts.ALONE else [3, 5]))
        assert {context.setting for context in shown} == {"one_in_k"}
        for context in shown:
            assert len(context.doc_ids) == context.k
            assert context.doc_ids[0 if place == "first" else -1] == clues[context.query_id]


def test_distractors_are_of_their_kind(guide: Benchmark, arms: Arms) -> None:
    run, kinds = ranked(guide), (*KINDS, contexts.DUPLICATE)
    for row in zip(*(arms[kind, "first"] for kind in kinds), strict=True):
        beside = {kind: each.doc_ids[1:] for kind, each in zip(kinds, row, strict=True)}
        query_id, clue = row[0].query_id, row[0].doc_ids[0]
        clues, group = set(guide.relevant(query_id)), clue.split("/")[0]
        assert set(beside[contexts.BLANK]) == {blank_id(clue)}
        assert set(beside[contexts.DUPLICATE]) == {clue}
        assert not any(doc_id.startswith(group) for doc_id in beside[contexts.ELSEWHERE])
        assert set(beside[contexts.SAME]) <= set(guide.qrels[query_id]) - clues
        order = [each for each in run[run["query_id"] == query_id]["doc_id"] if each not in clues]
        assert list(beside[contexts.NEAR]) == order[: len(beside[contexts.NEAR])]
        contradiction, *rest = beside[contexts.CONTRADICTION]
        assert contradiction == counterfactual_id(clue, query_id)
        assert set(rest) <= {blank_id(clue)}


def test_a_blank_is_grey_and_as_large_as_the_clue(guide: Benchmark, arms: Arms) -> None:
    stage, context = with_blank_images(guide), arms[contexts.BLANK, "last"][0]
    (message,) = build_prompt(stage, context, PROMPTS.use_template("several_images"))
    images = [part for part in message.parts if not isinstance(part, str)]
    blank, clue = images[0].open(), images[-1].open()
    assert blank.size == clue.size
    assert np.unique(np.asarray(blank)).tolist() == [128]
    assert len({each.stamp for each in images}) == 2
    assert stage.pools == guide.pools


def test_a_shallow_run_cuts_all_kinds(guide: Benchmark, capsys: pytest.CaptureFixture[str]) -> None:
    clues = {(query_id, each) for query_id in guide.queries for each in guide.relevant(query_id)}
    run = ranked(guide)
    others = run[[each not in clues for each in zip(run["query_id"], run["doc_id"], strict=True)]]
    two = others.groupby("query_id").head(2)
    cut, whole = (distractor_sets(guide, each, most=4, seed=1) for each in (two, run))
    assert "k = 5 is cut to 3: query" in capsys.readouterr().out
    for kind in (contexts.DUPLICATE, contexts.ELSEWHERE, contexts.SAME, contexts.NEAR):
        assert cut[kind] == {query_id: shown[:2] for query_id, shown in whole[kind].items()}
    near = clue_with_distractors(guide, cut, ks=[1, 5])[contexts.NEAR, "last"]
    assert {each.k for each in near} == {3}
