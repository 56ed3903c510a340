"""Execution of one notebook by papermill, or of one embedding part, in a separate process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, NamedTuple

import psutil
import yaml

from vrag_kit.files import write_file
from vrag_kit.log import PLACE
from vrag_kit.runner.failures import oom_kills
from vrag_kit.runner.locks import run_lock
from vrag_kit.workspace import project_root

_KERNEL = "Executing notebook with kernel"
"""Papermill's message when its kernel has started."""
_NOISE = (
    "Executing Cell",
    "Ending Cell",
    "Input Notebook:",
    "Working directory:",
    "Output Notebook:",
    _KERNEL,
    "Passed unknown parameter",
    "[IPKernelApp]",
    "<",
)
_STARTS = 3
"""Maximum number of starts of a kernel that dies before a cell has run."""
_DIED_EARLY = "Kernel died before replying"
"""Papermill's message for such a kernel: often another program took its port first."""
_FIRST_TO_GO = (
    "import sys; from vrag_kit.runner.job import papermill_main; papermill_main(sys.argv[1:])"
)


_PATIENCE = 5.0
"""Seconds in which papermill may shut down its kernel after it is terminated."""
_GLANCE = 1.0
"""Seconds between checks whether a process without output has ended."""


class JobResult(NamedTuple):
    """How the execution of a notebook ended."""

    status: int  # papermill's exit status, negative for a signal
    seconds: float
    starved: bool  # memory may have been short meanwhile, as far as that can be told
    stopped: bool  # somebody wanted it to end


@dataclass(slots=True)
class LocalPool:
    """A pool of papermill processes on this machine, each with its share of the cores."""

    threads: int | None = None  # of each notebook; None: as many as its libraries like
    root: Path = field(default_factory=project_root)  # the project's folder
    given: Mapping[str, str] = field(default_factory=lambda: os.environ)  # the environment
    processes: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False  # nothing that ends now has failed

    begins: ClassVar[str] = "running"
    """Message for a notebook that starts."""

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> JobResult:
        """Execute a notebook by the function `run_notebook`."""
        began, kills = time.monotonic(), oom_kills()
        status = run_notebook(notebook, output, parameters, self)
        starved = kills is None or oom_kills() != kills
        return JobResult(status, time.monotonic() - began, starved, self.stopped)

    def stop(self) -> None:
        """End all running processes, including kernels, and wait for them."""
        self.stopped = True
        processes = list(self.processes)
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()  # its kernel ends with it, and does nothing where it has ended

    def environment(self, output: Path) -> dict[str, str]:
        """Return the environment of a notebook, which keeps the user's own thread settings."""
        shares = {} if self.threads is None else dict.fromkeys(THREADS, str(self.threads))
        own = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", PLACE: str(status_file(output).absolute())}
        return {**shares, **self.given, **own}


