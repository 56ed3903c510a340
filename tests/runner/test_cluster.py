"""Notebooks and embeddings on the workers of a real Dask cluster: as without one, whoever dies."""

from __future__ import annotations

import json
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
from commands import P, running, until
from own_project import notebook
from sleeping_encoder import COUNT, searching

from vrag_kit.errors import VragError
from vrag_kit.retrieval.embedding_cache import SHARD
from vrag_kit.runner.cli import embed
from vrag_kit.runner.cluster import parse_cluster
from vrag_kit.runner.embed import embed_on_cluster, embed_parameters, parse_part
from vrag_kit.runner.plan import read_plan
from vrag_kit.runner.run import plan_tasks, run_notebooks

COPIES = "runs/guide/p/guide"
WAITS = """from pathlib import Path
import os
import time
with open(f'{figures_dir}/../begun-{name}', 'a') as file:
    file.write(f'{os.getpid()}\\n')
while not Path(figures_dir, f'../go-{name}').exists():
    time.sleep(0.05)
Path(figures_dir, f'guide/{name}.csv').write_text(f'{name},{0.1 + 0.2!r}\\n')"""
TABLES = {name: f"{name},0.30000000000000004\n".encode() for name in ("01_one", "02_two")}


@pytest.fixture
def waiting(here: Path) -> Path:
    """The project with two notebooks that each end when there is a file `go-…`."""
    figures = str(here / "figures")
    for name in TABLES:
        path = here / "notebooks" / "guide" / f"{name}.ipynb"
        notebook(path, f"figures_dir = {figures!r}\nname = {name!r}", WAITS)
    (here / P).write_text("cluster: {local: 2}\n", encoding="utf-8")
    return here


