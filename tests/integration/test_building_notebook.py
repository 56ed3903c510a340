"""From a folder of pictures alone to a benchmark on which the other notebooks run: the
way of `20_build_a_benchmark`, by plain papermill.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from vrag_kit.runner.job import LocalPool, failure_reason

FOLDERS = ("building_dir", "benchmark_dir", "figures_dir", "cache_dir")


def run(notebook: str, out: Path, parameters: dict[str, object]) -> None:
    out.parent.mkdir(exist_ok=True)
    status = LocalPool().execute(ROOT / "notebooks" / f"{notebook}.ipynb", out, parameters)
    assert status == 0, failure_reason(out, status)


@pytest.mark.slow
def test_another_notebook_runs_on_what_was_built_with_the_parameter_file_that_was_written(
    guide_folder: Path, tmp_path: Path
) -> None:
    """Of the small guide's images, names and articles, without its annotations."""
    for name in ("images", "articles"):
        shutil.copytree(guide_folder / name, tmp_path / name)
    shutil.copy(guide_folder / "categories.json", tmp_path)
    source = {"name": "Field Guide (small)", "species_list": str(tmp_path / "categories.json")}
    source |= {name: str(tmp_path / name) for name in ("images", "articles")}
    places = {name: str(tmp_path / name) for name in FOLDERS}
    # answers are the other notebooks' own: the same is asked once
    building = {"image_source": source, **places}
    run("building/20_build_a_benchmark", tmp_path / "notebooks" / "20.ipynb", building)
    written = tmp_path / "benchmark_dir" / "benchmark_dir.yaml"
    data = yaml.safe_load(written.read_text(encoding="utf-8"))["data"]
    places = {name: str(tmp_path / name) for name in ("figures_dir", "trec_dir", "cache_dir")}
    comparing = {"data": data, **places}
    run("visual_rag/02_retriever_comparison", tmp_path / "notebooks" / "02.ipynb", comparing)
    table = tmp_path / "figures_dir" / "visual_rag" / "02_retriever_comparison.csv"
    assert table.is_file()
    qrels = (tmp_path / "trec_dir" / "qrels.txt").read_text(encoding="utf-8")
    assert len(qrels.splitlines()) > 400
