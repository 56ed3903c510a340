"""`vrag embed` embeds what the notebooks search, in parts that may overlap and be repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commands import said
from own_project import ASKING_BOOK, FINDING_BOOK, small_data, small_project


@pytest.mark.slow
def test_parts_that_overlap_embed_each_document_once(
    guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notebook searches 105 images, which are four shards."""
    small_project(tmp_path, guide_folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 30)
    for name, book in (("finds", FINDING_BOOK), ("asks", ASKING_BOOK)):
        content = {"notebooks": [book], "data": small_data(guide_folder)}
        Path(f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for part, new in (("1/4", 30), ("3/4", 30), ("2/2", 45), ("5/6", 0), ("1/1", 0)):
        status, printed = said("embed", "finds.yaml", "--part", part)
        assert (status, f" {new} new" in printed) == (0, True), printed
    assert len(list(Path("runs/embeddings").glob("*/shard-*.npy"))) == 4
    status, printed = said("embed", "asks.yaml")
    assert (status, "no notebook of it comes to a search by vectors" in printed) == (2, True)
