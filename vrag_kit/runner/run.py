"""Run notebooks, one at a time or in parallel; skip finished ones, continue after a failure.

runs/visual_rag/demo/visual_rag/02_….ipynb    the executed notebook (see `runner.plan`)
runs/visual_rag/demo/visual_rag/02_….log      its output
runs/visual_rag/demo/visual_rag/02_….json     fingerprint of the run, by which a rerun skips it
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import psutil

from vrag_kit.errors import VragError
from vrag_kit.files import project_path, write_file
from vrag_kit.runner.cluster import DaskPool, open_cluster
from vrag_kit.runner.job import LocalPool, describe_failures, failure_reason, run_lock, status_file
from vrag_kit.runner.plan import Task, read_plan, select_notebooks
from vrag_kit.runner.stamp import file_fingerprint, run_fingerprint, texts

KERNEL = 2 * 2**30
"""Bytes that a notebook needs besides its models' weights; the demo's reach 1.3 GiB."""
_IN_MEMORY = 2
"""Bytes of memory per byte of a checkpoint, because half-precision weights are widened."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one notebook."""

    notebook: str
    status: str  # "done", "unchanged" or "failed"
    seconds: float
    detail: str  # failed calls, or the failing cell and its error


def fingerprint(task: Task) -> dict[str, Any]:
    """Return what a rerun compares: hashes of code, data, figures and the executed copy."""
    found = run_fingerprint(task.notebook, task.given, task.settings)
    return found | {"copy": file_fingerprint(task.output)}


def is_finished(task: Task) -> bool:
    """Return whether the last run succeeded, and nothing has changed, including the executed copy.
    It is False if failed calls are to be repeated.
    """
    try:
        note = json.loads(task.output.with_suffix(".json").read_text(encoding="utf-8"))
        same: bool = note == fingerprint(task)
    except (OSError, ValueError):
        return False
    return same and not task.settings.get("hardware", {}).get("retry_failures")


def run_notebooks(
    parameter_files: Sequence[Path],
    *,
    only: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str = "",
    force: bool = False,
) -> list[Outcome]:
    """Run the notebooks of parameter files in order, those of the next file as soon as there is
    room. Only notebooks whose name contains one of `only` (`select_notebooks`) run, or all.

    `jobs` run at once, each on its share of the cores; None: as many as keep the cores busy and fit
    into memory (`job_limits`). A `cluster` (the address of a Dask scheduler)
    executes `jobs` of them at once, or any number. A notebook is skipped if
    it finished before, and its copy, the notebook, its parameters, the package, the files its
    parameters name, and its figures are unchanged; with `force`, none is. Raises `VragError` before
    anything runs for an unknown parameter, a value of another type, a folder that cannot be
    written, an unknown notebook, a cluster that does not answer, or a second run of the same
    parameter file at the same time.
    """
    if jobs is not None and jobs < 1:
        raise VragError(f"--jobs is {jobs}; expected 1 or more.")
    plans = select_notebooks([read_plan(file) for file in parameter_files], only)
    tasks = list(chain.from_iterable(plan.tasks for plan in plans))
    todo = [task for task in tasks if force or not is_finished(task)]
    if not todo:
        return list(map(_skipped, tasks))
    # a notebook of two parameter files writes the same figures
    one_at_a_time: defaultdict[Path, Lock] = defaultdict(Lock)

    def run(task: Task) -> Outcome:
        with one_at_a_time[task.notebook]:
            if not force and is_finished(task):
                return _skipped(task)
            return _run(task, pool)

    with ExitStack() as stack:
        pool: LocalPool | DaskPool
        if cluster:
            pool, jobs = stack.enter_context(open_cluster(cluster)), jobs or len(tasks)
        else:
            jobs, threads = job_limits([task.settings for task in todo], jobs)
            pool = LocalPool(threads)
            print(f"{jobs} notebooks at once, threads of each: {threads or 'all'}")
        for plan in plans:
            stack.enter_context(run_lock(plan.folder / ".lock", f"vrag run {plan.file}"))
        stack.callback(pool.stop)  # also when interrupted
        workers = ThreadPoolExecutor(jobs)
        stack.callback(workers.shutdown, wait=False, cancel_futures=True)
        return list(workers.map(run, tasks))


