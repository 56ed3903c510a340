"""Saved statement checks beside the ranges of the papers' statements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from figure_rules import broken_rules

from vrag_kit.config import Workspace
from vrag_kit.papers.statements import load_statement_checks, statements_figure
from vrag_kit.plotting import save_figure

NAMES = {"visual_rag": "Visual-RAG", "mrag_bench": "MRAG-Bench", "crag_mm": "CRAG-MM"}


def test_every_saved_number_is_drawn_on_the_range_of_its_statement(tmp_path: Path) -> None:
    checks = load_statement_checks(ROOT / "figures")
    assert set(checks["paper"]) == set(NAMES)
    low_quality = checks.set_index("statement_id").loc["low_quality_drop"]
    assert (low_quality["expected"], low_quality["low"], low_quality["high"]) == (
        *("-46.5 to 0", -46.5, 0),
    )
    figure = statements_figure(checks, NAMES, "Our estimates and the papers' statements")
    (axis,) = figure.axes
    points = [line for line in axis.lines if line.get_marker() == "o"]
    drawn = np.concatenate([np.asarray(line.get_xdata()) for line in points])
    expected = checks["value"].where(checks["unit"].notna(), 100 * checks["value"])
    assert sorted(drawn) == pytest.approx(sorted(expected))
    assert len(axis.patches) == len(checks)
    save_figure(figure, Workspace(figures_dir=tmp_path), "x", checks)
    assert broken_rules(tmp_path / "x.svg") == []


def test_without_saved_checks_the_table_is_empty(tmp_path: Path) -> None:
    assert load_statement_checks(tmp_path).empty


def test_a_verdict_has_a_colour_and_synthetic_data_have_none() -> None:
    checks = load_statement_checks(ROOT / "figures").head(2)
    verdicts = checks.assign(verdict=["supported", "not tested: synthetic data"])
    figure = statements_figure(verdicts, NAMES, "Title")
    colors = {line.get_color() for line in figure.axes[0].lines if line.get_marker() == "o"}
    assert colors == {"#2E8B57", "#3B3B3B"}
