"""Every committed figure keeps the rules of `figure_rules`."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from figure_rules import broken_rules

FIGURES = ROOT / "figures"


@pytest.mark.parametrize(
    "file", sorted(FIGURES.rglob("*.svg")), ids=lambda file: str(file.relative_to(FIGURES))
)
def test_a_committed_figure_fits_a_page_and_can_be_read(file: Path) -> None:
    assert broken_rules(file) == []
