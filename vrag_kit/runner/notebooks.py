"""Run the notebooks one after another, or several at once; skip what is finished, go on
after a failure.

runs/visual_rag/demo/visual_rag/02_….ipynb    the executed notebook (see `runner.plan`)
runs/visual_rag/demo/visual_rag/02_….log      all it printed
runs/visual_rag/demo/visual_rag/02_….json     what the run was made of, by which a rerun skips
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.clusters import Cluster, open_cluster, read_cluster
from vrag_kit.runner.copies import what_is_wrong
from vrag_kit.runner.elsewhere import Afar
from vrag_kit.runner.execution import Crew, Ended, tally_of
from vrag_kit.runner.failures import why_it_failed
from vrag_kit.runner.finished import figures_of, ingredients
from vrag_kit.runner.parameters import RUN_WITH, declared
from vrag_kit.runner.plan import Plan, name_of, read_plan
from vrag_kit.runner.shares import shares
from vrag_kit.runner.signs import alone, at_work, refusing_full
from vrag_kit.tally import all_failed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one notebook fared."""

    notebook: str
    status: str  # "done", "unchanged", "failed" or "stopped"
    seconds: float
    detail: str  # figures written, or the failing cell and its error


@dataclass(frozen=True)
class _Task:
    """A notebook to run with what a parameter file gives it."""

    notebook: Path
    given: dict[str, Any]
    folder: Path  # of the parameter file's copies

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All its parameters."""
        return {**declared(self.notebook), **self.given}

    @property
    def name(self) -> str:
        """Folder and file name of the notebook."""
        return name_of(self.notebook)

    @property
    def output(self) -> Path:
        """Its executed copy."""
        return self.folder / f"{self.name}.ipynb"

    @property
    def note(self) -> Path:
        """What the run was made of."""
        return self.output.with_suffix(".json")

    def ingredients(self) -> dict[str, Any]:
        """What a run would be made of now."""
        return ingredients(self.notebook, self.given, self.settings)


def run_notebooks(
    parameter_files: Sequence[Path],
    *,
    only: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str | Executor = "",
) -> list[Outcome]:
    """Run the notebooks of some parameter files, one file after another; those whose
    name contains one of `only`, or all.

    `jobs` of a file run at once, each on its share of the cores; None: as many as keep
    the cores busy and find room (`shares`). A `cluster` ("local:2", the address of a
    Dask scheduler, or any executor) is handed the notebooks of all files at once, of
    which its workers execute as many as they like, or `jobs`; what a file itself says of
    one counts otherwise. A notebook is skipped when it finished before, its copy is as it
    was left, and neither it, its parameters, the package, the files its parameters name,
    nor its figures have changed. Raises `VragError` before anything runs for an unknown
    parameter, a value that no notebook could run with (`refusals`), a notebook that does
    not exist, a cluster that does not answer, or a second run of the same parameter file
    at the same time.
    """
    if jobs is not None and jobs < 1:
        raise VragError(f"--jobs is {jobs}; expected 1 or more.")
    if isinstance(cluster, str) and cluster:
        cluster = read_cluster(cluster, "--cluster")
    plans = _plans(parameter_files, only)
    outcomes: list[Outcome] = []
    for whose, together in groupby(plans, lambda plan: cluster or plan.cluster):
        group = list(together)
        if not whose:
            for plan in group:
                outcomes += _run_plans([plan], only, jobs, None)
        elif isinstance(whose, str):
            with open_cluster(whose) as opened:
                outcomes += _run_plans(group, only, jobs, opened)
        else:
            named = Cluster(whose, type(whose).__name__)
            outcomes += _run_plans(group, only, jobs, named)
    return outcomes


def _plans(parameter_files: Sequence[Path], only: Sequence[str]) -> list[Plan]:
    """The plans of the files; raises `VragError` for what no notebook could run with."""
    from vrag_kit.runner.values import refusals  # heavy: it knows all families of models

    plans = [read_plan(file) for file in parameter_files]
    refused: list[str] = []
    for plan in plans:
        refused += [f"{plan.file}: {line}" for line in refusals(plan)]
    if refused:
        raise VragError("\n".join(refused))
    names: list[str] = []
    for plan in plans:
        names += map(name_of, plan.given)
    for part in only:
        if not any(part in name for name in names):
            raise VragError(f"no notebook {part!r}; found {', '.join(names)}.")
    return plans


def _run_plans(
    plans: Sequence[Plan], only: Sequence[str], jobs: int | None, cluster: Cluster | None
) -> list[Outcome]:
    tasks: list[_Task] = []
    with ExitStack() as stack:
        for plan in plans:
            stack.enter_context(alone(plan.folder, f"vrag run {plan.file}"))
            for book, own in plan.given.items():
                if not only or _is_wanted(name_of(book), only):
                    tasks.append(_Task(book, own, plan.folder))
        with refusing_full(plans[0].folder):
            if cluster is None:
                return _run_here(tasks, jobs)
            word = stack.enter_context(at_work(plans[0].folder))
            hands = Afar(cluster, plans[0].folder, word)
            return _run_all(tasks, jobs or len(tasks) or 1, hands)


def _is_wanted(name: str, only: Sequence[str]) -> bool:
    return any(part in name for part in only)


class _Hands(Protocol):
    """Who executes notebooks."""

    @property
    def begins(self) -> str:
        """What is said of a notebook that begins."""

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> Ended:
        """How the execution of a notebook ended."""

    def stop(self) -> None:
        """End all that is at work."""


def _run_here(tasks: Sequence[_Task], jobs: int | None) -> list[Outcome]:
    todo = [task for task in tasks if not _is_finished(task)]
    share = shares([task.settings for task in todo], jobs)
    if share.jobs > 1:
        print(share, flush=True)
    return _run_all(tasks, share.jobs, Crew(share.threads))


def _run_all(tasks: Sequence[_Task], jobs: int, hands: _Hands) -> list[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(lambda task: _tried(task, hands), tasks))
        finally:  # also when interrupted: nothing goes on behind the user's back
            pool.shutdown(wait=False, cancel_futures=True)
            hands.stop()


def _tried(task: _Task, hands: _Hands) -> Outcome:
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


def _run(task: _Task, hands: _Hands) -> Outcome:
    name, output = task.name, task.output
    if _is_finished(task):
        print(f"[{name}] unchanged since its last run: skipped", flush=True)
        return Outcome(name, "unchanged", 0.0, _came_of(task))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)  # what an older run left says nothing about this one
    task.note.unlink(missing_ok=True)
    print(f"[{name}] {hands.begins}", flush=True)
    ended = hands.execute(task.notebook, output, task.given)
    if ended.stopped:
        print(f"[{name}] stopped", flush=True)
        return Outcome(name, "stopped", ended.seconds, "")
    if ended.status:
        detail = why_it_failed(output, ended.status, starved=ended.starved)
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", ended.seconds, detail)
    # data are looked at again: the notebook may have drawn them
    write_file(task.note, json.dumps(task.ingredients(), indent=2))
    print(f"[{name}] done in {ended.seconds:.0f} s", flush=True)
    return Outcome(name, "done", ended.seconds, _came_of(task))


def _is_finished(task: _Task) -> bool:
    """Whether a run ended well, nothing has changed since, and its copy is as it was
    left; one that is to ask again what failed never is.
    """
    if task.settings.get(RUN_WITH, {}).get("retry_failures") or not task.output.is_file():
        return False
    try:
        note = json.loads(task.note.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    same = note == task.ingredients()
    return same and not what_is_wrong(task.output, task.notebook, task.given)


def _came_of(task: _Task) -> str:
    """What a run wrote, and of which models it has no answer."""
    count = len(figures_of(task.notebook, task.settings))
    lost = all_failed(tally_of(task.output))
    said = [f"; EVERY ANSWER OF {model!r} FAILED, {how}" for model, how in lost.items()]
    return f"{count} files in {task.settings.get('figures_dir', '')}{''.join(said)}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line a notebook: notebook, status, seconds, and what it wrote or why it
    failed.
    """
    width = max(len(outcome.notebook) for outcome in outcomes)
    lines = [f"{'notebook':<{width}}  {'status':<9}  {'time':>9}  result"]
    for each in outcomes:
        time_taken = f"{each.seconds:7.1f} s"
        lines.append(f"{each.notebook:<{width}}  {each.status:<9}  {time_taken}  {each.detail}")
    return "\n".join(lines)
