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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.copies import what_is_wrong
from vrag_kit.runner.execution import Crew, execute, tally_of
from vrag_kit.runner.failures import memory_kills, why_it_failed
from vrag_kit.runner.finished import figures_of, ingredients
from vrag_kit.runner.parameters import RUN_WITH, declared
from vrag_kit.runner.plan import Plan, name_of, read_plan
from vrag_kit.runner.shares import shares
from vrag_kit.tally import all_failed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one notebook fared."""

    notebook: str
    status: str  # "done", "unchanged", "failed" or "stopped"
    seconds: float
    detail: str  # figures written, or the failing cell and its error


def run_notebooks(
    parameter_files: Sequence[Path], *, only: Sequence[str] = (), jobs: int | None = None
) -> list[Outcome]:
    """Run the notebooks of some parameter files, one file after another; those whose
    name contains one of `only`, or all.

    `jobs` of a file run at once, each on its share of the cores; None: as many as keep
    the cores busy and find room (`shares`). A notebook is skipped when it finished
    before, its copy is as it was left, and neither it, its parameters, the package, the
    files its parameters name, nor its figures have changed. Raises `VragError` before
    anything runs for an unknown parameter, a value that no notebook could run with
    (`refusals`), a notebook that does not exist, or a second run of the same parameter
    file at the same time.
    """
    if jobs is not None and jobs < 1:
        raise VragError(f"--jobs is {jobs}; expected 1 or more.")
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
    outcomes: list[Outcome] = []
    for plan in plans:
        outcomes += _run_plan(plan, only, jobs)
    return outcomes


def _run_plan(plan: Plan, only: Sequence[str], jobs: int | None) -> list[Outcome]:
    given = dict(plan.given)
    if only:
        given = {book: own for book, own in given.items() if _is_wanted(name_of(book), only)}
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


def _is_wanted(name: str, only: Sequence[str]) -> bool:
    return any(part in name for part in only)


def _run_all(given: Mapping[Path, dict[str, Any]], folder: Path, jobs: int | None) -> list[Outcome]:
    todo = [book for book, own in given.items() if not _is_finished(book, own, folder)]
    share = shares([{**declared(book), **given[book]} for book in todo], jobs)
    if share.jobs > 1:
        print(share, flush=True)
    crew = Crew(share.threads)
    with ThreadPoolExecutor(share.jobs) as pool:
        try:
            return list(pool.map(lambda book: _tried(book, given[book], folder, crew), given))
        finally:  # also when interrupted: nothing goes on behind the user's back
            pool.shutdown(wait=False, cancel_futures=True)
            crew.stop()


def _tried(notebook: Path, parameters: dict[str, Any], folder: Path, crew: Crew) -> Outcome:
    """As `_run`; a disk that takes no more fails this notebook, and not the others."""
    name = name_of(notebook)
    began = time.monotonic()
    try:
        return _run(notebook, parameters, folder, crew)
    except OSError as error:
        detail = (
            f"{error.filename or folder / name}: {error.strerror or error}. Free space, and run the"
            " same command again: it goes on where it was."
        )
    print(f"[{name}] FAILED: {detail}", flush=True)
    return Outcome(name, "failed", time.monotonic() - began, detail)


def _run(notebook: Path, parameters: dict[str, Any], folder: Path, crew: Crew) -> Outcome:
    name = name_of(notebook)
    output = folder / f"{name}.ipynb"
    note = output.with_suffix(".json")
    settings = {**declared(notebook), **parameters}
    if _is_finished(notebook, parameters, folder):
        print(f"[{name}] unchanged since its last run: skipped", flush=True)
        return Outcome(name, "unchanged", 0.0, _came_of(notebook, settings, output))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)  # what an older run left says nothing about this one
    note.unlink(missing_ok=True)
    print(f"[{name}] running", flush=True)
    began, kills = time.monotonic(), memory_kills()
    status = execute(notebook, output, parameters, crew)
    seconds = time.monotonic() - began
    if crew.stopped:
        print(f"[{name}] stopped", flush=True)
        return Outcome(name, "stopped", seconds, "")
    if status:
        starved = kills is None or memory_kills() != kills
        detail = why_it_failed(output, status, starved=starved)
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", seconds, detail)
    # data are looked at again: the notebook may have drawn them
    write_file(note, json.dumps(ingredients(notebook, parameters, settings), indent=2))
    print(f"[{name}] done in {seconds:.0f} s", flush=True)
    return Outcome(name, "done", seconds, _came_of(notebook, settings, output))


def _is_finished(notebook: Path, parameters: Mapping[str, Any], folder: Path) -> bool:
    """Whether a run ended well, nothing has changed since, and its copy is as it was
    left; one that is to ask again what failed never is.
    """
    settings = {**declared(notebook), **parameters}
    output = folder / f"{name_of(notebook)}.ipynb"
    if settings.get(RUN_WITH, {}).get("retry_failures") or not output.is_file():
        return False
    try:
        note = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    same = note == ingredients(notebook, parameters, settings)
    return same and not what_is_wrong(output, notebook, parameters)


def _came_of(notebook: Path, settings: Mapping[str, Any], output: Path) -> str:
    """What a run wrote, and of which models it has no answer."""
    count = len(figures_of(notebook, settings))
    lost = all_failed(tally_of(output))
    said = [f"; EVERY ANSWER OF {model!r} FAILED, {how}" for model, how in lost.items()]
    return f"{count} files in {settings.get('figures_dir', '')}{''.join(said)}"


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
