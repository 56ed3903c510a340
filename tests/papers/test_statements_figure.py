"""Saved statement checks beside the ranges of the papers' statements."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ROOT
from figure_rules import broken_rules

from vrag_kit.papers.statements import PAPERS, load_statement_checks, statements_figure
from vrag_kit.plotting import save_figure
from vrag_kit.workspace import Workspace


def test_every_saved_number_is_drawn_with_the_ends_of_the_range_of_its_statement(tmp_path):
    checks = load_statement_checks(ROOT / "figures")
    assert set(checks["paper"]) == set(PAPERS)
    low_quality = checks.set_index("statement_id").loc["low_quality_drop"]
    assert (low_quality["expected"], low_quality["low"], low_quality["high"]) == (
        *("-46.5 to 0", -46.5, 0),
    )
    figure = statements_figure(checks, "Our estimates and the papers' statements")
    drawn: dict[str, list[float]] = {"o": [], "|": []}
    for axis in figure.axes:
        for line in axis.lines:
            drawn.setdefault(str(line.get_marker()), []).extend(np.atleast_1d(line.get_xdata()))
    points = checks[["value", "low", "high"]].astype(float)
    points = points.mul(np.where(checks["unit"].isna(), 100, 1), axis=0)
    assert sorted(drawn["o"]) == pytest.approx(sorted(points["value"]))
    ends = points[["low", "high"]].stack()
    assert sorted(drawn["|"]) == pytest.approx(sorted(ends[np.isfinite(ends)]))
    save_figure(figure, Workspace(figures_dir=tmp_path), "x", checks)
    assert broken_rules(tmp_path / "x.svg") == []
    assert load_statement_checks(tmp_path).empty  # nothing was saved below this folder
