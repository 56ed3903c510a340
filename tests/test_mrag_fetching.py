"""MRAG-Bench's corpus comes out of any of three sorts of archive, once, and nothing that
an archive says is written elsewhere.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from archive_server import ArchiveServer
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.fetching.sources import fetch_mrag_bench_corpus as fetch_corpus
from vrag_kit.runner.cli import app
from vrag_kit.synthetic.mrag_bench import generate_mrag_bench

PICTURES = {
    "image_corpus/BMW M3 Coupe 2012_02309.jpg": b"one" * 500,
    "image_corpus/R%2B é.png": b"two" * 700,
    "image_corpus/deep/er.WEBP": b"three" * 900,
}
OTHERS = {"image_corpus/readme.txt": b"no picture", "__MACOSX/._BMW.jpg": b"no picture either"}


def archive(kind: str, members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    if kind == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return file.getvalue()
    with tarfile.open(fileobj=file, mode="w:gz" if kind == ".tar.gz" else "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".tar"])
def test_every_picture_of_an_archive_is_extracted_once_from_a_file_or_a_server(
    kind: str, tmp_path: Path
) -> None:
    packed = archive(kind, {**OTHERS, **PICTURES})
    (tmp_path / "downloaded").write_bytes(packed)
    first = fetch_corpus(str(tmp_path / "downloaded"), tmp_path / "a")
    assert (first.fetched, first.had, first.refused) == (3, 0, ())
    found = {
        path.name: path.read_bytes() for path in (tmp_path / "a" / "image_corpus").glob("[!.]*")
    }
    assert found == {name.rpartition("/")[2]: data for name, data in PICTURES.items()}
    again = fetch_corpus(str(tmp_path / "downloaded"), tmp_path / "a")
    assert (again.fetched, again.had) == (0, 3)
    with ArchiveServer(packed) as server:
        assert fetch_corpus(server.url, tmp_path / "b").fetched == 3


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".tar"])
def test_an_archive_that_is_cut_off_keeps_what_it_gave_and_a_whole_one_gives_the_rest(
    kind: str, tmp_path: Path
) -> None:
    packed = archive(kind, {f"c/{n}.jpg": bytes([n]) * 40_000 for n in range(20)})
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(VragError, match=r"cut off|damaged"):
        fetch_corpus(str(tmp_path / "cut"), tmp_path / "to")
    kept = len(list((tmp_path / "to" / "image_corpus").glob("*.jpg")))
    (tmp_path / "whole").write_bytes(packed)
    whole = fetch_corpus(str(tmp_path / "whole"), tmp_path / "to")
    assert (whole.had, whole.fetched) == (kept, 20 - kept)


def test_names_that_point_outside_or_come_twice_are_refused_and_named(tmp_path: Path) -> None:
    members = {"../up.jpg": b"a", "c/x.jpg": b"b", "d/x.jpg": b"c", "/root.jpg": b"d"}
    (tmp_path / "packed").write_bytes(archive(".tar", members))
    fetched = fetch_corpus(str(tmp_path / "packed"), tmp_path / "to")
    assert fetched.fetched == 1
    assert [each.partition(":")[0] for each in fetched.refused] == [
        "../up.jpg",
        "d/x.jpg",
        "/root.jpg",
    ]
    assert not (tmp_path / "up.jpg").exists()


def test_a_web_page_in_the_place_of_the_archive_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"<!DOCTYPE html><html>Google Drive can't scan this file")
    with pytest.raises(VragError, match="It is a web page: download the archive from"):
        fetch_corpus(str(tmp_path / "page"), tmp_path / "to")
    (tmp_path / "empty").write_bytes(archive(".zip", OTHERS))
    with pytest.raises(VragError, match="no files in it"):
        fetch_corpus(str(tmp_path / "empty"), tmp_path / "to")


@pytest.mark.slow
def test_the_command_extracts_and_matches_the_pictures_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = generate_mrag_bench("small", tmp_path / "drawn")
    corpus = drawn / "image_corpus"
    members = {f"image_corpus/{path.name}": path.read_bytes() for path in corpus.iterdir()}
    (tmp_path / "corpus.zip").write_bytes(archive(".zip", members))
    (drawn / "data").rename(tmp_path / "data")
    result = CliRunner().invoke(
        app, ["fetch", "mrag-bench", "--to", ".", "--rows", "", "--corpus", "corpus.zip"]
    )
    assert result.exit_code == 0, result.output
    assert "309 fetched" in result.output
    assert "are not in the corpus" in result.output
    assert list((tmp_path / "runs" / "mrag_bench").glob("*/.read/*.json"))
