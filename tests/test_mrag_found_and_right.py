"""What retrievers find beside what is right: correlations against SciPy's and counting."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from mrag_rows import four_questions
from scipy import stats

from vrag_kit.analysis import save_answers
from vrag_kit.generation import ask_models
from vrag_kit.judging import judge_answers
from vrag_kit.papers.mrag_bench.audit import published_tables, retriever_correlations
from vrag_kit.papers.mrag_bench.choices import MultipleChoiceJudge
from vrag_kit.papers.mrag_bench.figures import retriever_ranking
from vrag_kit.papers.mrag_bench.results import (
    accuracy_by_scenario,
    gains_by_scenario,
    scenario_weights,
    with_scenarios,
)
from vrag_kit.papers.mrag_bench.retrieval import (
    published_retrieval_vs_accuracy,
    retrieval_accuracy_correlations,
    retrieval_vs_accuracy,
)
from vrag_kit.papers.mrag_bench.settings import load_prompts

PRINTED = published_retrieval_vs_accuracy()


def labels(figure: Figure) -> list[str]:
    """The names of the rows of a figure, from above."""
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_the_papers_correlations_are_scipys_with_interval_and_what_24_orders_allow() -> None:
    table = retrieval_accuracy_correlations(PRINTED).set_index("scenario")
    for scenario, part in PRINTED.groupby("scenario"):
        theirs = stats.pearsonr(part["retrieval_score"], part["accuracy"])
        row = table.loc[scenario]
        assert row["pearson"] == pytest.approx(theirs.statistic)
        interval = theirs.confidence_interval()
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
        x, y = part["retrieval_score"].to_numpy(), part["accuracy"].to_numpy()
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
        every = [abs(np.corrcoef(x, order)[0, 1]) for order in permutations(y)]
        strong = sum(r >= abs(theirs.statistic) - 1e-9 for r in every)
        assert row["p"] == pytest.approx(strong / 24)
    assert table.loc["overall", "p"] == 3 / 24  # the paper's "strong 95%"
    assert set(table["n"]) == {4}
    own = retriever_correlations(published_tables()).set_index("scenario")["pearson"]
    assert own.to_dict() == pytest.approx(table["pearson"].drop("within scenarios").to_dict())


def test_within_scenarios_each_counts_from_its_own_mean() -> None:
    """Two scenarios on levels of their own, in each of which found and right rise alike."""
    rows = []
    for scenario, low, high in (("overall", 0.0, 0.0), ("angle", 0.1, 0.8), ("scope", 0.6, 0.1)):
        for place, name in enumerate("abcd"):
            rows.append(("m", name, scenario, "hit@5", low + place / 20, high + place / 50))
    columns = ["model", "retriever", "scenario", "metric", "retrieval_score", "accuracy"]
    table = retrieval_accuracy_correlations(pd.DataFrame(rows, columns=columns)).set_index(
        "scenario"
    )
    within = table.loc["within scenarios"]
    assert within["pearson"] == pytest.approx(1.0)
    assert within["p"] == within["p_least"] == pytest.approx(2 / 24)  # as found, and reversed
    assert np.isnan(within["ci_low"])


def test_planted_rankings_are_no_retrievers_and_correlate_with_nothing() -> None:
    """One that stands where it would turn the paper's 0.95 round changes nothing."""
    oracle = PRINTED[PRINTED["retriever"] == "CLIP"].assign(retriever="rows, 60 % planted")
    both = pd.concat([PRINTED, oracle.assign(retrieval_score=1.0, accuracy=0.0)], ignore_index=True)
    overall = both.query("scenario == 'overall'")
    assert overall["retrieval_score"].corr(overall["accuracy"]) < 0
    pd.testing.assert_frame_equal(
        retrieval_accuracy_correlations(both), retrieval_accuracy_correlations(PRINTED)
    )


