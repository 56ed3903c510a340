"""What MRAG-Suite takes from the hub lands in one folder a data set, with its revision and
how many questions it has; one that fails ends none of the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import huggingface_hub
import pytest
from archive_server import ArchiveServer
from chart_rows import SENTENCES, write_charts
from page_rows import write_pages
from typer.testing import CliRunner

from vrag_kit.benchmarks import load_chart_mrag, load_page_benchmark
from vrag_kit.errors import VragError
from vrag_kit.fetching import sources as fetching_sources
from vrag_kit.fetching.sources import SOURCES, Source, fetch_suite
from vrag_kit.runner.cli import app

TEXTS = "text_corpus.jsonl"
COMMIT = "3ebd091c458cf04161f78cd7b12ea101f83e2529"
PAGES = Source(rows="them/pages", patterns=("queries/train-*.parquet",), questions=2)
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
        for path in there.rglob("*.parquet"):
            note = local_dir / ".cache/huggingface/download" / f"{path.relative_to(there)}.metadata"
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{COMMIT}\netag\n1.0\n", encoding="utf-8")
        return str(local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    write_pages(tmp_path / "hub" / "pages")
    return asked


def fetch_these(to: Path, sources: dict[str, Source]) -> bool:
    """Fetch these data sets in place of MRAG-Suite's; returns whether one failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching_sources, "SOURCES", sources)
        return fetch_suite(to)


def test_each_data_set_lands_in_its_folder_with_revision_and_count_and_can_be_loaded(
    hub: list[str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_charts(tmp_path / "hub")
    (tmp_path / "hub" / "rows").rename(tmp_path / "hub" / "charts")
    lines = [json.dumps({"id": name, "text": text}) for name, text in SENTENCES.items()]
    to = tmp_path / "to"
    with ArchiveServer("\n".join(lines).encode()) as server:
        charts = replace(CHARTS, rows="them/charts@c419f37", extra=f"{server.url}/{TEXTS}")
        sources = {"visrag-plot": PAGES, "chart-rag": charts}
        assert not fetch_these(to, sources)
        assert not fetch_these(to, sources)
        assert len(server.paths) == 1  # the sentences are fetched once
    said = capsys.readouterr().out
    assert "visrag-plot: 2 questions, revision 3ebd091" in said
    assert "chart-rag: 3 questions" in said
    assert "(MRAG-Suite prints 4,738: another revision of the data); 3 sentences" in said
    assert hub == [None, "c419f37"] * 2
    cache = tmp_path / "cache"
    assert len(load_page_benchmark(to / "visrag-plot", cache_dir=cache).queries) == 2
    texts = to / "chart-rag" / TEXTS
    assert len(load_chart_mrag(to / "chart-rag", texts, cache_dir=cache).queries) == 3


def test_a_login_page_in_the_place_of_the_sentences_is_not_kept(
    hub: list[str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_charts(tmp_path / "hub")
    lines = [json.dumps({"id": name, "text": text}) for name, text in SENTENCES.items()]
    with ArchiveServer(b"<html>Log in first") as server:
        charts = {"chart-rag": replace(CHARTS, rows="them/rows", extra=f"{server.url}/{TEXTS}")}
        assert fetch_these(tmp_path / "to", charts)
        server.data = "\n".join(lines).encode()
        assert not fetch_these(tmp_path / "to", charts)
    said = capsys.readouterr().out
    assert f"{TEXTS}: found no JSON Lines" in said
    assert "3 questions, revision" in said


def test_one_that_fails_ends_none_of_the_others(
    hub: list[str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Source(rows="them/gone", patterns=("*.parquet",))
    empty = Source(rows="them/pages", patterns=("elsewhere/*.parquet",))
    sources = {"gone": gone, "empty": empty, "pages": PAGES}
    assert fetch_these(tmp_path / "to", sources)
    said = capsys.readouterr().out
    assert "gone: rows 'them/gone' are no folder here and cannot be fetched" in said
    assert "hub: 404" in said
    assert "empty: them/pages holds no elsewhere/*.parquet" in said
    assert "pages: 2 questions" in said


def test_a_name_that_is_not_fetched_is_answered_with_those_that_are() -> None:
    with pytest.raises(VragError, match="Did you mean 'visrag-plot'"):
        fetch_suite(Path("nowhere"), ["visrag-plots"])


def test_every_data_set_of_the_hub_has_the_size_that_the_paper_prints() -> None:
    # MRAG-Suite, Table 1, column "full", but for WebQA and Visual-RAG
    printed = {"visrag-arxiv": 816, "visrag-plot": 863, "visrag-slide": 556, "visrag-doc": 591}
    printed |= {"chart-rag": 4738, "mrag-bench": 1353}
    assert {name: each.questions for name, each in SOURCES.items() if each.rows} == printed


def test_the_command_says_where_the_others_are_and_fails_when_one_failed(
    hub: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Callable[..., Any] = CliRunner().invoke
    monkeypatch.setattr(
        fetching_sources, "SOURCES", {"visrag-plot": PAGES, "webqa": SOURCES["webqa"]}
    )
    good = run(app, ["fetch", "suite", "--to", str(tmp_path / "to")])
    assert good.exit_code == 0, good.output
    assert "not fetched: webqa: WebQA_train_val.json" in good.output
    monkeypatch.setattr(
        fetching_sources, "SOURCES", {"gone": Source(rows="them/gone", patterns=("*.parquet",))}
    )
    bad = run(app, ["fetch", "suite", "--to", str(tmp_path / "to"), "--only", "gone"])
    assert bad.exit_code == 1
    assert "not fetched" not in bad.output
