"""Notebooks on the workers of a real Dask cluster: as without one, whoever dies."""

import sys
from pathlib import Path

import dask
import distributed
import psutil
import pytest
from commands import P, running, until
from own_project import notebook

from vrag_kit.errors import VragError
from vrag_kit.runner.run import run_notebooks

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
def waiting(here):
    """The project with two notebooks that each end when there is a file `go-…`."""
    (here / P).write_text("{}", encoding="utf-8")
    figures = str(here / "figures")
    for name in TABLES:
        path = here / "notebooks" / "guide" / f"{name}.ipynb"
        notebook(path, f"figures_dir = {figures!r}\nname = {name!r}", WAITS)
    return here


def begun(project: Path, name: str) -> list[int]:
    """The kernels in which a notebook was begun."""
    file = project / f"begun-{name}"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(waiting):
    workers = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=None, dashboard_address=None
    )
    address = ("--cluster", workers.scheduler_address)
    with workers, running(waiting, "vrag_kit.runner.cli", "run", P, *address) as run:
        until(lambda: begun(waiting, "01_one") and begun(waiting, "02_two"))
        first = begun(waiting, "01_one")[0]
        _papermill, worker, *_ = psutil.Process(first).parents()
        worker.kill()
        until(lambda: not psutil.pid_exists(first))  # its kernel ends with it
        (waiting / "go-02_two").touch()
        (waiting / "go-01_one").touch()
        assert run.wait(180) == 0, (waiting / "run.log").read_text()
    tables = {file.stem: file.read_bytes() for file in (waiting / "figures/guide").glob("*.csv")}
    assert tables == TABLES
    assert (len(begun(waiting, "01_one")), len(begun(waiting, "02_two"))) == (2, 1)
    # who ran them makes no difference
    assert [each.status for each in run_notebooks([Path(P)])] == ["unchanged", "unchanged"]


@pytest.mark.slow
def test_what_is_amiss_is_named_before_anything_runs(here, monkeypatch):
    for name in ("local:2", "node1:8786", "tcp:/node1"):
        with pytest.raises(VragError, match=f"--cluster is '{name}'"):
            run_notebooks([Path(P)], cluster=name)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(VragError, match="tcp://localhost:1: no scheduler"),
    ):
        run_notebooks([Path(P)], cluster="tcp://localhost:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(VragError, match=r"pip install -c constraints"):
        run_notebooks([Path(P)], cluster="tcp://localhost:1")
    assert not (here / "runs").exists()
