"""ROUGE-1 recall is what the package gives; rank correlations agree with SciPy; the
paper's ROUGE tables are read as printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from vrag_kit.analysis import column_means
from vrag_kit.analysis.agreement import association
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.judging import add_rouge, rouge_recall
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.abstention import with_uncertainty
from vrag_kit.papers.visual_rag.rouge import (
    rouge_figure,
    rouge_mean_correlation,
    rouge_score_correlation,
)

TEXTS = st.text(alphabet="abB., ", max_size=12)


def test_the_package_is_the_papers_version() -> None:
    assert version("rouge") == "1.0.1"  # footnote 8


@given(TEXTS, st.lists(TEXTS, max_size=3))
@settings(deadline=None)
def test_recall_is_the_packages_and_where_the_package_refuses_0_or_nan(
    answer: str, references: list[str]
) -> None:
    recalls, refused = [], ""
    for reference in references:
        try:
            recalls.append(Rouge().get_scores(answer, reference)[0]["rouge-1"]["r"])
        except ValueError as error:
            refused = str(error)
            recalls += [0.0] if refused == "Hypothesis is empty." and reference.strip(".") else []
    ours = rouge_recall(answer, references)
    assert ours == max(recalls) if recalls else math.isnan(ours)
    assert math.isnan(ours) or 0 <= ours <= 1


def words(text: str) -> set[str]:
    return {word for sentence in text.split(".") if sentence for word in sentence.split() or [""]}


@given(TEXTS.filter(lambda text: text.strip(".")), TEXTS.filter(lambda text: text.strip(".")))
@settings(deadline=None)
def test_recall_is_the_share_of_distinct_words_between_full_stops_and_spaces(
    answer: str, reference: str
) -> None:
    assert rouge_recall(answer, [reference]) == pytest.approx(
        len(words(reference) & words(answer)) / len(words(reference))
    )


def test_an_answer_without_words_recalls_nothing_and_without_references_is_not_scored() -> None:
    assert rouge_recall("It is white and red", ["black and white"]) == 2 / 3  # and, white
    assert rouge_recall("", ["black"]) == rouge_recall("...", ["black"]) == 0
    assert math.isnan(rouge_recall("black", []))
    assert math.isnan(rouge_recall("black", ["", "."]))
    assert rouge_recall("black", [".", "black"]) == 1


def test_failed_questions_have_no_rouge_and_never_zero(
    write_annotations: Callable[..., Path], tree: Path
) -> None:
    benchmark = load_visual_rag(write_annotations({"answer": ["dark black", "black"]}), tree)
    (query_id,) = benchmark.queries
    answers = pd.DataFrame(
        {
            "query_id": [query_id] * 4,
            "answer": ["black", None, "", "dark red"],
            "status": ["ok", "timeout", "ok", "ok"],
        }
    )
    np.testing.assert_array_equal(add_rouge(benchmark, answers)["rouge"], [1.0, np.nan, 0.0, 0.5])


def test_a_row_that_is_no_answer_to_a_query_is_refused(
    write_annotations: Callable[..., Path], tree: Path
) -> None:
    benchmark = load_visual_rag(write_annotations({}), tree)
    (query_id,) = benchmark.queries
    for row in (
        {"query_id": "other", "answer": "black"},
        {"query_id": query_id, "answer": math.nan},
    ):
        with pytest.raises(VragError, match=r"row 0 .*found query .* a query of visual-rag"):
            add_rouge(benchmark, pd.DataFrame([{**row, "status": "ok"}]))


def test_means_are_over_queries_and_count_the_answers_without_a_value() -> None:
    table = pd.DataFrame(
        {
            "model": "m",
            "setting": "gt_clue",
            "k": 1,
            "query_id": list("aabbc"),
            "group": list("ssttu"),
            "rouge": [1.0, 0.5, 0.25, np.nan, np.nan],
        }
    )
    row = column_means(table, ["rouge"]).iloc[0]
    # a: (1 + 0.5) / 2 = 0.75, b: 0.25, c has none: (0.75 + 0.25) / 2
    assert (row["metric"], row["value"], row["n"], row["n_failed"]) == ("rouge", 0.5, 2, 2)
    assert 0 <= row["ci_low"] < 0.25  # of two species: wider than from the one to the other
    assert 0.75 < row["ci_high"] <= 1


def ratings(seed: int, n: int = 40, groups: int = 8) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Two columns with many ties, correlated within groups."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, n) / 4
    return (
        x,
        np.round(np.clip(x + rng.normal(0, 0.4, n), 0, 1) * 2) / 2,
        [f"s{i}" for i in rng.integers(0, groups, n)],
    )


@pytest.mark.parametrize("seed", range(8))
def test_measures_agree_with_scipy_and_scikit_learn(seed: int) -> None:
    x, y, groups = ratings(seed)
    assert association(x, y, groups, measure="spearman").value == pytest.approx(
        stats.spearmanr(x, y).statistic
    )
    assert association(x, y, groups, measure="kendall").value == pytest.approx(
        stats.kendalltau(x, y).statistic
    )
    assert association(x, y, groups, measure="kappa").value == pytest.approx(
        cohen_kappa_score((4 * x).astype(int), (4 * y).astype(int))
    )


@pytest.mark.slow
def test_the_interval_is_that_of_a_slow_bootstrap_over_groups() -> None:
    x, y, groups = ratings(3)
    names = np.unique(groups)
    draws = np.random.default_rng(5).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=1000
    )
    members = [np.flatnonzero(np.array(groups) == name) for name in names]
    slow = [
        stats.spearmanr(x[rows], y[rows]).statistic
        for times in draws
        for rows in [np.concatenate([np.tile(m, t) for m, t in zip(members, times, strict=True)])]
    ]
    ours = association(x, y, groups, measure="spearman", seed=5)
    assert (ours.ci_low, ours.ci_high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])))
    assert (ours.n, ours.n_failed) == (40, 0)


def test_pairs_without_a_value_are_left_out_and_counted() -> None:
    x, y, groups = ratings(1)
    gaps = np.where(np.arange(40) % 10 == 0, np.nan, x)
    ours, without = association(gaps, y, groups, measure="kendall"), np.isfinite(gaps)
    assert ours.value == pytest.approx(stats.kendalltau(x[without], y[without]).statistic)
    assert (ours.n, ours.n_failed) == (36, 4)


def test_what_does_not_vary_has_no_correlation_and_what_does_not_differ_no_interval() -> None:
    constant, empty = (
        association([1, 1, 1], [0, 1, 0], list("abc"), measure="spearman"),
        association([np.nan], [1.0], ["a"], measure="kappa"),
    )
    assert math.isnan(constant.value)
    assert (math.isnan(empty.value), empty.n, empty.n_failed) == (True, 0, 1)
    perfect = association([0, 1, 0, 1], [0, 1, 0, 1], list("abcd"), measure="kappa")
    assert perfect.value == 1
    assert math.isnan(perfect.ci_low)
    assert math.isnan(
        association([0, 1, 1], [1, 1, 0], ["a"] * 3, measure="kappa").ci_low
    )  # one group tells nothing


def test_an_unknown_measure_and_uneven_lengths_are_refused() -> None:
    with pytest.raises(VragError, match="'pearson'; expected one of kappa, spearman, kendall"):
        association([1.0], [1.0], ["a"], measure="pearson")
    with pytest.raises(VragError, match="2 and 1 values but 2 groups"):
        association([1.0, 2.0], [1.0], ["a", "b"], measure="kappa")


def test_rouge_follows_the_judge_as_scipy_says_model_by_model() -> None:
    parts = []
    for seed, model in enumerate(["m", "n"]):
        x, y, groups = ratings(seed)
        parts.append(
            pd.DataFrame(
                {"model": model, "query_id": groups, "group": groups, "rouge": x, "score": y}
            )
        )
    table = rouge_score_correlation(pd.concat(parts)).set_index(["model", "measure"])
    assert table.loc[("n", "spearman"), "value"] == pytest.approx(
        stats.spearmanr(parts[1]["rouge"], parts[1]["score"]).statistic
    )
    assert table.loc[("m", "kendall"), "value"] == pytest.approx(
        stats.kendalltau(parts[0]["rouge"], parts[0]["score"]).statistic
    )
    assert (table["ci_low"] < table["value"]).all()
    assert (table["value"] < table["ci_high"]).all()


def test_the_papers_rouge_has_one_number_for_every_cell_of_table_3() -> None:
    rouge, accuracy = (
        with_uncertainty(published("visual_rag", [14, 16], statistic=["avg", "single"])),
        with_uncertainty(published("visual_rag", table=3)),
    )
    keys = ["model", "setting", "k"]
    assert set(rouge[keys].itertuples(index=False)) == set(accuracy[keys].itertuples(index=False))
    assert len(rouge) == 124
    values = rouge.set_index(keys)["value"]
    # (18.79 + 19.29 + 18.74 + 19.70 + 18.91) / 5 = 19.086
    assert (
        values["Phi4-MM", "gt_clue", 1],
        values["Qwen2.5VL", "one_in_k", 3],
        values["Claude", "top_k", 20],
    ) == (19.09, 7.13, 37.95)


def paper_arms() -> pd.DataFrame:
    return pd.concat(
        [
            with_uncertainty(published("visual_rag", table=3)),
            with_uncertainty(published("visual_rag", [14, 16], statistic=["avg", "single"])),
        ],
        ignore_index=True,
    )


def test_arms_are_correlated_within_models_or_across_them() -> None:
    arms = paper_arms()
    wide = arms.pivot_table(index=["model", "setting", "k"], columns="metric", values="value")
    within, across = (
        rouge_mean_correlation(arms, ["model"]).set_index("model"),
        rouge_mean_correlation(arms, ["setting", "k"]).set_index(["setting", "k"]),
    )
    assert within.loc["GPT-4o", "value"] == pytest.approx(
        stats.spearmanr(*wide.loc["GPT-4o"].T.to_numpy()).statistic
    )
    assert within["n"].to_dict() == {
        model: 14 if model in ("Pixtral", "Llama3.2-V") else 16 for model in within.index
    }
    part = wide.xs(("non_clue", 1), level=("setting", "k"))
    assert across.loc[("non_clue", 1), "value"] == pytest.approx(
        stats.spearmanr(*part.T.to_numpy()).statistic
    )


def test_two_models_tell_nothing_across_models() -> None:
    table = rouge_mean_correlation(
        paper_arms().query("model in ('GPT-4o', 'Claude')"), ["setting", "k"]
    )
    assert table["value"].isna().all()
    assert set(table["n"]) == {2}


def test_arms_with_failed_answers_are_hollow_and_reach_to_their_bounds() -> None:
    arms = paper_arms().query("model == 'GPT-4o' and setting == 'gt_clue'")
    value = arms["value"]
    ours = arms.assign(n_failed=3, bound_low=value - 5, bound_high=value + 2)
    figure = rouge_figure({"ours": ours, "paper": paper_arms()}, title="", caption="")
    left, right = figure.axes
    assert [line.get_markerfacecolor() for line in left.lines] == ["white"]
    assert all(line.get_markerfacecolor() != "white" for line in right.lines)
    x = arms[arms["metric"] == "accuracy"]["value"].item()
    assert list(left.collections[-1].get_segments()[0][:, 0]) == [x - 5, x + 2]
    (legend,) = figure.legends
    assert any("failed" in text.get_text() for text in legend.get_texts())


def test_the_rouge_figure_has_a_point_for_every_arm_and_the_correlation_of_its_models() -> None:
    arms = paper_arms()
    ours = arms.query("model == 'GPT-4o'").assign(model="mine")
    left, right = rouge_figure({"mine": ours, "paper": arms}, title="", caption="").axes
    wide = arms.pivot_table(index=["model", "setting", "k"], columns="metric", values="value")
    drawn = {
        (float(x), float(y))
        for line in right.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert drawn == set(wide[["accuracy", "rouge"]].itertuples(index=False, name=None))
    assert [text.get_text() for text in left.texts] == ["mine: ρ = 0.79"]
    assert [text.get_text() for text in right.texts] == ["8 models: ρ = −0.01 to 0.79"]
