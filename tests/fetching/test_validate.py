"""`vrag data check` names every bad row and image once, with its place, and its exit code says
whether that is a fault; `vrag data fetch` takes data sets from wherever they lie.
"""

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import huggingface_hub
import pandas as pd
import pytest
from archive_server import ArchiveServer, packed
from chart_rows import ROWS, SENTENCES, chart_row, write_charts
from commands import said
from crag_rows import MULTI, picture, session, turn, write_rows
from mrag_rows import corpus_of, mrag_row, write_mrag_rows
from page_rows import LABELS, PAGES, QUERIES, label, page, write_pages
from PIL import Image

from vrag_kit.benchmarks import load_chart_mrag, load_crag_mm, load_page_benchmark
from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching import sources as fetching_sources
from vrag_kit.fetching.sources import SOURCES, Source, fetch_crag_mm, fetch_suite
from vrag_kit.fetching.sources import fetch_mrag_bench_corpus as fetch_corpus
from vrag_kit.fetching.validate import find_problems

Write = Callable[..., Path]
GOOSE = "00001_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_leucopsis"


def findings(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """(kind, line, file) of every row; "" for the line of an image."""
    lines = table["location"].str.partition(".jsonl ")[2]
    return [*zip(table["kind"], lines, table["image"].str.rpartition("/")[2], strict=True)]


def problems(folder: Path) -> list[tuple[str, str]]:
    """(kind, location and message) of each problem in a folder."""
    table = find_problems(folder)
    return [*zip(table["kind"], table["location"] + ": " + table["message"], strict=True)]


def test_a_sound_benchmark_gives_an_empty_table(write_annotations, tree):
    more = {"y_rate": 0.25, "y_count": 1, "is_changed_v2": "unchanged"}
    path = write_annotations({}, {"question": "Another?", **more})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # a byte order mark is no fault
    table = find_problems(path, tree)
    assert list(table.columns) == ["kind", "location", "image", "message"]
    assert table.empty
    assert said("data", "check", path.parent)[0] == 0
    for target in (path, tree):  # a file or folder alone needs its images
        code, output = said("data", "check", target)
        assert (code, "IMAGE_FOLDER" in output) == (2, True)


def test_every_fault_is_found_once(write_annotations, tree):
    damaged = tree / GOOSE / "b.jpg"
    damaged.write_bytes(damaged.read_bytes()[:200])
    (tree / GOOSE / "c.jpg").unlink()
    bad = [{"answer": []}, {"question": "One more?", "images": {"../d.jpg": 1}}]
    gone = {"question": "And?", "images": {"00002_Fungi/x.jpg": 0, f"{GOOSE}/a.jpg": 1}}
    twice = '{"question": "Q?", "answer": ["a"], "sn": "S s", "images": {"a/b": 1, "a/b": 0}}'
    rows = [{}, "{", {"question": "Another?"}, *bad, gone, twice, {}, {"question": "HOLD"}]
    assert findings(find_problems(write_annotations(*rows), tree)) == [
        ("row", "line 2", ""),
        ("row", "line 4", ""),
        ("row", "line 5", ""),
        ("row", "line 7", ""),
        ("missing", "line 1", "c.jpg"),
        ("missing", "line 6", "x.jpg"),
        ("damaged", "", "b.jpg"),
        ("odd", "line 8", ""),
        ("odd", "line 9", ""),
    ]


def test_any_damaged_image_is_found(write_annotations, tree):
    folder, file = tree / GOOSE, io.BytesIO()
    Image.new("RGB", (50, 40)).save(file, "AVIF")
    before, after = file.getvalue().split(b"mdat")
    (folder / "a.jpg").write_bytes(before + b"mdat" + b"\xff" * 20 + after[20:])
    (folder / "b.jpg").unlink()
    (folder / "b.jpg").mkdir()
    (folder / "c.jpg").write_bytes(b"")
    found = findings(find_problems(write_annotations({}), tree))
    assert found == [("damaged", "", f"{name}.jpg") for name in "abc"]


def test_folders_and_files_of_nothing_are_refused(tmp_path, tree):
    empty, bare = tmp_path / "empty.jsonl", tmp_path / "bare"
    empty.write_text("\n", encoding="utf-8")
    bare.mkdir()
    for places, words in (
        ([empty, tree], "no rows"),
        ([empty, tmp_path / "nowhere"], "nowhere"),
        ([bare], r"neither pages .* nor charts .* nor WebQA"),
    ):
        with pytest.raises(VragError, match=words):
            find_problems(*places)


def test_faults_alone_exit_with_1(write_annotations, tree, tmp_path):
    command = ["data", "check"]
    rows = [{"question": "HOLD", "sn": f"Branta {number}"} for number in range(60)]
    code, output = said(*command, write_annotations(*rows), tree)
    assert (code, "row: 0, missing: 0, damaged: 0, odd: 60" in output) == (0, True)
    gone = {"images": {f"{GOOSE}/\x1b[2Jgone.jpg": 1}}
    path, found = write_annotations(*rows, gone), tmp_path / "found.csv"
    code, output = said(*command, path, tree, "--csv", found)
    assert (code, output.count("'HOLD'")) == (1, 49)
    assert re.search(r"\n\S+ +\S+ line 61: ", output)
    assert "\x1b" not in output  # names cannot move the cursor
    assert len(pd.read_csv(found)) == 61


# pages, charts and WebQA


def test_every_fault_of_pages_and_charts_is_found_and_named_with_its_place(tmp_path):
    lost = chart_row("Single-Point_Text-only_9", {"paragraph_9_1": "x"})
    torn = chart_row("Single-Point_Chart-only_9", {"chart_9_1": "x"}, b"no picture")
    write_charts(tmp_path / "charts", [*ROWS, ROWS[1], lost, torn])
    none = page("e", 1, image={"bytes": b"no picture", "path": None})
    wrong = {"query-id": "q3", "query": "?", "answer": "E", "options": ["A) red", "B) blue"]}
    folder = write_pages(tmp_path / "plots", [*PAGES, none], [wrong, *QUERIES])
    shard = folder / "qrels" / "train-00000-of-00001.parquet"
    shard.rename(shard.with_name("train-00000-of-00002.parquet"))
    write_pages(tmp_path / "cut", labels=[*LABELS, label("q1", "gone")])
    shard = tmp_path / "cut" / "corpus" / "train-00000-of-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-20])
    code, output = said("data", "check", tmp_path)
    assert code == 1
    found = problems(tmp_path)
    kinds = [kind for kind, _ in found]
    assert kinds == sorted(kinds, key=["row", "missing", "damaged", "odd"].index)
    for kind, words in (
        ("row", "came before, in data-00000-of-00001.arrow row 1"),
        ("row", "'E' is none of the options"),
        ("row", "corpus/train-00000-of-00001.parquet"),
        ("row", "'gone'"),
        ("missing", "paragraph_9_1"),
        ("missing", "1 shards of 2"),
        ("damaged", "document e"),
        ("damaged", "document chart_9_1"),
    ):
        assert any(kind == each and words in message for each, message in found), words
        assert words in output


def test_webqa_is_checked_by_question_and_list(tmp_path):
    good = {"Q": "?", "A": ["a"], "split": "val", "img_posFacts": [], "img_negFacts": []}
    good |= {"txt_posFacts": [{"fact": "a", "snippet_id": "s"}], "txt_negFacts": []}
    blank = {**good, "txt_negFacts": [{"fact": " "}]}
    gone = {**good, "img_negFacts": [{"image_id": 30000003, "caption": "c"}]}
    rows = {"a1": good, "a2": blank, "a3": gone, "a4": {**good, "txt_posFacts": []}}
    (tmp_path / "WebQA_train_val.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "imgs.tsv").write_bytes(b"30000000\t\n")
    (tmp_path / "imgs.lineidx").write_text("0\n", encoding="utf-8")
    row, missing = problems(tmp_path)
    assert (row[0], missing[0]) == ("row", "missing")
    assert "'a2', txt_negFacts" in row[1]
    assert "30000003" in missing[1]


# CRAG-MM


def test_bad_rows_and_images_of_crag_mm_are_named_with_shard_row_and_turn(tmp_path):
    folder, images = tmp_path / "crag", tmp_path / "crag" / "images"
    gone, broken = (f"https://x.org/{name}.jpg" for name in ("gone", "broken"))
    singles = [session("good"), session("gone", url=gone), session("broken", url=broken)]
    torn = {"bytes": b"\x89PNG", "path": None}
    singles += [session("bare", image=None), session("torn", image=torn)]
    write_rows(folder / "single-turn", singles, shards=2)
    pair, twice = (session(name, turn(f"{name}1"), turn(f"{name}2")) for name in ("a", "twice"))
    talks = [{**pair, "answers": pair["answers"][:1]}, twice, twice]
    write_rows(folder / "multi-turn", talks, names=MULTI, split="public_test")
    (images / "url").mkdir(parents=True)
    (images / cached_image_name(broken)).write_bytes(b"<html>")
    entry = {"index": 0, "image": "images/gone.jpg", "entities": [{"entity_name": "Talia"}]}
    for name, rows in (
        ("single-turn/marks.jsonl", [{"interaction_id": "good"}, {"x": 1}]),
        ("image-index-public-test/entries.jsonl", [entry, entry]),
        ("web-index-validation/pages.jsonl", [{"page_url": None}]),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    table = find_problems(folder)
    place = "multi-turn: public_test-00000-of-00001.parquet row"
    first, second = (f"single-turn: validation-0000{n}-of-00002.parquet row" for n in "01")
    assert set(zip(table["kind"], table["location"], strict=True)) == {
        ("row", f"{place} 0"),
        ("row", f"{place} 2 (session twice)"),
        ("row", f"single-turn: {folder}/single-turn/marks.jsonl line 2"),
        ("row", f"image-index-public-test: {folder}/image-index-public-test/entries.jsonl line 2"),
        ("row", f"web-index-validation: {folder}/web-index-validation/pages.jsonl line 1"),
        ("missing", "image-index-public-test: document kg-0"),
        ("missing", f"{second} 0 (session gone)"),
        ("missing", f"{second} 1 (session bare)"),
        ("damaged", f"{first} 1 (session broken) turn 0"),
        ("damaged", f"{first} 2 (session torn)"),
    }
    code, output = said("data", "check", folder)
    assert (code, "row: 5, missing: 3, damaged: 2, odd: 0" in output) == (1, True)


def test_a_shard_cut_short_and_a_missing_one_do_not_end_the_check(tmp_path):
    rows = write_rows(tmp_path / "rows", [session(name) for name in "abcd"], shards=4)
    (first, second) = sorted((rows / "data").iterdir())[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-50])
    (cut, missing) = problems(rows)
    assert (cut[0], missing[0]) == ("row", "missing")
    assert "validation-00001-of-00004.parquet" in cut[1]
    assert "3 shards of 4" in missing[1]
    with pytest.raises(VragError, match="no annotation file"):
        find_problems(tmp_path)


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
def test_every_image_of_an_archive_is_extracted_once(kind, tmp_path):
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
def test_a_cut_archive_keeps_what_it_gave(kind, tmp_path):
    data = archive(kind, {f"c/{n}.jpg": bytes([n]) * 40_000 for n in range(20)})
    with pytest.raises(VragError, match="cut off"):
        fetch_corpus(save(tmp_path / "cut", data[: len(data) // 2]), tmp_path / "to")
    whole = fetch_corpus(save(tmp_path / "whole", data), tmp_path / "to")
    assert whole.had > 0
    assert whole.had + whole.fetched == 20


def test_hostile_and_repeated_names_are_refused(tmp_path):
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


def test_the_command_extracts_and_matches(tmp_path, monkeypatch):
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


def test_the_command_fetches_crag_mm_and_tells_what_is_missing(tmp_path):
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


def test_archives_of_two_data_sets_and_damaged_ones_are_refused(tmp_path):
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
HUB = Source(rows="them/pages", patterns=("queries/train-*.parquet",))


@pytest.fixture
def hub(tmp_path, monkeypatch):
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


def test_each_data_set_lands_in_its_folder(hub, tmp_path, monkeypatch):
    write_charts(tmp_path / "hub")
    (tmp_path / "hub" / "rows").rename(tmp_path / "hub" / "charts")
    to, cache = tmp_path / "to", tmp_path / "cache"
    lines = [json.dumps({"id": name, "text": text}) for name, text in SENTENCES.items()]
    with ArchiveServer("\n".join(lines).encode()) as server:
        charts = SOURCES["chart-rag"]
        charts = replace(charts, rows="them/charts@c419f37", extra=f"{server.url}/{TEXTS}")
        sources = {
            "gone": replace(HUB, rows="them/gone"),
            "pages": HUB,
            "chart-rag": charts,
        }
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
