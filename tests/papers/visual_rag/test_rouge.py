"""Visual-RAG's ROUGE tables as printed, and how ROUGE goes with accuracy."""

from __future__ import annotations

import pandas as pd
import pytest
from scipy import stats

from vrag_kit.papers.visual_rag import reported
from vrag_kit.papers.visual_rag.rouge import rouge_figure, rouge_mean_correlation


def paper_arms() -> pd.DataFrame:
    parts = [reported(3), reported([14, 16], statistic=["avg", "single"])]
    return pd.concat(parts, ignore_index=True).assign(source="paper")


def test_the_papers_rouge_has_one_number_for_every_cell_of_table_3() -> None:
    wide = paper_arms().pivot(index=["model", "setting", "k"], columns="metric", values="value")
    assert wide.notna().all(axis=None)
    assert len(wide) == 124
    # (18.79 + 19.29 + 18.74 + 19.70 + 18.91) / 5 = 19.086
    cells = [("Phi4-MM", "gt_clue", 1), ("Qwen2.5VL", "one_in_k", 3), ("Claude", "top_k", 20)]
    assert wide.loc[cells, "rouge"].tolist() == [19.09, 7.13, 37.95]


def test_arms_are_correlated_within_models_or_across_them() -> None:
    arms = paper_arms()
    wide = arms.pivot_table(index=["model", "setting", "k"], columns="metric", values="value")
    within = rouge_mean_correlation(arms, ["source", "model"]).loc["paper"]
    across = rouge_mean_correlation(arms, ["source", "setting", "k"]).loc["paper"]
    of_one = stats.spearmanr(*wide.loc["GPT-4o"].T.to_numpy()).statistic
    assert within.loc["GPT-4o", "value"] == pytest.approx(of_one)
    few = ("Pixtral", "Llama3.2-V")
    assert within["n"].to_dict() == {name: 14 if name in few else 16 for name in within.index}
    part = wide.xs(("non_clue", 1), level=("setting", "k"))
    of_arm = stats.spearmanr(*part.T.to_numpy()).statistic
    assert across.loc[("non_clue", 1), "value"] == pytest.approx(of_arm)


def test_two_models_have_no_correlation_across_models() -> None:
    arms = paper_arms().query("model in ('GPT-4o', 'Claude')")
    table = rouge_mean_correlation(arms, ["source", "setting", "k"])
    assert table["value"].isna().all()
    assert set(table["n"]) == {2}


def test_arms_with_failed_answers_are_hollow_and_reach_to_their_bounds() -> None:
    arms = paper_arms().query("model == 'GPT-4o' and setting == 'gt_clue'")
    value = arms["value"]
    ours = arms.assign(n_failed=3, bound_low=value - 5, bound_high=value + 2, source="ours")
    figure = rouge_figure(pd.concat([ours, paper_arms()]), title="", caption="")
    left, right = figure.axes
    assert [line.get_markerfacecolor() for line in left.lines] == ["white"]
    assert all(line.get_markerfacecolor() != "white" for line in right.lines)
    x = arms[arms["metric"] == "accuracy"]["value"].item()
    assert list(left.collections[-1].get_segments()[0][:, 0]) == [x - 5, x + 2]
    (legend,) = figure.legends
    assert any("failed" in text.get_text() for text in legend.get_texts())


def test_the_rouge_figure_has_a_point_for_every_arm_and_the_correlation_of_its_models() -> None:
    arms = paper_arms()
    ours = arms.query("model == 'GPT-4o'").assign(model="mine", source="mine")
    left, right = rouge_figure(pd.concat([ours, arms]), title="", caption="").axes
    wide = arms.pivot_table(index=["model", "setting", "k"], columns="metric", values="value")
    drawn = set()
    for line in right.lines:
        drawn |= set(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
    assert drawn == set(wide[["accuracy", "rouge"]].itertuples(index=False, name=None))
    assert [text.get_text() for text in left.texts] == ["mine: ρ = 0.79"]
    assert [text.get_text() for text in right.texts] == ["8 models: ρ = −0.01 to 0.79"]