THREADS = ("OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that limit the threads of numerical libraries."""


def run_notebook(
    notebook: Path, output: Path, parameters: Mapping[str, Any], crew: LocalPool
) -> int:
    """Execute a notebook; returns papermill's exit status, as `run_logged`. Raises `VragError` if
    another process is running the same one.
    """
    name = notebook.relative_to(crew.root / "notebooks").with_suffix("").as_posix()
    given = output.with_suffix(".parameters.yaml")
    options = ["--no-progress-bar", "--stdout-file", "-", "--stderr-file", "-"]
    options += ["--cwd", str(crew.root), "--start-timeout", "300"]
    command = [sys.executable, "-c", _FIRST_TO_GO, str(notebook), str(output), "-f", str(given)]
    connections = _connections_of(output)
    with run_lock(output.with_suffix(".lock"), f"run of {name}"):
        write_file(given, yaml.safe_dump(dict(parameters), sort_keys=False))
        shutil.rmtree(connections, ignore_errors=True)  # of a run that was killed whole
        connections.mkdir(mode=0o700)
        try:
            return run_logged([*command, *options], name, output, crew)
        finally:
            shutil.rmtree(connections, ignore_errors=True)


def run_logged(command: Sequence[str], name: str, output: Path, crew: LocalPool) -> int:
    """Run a command and log its output; returns its exit status, negative for a signal.

    Each line goes with its time to the log next to `output`, and is printed, except for the
    traceback of an error. The process belongs to `crew` while it lives; its input is closed when
    this process ends, for any reason. Afterwards, everything left in the process groups of the
    command and its kernel is killed. A process that has left these groups lives on.
    """
    status_file(output).unlink(missing_ok=True)
    file = output.with_suffix(".log")
    with _naming(file), file.open("w", encoding="utf-8", buffering=1) as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # nothing is written: it is closed when we end
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=crew.root,
            env=crew.environment(output),
            start_new_session=True,
        )
        crew.processes.add(process)
        groups = {process.pid}
        shown = True
        try:
            for line in _lines(process):
                log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z {line}")
                if line.startswith(_KERNEL):
                    groups |= _children(process.pid)  # Jupyter gives kernels groups of their own
                # the failing cell is named at the end; the log has the rest
                shown = shown and not line.startswith("Traceback")
                if shown and line.strip() and not line.startswith(_NOISE):
                    print(f"[{name}] {line.rstrip()}", flush=True)
            return process.wait()
        finally:
            for group in groups:
                _end_group(group)
            crew.processes.discard(process)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """An error of the disk in the block names a file: of a full one Python names none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """The lines that a process prints, until it has ended: what it has started may hold
    its output open for longer.
    """
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=_GLANCE)
        except Empty:
            if process.poll() is None:
                continue
            return
        if not line:
            return
        yield line


def _children(process: int) -> set[int]:
    with suppress(psutil.Error):
        return {child.pid for child in psutil.Process(process).children()}
    return set()


def _end_group(leader: int) -> None:
    """Kill a process group; nothing where there is none."""
    with suppress(ProcessLookupError, PermissionError):  # the latter where all are dead
        os.killpg(leader, signal.SIGKILL)


def status_file(output: Path) -> Path:
    """Return the path of a notebook's log of model calls and verdicts (`log`)."""
    return output.with_suffix(".tally.jsonl")


def _connections_of(output: Path) -> Path:
    """Where the file lies by which a notebook's kernel is spoken to, which holds a key."""
    return output.with_suffix(".kernel")


def papermill_main(arguments: list[str]) -> None:
    """Run papermill in this process. If memory runs out, the system kills this process or its
    kernel first: the runner lives on and goes to the next notebook.

    A kernel that dies before it runs a cell is restarted, twice at most. When the runner ends, for
    any reason, this process and its children end too.
    """
    connections = _connections_of(Path(arguments[1]))
    exit_with_parent(connections)
    tempfile.tempdir = str(connections)  # of this process alone: Jupyter puts the file there
    # jsonschema imports it if it can, for addresses that notebooks' schema has none of: it
    # builds a grammar then, which takes as long as all the rest
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    from papermill.cli import papermill as command

    for start in range(1, _STARTS + 1):
        try:
            command(arguments)
            return
        except RuntimeError as error:
            if not str(error).startswith(_DIED_EARLY) or start == _STARTS:
                raise
            print("its kernel died as it started, before any cell ran: it is started again")


def exit_with_parent(leaving: Path | None = None) -> None:
    """End this process when its standard input is closed, and remove the folder `leaving`. If
    memory runs out, this process is killed rather than its parent.
    """
    threading.Thread(target=_end_with_runner, args=(leaving,), daemon=True).start()
    with suppress(OSError):  # not Linux, or not allowed: then the system chooses by size alone
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def _end_with_runner(leaving: Path | None) -> None:
    """Wait until the runner closes our standard input, as its end does, and end all."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    for child in psutil.Process().children(recursive=True):
        _end_group(child.pid)
        with suppress(psutil.Error):
            child.kill()
    if leaving:
        shutil.rmtree(leaving, ignore_errors=True)
    os._exit(1)
