"""The `vrag` command, in this process and as one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.runner.cli import app

P = "params/guide/p.yaml"


def said(*arguments: object) -> tuple[int, str]:
    """(exit status, what is printed) of the command in this process."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(done.exception, VragError):  # `main` prints it
        return 2, f"{done.output}{done.exception}"
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, done.output


def vrag(
    project: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, until it ends."""
    command = [sys.executable, "-m", "vrag_kit.runner.cli", *arguments]
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, text=True, check=False
    )


def as_in_a_terminal() -> None:
    """Interrupts and hang-ups are heard, also where these tests run in the background."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


@contextmanager
def running(folder: Path, module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command at work, ended with the block; what it prints is in a log named by it."""
    log = folder / f"{arguments[0]}.log"
    env = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            **{"cwd": folder, "env": env, "stdout": output, "stderr": output, "text": True},
            preexec_fn=as_in_a_terminal,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def until(true: Callable[[], object], seconds: float = 150) -> None:
    """Wait until something holds; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
