"""An answer follows the image, keeps the fact, abstains or does anything else."""

from __future__ import annotations

import factories
import pandas as pd
import pytest

from vrag_kit.analysis import column_means
from vrag_kit.errors import VragError
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers.visual_rag.evidence_swap import OUTCOMES, counterfactual_outcomes
from vrag_kit.types import Benchmark, Query

FOLLOWS, KEEPS, ABSTAINS, ELSE = OUTCOMES


def benchmark(value: str, queries: int) -> Benchmark:
    asked = [Query(query_id=f"q{i}", text="What color?", answers=(value,)) for i in range(queries)]
    return factories.benchmark(asked, fingerprint=value)


def answers(*said: str | None, model: str = "m", image: str = "counterfactual") -> pd.DataFrame:
    told = ["error" if each is None else "ok" if each else "empty" for each in said]
    return factories.answers(answer=list(said), status=told, model=model, image=image)


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Outcomes where the original value is red, the new one blue."""
    n, judge = len(table), load_judge("rule")
    own = judge_answers(judge, benchmark("red", n), table)
    return counterfactual_outcomes(own, judge_answers(judge, benchmark("blue", n), table))


def test_each_answer_does_one_of_four_things() -> None:
    said = ["blue", "red", "I don't know", "green", "red and blue", "", "not red, blue"]
    found = outcomes(answers(*said))[list(OUTCOMES)]
    assert list(found.idxmax(axis=1)) == [FOLLOWS, KEEPS, ABSTAINS, ELSE, ELSE, ELSE, FOLLOWS]
    assert (found.sum(axis=1) == 1).all()


def test_an_answer_without_a_verdict_does_nothing_that_is_known() -> None:
    found = outcomes(answers("blue", None))
    assert found.loc[1, list(OUTCOMES)].isna().all()
    shares = column_means(found, list(OUTCOMES), by=["model", "image"])
    assert shares["n"].tolist() == [1] * 4
    assert shares["n_failed"].tolist() == [1] * 4


def test_tables_of_different_answers_are_refused() -> None:
    judge = load_judge("rule")
    one = judge_answers(judge, benchmark("red", 2), answers("red", "blue"))
    two = judge_answers(judge, benchmark("blue", 2), answers("red", "green"))
    with pytest.raises(VragError, match="not the same answers"):
        counterfactual_outcomes(one, two)