def test_the_rows_own_pictures_count_no_retriever_twice() -> None:
    """On the paper's data they are CLIP's, and as a fifth point would decide what four
    leave open; of them alone there is nothing to correlate.
    """
    rows = PRINTED[PRINTED["retriever"] == "CLIP"].assign(retriever="rows")
    both = pd.concat([PRINTED, rows], ignore_index=True)
    pd.testing.assert_frame_equal(
        retrieval_accuracy_correlations(both), retrieval_accuracy_correlations(PRINTED)
    )
    figure = retriever_ranking(rows, PRINTED)
    assert figure.get_label().startswith("No retriever was evaluated here")
    assert "as shipped (n = 1,353)" in labels(figure)


def test_a_query_by_text_is_named_beside_the_other_two() -> None:
    names = {"MagicLens": "clip", "E5-V": "clip-by-image", "VISTA": "clip-by-both"}
    drawn = labels(retriever_ranking(PRINTED.replace(names), PRINTED[:0]))
    assert [name.rpartition(" (n")[0] for name in drawn[1:]] == [
        *("CLIP", "clip by both", "clip by image", "clip by text"),
    ]


def test_what_never_changes_goes_together_with_nothing() -> None:
    same = PRINTED.assign(accuracy=0.5)
    table = retrieval_accuracy_correlations(same)
    assert table[["pearson", "ci_low", "p", "spearman"]].isna().all(axis=None)


def test_hits_and_accuracies_meet_by_retriever_and_scenario_and_are_drawn() -> None:
    share = {"value": 0.5, "ci_low": 0.4, "ci_high": 0.6, "n": 9, "n_failed": 0}
    hits = [
        {"retriever": name, "scenario": scenario, "metric": metric, **share}
        for name in "ab"
        for scenario in ("overall", "angle")
        for metric in ("hit@5", "recall@5")
    ]
    levels = (("overall", "overall"), ("aspect", "perspective"), ("scenario", "angle"))
    results = [
        {"model": "m", "retriever": name, "level": level, "scenario": scenario, **share}
        for name in "ab"
        for level, scenario in levels
    ]
    results = pd.DataFrame(results).assign(metric="accuracy", value=0.25)
    both = retrieval_vs_accuracy(pd.DataFrame(hits), results)
    assert len(both) == 8  # aspects are left out
    assert set(both["retrieval_score"]) == {0.5}
    assert set(both["accuracy"]) == {0.25}
    planted = both.replace("b", "rows, 60 % planted")
    figure = retriever_ranking(planted, PRINTED)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["Gold image among the five", "Correct answer (accuracy)"]
    assert labels(figure)[:4] == [
        *("retrievers run here", "a (n = 9)"),
        *("retrieved set of the data", "gold inserted for 60 % of questions (n = 9)"),
    ]
    assert figure.get_label().startswith("Of 1 retrievers run here a finds")


def test_without_a_model_the_papers_numbers_are_drawn_alone(tmp_path: Path) -> None:
    four = four_questions()
    none = ask_models([], four, [], tmp_path, prompts=load_prompts("paper")).assign(
        retriever="mine"
    )
    judged = with_scenarios(judge_answers(MultipleChoiceJudge(), four, none), four)
    save_answers(judged, four, tmp_path, "33_mine", tmp_path)
    assert not list(tmp_path.glob("33_*"))  # which nobody could compare
    results = accuracy_by_scenario(
        judged, weights=scenario_weights(four), by=["model", "retriever"]
    )
    hits = {"retriever": "mine", "scenario": "overall", "metric": "hit@5", "value": 0.5}
    found = pd.DataFrame([{**hits, "ci_low": 0.4, "ci_high": 0.6}])
    both = retrieval_vs_accuracy(found, results)
    assert both.empty
    assert retrieval_accuracy_correlations(both).empty
    assert labels(retriever_ranking(both, PRINTED))[0] == "reported by the paper"
    gains = gains_by_scenario(judged.assign(hit=""), weights=None, arm="hit", baseline="miss")
    assert gains.empty
