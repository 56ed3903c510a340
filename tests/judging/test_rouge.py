"""ROUGE-1 recall is what the paper's package gives."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge

from vrag_kit.judging import rouge_recall

TEXTS = st.text(alphabet="abB., ", max_size=12)


@given(TEXTS, st.lists(TEXTS, max_size=3))
@settings(deadline=None)
def test_recall_is_the_packages_or_0_or_nan(answer: str, references: list[str]) -> None:
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


def test_an_answer_without_words_recalls_nothing_and_without_references_is_not_scored() -> None:
    assert rouge_recall("It is white and red", ["black and white"]) == 2 / 3  # and, white
    assert rouge_recall("", ["black"]) == rouge_recall("...", ["black"]) == 0
    assert math.isnan(rouge_recall("black", []))
    assert math.isnan(rouge_recall("black", ["", "."]))
    assert rouge_recall("black", [".", "black"]) == 1
