"""What the workers of an executor do for a runner, on this machine or on others.

All machines see the project's folder under the same path, on a disk that they share.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.runner.clusters import Cluster
from vrag_kit.runner.execution import THREADS, Crew, Ended
from vrag_kit.runner.finished import kit_key
from vrag_kit.runner.signs import is_at_work, working
from vrag_kit.workspace import project_root

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Employer:
    """For whom a worker works, and how."""

    root: Path  # the project's folder
    folder: Path  # where the runner's sign is
    word: str  # by which the runner is known
    kit: str  # hash of its package
    at_once: int | None  # tasks on one machine
    threads: Mapping[str, str]  # what the user sets of threads


@dataclass(slots=True)
class Afar:
    """Workers to whom work is handed, for the runner whose sign is in a folder."""

    cluster: Cluster
    folder: Path
    word: str  # by which the runner is known
    stopped: bool = False
    _lost: str = ""  # why there are no workers any more
    _handed: set[Future[Any]] = field(default_factory=set)  # of whatever work
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def begins(self) -> str:
        """What is said of a notebook when it is handed over."""
        return f"handed to {self.cluster.name}"

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> Ended:
        """How a worker fared with a notebook, as `done`."""
        try:
            return self.done(execute_there, notebook, output, dict(parameters))
        except CancelledError:
            return Ended(status=1, seconds=0.0, starved=False, stopped=True)

    def done(self, work: Callable[..., T], *told: object) -> T:
        """What a worker made of work; where one is ended in the middle, another begins
        anew, as far as the executor sees to it.

        Raises `VragError` when none brought it to an end, and `CancelledError` where we
        were stopped.
        """
        try:
            return self._hand(work, *told).result()
        except VragError:
            raise
        except CancelledError as error:
            if self.stopped:
                raise
            self._lost = (
                f"{self.cluster.name}: its scheduler has gone away. What is finished and what is"
                " stored stay; start it and its workers again, then run the same command: it"
                " goes on where it was."
            )
            raise VragError(self._lost) from error
        except Exception as error:  # each kind of executor has its own for lost workers
            raise VragError(
                f"{self.cluster.name} did not bring it to an end: {type(error).__name__}:"
                f" {error}. What is stored stays; see the logs of its workers, and run again."
            ) from error

    def _hand(self, work: Callable[..., T], *told: object) -> Future[T]:
        us = Employer(
            root=project_root(),
            folder=self.folder,
            word=self.word,
            kit=kit_key(),
            at_once=self.cluster.at_once,
            threads={name: os.environ[name] for name in THREADS if name in os.environ},
        )
        with self._lock:
            if self._lost:
                raise VragError(self._lost)
            if self.stopped:
                raise CancelledError
            future = self.cluster.executor.submit(work, us, *told)
            self._handed.add(future)
            return future

    def stop(self) -> None:
        """Hand over no more, and wait for nothing."""
        with self._lock:
            self.stopped = True
            for future in self._handed:
                future.cancel()


def execute_there(
    us: Employer, notebook: Path, output: Path, parameters: Mapping[str, Any]
) -> Ended:
    """On a worker: execute a notebook as `vrag run` does on its own machine; it ends when
    this process does, and when nobody waits for it any more. Raises as `employed`.
    """
    with employed(us, output) as crew:
        return crew.execute(notebook, output, parameters)


@contextmanager
def employed(us: Employer, output: Path) -> Iterator[Crew]:
    """On a worker: a crew for the work that the sign beside `output` stands for, stopped
    when nobody waits for it any more.

    Raises `VragError` for a worker that does not see the project's folder, has another
    version of the kit, or no room on its disk.
    """
    here = platform.node()
    if not is_at_work(us.folder, us.word):
        raise VragError(
            f"the worker on {here} does not see the project's folder {us.root} as it is for"
            " the runner. All machines need it under the same path, on a disk that they share."
        )
    if kit_key() != us.kit:
        raise VragError(
            f"the worker on {here} has another version of vrag_kit than the runner. Start it in"
            " the environment of the runner."
        )
    threads = max(1, cores() // us.at_once) if us.at_once else None
    crew = Crew(threads, root=us.root, given={**_own_environment(), **us.threads})
    try:
        with working(output.with_suffix(".worker"), us.folder, us.word, crew.stop):
            yield crew
    except OSError as error:
        raise VragError(
            f"the worker on {here}: {error.filename or output}: {error.strerror or error}. Free"
            " space there, and run the same command again: it goes on where it was."
        ) from error


def _own_environment() -> dict[str, str]:
    """This process's, without what Dask sets for its workers: one thread for each library
    that counts, as if they counted themselves.
    """
    own = dict(os.environ)
    if "distributed" in sys.modules:
        import dask

        set_by_dask = (
            "distributed.nanny.pre-spawn-environ"  # not there while another thread loads it
        )
        for name, value in dask.config.get(set_by_dask, {}).items():
            with suppress(KeyError):
                if own[name] == str(value):
                    del own[name]
    return own
