"""Visual-RAG's ROUGE tables as printed, and how ROUGE goes with accuracy."""

from __future__ import annotations

import pandas as pd
import pytest
from scipy import stats

from vrag_kit.papers import published
from vrag_kit.papers.visual_rag.abstention import with_uncertainty
from vrag_kit.papers.visual_rag.rouge import (
    rouge_figure,
    rouge_mean_correlation,
)


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
