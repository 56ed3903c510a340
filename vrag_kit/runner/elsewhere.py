"""What the workers of a Dask cluster do for a runner.

All machines see the project's folder under the same path, on a disk that they share.
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

from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.runner.clusters import Cluster
from vrag_kit.runner.execution import THREADS, Crew, Ended
from vrag_kit.runner.finished import kit_key
from vrag_kit.workspace import project_root

if TYPE_CHECKING:
    from distributed import Future

T = TypeVar("T")
_RETRIES = 2
"""How often work is tried again where a worker cannot do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Employer:
    """What a worker is told of the runner."""

    root: Path  # the project's folder
    kit: str  # hash of its package
    at_once: int | None  # tasks on one machine
    threads: Mapping[str, str]  # what the user sets of threads


@dataclass(slots=True)
class Afar:
    """The workers of a cluster, to whom work is handed."""

    cluster: Cluster
    stopped: bool = False
    _lost: str = ""  # why there are no workers any more
    _handed: list[Future[Any]] = field(default_factory=list)

    @property
    def begins(self) -> str:
        """What is said of a notebook when it is handed over."""
        return f"handed to {self.cluster.name}"

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, object]) -> Ended:
        """How a worker fared with a notebook, as `done`."""
        try:
            return self.done(execute_there, notebook, output, dict(parameters))
        except CancelledError:
            return Ended(status=1, seconds=0.0, starved=False, stopped=True)

    def done(self, work: Callable[..., T], *told: object) -> T:
        """What a worker made of work; where one dies, another begins it again.

        Raises `VragError` when none brought it to an end, and `CancelledError` where we
        were stopped.
        """
        if self._lost:
            raise VragError(self._lost)
        us = Employer(
            root=project_root(),
            kit=kit_key(),
            at_once=self.cluster.at_once,
            threads={name: os.environ[name] for name in THREADS if name in os.environ},
        )
        client = self.cluster.client
        future = client.submit(work, us, *told, retries=_RETRIES, pure=False)
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
        """Hand over no more, and wait for nothing."""
        self.stopped = True
        self.cluster.client.cancel(self._handed)


def execute_there(
    us: Employer, notebook: Path, output: Path, parameters: Mapping[str, object]
) -> Ended:
    """On a worker: execute a notebook as `vrag run` does on its own machine; it ends when
    this process does. Raises as `crew_of`.
    """
    return crew_of(us).execute(notebook, output, parameters)


def crew_of(us: Employer) -> Crew:
    """On a worker: what executes the work of a runner.

    Raises `VragError` for a worker that does not see the project's folder, or has another
    version of the kit.
    """
    here = platform.node()
    if not us.root.is_dir():
        raise VragError(
            f"the worker on {here} does not see the project's folder {us.root}. All machines need"
            " it under the same path, on a disk that they share."
        )
    if kit_key() != us.kit:
        raise VragError(
            f"the worker on {here} has another version of vrag_kit than the runner. Start it in"
            " the environment of the runner."
        )
    threads = max(1, cores() // us.at_once) if us.at_once else None
    return Crew(threads, root=us.root, given={**_own_environment(), **us.threads})


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
