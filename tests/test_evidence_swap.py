"""An answer follows the picture, keeps the fact, declines or does anything else, and the
effect of the picture is what it changes.
"""

from __future__ import annotations

import factories
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_kit.analysis import column_means, to_percent
from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers.visual_rag.evidence_swap import (
    OUTCOMES,
    counterfactual_bars,
    counterfactual_effect,
    counterfactual_outcomes,
)
from vrag_kit.types import Benchmark, Query

FOLLOWS, KEEPS, DECLINES, ELSE = OUTCOMES


def benchmark(value: str, queries: int) -> Benchmark:
    asked = [Query(query_id=f"q{i}", text="What color?", answers=(value,)) for i in range(queries)]
    return factories.benchmark(asked, fingerprint=value)


def answers(*said: str | None, model: str = "m", image: str = "counterfactual") -> pd.DataFrame:
    told = ["error" if each is None else "ok" if each else "empty" for each in said]
    return factories.answers(answer=list(said), status=told, model=model, image=image)


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """The species' own value is red, the swapped one blue."""
    n, judge = len(table), load_judge("rule")
    own = judge_answers(judge, benchmark("red", n), table)
    return counterfactual_outcomes(own, judge_answers(judge, benchmark("blue", n), table))


def test_each_answer_does_one_of_four_things() -> None:
    said = ["blue", "red", "I don't know", "green", "red and blue", "", "not red, blue"]
    found = outcomes(answers(*said))[list(OUTCOMES)]
    assert list(found.idxmax(axis=1)) == [FOLLOWS, KEEPS, DECLINES, ELSE, ELSE, ELSE, FOLLOWS]
    assert (found.sum(axis=1) == 1).all()


def test_tables_of_several_arms_joined_with_their_own_rows_keep_one_row_an_answer() -> None:
    arms = [answers("red", "green", image=image) for image in ("original", "counterfactual")]
    found = outcomes(pd.concat(arms))  # rows 0, 1, 0, 1
    assert found[KEEPS].tolist() == [1, 0, 1, 0]
    assert found["image"].tolist() == ["original"] * 2 + ["counterfactual"] * 2


def test_an_answer_without_a_verdict_does_nothing_that_is_known() -> None:
    found = outcomes(answers("blue", None))
    assert found.loc[1, list(OUTCOMES)].isna().all()
    shares = column_means(found, OUTCOMES, by=["model", "image"])
    assert shares["n"].tolist() == [1] * 4
    assert shares["n_failed"].tolist() == [1] * 4


def test_the_effect_is_what_the_picture_adds_to_naming_the_value() -> None:
    # before the original: blue 1 of 4, red 2 of 4; before the swapped: blue 3 of 4, red 1 of 4
    before = outcomes(answers("red", "red", "blue", "I don't know", image="original"))
    after = outcomes(answers("blue", "red", "blue", "blue"))
    effect = counterfactual_effect(pd.concat([before, after]))
    by_outcome = effect.set_index("outcome")
    assert by_outcome.loc[FOLLOWS, "value"] == pytest.approx(3 / 4 - 1 / 4)
    assert by_outcome.loc[KEEPS, "value"] == pytest.approx(1 / 4 - 2 / 4)
    assert (effect["image"] == "counterfactual").all()
    assert (effect["n"] == 4).all()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["blue", "red", "green", "idk"]), min_size=2, max_size=6))
def test_who_answers_the_same_to_both_pictures_does_not_look(said: list[str]) -> None:
    both = [outcomes(answers(*said, image=each)) for each in ("original", "counterfactual")]
    assert (counterfactual_effect(pd.concat(both))["value"] == 0).all()


def test_who_only_looks_has_an_effect_of_one_and_of_minus_one_on_the_fact() -> None:
    before = outcomes(answers("red", "red", "red", image="original"))
    effect = counterfactual_effect(pd.concat([before, outcomes(answers("blue", "blue", "blue"))]))
    assert effect.set_index("outcome")["value"].to_dict() == {FOLLOWS: 1.0, KEEPS: -1.0}


def test_strata_are_told_apart() -> None:
    before = outcomes(answers("red", "red", "red", "red", image="original"))
    after = outcomes(answers("red", "red", "blue", "blue"))
    both = pd.concat([before, after])
    both["stratum"] = np.where(both["query_id"].isin(["q0", "q1"]), "told", "not told")
    effect = counterfactual_effect(both, by=["stratum"]).query("outcome == @FOLLOWS")
    assert effect.set_index("stratum")["value"].to_dict() == {"told": 0.0, "not told": 1.0}


def test_tables_of_different_answers_are_refused() -> None:
    judge = load_judge("rule")
    one = judge_answers(judge, benchmark("red", 2), answers("red", "blue"))
    two = judge_answers(judge, benchmark("blue", 2), answers("red", "green"))
    with pytest.raises(VragError, match="not the same answers"):
        counterfactual_outcomes(one, two)


def test_the_figure_has_a_panel_a_stratum_and_a_bar_an_image_and_model() -> None:
    tables = []
    for model in ("m", "n"):
        tables += [
            outcomes(answers("red", "blue", "red", model=model, image=each))
            for each in ("original", "counterfactual", "none")
        ]
    table = pd.concat(tables)
    table = pd.concat([table.assign(stratum=name) for name in ("told", "all questions")])
    shares = to_percent(column_means(table, OUTCOMES, by=["model", "image", "stratum"]))
    figure = counterfactual_bars(shares)
    (axis,) = figure.axes
    assert axis.get_title(loc="left") == "told\nn = 3 questions"
    assert len(axis.patches) == 2 * 3 * 4
    assert sum(bar.get_width() for bar in axis.patches) == pytest.approx(100 * 2 * 3)
