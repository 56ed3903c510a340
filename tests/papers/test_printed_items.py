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


def rows(paper: str) -> dict[str, list[str]]:
    text = (ROOT / "notebooks" / paper / "README.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return {row[0]: row[1:] for row in cells if row and re.match(r"(Table|Figure) \d+", row[0])}


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_of_a_paper_has_its_row_in_order(paper):
    tables, figures = PRINTED[paper]
    expected = [f"Table {number}" for number in range(1, tables + 1)]
    assert [*rows(paper)] == expected + [f"Figure {number}" for number in range(1, figures + 1)]


@pytest.mark.parametrize("paper", PRINTED)
def test_rows_name_notebooks_that_exist_or_say_why_there_is_none(paper):
    for _, notebooks, _, status in rows(paper).values():
        named = re.findall(r"`(\w+)`", notebooks)
        assert named or status.startswith("not reproduced: ")
        assert all(len([*(ROOT / "notebooks").glob(f"*/{name}*.ipynb")]) == 1 for name in named)


@pytest.mark.parametrize("paper", PRINTED)
def test_every_notebook_of_a_paper_is_named(paper):
    folder = ROOT / "notebooks" / paper
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert not [each.name for each in folder.glob("*.ipynb") if f"`{each.name[:2]}`" not in text]
