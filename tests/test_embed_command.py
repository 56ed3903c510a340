"""`vrag embed` embeds what the notebooks search, in parts, and says what is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from typer.testing import CliRunner

from vrag_kit.benchmarks.visual_rag_rows import Row, parse_row
from vrag_kit.errors import VragError
from vrag_kit.retrieval import embed_documents, load_encoder
from vrag_kit.runner.cli import app
from vrag_kit.runner.embedding import corpora_of
from vrag_kit.types import Evidence

RETRIEVER = ROOT / "vrag_kit" / "fieldguide" / "weights" / "field-guide-clip-32"


@pytest.fixture
def file(guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parameters of the notebook that compares retrievers, on the small guide."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "mine.yaml"
    lines = ["notebooks: [visual_rag/02_retriever_comparison]", "retrievers: [field-guide-clip-32]"]
    path.write_text("\n".join([*lines, f"cache_dir: {tmp_path / 'kept'}"]), encoding="utf-8")
    return path


def embed(file: Path, *options: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["embed", str(file), *options])
    assert done.exit_code == 0, done.output
    return done.output


def counted(said: str) -> tuple[int, ...]:
    """(there, of how many, stale, of other documents)."""
    found = re.search(r"([\d,]+) of ([\d,]+) documents; ([\d,]+) stale, ([\d,]+) of other", said)
    assert found, said
    return tuple(int(number.replace(",", "")) for number in found.groups())


def test_parts_fill_what_the_status_tells(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vrag_kit.retrieval.embedding.SHARD", 200)
    said = embed(file, "--status")
    total = int(re.search(r"nothing of (\d+) documents", said)[1])  # type: ignore[index]
    assert 600 < total <= 800  # four shards
    for part, there in (("1/4", 200), ("3/4", 400), ("2/2", total), ("1/1", total)):
        embed(file, "--part", part)
        done = embed(file, "--status")
        assert counted(done) == (there, total, 0, 0)
    assert "fingerprint" in done
    assert " 0 new" in embed(file)


def test_a_part_beyond_the_last_shard_says_that_it_has_nothing_to_do(file: Path) -> None:
    total = len(embedded(file))
    assert total < 2048
    said = " ".join(embed(file, "--part", "2/3").split())
    assert f"part 2/3: nothing to do; {total} documents are cut into shards of 2,048" in said
    assert "of which there are 1, one for each of the first 1 parts" in said
    assert "nothing to do" not in embed(file, "--part", "1/3")


def test_what_notebooks_share_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = file.read_text(encoding="utf-8")
    both = "02_retriever_comparison, visual_rag/04_top_k_vs_one_in_k"
    text = text.replace("02_retriever_comparison", both)
    file.write_text(f"{text}\nretriever: field-guide-clip-32", encoding="utf-8")
    rows: list[str] = []

    def parse(line: str, where: str) -> Row:
        rows.append(where)
        return parse_row(line, where)

    monkeypatch.setattr("vrag_kit.benchmarks.visual_rag.parse_row", parse)
    assert len(list(corpora_of(file, ()))) == 2
    assert len(rows) == len(set(rows)) > 0


def test_stale_vectors_and_those_of_others_are_told_apart(file: Path, tmp_path: Path) -> None:
    embed(file)
    encoder = load_encoder(str(RETRIEVER))
    more = [Evidence(doc_id=f"other/{i}", text=f"a blue bird {i}") for i in range(3)]
    embed_documents(encoder, more, tmp_path / "kept")
    there, total, stale, others = counted(embed(file, "--status"))
    assert (there, stale, others) == (total, 0, 3)
    documents = embedded(file)
    was = [Evidence(doc_id=doc_id, text="as it was") for doc_id in documents[:2]]
    embed_documents(encoder, was, tmp_path / "kept")
    assert counted(embed(file, "--status")) == (total, total, 2, 3)


def test_damaged_shards_are_counted_and_may_be_removed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_kit.retrieval.embedding.SHARD", 200)
    embed(file)
    total = len(embedded(file))
    first = min((tmp_path / "kept").glob("*/shard-*.npy"))
    rows = np.load(first)
    np.save(first, rows[::-1])
    for _ in range(2):
        said = embed(file, "--status")
        assert counted(said) == (total - len(rows), total, 0, 0)
        assert "1 damaged shards were set aside" in said
    assert f"{len(rows)} new" in embed(file)
    said = embed(file, "--status")
    assert counted(said) == (total, total, 0, 0)
    command = re.search(r"\((find .* -delete)\)", " ".join(said.split()))
    assert command
    subprocess.run(command[1], shell=True, check=True)
    assert "damaged" not in embed(file, "--status").replace(str(tmp_path), "")
    assert " 0 new" in embed(file)


def embedded(file: Path) -> list[str]:
    """The documents that are searched."""
    (corpus,) = corpora_of(file, ())
    return [document.doc_id for document in corpus.documents]


def test_embeddings_that_no_notebook_of_the_file_reads_are_named(
    file: Path, tmp_path: Path
) -> None:
    embed(file)
    folder = next((tmp_path / "kept").glob("*/"))
    folder.rename(folder.with_name("older-0123456789ab"))
    said = embed(file, "--status")
    there = len(embedded(file))
    assert f"not of these parameters: older, fingerprint 0123456789ab: {there:,} vectors" in said


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "1/2/3", "a/b", "-1/4"])
def test_a_part_that_is_none_is_refused(file: Path, part: str) -> None:
    done = CliRunner().invoke(app, ["embed", str(file), f"--part={part}"])
    assert isinstance(done.exception, VragError)
    assert "expected i/n with i from 1 to n, such as 3/8" in str(done.exception)


def test_a_file_that_searches_nothing_says_so(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "none.yaml"
    path.write_text("notebooks: [visual_rag/01_benchmark_statistics]", encoding="utf-8")
    done = CliRunner().invoke(app, ["embed", str(path)])
    assert "no notebook of it comes to a search by vectors" in str(done.exception)
