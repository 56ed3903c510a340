"""`vrag embed` embeds what the notebooks search, in parts that may overlap and be repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import P, said
from conftest import ROOT
from own_project import notebook
from sleeping_encoder import searching


@pytest.mark.slow
def test_parts_that_overlap_embed_each_document_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook searches 700 documents, four shards, by a class that is quick."""
    searching(tmp_path, notebook, 700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 200)
    for part, new in (("1/4", 200), ("3/4", 200), ("2/2", 300), ("5/6", 0), ("1/1", 0)):
        status, printed = said("embed", P, "--part", part)
        assert (status, f" {new} new" in printed) == (0, True), printed
    assert len(list(Path("kept").glob("*/shard-*.npy"))) == 4
    sys.modules.pop("mine", None)


def test_a_file_that_searches_nothing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "none.yaml"
    path.write_text("notebooks: [visual_rag/01_benchmark_statistics]", encoding="utf-8")
    status, told = said("embed", str(path))
    assert (status, "no notebook of it comes to a search by vectors" in told) == (2, True)
