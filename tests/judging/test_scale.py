"""A judge's scale, here −1 to 1, goes through all of judging and analysis: nothing is cut at
0, calls the worst partial, or takes 0 for wrong.
"""

import factories
import pandas as pd
import pytest

from vrag_kit.analysis import mean_scores, paired_differences, per_query
from vrag_kit.errors import VragError
from vrag_kit.judging import Scale, judge_answers
from vrag_kit.papers.visual_rag.answers import classify_answers, error_cases
from vrag_kit.types import Benchmark, Judgment, Query

TRUTH = Scale(-1.0, 1.0)


SCORES = {"right": 1.0, "I don't know": 0.0, "wrong": -1.0}
NAMES = [f"q{n}" for n in range(8)]
EIGHT = factories.benchmark(
    [Query(query_id=q, text="What?", answers=("right",), group=q) for q in NAMES],
    [f"{q}-c" for q in NAMES],
    {q: {f"{q}-c": 1} for q in NAMES},
)


class Truthful:
    """Right answers earn 1, wrong ones cost 1, declining is worth 0."""

    name, scale = "truthful", TRUTH

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        assert set(answers["query_id"]) <= set(benchmark.queries)
        return [(Judgment(score=SCORES[answer], raw=answer),) for answer in answers["answer"]]


def judged(answers: list[str | None], setting: str = "gt_clue", k: int = 1) -> pd.DataFrame:
    """One answer a query; None failed."""
    failed = ["timeout" if answer is None else "ok" for answer in answers]
    table = factories.answers(answer=answers, setting=setting, k=k, status=failed)
    table["doc_ids"] = [(f"{name}-c",) for name in table["query_id"]]
    return judge_answers(Truthful(), EIGHT, table)


def test_failures_are_filled_with_the_ends_of_the_scale():
    row = mean_scores(judged(["right", "wrong", None, None])).query("metric == 'accuracy'").iloc[0]
    assert (row["value"], row["bound_low"], row["bound_high"]) == (0.0, -0.5, 0.5)


def test_the_largest_difference_is_twice_as_large():
    tables = [judged(["wrong"] * 8), judged(["right"] * 8, "zero_shot", 0)]
    values = per_query(pd.concat(tables), by=["model", "setting"])
    row = paired_differences(values, arm="setting", by=["model"], baseline="zero_shot").iloc[0]
    # eight of eight fall by 2, and so many may rise by 2 without showing among eight
    rise = 1 - 0.025 ** (1 / 8)
    assert (row["value"], row["ci_low"]) == (-2.0, -2.0)
    assert row["ci_high"] == pytest.approx(-2 + 4 * rise)
    assert row["p"] == pytest.approx(2 * 0.5**8)  # the sign test's


def test_wrong_is_wrong_and_not_partly_right():
    table = judged(["right", "wrong", "I don't know"])
    cases = error_cases(table, EIGHT)
    assert cases[["answer", "outcome"]].to_numpy().tolist() == [
        ["wrong", "incorrect"],
        ["I don't know", "abstained"],
    ]
    assert sorted(classify_answers(table)) == ["abstained", "correct", "incorrect"]


def test_scores_of_two_scales_have_no_mean():
    mixed = pd.concat([judged(["right"]), judged(["right"]).assign(score_min=0.0)])
    with pytest.raises(VragError, match=r"different scales: \[-1, 1\] and \[0, 1\]"):
        mean_scores(mixed)
    with pytest.raises(VragError, match="expected worst < best"):
        Scale(1.0, 1.0)
