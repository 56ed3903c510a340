"""`vrag embed` embeds what the notebooks search, in parts, and says what is there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import P, said
from conftest import ROOT
from own_project import notebook
from sleeping_encoder import searching

from vrag_kit.retrieval import embed_documents, load_encoder
from vrag_kit.types import Document

TOTAL = 700


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Parameters of a notebook that searches 700 documents, four shards, by a class that is
    quick; its project is the current folder.
    """
    searching(tmp_path, notebook, TOTAL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 200)
    yield Path(P)
    sys.modules.pop("mine", None)


def embed(file: Path, *options: str) -> str:
    """What the command prints."""
    status, told = said("embed", str(file), *options)
    assert status == 0, told
    return told


def counted(told: str) -> tuple[int, ...]:
    """(there, of how many, other vectors)."""
    found = re.search(r"([\d,]+) of ([\d,]+) documents; ([\d,]+) other", told)
    assert found, told
    return tuple(int(number.replace(",", "")) for number in found.groups())


@pytest.mark.slow
def test_parts_fill_what_the_status_tells(file: Path) -> None:
    assert counted(embed(file, "--status")) == (0, TOTAL, 0)
    for part, there in (("1/4", 200), ("3/4", 400), ("2/2", TOTAL), ("1/1", TOTAL)):
        embed(file, "--part", part)
        assert counted(embed(file, "--status")) == (there, TOTAL, 0)
    assert " 0 new" in embed(file)
    told = " ".join(embed(file, "--part", "5/6").split())
    assert "part 5/6: 0 from disk, 0 new (there are 4 shards)" in told


def test_other_vectors_are_counted_and_other_folders_are_listed(file: Path) -> None:
    embed(file)
    encoder = load_encoder("mine:Slow")
    more = [Document(doc_id=f"other/{i}", text=str(i)) for i in range(3)]
    embed_documents(encoder, more, Path("kept"))
    assert counted(embed(file, "--status")) == (TOTAL, TOTAL, 3)
    folder = next(Path("kept").glob("*/"))
    folder.rename(folder.with_name("older-0123456789ab"))
    assert "not of these parameters: kept/older-0123456789ab" in embed(file, "--status")


@pytest.mark.parametrize("part", ["0/4", "5/4", "1/2/3", "a/b"])
def test_a_part_that_is_none_is_refused(part: str, file: Path) -> None:
    status, told = said("embed", str(file), f"--part={part}")
    assert (status, "i/n" in told) == (2, True)


def test_a_file_that_searches_nothing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "none.yaml"
    path.write_text("notebooks: [visual_rag/01_benchmark_statistics]", encoding="utf-8")
    status, told = said("embed", str(path))
    assert (status, "no notebook of it comes to a search by vectors" in told) == (2, True)
