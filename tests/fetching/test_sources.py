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
from archive_server import ArchiveServer, packed
from chart_rows import SENTENCES, write_charts
from commands import said
from crag_rows import MULTI, picture, session, turn, write_rows
from mrag_rows import corpus_of, mrag_row, write_mrag_rows
from page_rows import write_pages

from vrag_kit.benchmarks import load_chart_mrag, load_crag_mm, load_page_benchmark
from vrag_kit.errors import VragError
from vrag_kit.fetching import sources as fetching_sources
from vrag_kit.fetching.sources import SOURCES, Source, fetch_crag_mm, fetch_suite
from vrag_kit.fetching.sources import fetch_mrag_bench_corpus as fetch_corpus

PICTURES = {
    "image_corpus/BMW M3 Coupe 2012_02309.jpg": b"one" * 500,
    "image_corpus/R%2B é.png": b"two" * 700,
    "image_corpus/deep/er.WEBP": b"three" * 900,
}
OTHERS = {"image_corpus/readme.txt": b"no picture", "__MACOSX/._BMW.jpg": b"no picture either"}


def archive(kind: str, members: dict[str, bytes]) -> bytes:
    if kind != ".zip":
        return packed(members.items(), "w:gz" if kind == ".tar.gz" else "w")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in members.items():
            zipped.writestr(name, data)
    return file.getvalue()


