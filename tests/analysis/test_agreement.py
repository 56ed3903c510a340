"""Agreement with people against the paper's Table 9, scikit-learn, SciPy and statsmodels; the
correction against hand calculations and simulations.
"""

import math

import factories
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score
from statsmodels.stats.inter_rater import cohens_kappa

from vrag_kit.analysis import (
    agreement,
    confusion_matrix,
    corrected_accuracy,
    judge_bias_check,
    paired_differences,
    per_query,
)
from vrag_kit.analysis.agreement import association
from vrag_kit.errors import VragError
from vrag_kit.judging.human_labels import LABEL_SCORES
from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.judge import READINGS, expand_confusion

PAPER = expand_confusion(published("visual_rag", table=9))
TABLE_9 = agreement(PAPER, READINGS).set_index(["label_mapping", "metric"])


def test_kappa_and_its_interval_agree_with_statsmodels():
    ours = TABLE_9.loc[("strict", "kappa")]
    theirs = cohens_kappa(confusion_matrix(PAPER), wt="linear")
    assert ours["value"] == pytest.approx(theirs.kappa)
    width = theirs.kappa_upp - theirs.kappa_low
    assert ours["ci_high"] - ours["ci_low"] == pytest.approx(width, rel=0.1)


def arm(scores: list[float], groups: str, setting: str = "zero_shot") -> pd.DataFrame:
    """Judged answers of one arm, the i-th to the i-th query."""
    return factories.judged(score=scores, group=list(groups), setting=setting, k=0)


def corrected(judged: pd.DataFrame, rows: list[int], human: list[str]) -> pd.Series:
    """The corrected row of the one arm, with the answers `rows` labelled `human`."""
    table = corrected_accuracy(judged, judged.iloc[rows].assign(human_label=human))
    return table[table["metric"] == "corrected"].iloc[0]


def test_the_correction_agrees_with_a_case_worked_by_hand():
    row = corrected(arm([1, 1, 0.5, 0.5, 0, 1], "aabbcd"), [0, 2, 4], ["true", "false", "false"])
    # judge 4 / 6; human − judge of the labelled: 0, −0.5, 0: mean −1/6; 4/6 − 1/6 = 0.5
    assert row[["value", "n", "n_failed", "n_labelled"]].tolist() == [pytest.approx(0.5), 6, 0, 3]
    assert row["ci_low"] < 0.5 < row["ci_high"]


def test_strata_count_as_often_as_their_answers_not_as_their_labels():
    judged = pd.concat(
        [arm([1, 1, 1, 0], "abcd"), arm([1] * 6 + [0] * 6, "abcdef" * 2, "gt_clue")],
        ignore_index=True,
    )
    rows = {0: "false", 3: "false", 4: "true", 10: "true"}  # human − judge: −1, 0; 0, 1
    pairs = judged.iloc[list(rows)].assign(human_label=list(rows.values()))
    table = corrected_accuracy(judged, pairs, by=["model"]).set_index("metric")
    # judge 9/16; 4/16 · (−1/2) + 12/16 · 1/2 = 1/4; all labels alike would give 9/16 + 0
    assert table.loc["corrected", "value"] == pytest.approx(9 / 16 + 1 / 4)
    without = corrected_accuracy(judged, pairs.query("setting == 'gt_clue'"), by=["model"])
    assert without["value"].isna().tolist() == [False, True]  # a stratum that nobody looked at