def begun(project: Path, name: str) -> list[int]:
    """The kernels in which a notebook was begun."""
    file = project / f"begun-{name}"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(waiting: Path) -> None:
    with running(waiting, "vrag_kit.runner", "run", P) as run:
        until(lambda: begun(waiting, "01_one") and begun(waiting, "02_two"))
        first = begun(waiting, "01_one")[0]
        _papermill, worker, *_ = psutil.Process(first).parents()
        worker.kill()
        until(lambda: not psutil.pid_exists(first))  # its kernel ends with it
        (waiting / "go-02_two").touch()
        (waiting / "go-01_one").touch()
        assert run.wait(60) == 0, (waiting / "run.log").read_text()
    tables = {file.stem: file.read_bytes() for file in (waiting / "figures/guide").glob("*.csv")}
    assert tables == TABLES
    assert (len(begun(waiting, "01_one")), len(begun(waiting, "02_two"))) == (2, 1)
    (waiting / P).write_text("{}", encoding="utf-8")  # who ran them makes no difference
    assert [each.status for each in run_notebooks([Path(P)])] == ["unchanged", "unchanged"]


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_named_and_what_is_finished_stays(waiting: Path) -> None:
    told = waiting / "scheduler.json"
    alone = ("--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    with running(waiting, "dask", "scheduler", *alone) as scheduler:
        until(told.is_file)
        address = json.loads(told.read_text())["address"]
        one = ("--nthreads", "2", "--no-nanny", "--no-dashboard", "--death-timeout", "1")
        with (
            running(waiting, "dask", "worker", address, *one),
            running(waiting, "vrag_kit.runner", "run", P, "--cluster", address) as run,
        ):
            (waiting / "go-01_one").touch()
            until((waiting / COPIES / "01_one.json").is_file)
            until(lambda: begun(waiting, "02_two"))
            scheduler.kill()
            assert run.wait(60) == 1
            until(lambda: not psutil.pid_exists(begun(waiting, "02_two")[0]))
    log = (waiting / "run.log").read_text(encoding="utf-8")
    assert f"[guide/02_two] FAILED: {address}: its scheduler has gone away" in log
    one, two = log.splitlines()[-2:]
    assert (one.split()[1], two.split()[1]) == ("done", "failed")
    assert [task.is_finished() for task in plan_tasks(read_plan(Path(P)))] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_on_this_machine_end_with_the_runner_and_so_do_their_notebooks(
    waiting: Path, how: signal.Signals
) -> None:
    with running(waiting, "vrag_kit.runner", "run", P) as run:
        until(lambda: begun(waiting, "01_one") and begun(waiting, "02_two"))
        below = psutil.Process(run.pid).children(recursive=True)
        assert len(below) >= 2 * 3  # workers, papermills, kernels
        os.killpg(run.pid, how) if how == signal.SIGINT else run.send_signal(how)
        assert run.wait(150) == (130 if how == signal.SIGINT else -how)
        until(lambda: not any(map(psutil.Process.is_running, below)))


@pytest.mark.parametrize("told", ["local:0", "node1:8786", "tcp://", {"tcp": 2}, 2])
def test_what_names_no_cluster_is_refused(told: object) -> None:
    with pytest.raises(VragError, match=r"p\.yaml: cluster is "):
        parse_cluster(told, "p.yaml: cluster")


def test_a_cluster_is_named_alike_in_a_file_and_on_the_command_line() -> None:
    assert parse_cluster({"local": 2}, "") == parse_cluster("local: 2", "") == "local:2"
    assert parse_cluster("tcp://node1:8786", "") == "tcp://node1:8786"


@pytest.mark.slow
def test_what_is_amiss_is_named_before_anything_runs(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / P).write_text("cluster: tcp://localhost:1\n", encoding="utf-8")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(VragError, match="tcp://localhost:1: no scheduler"),
    ):
        run_notebooks([Path(P)])
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(VragError, match=r"pip install -c constraints"):
        run_notebooks([Path(P)], cluster="local:2")
    assert not (here / "runs").exists()


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of a notebook that searches; the current folder."""
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
    search: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAUSE", "0.05")  # a shard takes 32 batches
    with running(search, "vrag_kit.runner", "embed", P, "--cluster", "local:2") as run:
        until(lambda: at_work(search, run.pid))  # the one that hands out tries a document
        at_work(search, run.pid)[0].send_signal(signal.SIGKILL)
        assert run.wait(240) == 0, (search / "embed.log").read_text()
    log = (search / "embed.log").read_text(encoding="utf-8")
    assert f"{COUNT:,} of {COUNT:,} documents; 0 stale, 0 of other documents" in log
    assert 0 < encoded(search).total() - COUNT < SHARD
    monkeypatch.setenv("PAUSE", "0")
    (search / P).write_text("cache_dir: here", encoding="utf-8")
    embed_parameters(Path(P), parse_part(""), ())
    assert shards(search / "kept") == shards(search / "here")
    assert len(shards(search / "here")) == 2 * 3


@pytest.mark.slow
def test_what_is_said_in_the_end_is_what_the_disk_says(
    search: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loses(*_: object) -> None:
        for shard in Path("kept").glob("*/shard-*"):
            shard.unlink()

    monkeypatch.setattr("vrag_kit.runner.cluster.DaskPool.call", loses)
    with pytest.raises(VragError, match=f"{COUNT:,} documents have no vector"):
        embed_on_cluster(Path(P), "local:1")
    assert f"0 of {COUNT:,} documents" in capsys.readouterr().out


def test_the_cluster_of_a_parameter_file_is_asked_unless_a_part_is_told(search: Path) -> None:
    (search / P).write_text("cluster: tcp://localhost:1\n", encoding="utf-8")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(VragError, match="tcp://localhost:1: no scheduler"),
    ):
        embed([Path(P)])
    assert not shards(search / "kept")
    embed([Path(P)], part="1/3")
    assert len(shards(search / "kept")) == 2


@pytest.mark.slow
def test_a_part_that_fails_is_named_when_others_are_made(
    search: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAD", str(2 * SHARD + 7))
    told = r"part 3/3: retriever 'Slow'.*I do not like it.*mine.py:17.*\(1 of 3 parts"
    with pytest.raises(VragError, match=told):
        embed_on_cluster(Path(P), "local:1")
    assert len(shards(search / "kept")) == 2 * 2
    assert encoded(search)[os.getpid()] == 1
