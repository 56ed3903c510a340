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

pytestmark = pytest.mark.slow


def run(notebook: str, out: Path, parameters: dict[str, object]) -> None:
    out.parent.mkdir(exist_ok=True)
    status = LocalPool().execute(ROOT / "notebooks" / f"{notebook}.ipynb", out, parameters)
    assert status == 0, failure_reason(out, status)


@pytest.fixture(scope="module")
def built(guide_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the notebook made of the small guide's pictures, names and articles, where
    there are no annotations.
    """
    folder = tmp_path_factory.mktemp("own")
    for name in ("images", "articles"):
        shutil.copytree(guide_folder / name, folder / name)
    shutil.copy(guide_folder / "categories.json", folder)
    run(
        "building/20_build_a_benchmark",
        folder / "notebooks" / "20.ipynb",
        {
            "image_source": {
                "name": "Field Guide (small)",
                "images": str(folder / "images"),
                "species_list": str(folder / "categories.json"),
                "articles": str(folder / "articles"),
            },
            **{
                name: str(folder / name)
                for name in ("building_dir", "benchmark_dir", "figures_dir", "cache_dir")
            },  # answers are the other notebooks' own: the same is asked once
        },
    )
    return folder


def test_another_notebook_runs_on_it_with_the_parameter_file_that_was_written(built: Path) -> None:
    parameters = yaml.safe_load(
        (built / "benchmark_dir" / "benchmark_dir.yaml").read_text(encoding="utf-8")
    )
    own = {
        "figures_dir": str(built / "figures"),
        "trec_dir": str(built / "trec"),
        "cache_dir": str(built / "embeddings"),
    }
    run(
        "visual_rag/02_retriever_comparison",
        built / "notebooks" / "02.ipynb",
        {"data": parameters["data"], **own},
    )
    assert (built / "figures" / "visual_rag" / "02_retriever_comparison.csv").is_file()
    assert len((built / "trec" / "qrels.txt").read_text(encoding="utf-8").splitlines()) > 400
