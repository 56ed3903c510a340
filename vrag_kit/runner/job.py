"""Execution of one notebook by papermill in a separate process.

python -m vrag_kit.runner.job NOTEBOOK OUTPUT PARAMETERS FOLDER
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import strsignal
from tempfile import TemporaryDirectory
from typing import IO, Any

import psutil
import yaml
from filelock import FileLock, Timeout

from vrag_kit.errors import VragError
from vrag_kit.files import project_root, write_file
from vrag_kit.log import PLACE
from vrag_kit.runner.params import cell_tags, read_cells
from vrag_kit.runner.plan import notebook_name
from vrag_kit.types import Json

ADDED = {"injected-parameters", "papermill-error-cell-tag"}
"""Tags of cells that papermill adds."""
THREADS = ("OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that limit the threads of numerical libraries."""


@dataclass(slots=True)
class LocalPool:
    """Papermill processes on this machine, each with its share of the cores."""

    threads: int | None = None  # of each notebook; None: as many as its libraries like
    stopped: bool = False

    def stop(self) -> None:
        """End all running processes and their kernels, soon."""
        self.stopped = True

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> int:
        """Execute a notebook in a process; returns its exit status, negative for a signal.

        Each line that it prints goes with its time to the log next to `output`, and is printed,
        except for the traceback of an error. Afterwards, everything left in the process groups of
        papermill and its kernel is killed. Raises `VragError` if another process is running the
        same notebook, and `OSError` if the log cannot be written.
        """
        name = notebook_name(notebook)
        given = output.with_suffix(".parameters.yaml")
        shares = {} if self.threads is None else dict.fromkeys(THREADS, str(self.threads))
        own = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", PLACE: str(status_file(output).absolute())}
        with ExitStack() as stack:
            stack.enter_context(run_lock(output.with_suffix(".lock"), f"run of {name}"))
            write_file(given, yaml.safe_dump(dict(parameters), sort_keys=False))
            status_file(output).unlink(missing_ok=True)
            # for the file by which the kernel is reached, which holds a key
            folder = stack.enter_context(TemporaryDirectory(suffix=".kernel", dir=output.parent))
            log = output.with_suffix(".log").open("w", encoding="utf-8", buffering=1)
            process = subprocess.Popen(
                [sys.executable, "-m", "vrag_kit.runner.job", notebook, output, given, folder],
                stdin=subprocess.PIPE,  # the system closes it when this process ends
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=project_root(),
                env={**shares, **os.environ, **own},
                start_new_session=True,
            )
            return self._wait(process, stack.enter_context(log), name)

    def _wait(self, process: subprocess.Popen[str], log: IO[str], name: str) -> int:
        failures: list[OSError] = []
        arguments = (process.stdout, log, name, failures)
        reader = threading.Thread(target=_copy_lines, args=arguments, daemon=True)
        reader.start()
        groups = {process.pid}
        try:
            while process.poll() is None and not self.stopped and not failures:
                groups |= _children(process.pid)  # Jupyter gives kernels groups of their own
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
        finally:
            for group in groups | _children(process.pid):
                _kill_group(group)
            reader.join(1)  # a process that has left its group may hold the output open
        for failure in failures:
            raise failure
        return process.wait()


def _copy_lines(lines: IO[str], log: IO[str], name: str, failures: list[OSError]) -> None:
    shown = True
    try:
        for line in lines:
            log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z {line}")
            # the failing cell is named at the end; the log has the rest
            shown = shown and not line.startswith("Traceback")
            if shown and line.strip() and not line.startswith("[IPKernelApp]"):
                print(f"[{name}] {line.rstrip()}", flush=True)
    except OSError as error:
        error.filename = log.name  # of a full disk Python names no file
        failures.append(error)
    except ValueError:
        return  # the log is closed: the job has ended


def _children(process: int) -> set[int]:
    with suppress(psutil.Error):
        return {child.pid for child in psutil.Process(process).children()}
    return set()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the latter where all are dead
        os.killpg(leader, signal.SIGKILL)


def status_file(output: Path) -> Path:
    """Return the path of a notebook's log of model calls and verdicts (`log`)."""
    return output.with_suffix(".tally.jsonl")