def _run(task: Task, pool: LocalPool | DaskPool) -> Outcome:
    """Run a task; a full disk and lost workers fail this notebook, and not the others."""
    name, began = task.name, time.monotonic()
    print(f"[{name}] running", flush=True)
    detail = ""
    try:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        for left in (task.output, task.output.with_suffix(".json")):
            left.unlink(missing_ok=True)
        if status := pool.execute(task.notebook, task.output, task.given):
            detail = failure_reason(task.output, status)
        else:
            # data are looked at again: the notebook may have generated them
            note = json.dumps(fingerprint(task), indent=2)
            write_file(task.output.with_suffix(".json"), note)
    except VragError as error:
        detail = str(error)
    except OSError as error:
        place = error.filename or task.output
        detail = f"{place}: {error.strerror or error}. Free space, and run the same command again"
    seconds = time.monotonic() - began
    if detail:
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", seconds, detail)
    print(f"[{name}] done in {seconds:.0f} s", flush=True)
    return Outcome(name, "done", seconds, "; ".join(describe_failures(status_file(task.output))))


def _skipped(task: Task) -> Outcome:
    print(f"[{task.name}] unchanged since its last run: skipped", flush=True)
    detail = "; ".join(describe_failures(status_file(task.output)))
    return Outcome(task.name, "unchanged", 0.0, detail)


def list_runs(parameter_files: Sequence[Path]) -> list[str]:
    """Return a line for each notebook of parameter files: its name, then the state, the end (UTC)
    and the minutes of its last run with that file. Raises `VragError` as `read_plan` does.
    """
    lines = []
    for task in chain.from_iterable(read_plan(file).tasks for file in parameter_files):
        try:
            run = json.loads(task.output.read_text(encoding="utf-8"))["metadata"]["papermill"]
            end, minutes = run["end_time"][:16].replace("T", " "), run["duration"] / 60
        except (OSError, ValueError, LookupError, TypeError):  # the copy is missing, or cut off
            state = "not finished" if task.output.exists() else "not run"
            lines.append(f"{task.name:<42} {state}")
            continue
        state = "failed"
        if not run["exception"]:
            state = "done" if is_finished(task) else "changed since"
        lines.append(f"{task.name:<42} {state}, {end}, {minutes:.1f} min")
    return lines


def summary(outcomes: Sequence[Outcome]) -> str:
    """Format outcomes as a table: notebook, status, seconds, and what it wrote or why it failed."""
    width = max(len(outcome.notebook) for outcome in outcomes)
    lines = [f"{'notebook':<{width}}  {'status':<9}  {'time':>9}  result"]
    for each in outcomes:
        time_taken = f"{each.seconds:7.1f} s"
        lines.append(f"{each.notebook:<{width}}  {each.status:<9}  {time_taken}  {each.detail}")
    return "\n".join(lines)


def job_limits(
    settings: Sequence[Mapping[str, Any]], jobs: int | None = None
) -> tuple[int, int | None]:
    """Return (notebooks at once, threads of each); None as threads means all cores, as libraries
    like. `settings` has one item each.

    `jobs` notebooks run at once, never more than there are. None means one per core, within three
    quarters of the free memory for their models' weights. It means 1 if a model is on another
    device, on an endpoint, or not local, because its size is unknown.
    """
    from joblib import cpu_count  # takes a tenth of a second

    if jobs is None:
        most = max(map(_memory, settings), default=KERNEL)
        jobs = min(cpu_count(), int(0.75 * psutil.virtual_memory().available / most))
    jobs = max(1, min(jobs, len(settings)))
    all_of_them = jobs == 1 and cpu_count() == os.cpu_count()
    return jobs, None if all_of_them else max(1, cpu_count() // jobs)


def _memory(settings: Mapping[str, Any]) -> float:
    """Bytes that a notebook needs; infinite where a model is not a local folder, or not on CPU."""
    if settings.get("hardware", {}).get("device", "cpu") != "cpu":
        return math.inf
    read = [settings[name] for name in settings if not name.endswith("_dir")]
    needed = KERNEL
    for name in set(chain.from_iterable(map(texts, read))) - {""}:
        folder = project_path(name)
        if any(folder.glob("*config.json")):
            weights = folder.glob("**/*.safetensors")
            needed += _IN_MEMORY * sum(file.stat().st_size for file in weights)
        elif set(name) & set("@/") and not folder.exists():  # on the hub, or at an endpoint
            return math.inf
    return needed