def opposite(seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Two arms of 40 species whose judge is off in opposite directions: 80 answers with
    the truth 0.3, a quarter of the false ones called true, and 400 with 0.7, a quarter of
    the true ones called false.
    """
    rng, tables, truth = np.random.default_rng(seed), [], []
    for setting, n, mean in (("zero_shot", 80, 0.3), ("gt_clue", 400, 0.7)):
        shares = np.clip(mean + rng.normal(0, 0.08, 40), 0, 1)
        right = rng.random(n) < shares[np.arange(n) % 40]
        wrong = (right if setting == "gt_clue" else ~right) & (rng.random(n) < 0.25)
        scores = (right ^ wrong).astype(float)
        table = arm(list(scores), "x" * n, setting)
        queries = [f"q{i % 80}" for i in range(n)]  # with the clue, each five times
        tables.append(table.assign(query_id=queries, group=[f"s{i % 40}" for i in range(n)]))
        truth += ["true" if each else "false" for each in right]
    return pd.concat(tables, ignore_index=True), truth


@pytest.mark.slow
def test_with_as_many_labels_of_each_arm_the_truth_is_covered_over_arms_and_in_gains():
    truth = {"all": (80 * 0.3 + 400 * 0.7) / 480, "corrected_gain": 0.4, "estimated_bias": -0.35}
    covered = dict.fromkeys([*truth, "gain"], 0)
    for seed in range(16):
        judged, labels = opposite(seed)
        labelled = judged.assign(human_label=labels).groupby("setting", group_keys=False)
        pairs = labelled.sample(40, random_state=seed)
        over = corrected_accuracy(judged, pairs, by=["model"]).set_index("metric").loc["corrected"]
        covered["all"] += over["ci_low"] <= truth["all"] <= over["ci_high"]
        gains = judge_bias_check(judged, pairs).set_index("metric")
        for metric in ("corrected_gain", "estimated_bias", "gain"):
            low, high = gains.loc[metric, ["ci_low", "ci_high"]]
            covered[metric] += low <= truth.get(metric, 0.4) <= high
    assert covered.pop("gain") <= 2  # the judge's own gain, 0.05, is off by its bias
    assert min(covered.values()) >= 13, covered  # 95 % nominal: 15 of 16


def test_beside_a_gain_stands_the_differential_bias_that_cancels_it():
    judged = pd.concat(
        [arm([1, 0, 0, 0], "abcd"), arm([1, 1, 1, 0], "abcd", "gt_clue")], ignore_index=True
    )
    pairs = judged.iloc[[0, 1, 4, 5]].assign(human_label=["true", "true", "true", "false"])
    table = judge_bias_check(judged, pairs).set_index("metric")
    # judge: 1/4 and 3/4; judge − human: −1/2 without, +1/2 with the clue
    assert table["value"].to_dict() == {
        "gain": 0.5,
        "break_even_bias": 0.5,
        "estimated_bias": 1.0,
        "corrected_gain": -0.5,
    }
    assert table["n"].tolist() == [4, 4, 4, 4]
    assert set(table["setting"]) == {"gt_clue"}
    with pytest.raises(VragError, match="m has 0 arms of 'top_k'"):
        judge_bias_check(judged, pairs, baseline="top_k")


def test_a_gain_is_that_of_compare_on_the_questions_that_both_arms_answered():
    easy, species = [1.0] * 12 + [0.0] * 12, "abcdefghijkl" * 2
    clue = arm([*easy[:12], *[math.nan] * 9, 0.0, 0.0, 0.0], species, "gt_clue")
    judged = pd.concat([arm(easy, species), clue], ignore_index=True)
    right = judged["score"].map({1.0: "true", 0.0: "false"})
    pairs = judged.assign(human_label=right)[judged["score"].notna()]
    table = judge_bias_check(judged, pairs).set_index("metric")
    values = per_query(judged, by=["model", "setting"])
    (paired,) = paired_differences(
        values, arm="setting", by=["model"], baseline="zero_shot"
    ).to_dict("records")
    assert paired["value"] == 0.0  # the clue changed no answer
    ends = ["value", "ci_low", "ci_high", "n"]
    assert table.loc["gain", ends].tolist() == [paired[name] for name in ends]
    assert table.loc["corrected_gain", "value"] == 0.0
    assert table["n"].tolist() == [15, 15, 30, 30]  # labels on these questions only


def test_too_few_labels_give_no_interval_and_none_no_value():
    judged = pd.concat(
        [arm([1, 0, 1], "abc"), arm([1, 0, 0.5], "abc", "gt_clue")], ignore_index=True
    )
    table = corrected_accuracy(judged, judged.iloc[[0]].assign(human_label="true")).set_index(
        ["setting", "metric"]
    )
    assert table.loc[("zero_shot", "corrected"), "value"] == pytest.approx(2 / 3)
    assert math.isnan(table.loc[("zero_shot", "corrected"), "ci_low"])
    assert math.isnan(table.loc[("gt_clue", "corrected"), "value"])
    assert list(table["n_labelled"]) == [1, 1, 0, 0]


def test_measures_are_those_of_scikit_learn():
    readings = {"strict": READINGS["strict"], "false": READINGS["partial is false"]}
    rng = np.random.default_rng(1)
    human, judge = rng.choice(list(LABEL_SCORES), (2, 60))
    groups, scores = np.arange(60) // 3, [LABEL_SCORES[each] for each in judge]
    pairs = pd.DataFrame({"human_label": human, "judge_label": judge, "score": scores})
    found = agreement(pairs.assign(group=groups), readings)
    table = found.set_index(["label_mapping", "metric"])["value"]
    assert table["strict", "accuracy"] == pytest.approx(accuracy_score(human, judge))
    assert table["strict", "macro_f1"] == pytest.approx(f1_score(human, judge, average="macro"))
    binary = ["false" if each == "partial" else each for each in (*human, *judge)]
    expected = f1_score(binary[:60], binary[60:], average="macro")
    assert table["false", "macro_f1"] == pytest.approx(expected)


def test_measures_agree_with_scipy_and_scikit_learn_over_the_pairs_that_have_both():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 40) / 4  # with many ties
    y = np.round(np.clip(x + rng.normal(0, 0.4, 40), 0, 1) * 2) / 2
    gaps, groups = np.where(np.arange(40) % 10 == 0, np.nan, x), [f"s{n // 5}" for n in range(40)]
    known = np.isfinite(gaps)
    expected = {
        "spearman": stats.spearmanr(x[known], y[known]).statistic,
        "kendall": stats.kendalltau(x[known], y[known]).statistic,
        "kappa": cohen_kappa_score((4 * x[known]).astype(int), (4 * y[known]).astype(int)),
    }
    for measure, value in expected.items():
        found = association(gaps, y, groups, measure=measure)
        assert found.value == pytest.approx(value)
        assert found.ci_low < found.value < found.ci_high
        assert (found.n, found.n_failed) == (36, 4)


def test_what_does_not_vary_has_no_correlation_and_what_does_not_differ_no_interval():
    constant = association([1, 1, 1], [0, 1, 0], list("abc"), measure="spearman")
    assert math.isnan(constant.value)
    perfect = association([0, 1, 0, 1], [0, 1, 0, 1], list("abcd"), measure="kappa")
    assert perfect.value == 1
    assert math.isnan(perfect.ci_low)
