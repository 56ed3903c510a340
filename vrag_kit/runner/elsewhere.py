"""Execution of a runner's work by the workers of a Dask cluster.

All machines see the project folder under the same path, on a shared disk.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vrag_kit.errors import VragError
from vrag_kit.processes import available_cores
from vrag_kit.runner.cluster import Cluster
from vrag_kit.runner.job import THREADS, JobResult, LocalPool
from vrag_kit.runner.stamp import package_hash
from vrag_kit.workspace import project_root

if TYPE_CHECKING:
    from distributed import Future

T = TypeVar("T")
_RETRIES = 2
"""Number of retries if a worker fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """The runner's settings that are sent to a worker."""

    root: Path  # the project's folder
    kit: str  # hash of its package
    at_once: int | None  # tasks on one machine
    threads: Mapping[str, str]  # what the user sets of threads


@dataclass(slots=True)
class DaskPool:
    """A pool that submits work to the workers of a Dask cluster."""

    cluster: Cluster
    stopped: bool = False
    _lost: str = ""  # why there are no workers any more
    _handed: list[Future[Any]] = field(default_factory=list)

    @property
    def begins(self) -> str:
        """Message for a notebook that is submitted."""
        return f"handed to {self.cluster.name}"

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, object]) -> JobResult:
        """Execute a notebook on a worker; raises `VragError` as `wait` does."""
        try:
            return self.wait(run_on_worker, notebook, output, dict(parameters))
        except CancelledError:
            return JobResult(status=1, seconds=0.0, starved=False, stopped=True)

    def wait(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a function on a worker and return its result; if a worker dies, another one retries.

        Raises `VragError` if no worker finishes it, and `CancelledError` if this pool was stopped.
        """
        if self._lost:
            raise VragError(self._lost)
        us = WorkerContext(
            root=project_root(),
            kit=package_hash(),
            at_once=self.cluster.at_once,
            threads={name: os.environ[name] for name in THREADS if name in os.environ},
        )
        client = self.cluster.client
        future = client.submit(work, us, *arguments, retries=_RETRIES, pure=False)
        self._handed.append(future)
        try:
            result: T = future.result()
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
        except Exception as error:  # of a worker that died, of its disk
            raise VragError(
                f"{self.cluster.name} did not bring it to an end: {type(error).__name__}:"
                f" {error}. What is stored stays; see the logs of its workers, and run again."
            ) from error
        return result

    def stop(self) -> None:
        """Cancel the submitted work, without waiting for it."""
        self.stopped = True
        self.cluster.client.cancel(self._handed)


def run_on_worker(
    us: WorkerContext, notebook: Path, output: Path, parameters: Mapping[str, object]
) -> JobResult:
    """On a worker, execute a notebook as `vrag run` does locally; it ends with this process. Raises
    as `pool_on_worker` does.
    """
    return pool_on_worker(us).execute(notebook, output, parameters)


def pool_on_worker(us: WorkerContext) -> LocalPool:
    """On a worker, create the pool that executes a runner's work.

    Raises `VragError` if the worker does not see the project folder, or has another version of the
    kit.
    """
    here = platform.node()
    if not us.root.is_dir():
        raise VragError(
            f"the worker on {here} does not see the project's folder {us.root}. All machines need"
            " it under the same path, on a disk that they share."
        )
    if package_hash() != us.kit:
        raise VragError(
            f"the worker on {here} has another version of vrag_kit than the runner. Start it in"
            " the environment of the runner."
        )
    threads = max(1, available_cores() // us.at_once) if us.at_once else None
    return LocalPool(threads, root=us.root, given={**_own_environment(), **us.threads})


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
