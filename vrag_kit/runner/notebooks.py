"""Run the notebooks one after another, or several at once; skip what is finished, go on
after a failure.

runs/visual_rag/demo/visual_rag/02_….ipynb    the executed notebook (see `runner.plan`)
runs/visual_rag/demo/visual_rag/02_….log      all it printed
runs/visual_rag/demo/visual_rag/02_….json     what the run was made of, by which a rerun skips
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.execution import execute, why_it_failed
from vrag_kit.runner.finished import figures_of, ingredients
from vrag_kit.runner.parameters import RUN_WITH, declared
from vrag_kit.runner.plan import Plan, name_of, read_plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one notebook fared."""

    notebook: str
    status: str  # "done", "unchanged" or "failed"
    seconds: float
    detail: str  # figures written, or the failing cell and its error


def run_notebooks(
    parameter_files: Sequence[Path], *, only: str = "", jobs: int = 1
) -> list[Outcome]:
    """Run the notebooks of some parameter files, one file after another; those whose
    name contains `only`.

    A notebook is skipped when it finished before and neither it, its parameters, the
    package, the files its parameters name, nor its figures have changed. Raises
    `VragError` before anything runs for an unknown parameter, a notebook that does not
    exist, or a second run of the same parameter file at the same time.
    """
    if jobs < 1:
        raise VragError(f"--jobs is {jobs}; expected 1 or more.")
    plans = [read_plan(file) for file in parameter_files]
    names: list[str] = []
    for plan in plans:
        names += map(name_of, plan.given)
    if not any(only in name for name in names):
        raise VragError(f"no notebook {only!r}; found {', '.join(names)}.")
    outcomes: list[Outcome] = []
    for plan in plans:
        outcomes += _run_plan(plan, only, jobs)
    return outcomes


def _run_plan(plan: Plan, only: str, jobs: int) -> list[Outcome]:
    given = {notebook: given for notebook, given in plan.given.items() if only in name_of(notebook)}
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(plan.folder / ".lock", timeout=0):
            return _run_all(given, plan.folder, jobs)
    except Timeout as error:
        raise VragError(
            f"{plan.folder}: another `vrag run {plan.file}` is at work there. Wait for it, or"
            " stop it."
        ) from error
    except OSError as error:
        raise VragError(
            f"{plan.folder}: cannot be written ({error.strerror}). Free space, or run in a folder"
            " with write access."
        ) from error


def _run_all(given: Mapping[Path, dict[str, Any]], folder: Path, jobs: int) -> list[Outcome]:
    running: set[subprocess.Popen[str]] = set()
    pool = ThreadPoolExecutor(jobs)
    try:
        return list(
            pool.map(lambda notebook: _run(notebook, given[notebook], folder, running), given)
        )
    finally:  # also when interrupted: nothing goes on behind the user's back
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.terminate()


def _run(
    notebook: Path, parameters: dict[str, Any], folder: Path, running: set[subprocess.Popen[str]]
) -> Outcome:
    name = name_of(notebook)
    output = folder / f"{name}.ipynb"
    note = output.with_suffix(".json")
    settings = {**declared(notebook), **parameters}
    if _is_finished(output, note, ingredients(notebook, parameters, settings), settings):
        print(f"[{name}] unchanged since its last run: skipped", flush=True)
        return Outcome(name, "unchanged", 0.0, _written(notebook, settings))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)  # what an older run left says nothing about this one
    note.unlink(missing_ok=True)
    print(f"[{name}] running", flush=True)
    began = time.monotonic()
    status = execute(notebook, output, parameters, running)
    seconds = time.monotonic() - began
    if status:
        detail = why_it_failed(output, status)
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", seconds, detail)
    # data are looked at again: the notebook may have drawn them
    write_file(note, json.dumps(ingredients(notebook, parameters, settings), indent=2))
    print(f"[{name}] done in {seconds:.0f} s", flush=True)
    return Outcome(name, "done", seconds, _written(notebook, settings))


def _is_finished(
    output: Path, note: Path, now: Mapping[str, Any], settings: Mapping[str, Any]
) -> bool:
    """Whether a run ended well and nothing has changed since; one that is to ask again
    what failed never is.
    """
    if settings.get(RUN_WITH, {}).get("retry_failures") or not output.is_file():
        return False
    try:
        return bool(json.loads(note.read_text(encoding="utf-8")) == now)
    except (FileNotFoundError, json.JSONDecodeError):
        return False


def _written(notebook: Path, settings: Mapping[str, Any]) -> str:
    count = len(figures_of(notebook, settings))
    return f"{count} files in {settings.get('figures_dir', '')}"


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
