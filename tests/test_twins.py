"""A copy of a notebook beside it does not run with its folder: two would save one figure."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vrag_kit.runner.plan import all_notebooks, name_of, read_plan
from vrag_kit.runner.twins import twins

ROOT = Path(__file__).parents[1]


def test_no_notebook_of_the_kit_is_a_copy_of_another() -> None:
    known = {name_of(book): book for book in all_notebooks()}
    assert twins(known, known) == {}


def test_a_copy_runs_where_it_is_named_and_not_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("notebooks/building", "params"):
        (tmp_path / folder).mkdir(parents=True)
    kits = ROOT / "notebooks/building/20_build_a_benchmark.ipynb"
    for name in ("20_build_a_benchmark", "20_mine"):
        shutil.copy(kits, tmp_path / f"notebooks/building/{name}.ipynb")
    monkeypatch.chdir(tmp_path)

    def books(wanted: str) -> list[str]:
        file = tmp_path / "p.yaml"
        file.write_text(f"notebooks: [{wanted}]\n", encoding="utf-8")
        return [name_of(book) for book in read_plan(file).given]

    assert books("building") == ["building/20_build_a_benchmark"]
    said = capsys.readouterr().out
    assert "note: building/20_mine saves the figures of building/20_build_a_benchmark" in said
    assert "`notebooks: [building/20_mine]`" in said
    assert books("building/20_mine") == ["building/20_mine"]
    assert capsys.readouterr().out == ""
