"""Run the notebooks one after another, or several at once; skip what is finished, go on
after a failure.

runs/visual_rag/demo/visual_rag/02_….ipynb    the executed notebook (see `runner.plan`)
runs/visual_rag/demo/visual_rag/02_….log      all it printed
runs/visual_rag/demo/visual_rag/02_….json     what the finished run was made of, by which a rerun skips
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from filelock import FileLock, Timeout

from vrag_kit.errors import VragError
from vrag_kit.files import write_file
from vrag_kit.runner.parameters import RUN_WITH, declared
from vrag_kit.runner.plan import Plan, name_of, read_plan
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_PACKAGE = Path(__file__).parents[1]
_NOISE = (
    "Executing Cell",
    "Ending Cell",
    "Input Notebook:",
    "Working directory:",
    "Output Notebook:",
    "Executing notebook with kernel",
    "Passed unknown parameter",
    "[IPKernelApp]",
)


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
    names = [name_of(notebook) for plan in plans for notebook in plan.given]
    if not any(only in name for name in names):
        raise VragError(f"no notebook {only!r}; found {', '.join(names)}.")
    return [outcome for plan in plans for outcome in _run_plan(plan, only, jobs)]


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


def _run_all(parameters: dict[Path, dict[str, Any]], folder: Path, jobs: int) -> list[Outcome]:
    running: set[subprocess.Popen[str]] = set()
    pool = ThreadPoolExecutor(jobs)
    try:
        return list(
            pool.map(
                lambda notebook: _run(notebook, parameters[notebook], folder, running), parameters
            )
        )
    finally:  # also when interrupted: nothing goes on behind the user's back
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.terminate()


def _run(
    notebook: Path, parameters: dict[str, Any], folder: Path, running: set[subprocess.Popen[str]]
) -> Outcome:
    name = name_of(notebook)
    note, output = folder / f"{name}.json", folder / f"{name}.ipynb"
    output.parent.mkdir(parents=True, exist_ok=True)
    settings, code = {**declared(notebook), **parameters}, _code_key(notebook, parameters)
    if (
        not settings.get(RUN_WITH, {}).get("retry_failures")
        and output.is_file()
        and _read(note)
        == {
            "code": code,
            "data": _data_key(settings),
            "figures": _figures(notebook, settings),
        }
    ):
        print(f"[{name}] unchanged since its last run: skipped", flush=True)
        return Outcome(
            name,
            "unchanged",
            0.0,
            f"{len(_figures(notebook, settings))} files in {settings.get('figures_dir', '')}",
        )
    note.unlink(missing_ok=True)
    began = time.monotonic()
    returned = _papermill(notebook, output, parameters, folder, running)
    seconds = time.monotonic() - began
    if returned:
        detail = (
            _failure(output) or f"papermill ended with status {returned}; see {folder / name}.log"
        )
        print(f"[{name}] FAILED: {detail}", flush=True)
        return Outcome(name, "failed", seconds, detail)
    figures = _figures(notebook, settings)
    write_file(
        note, json.dumps({"code": code, "data": _data_key(settings), "figures": figures}, indent=2)
    )
    print(f"[{name}] done in {seconds:.0f} s", flush=True)
    return Outcome(
        name, "done", seconds, f"{len(figures)} files in {settings.get('figures_dir', '')}"
    )


def _papermill(
    notebook: Path,
    output: Path,
    parameters: dict[str, Any],
    folder: Path,
    running: set[subprocess.Popen[str]],
) -> int:
    """Execute in a process of its own; prints what the notebook prints, keeps all of it
    in the log.
    """
    name = name_of(notebook)
    given = folder / f"{name}.parameters.yaml"
    given.write_text(yaml.safe_dump(parameters), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "papermill",
        str(notebook),
        str(output),
        "-f",
        str(given),
        "--cwd",
        str(project_root()),
        "--no-progress-bar",
        "--stdout-file",
        "-",
        "--stderr-file",
        "-",
        "--start-timeout",
        "300",
    ]
    print(f"[{name}] running", flush=True)
    with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        )
        running.add(process)
        try:
            shown = True
            for line in process.stdout or ():
                log.write(line)
                shown = shown and not line.startswith(
                    "Traceback"
                )  # the failing cell is named at the end; the log has the rest
                if shown and line.strip() and not line.startswith((*_NOISE, "<")):
                    print(f"[{name}] {line.rstrip()}", flush=True)
            return process.wait()
        finally:
            process.terminate()
            running.discard(process)


def _failure(output: Path) -> str:
    """The failing cell: its number in the notebook as written, its first line and
    error; "" when none is recorded.
    """
    if not output.is_file():
        return ""
    added = {"injected-parameters", "papermill-error-cell-tag"}
    cells = [
        cell
        for cell in nbformat.read(output, as_version=4).cells
        if not added & set(cell.metadata.get("tags", []))
    ]
    for number, cell in enumerate(cells, start=1):
        first = next(iter(cell.source.splitlines()), "")
        for result in cell.get("outputs", []):
            if result.output_type == "error":
                return f"cell {number} `{first}`: {result.ename}: {result.evalue}"
        started = cell.cell_type == "code" and cell.metadata.get("papermill", {}).get("start_time")
        if started and "shell.execute_reply" not in cell.metadata.get("execution", {}):
            return f"cell {number} `{first}`: the kernel died, perhaps out of memory"
    return ""


def summary(outcomes: list[Outcome]) -> str:
    """One line a notebook: notebook, status, seconds, and what it wrote or why it
    failed.
    """
    width = max(len(outcome.notebook) for outcome in outcomes)
    rows = [
        f"{o.notebook:<{width}}  {o.status:<9}  {o.seconds:7.1f} s  {o.detail}" for o in outcomes
    ]
    return "\n".join([f"{'notebook':<{width}}  {'status':<9}  {'time':>9}  result", *rows])


def _code_key(notebook: Path, parameters: dict[str, Any]) -> str:
    cells = [(cell.cell_type, cell.source) for cell in nbformat.read(notebook, as_version=4).cells]
    digest = hashlib.sha256(json.dumps([cells, parameters], sort_keys=True, default=str).encode())
    for file in sorted(_PACKAGE.rglob("*")):
        if file.is_file() and file.suffix not in (".pyc", ".part"):
            digest.update(file.relative_to(_PACKAGE).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def _data_key(settings: dict[str, Any]) -> dict[str, str]:
    """What the files and folders that parameters name hold; by convention a name that
    ends in `_dir` is written, not read.

    Of a folder it knows names, sizes and times of its entries: an image overwritten in
    place deeper down goes unnoticed.
    """
    values = [
        (name, text)
        for name, value in settings.items()
        if not name.endswith("_dir")
        for text in _texts(value)
    ]
    paths = {f"{name}: {value}": project_path(value) for name, value in values if value}
    return {
        name: hashlib.sha256(_content(path)).hexdigest()
        for name, path in paths.items()
        if path.exists()
    }


def _texts(value: object) -> list[str]:
    """The texts in a parameter: itself, or those in its list or mapping."""
    if isinstance(value, list | dict):
        inside = value.values() if isinstance(value, dict) else value
        return [text for each in inside for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _content(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    return repr(
        sorted(
            (entry.name, entry.stat().st_mtime_ns, entry.stat().st_size)
            for entry in path.iterdir()
            if not entry.name.startswith(".")
        )
    ).encode()


def _figures(notebook: Path, settings: dict[str, Any]) -> dict[str, str]:
    """Hash of every file in the notebook's folder of figures that has its number."""
    root = project_path(settings.get("figures_dir", "figures"))
    folder = (root / name_of(notebook)).parent
    files = sorted(folder.glob(f"{notebook.stem[:2]}_*"))
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()
    }


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