def save(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("kind", [".zip", ".tar.gz", ".tar"])
def test_every_image_of_an_archive_is_extracted_once(kind: str, tmp_path: Path) -> None:
    data = archive(kind, {**OTHERS, **PICTURES})
    file = save(tmp_path / "downloaded", data)
    first, again = (fetch_corpus(file, tmp_path / "a") for _ in range(2))
    assert (first.fetched, first.had, first.refused) == (3, 0, [])
    assert (again.fetched, again.had) == (0, 3)
    files = (tmp_path / "a" / "image_corpus").glob("[!.]*")
    expected = {name.rpartition("/")[2]: content for name, content in PICTURES.items()}
    assert {path.name: path.read_bytes() for path in files} == expected
    with ArchiveServer(data) as server:
        assert fetch_corpus(server.url, tmp_path / "b").fetched == 3


@pytest.mark.parametrize("kind", [".tar.gz", ".tar"])
def test_a_cut_archive_keeps_what_it_gave(kind: str, tmp_path: Path) -> None:
    data = archive(kind, {f"c/{n}.jpg": bytes([n]) * 40_000 for n in range(20)})
    with pytest.raises(VragError, match="cut off"):
        fetch_corpus(save(tmp_path / "cut", data[: len(data) // 2]), tmp_path / "to")
    whole = fetch_corpus(save(tmp_path / "whole", data), tmp_path / "to")
    assert whole.had > 0
    assert whole.had + whole.fetched == 20


def test_hostile_and_repeated_names_are_refused(tmp_path: Path) -> None:
    members = {"../up.jpg": b"a", "c/x.jpg": b"b", "d/x.jpg": b"c", "/root.jpg": b"d"}
    fetched = fetch_corpus(save(tmp_path / "tar", archive(".tar", members)), tmp_path / "to")
    assert fetched.fetched == 1
    refused = [each.partition(":")[0] for each in fetched.refused]
    assert refused == ["../up.jpg", "d/x.jpg", "/root.jpg"]
    assert not (tmp_path / "up.jpg").exists()
    page = b"<!DOCTYPE html><html>Google Drive can't scan this file"
    for content, words in ((page, "web page"), (archive(".zip", OTHERS), "no files in it")):
        with pytest.raises(VragError, match=words):
            fetch_corpus(save(tmp_path / "bad", content), tmp_path / "to")


def test_the_command_extracts_and_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [mrag_row(0), mrag_row(1)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    members = {f"image_corpus/{path.name}": path.read_bytes() for path in corpus.iterdir()}
    save(tmp_path / "corpus.zip", archive(".zip", members))
    write_mrag_rows(tmp_path / "data", [rows])
    command = ["data", "fetch", "mrag-bench", "--to", ".", "--rows", "", "--corpus", "corpus.zip"]
    status, output = said(*command)
    assert (status, f"{len(members)} fetched" in output) == (0, True), output
    assert "are not in the corpus" in output
    assert list((tmp_path / "runs" / "mrag_bench").glob("*/.read/*.json"))


def test_the_command_fetches_crag_mm_and_tells_what_is_missing(tmp_path: Path) -> None:
    with ArchiveServer(picture("red")) as server:
        here, gone = (server.url.replace("train.tar.gz", each) for each in ("a.jpg", "missing.jpg"))
        rows = [session("a"), session("b", url=here), session("c", url=gone)]
        by_hand = write_rows(tmp_path / "by_hand", rows, shards=2)
        talk = session("t", turn("x"), turn("y"), url=here)
        talks = write_rows(tmp_path / "talks", [talk], names=MULTI)
        with tarfile.open(tmp_path / "talks.tar.gz", "w:gz") as tar:
            tar.add(talks, "deep/talks")
        command = f"data fetch crag-mm --to {tmp_path}/to --single {by_hand} --allow-private"
        command += f" --multi {tmp_path}/talks.tar.gz --split validation"
        status, output = said(*command.split())
        assert server.paths.count("/2021/a.jpg") == 1  # both data sets name it
    assert (status, "1 fetched, 1 missing" in output) == (1, True), output
    assert list(load_crag_mm(tmp_path / "to" / "single-turn").queries) == ["a", "b"]
    assert list(load_crag_mm(tmp_path / "to" / "multi-turn").queries) == ["x", "y"]


def test_archives_of_two_data_sets_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", [session("a")])
    with tarfile.open(tmp_path / "both.tar", "w") as tar:
        tar.add(rows, "single")
        tar.add(rows, "multi")
    both = (tmp_path / "both.tar").read_bytes()
    expected = {"holds also ": both, "cut off, damaged": both[:1500], "a web page": b"<html>"}
    for words, content in expected.items():
        sources = {"single-turn": save(tmp_path / "a.tar", content), "multi-turn": ""}
        with pytest.raises(VragError, match=words):
            fetch_crag_mm(sources, tmp_path / "to", split="validation")


TEXTS = "text_corpus.jsonl"
PAGES = Source(rows="them/pages", patterns=("queries/train-*.parquet",))


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


def test_each_data_set_lands_in_its_folder(
    hub: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_charts(tmp_path / "hub")
    (tmp_path / "hub" / "rows").rename(tmp_path / "hub" / "charts")
    to, cache = tmp_path / "to", tmp_path / "cache"
    lines = [json.dumps({"id": name, "text": text}) for name, text in SENTENCES.items()]
    with ArchiveServer("\n".join(lines).encode()) as server:
        charts = SOURCES["chart-rag"]
        charts = replace(charts, rows="them/charts@c419f37", extra=f"{server.url}/{TEXTS}")
        sources = {"gone": replace(PAGES, rows="them/gone"), "pages": PAGES, "chart-rag": charts}
        sources["webqa"] = SOURCES["webqa"]
        with monkeypatch.context() as patch:
            patch.setattr(fetching_sources, "SOURCES", sources)
            first, again = (said("data", "fetch", "suite", "--to", to) for _ in range(2))
            assert not fetch_suite(to, ["pages"])
        assert first[0] == again[0] == 1  # one failed
        assert len(server.paths) == 1  # the sentences are fetched once
    for words in ("'them/gone'", "hub: 404", "pages: fetched to", "WebQA_train_val.json"):
        assert words in again[1]
    assert hub == [None, None, "c419f37"] * 2 + [None]
    assert len(load_page_benchmark(to / "pages", cache_dir=cache).queries) == 2
    texts = to / "chart-rag" / TEXTS
    assert len(load_chart_mrag(to / "chart-rag", texts, cache_dir=cache).queries) == 3
    with pytest.raises(VragError, match="'visrag-plot'"):
        fetch_suite(to, ["visrag-plots"])
