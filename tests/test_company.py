"""Company for a clue: the same clue in every arm, first or last, among pictures of one
kind; and what each kind costs, by hand.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.generation import (
    build_prompt,
    clue_with_distractors,
    distractor_sets,
    gt_clue,
    one_in_k,
    one_in_k_easy,
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
from vrag_kit.papers.visual_rag.evidence_swap import (
    HARDNESS,
    INTERFERENCE,
    LENGTH,
    distractor_cost,
    distractor_cost_by_k,
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


def test_what_the_papers_settings_have_too_is_the_same_prompt(
    guide: Benchmark, arms: dict[tuple[str, str], list[Context]]
) -> None:
    assert arms[SAME, "first"] == one_in_k(guide, ks=[3, K], draws=1)
    assert arms[SAME, "last"] == one_in_k(guide, ks=[3, K], draws=1, clue_position=-1)
    easy = one_in_k_easy(guide, ks=[3, K], draws=1)
    assert [c.doc_ids for c in arms[ELSEWHERE, "first"]] == [c.doc_ids for c in easy]


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


def test_photographs_have_no_look_alikes_and_a_short_run_no_company(guide: Benchmark) -> None:
    assert with_contradicting_images({"annotations": "a", "image_root": "b"}, guide) == (guide, {})
    with pytest.raises(VragError, match="found 0 documents in the run that are no clue"):
        distractor_sets(guide, ranked(guide).head(0), most=4)


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


SCORES = {
    # company: scores of three questions at (k = 3, k = 5), the clue first
    ALONE: [(1, 1), (1, 1), (1, 1)],
    BLANK: [(1, 1), (1, 0), (1, 1)],
    DUPLICATE: [(1, 1), (1, 1), (1, 1)],
    ELSEWHERE: [(0, 0), (1, 0), (1, 1)],
    SAME: [(0, 1), (0, 1), (1, 1)],
}


def judged() -> pd.DataFrame:
    rows = []
    for (kind, scores), (at, k) in product(SCORES.items(), enumerate((3, 5))):
        if kind == ALONE and at:
            continue
        for number, both in enumerate(scores):
            name = f"q{number}"
            row = {"model": "m", "query_id": name, "group": name, "distractors": kind}
            shown = 1 if kind == ALONE else k
            rows.append({**row, "clue_position": "first", "k": shown, "score": float(both[at])})
    return pd.DataFrame(rows)


def test_length_interference_and_hardness_are_paired_differences_by_hand() -> None:
    table = distractor_cost(judged()).set_index(["step", "distractors", "k"])["value"]
    assert table[LENGTH, BLANK, 3] == 0
    assert table[LENGTH, BLANK, 5] == pytest.approx(-1 / 3)
    assert table[LENGTH, DUPLICATE, 5] == 0
    assert table[INTERFERENCE, ELSEWHERE, 3] == pytest.approx(-1 / 3)
    assert table[INTERFERENCE, SAME, 3] == pytest.approx(-2 / 3)
    assert table[INTERFERENCE, SAME, 5] == pytest.approx(1 / 3)
    assert table[HARDNESS, SAME, 3] == pytest.approx(1 / 3 - 2 / 3)
    assert (INTERFERENCE, DUPLICATE, 3) not in table.index
    assert len(table) == 2 * (2 + 2 + 1)


def test_growth_is_the_change_of_the_difference_to_blanks() -> None:
    table = distractor_cost_by_k(judged()).set_index("distractors")
    # same less blank: −2/3 at k = 3, +1/3 at k = 5; elsewhere: −1/3 at both
    assert table.loc[SAME, "value"] == pytest.approx(1.0)
    assert table.loc[ELSEWHERE, "value"] == pytest.approx(0.0)
    assert set(table["ks"]) == {"3 to 5"}
    assert distractor_cost_by_k(judged().query("k < 5")).empty


def test_without_the_clue_alone_there_is_no_length() -> None:
    with pytest.raises(VragError, match="no answers with distractors 'none'"):
        distractor_cost(judged().query("distractors != @ALONE"))


def test_what_no_step_compares_is_refused_with_what_to_ask() -> None:
    with pytest.raises(VragError, match=r"found none, same_species\. Expected 'blank'"):
        distractor_cost(judged().query("distractors in (@ALONE, @SAME)"))
    with pytest.raises(VragError, match=r"no answers beside 'blank'; found .*`with_blank_images`"):
        distractor_cost_by_k(judged().query("distractors != @BLANK"))


def test_company_whose_calls_all_failed_stays_a_row() -> None:
    table = judged()
    failed = table.assign(
        score=table["score"].mask((table["distractors"] == SAME) & (table["k"] == 5))
    )
    costs = distractor_cost(failed).set_index(["step", "distractors", "k"])
    assert costs.loc[(INTERFERENCE, SAME, 5), ["n", "n_failed"]].tolist() == [0, 3]
    growth = distractor_cost_by_k(failed).set_index("distractors")
    assert growth.loc[SAME, ["n", "n_failed"]].tolist() == [0, 3]
    assert growth.loc[ELSEWHERE, ["n", "n_failed"]].tolist() == [3, 0]
