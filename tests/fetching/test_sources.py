"""MRAG-Bench's corpus, CRAG-MM's rows and MRAG-Suite's data sets come from wherever they lie;
one that fails ends none of the others.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import huggingface_hub
import pytest
from archive_server import ArchiveServer
from chart_rows import SENTENCES, write_charts
from crag_rows import MULTI, picture, session, turn, write_rows
from mrag_rows import corpus_of, mrag_row, write_mrag_rows
from page_rows import write_pages
from typer.testing import CliRunner

from vrag_kit.benchmarks import load_chart_mrag, load_crag_mm, load_page_benchmark
from vrag_kit.errors import VragError
from vrag_kit.fetching import sources as fetching_sources
from vrag_kit.fetching.sources import SOURCES, Source, fetch_crag_mm, fetch_suite
from vrag_kit.fetching.sources import fetch_mrag_bench_corpus as fetch_corpus
from vrag_kit.runner.cli import app

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
    assert (first.fetched, first.had, first.refused) == (3, 0, [])
    found = {
        path.name: path.read_bytes() for path in (tmp_path / "a" / "image_corpus").glob("[!.]*")
    }
    assert found == {name.rpartition("/")[2]: data for name, data in PICTURES.items()}
    again = fetch_corpus(str(tmp_path / "downloaded"), tmp_path / "a")
    assert (again.fetched, again.had) == (0, 3)
    with ArchiveServer(packed) as server:
        assert fetch_corpus(server.url, tmp_path / "b").fetched == 3


@pytest.mark.parametrize("kind", [".tar.gz", ".tar"])
def test_an_archive_that_is_cut_off_keeps_what_it_gave_and_a_whole_one_gives_the_rest(
    kind: str, tmp_path: Path
) -> None:
    packed = archive(kind, {f"c/{n}.jpg": bytes([n]) * 40_000 for n in range(20)})
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(VragError, match="cut off"):
        fetch_corpus(str(tmp_path / "cut"), tmp_path / "to")
    (tmp_path / "whole").write_bytes(packed)
    whole = fetch_corpus(str(tmp_path / "whole"), tmp_path / "to")
    assert whole.had > 0
    assert whole.had + whole.fetched == 20


def test_names_that_point_outside_or_come_twice_are_refused_and_named(tmp_path: Path) -> None:
    members = {"../up.jpg": b"a", "c/x.jpg": b"b", "d/x.jpg": b"c", "/root.jpg": b"d"}
    (tmp_path / "packed").write_bytes(archive(".tar", members))
    fetched = fetch_corpus(str(tmp_path / "packed"), tmp_path / "to")
    assert fetched.fetched == 1
    refused = [each.partition(":")[0] for each in fetched.refused]
    assert refused == ["../up.jpg", "d/x.jpg", "/root.jpg"]
    assert not (tmp_path / "up.jpg").exists()
    for content, words in (
        (b"<!DOCTYPE html><html>Google Drive can't scan this file", "web page"),
        (archive(".zip", OTHERS), "no files in it"),
    ):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(VragError, match=words):
            fetch_corpus(str(tmp_path / "bad"), tmp_path / "to")


def test_the_command_extracts_and_matches_the_pictures_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [mrag_row(0), mrag_row(1)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    members = {f"image_corpus/{path.name}": path.read_bytes() for path in corpus.iterdir()}
    (tmp_path / "corpus.zip").write_bytes(archive(".zip", members))
    write_mrag_rows(tmp_path / "data", [rows])
    command = ["data", "fetch", "mrag-bench", "--to", ".", "--rows", "", "--corpus", "corpus.zip"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert f"{len(members)} fetched" in result.output
    assert "are not in the corpus" in result.output
    assert list((tmp_path / "runs" / "mrag_bench").glob("*/.read/*.json"))


NAMES = ("a.jpg", "missing.jpg")


def test_the_command_fetches_crag_mm_and_tells_what_is_missing(tmp_path: Path) -> None:
    with ArchiveServer(picture("red")) as server:
        urls = [server.url.replace("/2021/train.tar.gz", f"/{name}") for name in NAMES]
        rows = [session("a"), session("b", url=urls[0]), session("c", url=urls[1])]
        by_hand = write_rows(tmp_path / "by_hand", rows, shards=2)
        talk = session("t", turn("x"), turn("y"), url=urls[0])
        talks = write_rows(tmp_path / "talks", [talk], names=MULTI)
        with tarfile.open(tmp_path / "talks.tar.gz", "w:gz") as tar:
            tar.add(talks, "deep/talks")
        command = f"data fetch crag-mm --to {tmp_path}/to --single {by_hand} --allow-private"
        command += f" --multi {tmp_path}/talks.tar.gz --split validation"
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 1, result.output
        assert server.paths.count("/a.jpg") == 1  # both data sets name it
    assert "1 fetched, 1 missing" in result.output
    single = load_crag_mm(tmp_path / "to" / "single-turn")
    assert list(single.queries) == ["a", "b"]
    assert list(load_crag_mm(tmp_path / "to" / "multi-turn").queries) == ["x", "y"]


def test_an_archive_of_two_data_sets_a_damaged_one_and_a_web_page_are_refused(
    tmp_path: Path,
) -> None:
    rows = write_rows(tmp_path / "rows", [session("a")])
    with tarfile.open(tmp_path / "both.tar", "w") as tar:
        tar.add(rows, "single")
        tar.add(rows, "multi")
    packed = (tmp_path / "both.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(packed[:1500])
    (tmp_path / "page.tar").write_bytes(b"<html>")
    expected = {"both": "holds also ", "cut": "cut off, damaged", "page": "a web page"}
    for name, words in expected.items():
        sources = {"single-turn": str(tmp_path / f"{name}.tar"), "multi-turn": ""}
        with pytest.raises(VragError, match=words):
            fetch_crag_mm(sources, tmp_path / "to", split="validation")


TEXTS = "text_corpus.jsonl"
LINES = "\n".join(json.dumps({"id": name, "text": text}) for name, text in SENTENCES.items())
PAGES = Source(rows="them/pages", patterns=("queries/train-*.parquet",))
CHARTS = SOURCES["chart-rag"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The hub's client, but for the network: "them/<name>" is the folder `hub`/<name>;
    returns the revisions that were asked for.
    """
    asked: list[str | None] = []

    def download(name: str, *, revision: str | None, local_dir: Path, **_: Any) -> str:
        asked.append(revision)
        there = tmp_path / "hub" / name.partition("/")[2]
        if not there.is_dir():
            raise OSError("404 Client Error: no such data set")
        copytree(there, local_dir, dirs_exist_ok=True)
        return str(local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    write_pages(tmp_path / "hub" / "pages")
    return asked


def fetch_these(to: Path, sources: dict[str, Source]) -> bool:
    """Fetch these data sets in place of MRAG-Suite's; returns whether one failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching_sources, "SOURCES", sources)
        return fetch_suite(to)


def test_each_data_set_lands_in_its_folder_and_can_be_loaded_and_none_ends_the_others(
    hub: list[str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_charts(tmp_path / "hub")
    (tmp_path / "hub" / "rows").rename(tmp_path / "hub" / "charts")
    to = tmp_path / "to"
    with ArchiveServer(LINES.encode()) as server:
        charts = replace(CHARTS, rows="them/charts@c419f37", extra=f"{server.url}/{TEXTS}")
        sources = {"gone": replace(PAGES, rows="them/gone"), "pages": PAGES, "chart-rag": charts}
        sources["webqa"] = SOURCES["webqa"]
        for _ in range(2):
            assert fetch_these(to, sources)
        assert len(server.paths) == 1  # the sentences are fetched once
    printed = capsys.readouterr().out
    for words in ("'them/gone'", "hub: 404", "pages: fetched to", "WebQA_train_val.json"):
        assert words in printed
    assert hub == [None, None, "c419f37"] * 2
    cache = tmp_path / "cache"
    assert len(load_page_benchmark(to / "pages", cache_dir=cache).queries) == 2
    texts = to / "chart-rag" / TEXTS
    assert len(load_chart_mrag(to / "chart-rag", texts, cache_dir=cache).queries) == 3
    with pytest.raises(VragError, match="'visrag-plot'"):
        fetch_suite(to, ["visrag-plots"])


def test_the_command_fails_when_one_failed(
    hub: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in (("pages", 0), ("gone", 1)):
        sources = {name: replace(PAGES, rows=f"them/{name}")}
        monkeypatch.setattr(fetching_sources, "SOURCES", sources)
        result = CliRunner().invoke(app, ["data", "fetch", "suite", "--to", str(tmp_path / "to")])
        assert result.exit_code == code, result.output
