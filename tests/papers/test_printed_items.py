"""Every table and figure of each paper has a row in the README of its notebooks."""

import re

import pytest
from conftest import ROOT

PRINTED = {  # tables and figures that the paper numbers
    "visual_rag": (17, 6),
    "mrag_bench": (7, 7),
    "crag_mm": (11, 8),
    "mrag_suite": (15, 3),
}


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_has_its_row_in_order_and_every_notebook_is_named(paper):
    folder = ROOT / "notebooks" / paper
    text = (folder / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| (Table|Figure) \d+", line)]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    tables, figures = PRINTED[paper]
    expected = [f"Table {number}" for number in range(1, tables + 1)]
    expected += [f"Figure {number}" for number in range(1, figures + 1)]
    assert [row[0] for row in rows] == expected
    for _, _, notebooks, _, status in rows:
        named = re.findall(r"`(\w+)`", notebooks)
        assert named or status.startswith("not reproduced: ")
        assert all(len([*(ROOT / "notebooks").glob(f"*/{name}*.ipynb")]) == 1 for name in named)
    assert not [each.name for each in folder.glob("*.ipynb") if f"`{each.name[:2]}`" not in text]