def describe_failures(place: Path) -> list[str]:
    """Describe the models whose every answer in the records at `place` failed, and the judges of
    whose verdicts some failed: the counts, the first reason, and how to repeat the calls.
    """
    batches: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)  # Any: as JSON holds
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    for record in map(json.loads, lines):
        batches[record["kind"], record["name"]].append(record)
    found = []
    for (kind, name), records in batches.items():
        calls = sum(record["calls"] for record in records)
        failed = sum(record["failed"] for record in records)
        first = next((record for record in records if record["failed"]), {})
        if kind == "model" and 0 < failed == calls:
            words = f"{failed:,} times, as by {first['example']}"
            found.append(f"EVERY ANSWER OF {name!r} FAILED, {words}")
        elif kind == "judge" and failed:
            words = f"{failed:,} of {calls:,} times, as by {first['example']}. {first['again']}"
            found.append(f"VERDICTS OF {name!r} FAILED, {words}")
    return found


@contextmanager
def run_lock(lock: Path, what: str) -> Iterator[None]:
    """Hold `lock` exclusively within the block. Raises `VragError` if another process holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(lock).acquire(timeout=0)
    except Timeout as error:
        raise VragError(
            f"{lock.parent}: another `{what}` is at work there. Wait for it, or stop it."
        ) from error
    with held:
        yield


def failure_reason(output: Path, status: int) -> str:
    """Return the failing cell of an executed notebook, or else how papermill ended. A cell is given
    by its number in the notebook as written, its first line that is no comment, and its error.
    """
    log = output.with_suffix(".log")
    killed = f"killed by signal {-status} ({strsignal(-status)})" if status < 0 else ""
    try:
        cells = read_cells(output)
    except (OSError, ValueError):
        cells = []  # nothing was written yet, or only half of it
    index, fault = find_failure(cells)
    if not fault:
        lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
        # without its time: the error with which papermill itself ended
        last = lines[-1].partition("Z ")[2] if lines else f"papermill ended with status {status}"
        return f"{killed or last}; see {log}"
    number = sum(not ADDED & cell_tags(cell) for cell in cells[: index + 1])
    source = cells[index]["source"].splitlines()
    code = [line for line in source if line.strip() and not line.lstrip().startswith("#")]
    return f"cell {number} `{''.join(code[:1])}`: {killed or fault}; see {log}"


def find_failure(cells: Sequence[Json]) -> tuple[int, str]:
    """Return the index of the first cell of an executed notebook that did not succeed, and what
    went wrong in it; the number of cells and "" when none failed.
    """
    for index, cell in enumerate(cells):
        for result in cell.get("outputs", []):
            if result["output_type"] == "error":
                return index, f"{result['ename']}: {result['evalue']}"
        started = cell["metadata"].get("papermill", {}).get("start_time")
        replied = "shell.execute_reply" in cell["metadata"].get("execution", {})
        if cell["cell_type"] == "code" and started and not replied:
            return index, "the kernel died"
    return len(cells), ""


def main(notebook: str, output: str, parameters: str, connections: str) -> None:
    """Run papermill in this process; its kernel is reached by a file in `connections`. When the
    runner ends, for any reason, this process and its kernel end too. A kernel that dies before it
    runs a cell, as another program took its port, is restarted twice at most.
    """
    threading.Thread(target=_end_with_runner, args=(connections,), daemon=True).start()
    tempfile.tempdir = connections  # of this process alone: Jupyter puts the file there
    # jsonschema would build a grammar of addresses, which takes as long as all other imports
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    from papermill import execute_notebook
    from papermill.iorw import read_yaml_file
    from tenacity import retry, retry_if_exception_message, stop_after_attempt

    died = retry_if_exception_message(match="Kernel died before replying")
    retry(stop=stop_after_attempt(3), retry=died, reraise=True)(execute_notebook)(
        notebook,
        output,
        read_yaml_file(parameters),
        progress_bar=False,
        stdout_file=sys.stdout,
        stderr_file=sys.stdout,
        start_timeout=300,
        cwd=str(Path.cwd()),
    )


def _end_with_runner(leaving: str) -> None:
    """Wait until the runner's end closes our standard input, and end all."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    for child in psutil.Process().children():
        _kill_group(child.pid)
    shutil.rmtree(leaving, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
