"""Notebooks on the workers of a real Dask cluster: as without one, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dask
import distributed  # noqa: F401  # reads its settings, before a test changes one
import psutil
import pytest
from test_runner import as_in_a_terminal, notebook, project

from vrag_kit.errors import VragError
from vrag_kit.runner.cluster import parse_cluster
from vrag_kit.runner.job import LocalPool, run_lock
from vrag_kit.runner.plan import read_plan
from vrag_kit.runner.run import plan_tasks, run_notebooks

__all__ = ["project"]
P = "params/guide/p.yaml"
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
def waiting(project: Path) -> Path:
    """The project with two notebooks that each end when there is a file `go-…`."""
    figures = str(project / "figures")
    for name in TABLES:
        path = project / "notebooks" / "guide" / f"{name}.ipynb"
        notebook(path, f"figures_dir = {figures!r}\nname = {name!r}", WAITS)
    (project / P).write_text("cluster: {local: 2}\n", encoding="utf-8")
    return project


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 150
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


@contextmanager
def running(folder: Path, module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command at work, ended with the block; what it prints is in a log."""
    with (folder / f"{arguments[0]}.log").open("w", encoding="utf-8") as log:
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            text=True,
            preexec_fn=as_in_a_terminal,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def begun(project: Path, name: str) -> list[int]:
    """The kernels in which a notebook was begun."""
    file = project / f"begun-{name}"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def tables(project: Path) -> dict[str, bytes]:
    return {file.stem: file.read_bytes() for file in (project / "figures/guide").glob("*.csv")}


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(
    waiting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(waiting, "vrag_kit.runner", "run", P) as run:
        until(lambda: begun(waiting, "01_one") and begun(waiting, "02_two"))
        first = begun(waiting, "01_one")[0]
        _papermill, worker, *_ = psutil.Process(first).parents()
        worker.kill()
        until(lambda: not psutil.pid_exists(first))  # its kernel ends with it
        (waiting / "go-02_two").touch()
        (waiting / "go-01_one").touch()
        assert run.wait(60) == 0, (waiting / "run.log").read_text()
    assert tables(waiting) == TABLES
    assert (len(begun(waiting, "01_one")), len(begun(waiting, "02_two"))) == (2, 1)
    monkeypatch.chdir(waiting)
    (waiting / P).write_text("{}", encoding="utf-8")  # who ran them makes no difference
    assert [each.status for each in run_notebooks([Path(P)])] == ["unchanged", "unchanged"]


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_named_and_what_is_finished_stays(
    waiting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    said = (waiting / "run.log").read_text(encoding="utf-8")
    assert f"[guide/02_two] FAILED: {address}: its scheduler has gone away. What is" in said
    one, two = said.splitlines()[-2:]
    assert (one.split()[1], two.split()[1]) == ("done", "failed")
    monkeypatch.chdir(waiting)
    tasks = plan_tasks(read_plan(Path(P)))
    assert [task.is_finished() for task in tasks] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_on_this_machine_end_with_the_runner_and_so_do_their_notebooks(
    waiting: Path, how: signal.Signals
) -> None:
    with running(waiting, "vrag_kit.runner", "run", P) as run:
        until(lambda: begun(waiting, "01_one") and begun(waiting, "02_two"))
        below = psutil.Process(run.pid).children(recursive=True)
        assert len(below) >= 2 * 3  # workers, papermills, kernels
        if how == signal.SIGINT:
            os.killpg(run.pid, how)  # as Ctrl-C does
        else:
            run.send_signal(how)
        assert run.wait(150) == (130 if how == signal.SIGINT else -how)
        until(lambda: not any(map(psutil.Process.is_running, below)))


def test_a_notebook_that_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    book, output = tmp_path / "notebooks/guide/01_one.ipynb", tmp_path / "01_one.ipynb"
    refused = r"another `run of guide/01_one` is at work there"
    with run_lock(output.with_suffix(".lock"), ""), pytest.raises(VragError, match=refused):
        LocalPool(root=tmp_path).execute(book, output, {})
    assert not list(tmp_path.glob("01_one.*.yaml"))


STARTS = """import os, subprocess, sys, time
print("left", os.getpid(), flush=True)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
print("left", subprocess.Popen(sleep, start_new_session=True).pid, flush=True)
time.sleep(600)"""
LEAVES = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {STARTS!r}])"


@pytest.mark.slow
def test_who_is_ended_leaves_nothing_in_its_group_and_nobody_waits_for_what_left_it(
    tmp_path: Path,
) -> None:
    crew, log = LocalPool(root=tmp_path), tmp_path / "01_one.log"
    command = [sys.executable, "-c", LEAVES]
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(crew.run_logged, command, "one", tmp_path / "01_one")
        until(lambda: log.exists() and log.read_text(encoding="utf-8").count("left") == 2)
        said = log.read_text(encoding="utf-8").split()
        inside, apart = (psutil.Process(int(each)) for each in said if each.isdecimal())
        try:
            crew.stop()
            assert ended.result(30) == -signal.SIGKILL  # though both hold its output
            until(lambda: not inside.is_running())
            assert apart.is_running()
        finally:
            apart.kill()


@pytest.mark.parametrize(
    "told", ["local", "local:0", "local:two", "node1:8786", "tcp://", {"local": 0}, {"tcp": 2}, 2]
)
def test_what_names_no_cluster_is_refused(told: object) -> None:
    with pytest.raises(VragError, match=r"p\.yaml: cluster is .*expected the address of a Dask"):
        parse_cluster(told, "p.yaml: cluster")


def test_a_cluster_is_named_alike_in_a_file_and_on_the_command_line() -> None:
    assert parse_cluster({"local": 2}, "") == parse_cluster("local: 2", "") == "local:2"
    assert parse_cluster("tcp://node1:8786", "") == "tcp://node1:8786"


@pytest.mark.slow
def test_what_is_amiss_is_named_before_anything_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / P).write_text("cluster: tcp:/node1\n", encoding="utf-8")
    with pytest.raises(VragError, match=f"{P}: cluster is 'tcp:/node1'"):
        read_plan(Path(P))
    (project / P).write_text("cluster: tcp://localhost:1\n", encoding="utf-8")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(VragError, match="tcp://localhost:1: no scheduler of Dask answers there"),
    ):
        run_notebooks([Path(P)])
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(VragError, match=r'Run `pip install -c constraints.txt -e "\.\[cluster'):
        run_notebooks([Path(P)], cluster="local:2")
    assert not (project / "runs").exists()
