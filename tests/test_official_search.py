"""CRAG-MM's own package, asked over a pipe, finds what our search finds in its index.

It fails on transformers 5: VRAG_OFFICIAL_PYTHON names an interpreter that has it, with
chromadb and transformers 4. The kit's own environment has none of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import small_index
import test_converted_index as built
from small_index import Small
from tiny_retrievers import edit_json

from vrag_kit.retrieval import Program, ProgramService
from vrag_kit.types import Evidence, Query

OFFICIAL = os.environ.get("VRAG_OFFICIAL_PYTHON", "")
SCRIPT = Path(__file__).parents[1] / "vrag_kit" / "papers" / "crag_mm" / "official_search.py"
needs_it = pytest.mark.skipif(
    not OFFICIAL, reason="VRAG_OFFICIAL_PYTHON names no interpreter with cragmm-search-pipeline"
)


def older(folder: Path, root: Path) -> Path:
    """A checkpoint as transformers 4 reads it: its tokenizer is of a class that it knows.
    CLIP's, which the package loads and does not use, is as small as can be.
    """
    copy = Path(shutil.copytree(folder, root / folder.name))
    if folder.name == "clip":
        (copy / "tokenizer.json").unlink()
        (copy / "tokenizer_config.json").unlink()
        (copy / "vocab.json").write_text(json.dumps({"<|startoftext|>": 0, "<|endoftext|>": 1}))
        (copy / "merges.txt").write_text("#version: 0.2\n")
    else:
        edit_json(copy / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    return copy


@pytest.fixture(scope="module")
def program(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The package over tiny Chroma databases, in the layout of the hub's cache."""
    root = tmp_path_factory.mktemp("hub")
    collections = {}
    for name, by in built.convert_chroma.COLLECTIONS.items():
        rows = small_index.rows(small, by)
        collections[name] = [(each, vector.tolist(), told) for each, vector, told in rows]
    (root / "rows.json").write_text(json.dumps(collections))
    subprocess.run([OFFICIAL, "-c", built.BUILD, str(root / "rows.json"), str(root)], check=True)
    for name in collections:
        folder = root / "hub" / f"datasets--tiny--{name}"
        (folder / "snapshots").mkdir(parents=True)
        (folder / "refs").mkdir()
        (folder / "refs" / "v0.5").write_text("abc")
        (root / name).rename(folder / "snapshots" / "abc")
    settings = [f"HF_HOME={root}", "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES="]
    command = ["env", "-u", "PYTHONPATH", *settings, OFFICIAL, str(SCRIPT)]
    clip = older(Path(small.clip), root)
    bert = older(Path(str(small.bert["model"])), root)
    command += ["--image-model", str(clip), "--image-index", "tiny/image_embeddings"]
    command += ["--text-model", str(bert)]
    command += ["--web-index", "tiny/web_search_embeddings"]
    command += ["--image-tag", "v0.5", "--web-tag", "v0.5"]
    return Program(command=tuple(command))


@needs_it
@pytest.mark.parametrize("by", ["image", "text"])
def test_the_package_and_exact_search_return_equal_runs(
    by: str, program: Program, small: Small
) -> None:
    """One of the texts begins with "http", which the package alone takes for a picture.

    Pictures are resized by Pillow there and by torchvision here.
    """
    close = 1e-3 if by == "image" else 1e-5
    documents: dict[str, Evidence] = small.entries if by == "image" else small.pages
    service = ProgramService("official", program, documents, reads=by)
    for k in (1, 4):
        run = service.search(small.queries(), k)
        expected = small_index.converted_service(small, by).search(small.queries(), k)
        assert run.drop(columns="score").equals(expected.drop(columns="score"))
        assert list(run["score"]) == pytest.approx(list(expected["score"]), abs=close)


@needs_it
def test_a_text_that_names_a_file_stays_a_text(program: Program, small: Small) -> None:
    service = ProgramService("official", program, small.pages, reads="text")
    run = service.search([Query(query_id="q", text=str(SCRIPT))], 2)
    assert set(run["doc_id"]) <= set(small.pages)
