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
