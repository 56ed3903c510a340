"""Embedding by the workers of a real Dask cluster: as without one, whoever dies."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed  # noqa: F401  # reads its settings, before a test changes one
import psutil
import pytest
from own_project import notebook
from sleeping_encoder import COUNT, P, searching
from test_workers import running, until

from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import SHARD
from vrag_kit.runner.cli import embed
from vrag_kit.runner.embed import embed_on_cluster, embed_parameters, parse_part


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    searching(tmp_path, notebook)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mine", None)


def encoded(project: Path) -> Counter[int]:
    """Process → documents that it has encoded."""
    file = project / "encoded.txt"
    counts: Counter[int] = Counter()
    for line in file.read_text().splitlines() if file.exists() else []:
        process, count = map(int, line.split()[:2])
        counts[process] += count
    return counts


def at_work(project: Path, runner: int) -> list[psutil.Process]:
    """The living processes that are in the middle of a shard."""
    counts = encoded(project).items()
    inside = (each for each, count in counts if each != runner and 0 < count < SHARD)
    return [psutil.Process(each) for each in inside if psutil.pid_exists(each)]


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*/shard-*")}


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_what_it_was_at_and_the_bytes_are_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAUSE", "0.05")  # a shard takes 32 batches
    with running(project, "vrag_kit.runner", "embed", P, "--cluster", "local:2") as run:
        until(lambda: at_work(project, run.pid))  # the one that hands out tries a document
        at_work(project, run.pid)[0].send_signal(signal.SIGKILL)
        assert run.wait(240) == 0, (project / "embed.log").read_text()
    said = (project / "embed.log").read_text(encoding="utf-8")
    assert f"{COUNT:,} of {COUNT:,} documents; 0 stale, 0 of other documents" in said
    assert 0 < encoded(project).total() - COUNT < SHARD
    monkeypatch.setenv("PAUSE", "0")
    (project / P).write_text("cache_dir: here", encoding="utf-8")
    embed_parameters(Path(P), parse_part(""), ())
    assert shards(project / "kept") == shards(project / "here")
    assert len(shards(project / "here")) == 2 * 3


@pytest.mark.slow
def test_a_run_that_is_told_to_end_says_of_no_part_that_it_is_done(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAUSE", "0.05")
    with running(project, "vrag_kit.runner", "embed", P, "--cluster", "local:1") as run:
        until(lambda: len(encoded(project)) == 1 + 1)
        run.terminate()  # as `timeout` does
        assert run.wait(240) == 128 + signal.SIGTERM
    said = (project / "embed.log").read_text(encoding="utf-8").splitlines()
    assert "3 parts: handed to local:1" in said
    assert not [line for line in said if line.startswith("part ")]


@pytest.mark.slow
def test_what_is_said_in_the_end_is_what_the_disk_says(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loses(*_: object) -> None:
        for shard in Path("kept").glob("*/shard-*"):
            shard.unlink()

    monkeypatch.setattr("vrag_kit.runner.cluster.DaskPool.call", loses)
    said = f"{COUNT:,} documents have no vector, though all parts are done: see above"
    with pytest.raises(VragError, match=said):
        embed_on_cluster(Path(P), "local:1")
    assert f"0 of {COUNT:,} documents" in capsys.readouterr().out


def test_the_cluster_of_a_parameter_file_is_asked_unless_a_part_is_told(project: Path) -> None:
    (project / P).write_text("cluster: tcp://localhost:1\n", encoding="utf-8")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(VragError, match="tcp://localhost:1: no scheduler of Dask answers there"),
    ):
        embed([Path(P)])
    assert not shards(project / "kept")
    embed([Path(P)], part="1/3")
    assert len(shards(project / "kept")) == 2


@pytest.mark.slow
def test_a_part_that_fails_is_named_when_others_are_made(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAD", str(2 * SHARD + 7))
    said = r"part 3/3: retriever 'Slow'.*I do not like it.*mine.py:17.*\(1 of 3 parts"
    with pytest.raises(VragError, match=said):
        embed_on_cluster(Path(P), "local:1")
    assert len(shards(project / "kept")) == 2 * 2
    assert encoded(project)[os.getpid()] == 1
