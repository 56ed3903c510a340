"""Notebooks are read as nbformat and papermill read them, without either."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import papermill
import pytest
from conftest import ROOT

from vrag_kit.errors import VragError
from vrag_kit.runner.books import parse_parameters_cell, read_notebook
from vrag_kit.runner.params import declared_parameters

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_and_parameters_are_those_that_nbformat_and_papermill_find(path: Path) -> None:
    book, known = read_notebook(path), nbformat.read(path, as_version=4)
    assert [(cell.cell_type, cell.source) for cell in book.cells] == [
        (cell.cell_type, cell.source) for cell in known.cells
    ]
    assert book.metadata == known.metadata
    found = papermill.inspect_notebook(str(path))
    assert [(each.name, each.default, each.meaning) for each in parse_parameters_cell(book)] == [
        (name, ast.literal_eval(each["default"]), each["help"]) for name, each in found.items()
    ]
    assert declared_parameters(path) == {
        each.name: each.default for each in parse_parameters_cell(book)
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("k = range(3)", "its parameter k is range(3); expected a plain value"),
        ("k = 1\nj = = 2", "its parameters, line 2: invalid syntax"),
    ],
)
def test_parameters_that_are_no_plain_values_are_named(
    tmp_path: Path, source: str, words: str
) -> None:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    with pytest.raises(VragError) as refused:
        declared_parameters(tmp_path / "a.ipynb")
    assert f"{tmp_path / 'a.ipynb'}: cannot be run as it is" in str(refused.value)
    assert words in str(refused.value)


def test_parameters_may_take_several_lines_and_share_one(tmp_path: Path) -> None:
    source = "a = {  # first\n    'x': [1, -2],\n}  # a # b\nb: int = 3; c = None\nprint(a)"
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    found = [
        (each.name, each.default, each.meaning)
        for each in parse_parameters_cell(read_notebook(tmp_path / "a.ipynb"))
    ]
    assert found == [("a", {"x": [1, -2]}, "a # b"), ("b", 3, ""), ("c", None, "")]


@pytest.mark.parametrize("text", ["", "[]", '{"nbformat": 3}', '{"nbformat": 4, "cells": [{}]}'])
def test_what_is_no_notebook_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"format 4|without its|Expecting value"):
        read_notebook(tmp_path / "a.ipynb")
