"""Run notebooks, one at a time or in parallel; skip finished ones, continue after a failure.

runs/visual_rag/demo/visual_rag/02_….ipynb    the executed notebook (see `runner.plan`)
runs/visual_rag/demo/visual_rag/02_….log      its output
runs/visual_rag/demo/visual_rag/02_….json     fingerprint of the run, by which a rerun skips it
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.cluster import Cluster, open_cluster, parse_cluster
from vrag_kit.runner.elsewhere import DaskPool
from vrag_kit.runner.failures import failure_reason
from vrag_kit.runner.job import JobResult, LocalPool
from vrag_kit.runner.locks import report_disk_full, run_lock
from vrag_kit.runner.plan import Plan, read_plan, select_notebooks, unknown_data_names
from vrag_kit.runner.shares import job_limits
from vrag_kit.runner.tasks import PlannedRun, Task, planned_run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one notebook."""

    notebook: str
    status: str  # "done", "unchanged", "failed" or "stopped"
    seconds: float
    detail: str  # figures written, or the failing cell and its error


def run_notebooks(
    parameter_files: Sequence[Path],
    *,
    only: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str = "",
) -> list[Outcome]:
    """Run the notebooks of parameter files in order, those of the next file as soon as there is
    room. Only notebooks whose name contains one of `only` (`select_notebooks`) run, or all.

    `jobs` run at once, each on its share of the cores; None: as many as keep the cores busy and fit
    into memory (`job_limits`). A `cluster` ("local:2", or the address of a Dask scheduler) gets the
    notebooks of all files at once; its workers execute `jobs` of them at once, or any number.
    Without it, each file's own cluster is used. A notebook is skipped if it finished before, and
    its copy, the notebook, its parameters, the package, the files its parameters name, and its
    figures are unchanged. Raises `VragError` before anything runs for an unknown parameter, a value
    that no notebook could run with (`invalid_parameters`), an unknown notebook, a cluster that does
    not answer, or a second run of the same parameter file at the same time.
    """
    if jobs is not None and jobs < 1:
        raise VragError(f"--jobs is {jobs}; expected 1 or more.")
    if cluster:
        cluster = parse_cluster(cluster, "--cluster")
    # their data and models are looked at when something is to run
    plans = [read_plan(file, data=False) for file in parameter_files]
    works = [planned_run(plan) for plan in select_notebooks(plans, only)]
    tasks = list(chain.from_iterable(work.tasks for work in works))
    if all(task.is_finished() for task in tasks):
        return list(map(_skipped, tasks))
    _refuse([work.plan for work in works])
    outcomes: list[Outcome] = []
    for whose, group in _together(works, cluster):
        if not whose:
            outcomes += _run_works(group, jobs, None)
        else:
            with open_cluster(whose) as opened:
                outcomes += _run_works(group, jobs, opened)
    return outcomes


def _together(works: Sequence[PlannedRun], cluster: str) -> list[tuple[str, list[PlannedRun]]]:
    """Works in their order, with the name of those who execute them; together those that
    may run at once.
    """
    groups: list[tuple[str, list[PlannedRun]]] = []
    for work in works:
        whose = cluster or work.plan.cluster
        if groups and groups[-1][0] == whose and (whose or work.can_run_beside(groups[-1][1])):
            groups[-1][1].append(work)
        else:
            groups.append((whose, [work]))
    return groups


def _refuse(plans: Sequence[Plan]) -> None:
    """Raise `VragError` for what no notebook could run with."""
    from vrag_kit.runner.values import invalid_parameters  # heavy: it knows all families of models

    refused: list[str] = []
    for plan in plans:
        refused += unknown_data_names(plan)
        refused += [f"{plan.file}: {line}" for line in invalid_parameters(plan)]
    if refused:
        raise VragError("\n".join(refused))


def _run_works(
    works: Sequence[PlannedRun], jobs: int | None, cluster: Cluster | None
) -> list[Outcome]:
    tasks: list[Task] = []
    first = works[0].plan.folder
    with ExitStack() as stack:
        for work in works:
            stack.enter_context(run_lock(work.plan.folder / ".lock", f"vrag run {work.plan.file}"))
            tasks += work.tasks
        with report_disk_full(first):
            if cluster is None:
                return _run_here(tasks, jobs)
            return _run_all(tasks, jobs or len(tasks) or 1, DaskPool(cluster))


class _Hands(Protocol):
    """An executor of notebooks."""

    @property
    def begins(self) -> str:
        """Message for a notebook that starts."""

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> JobResult:
        """Execute a notebook, and return how that ended."""

    def stop(self) -> None:
        """End all running work."""


def _run_here(tasks: Sequence[Task], jobs: int | None) -> list[Outcome]:
    todo = [task for task in tasks if not task.is_finished()]
    share = job_limits([task.settings for task in todo], jobs)
    if share.jobs > 1:
        print(share, flush=True)
    return _run_all(tasks, share.jobs, LocalPool(share.threads))


def _run_all(tasks: Sequence[Task], jobs: int, hands: _Hands) -> list[Outcome]:
    ended = count(1)

    def run(task: Task) -> Outcome:
        outcome = _tried(task, hands)
        number = next(ended)
        if outcome.status != "unchanged":
            print(f"{number} of {len(tasks)} notebooks finished", flush=True)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(run, tasks))
        finally:  # also when interrupted: nothing goes on behind the user's back
            pool.shutdown(wait=False, cancel_futures=True)
            hands.stop()


def _tried(task: Task, hands: _Hands) -> Outcome:
    """As `_run`; a disk that takes no more fails this notebook, and not the others, and
    so do workers that are lost.
    """
    began = time.monotonic()
    try:
        return _run(task, hands)
    except VragError as error:
        detail = str(error)
    except OSError as error:
        detail = (
            f"{error.filename or task.output}: {error.strerror or error}. Free space, and run the"
            " same command again: it goes on where it was."
        )
    print(f"[{task.name}] FAILED: {detail}", flush=True)
    return Outcome(task.name, "failed", time.monotonic() - began, detail)


def _run(task: Task, hands: _Hands) -> Outcome:
    name, output = task.name, task.output
    if task.is_finished():
        return _skipped(task)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)  # what an older run left says nothing about this one
    task.note.unlink(missing_ok=True)
    print(f"[{name}] {hands.begins}", flush=True)
    ended = hands.execute(task.notebook, output, task.given)
    if ended.stopped:
        print(f"[{name}] stopped", flush=True)
        return Outcome(name, "stopped", ended.seconds, "")
    if ended.status:
        detail = failure_reason(output, ended.status, starved=ended.starved)
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", ended.seconds, detail)
    # data are looked at again: the notebook may have drawn them
    write_file(task.note, json.dumps(task.stamp(), indent=2))
    print(f"[{name}] done in {ended.seconds:.0f} s", flush=True)
    return Outcome(name, "done", ended.seconds, task.summary())


def _skipped(task: Task) -> Outcome:
    print(f"[{task.name}] unchanged since its last run: skipped", flush=True)
    return Outcome(task.name, "unchanged", 0.0, task.summary())


def summary(outcomes: Sequence[Outcome]) -> str:
    """Format outcomes as a table: notebook, status, seconds, and what it wrote or why it failed."""
    width = max(len(outcome.notebook) for outcome in outcomes)
    lines = [f"{'notebook':<{width}}  {'status':<9}  {'time':>9}  result"]
    for each in outcomes:
        time_taken = f"{each.seconds:7.1f} s"
        lines.append(f"{each.notebook:<{width}}  {each.status:<9}  {time_taken}  {each.detail}")
    return "\n".join(lines)
