"""Sentences of captions."""

from __future__ import annotations

from vrag_kit.papers.visual_rag.figures import define


def test_terms_are_defined() -> None:
    assert define("clue", strata=["other"]) == "Clue: an image that shows the answer."
    assert define(strata=["other"]) == ""
