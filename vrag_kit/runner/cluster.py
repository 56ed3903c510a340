"""Execution of work on a Dask cluster: a running scheduler, or workers started here.

tcp://node1:8786    a running Dask scheduler, with its workers
local: 2            two workers on this machine, which end with this process

All machines see the project folder under the same path, on a shared disk.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.errors import VragError
from vrag_kit.processes import available_cores
from vrag_kit.runner.job import LocalPool
from vrag_kit.runner.stamp import package_hash
from vrag_kit.workspace import project_root

if TYPE_CHECKING:
    from distributed import Client, Future

CLUSTER = "cluster"
"""Reserved key of a parameter file that names a cluster."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that Dask sets to 1 for its workers."""


def parse_cluster(spec: object, where: str) -> str:
    """Return the name of a cluster from a parameter file or a command line: "local:2" or an
    address. Raises `VragError`, beginning with `where`, for anything else.
    """
    if isinstance(spec, Mapping) and list(spec) == ["local"]:
        spec = f"local:{spec['local']}"
    if isinstance(spec, str):
        if local := re.fullmatch(r"local: *([1-9]\d*)", spec):
            return f"local:{local[1]}"
        if re.match(r"(tcp|tls|ucx)://.", spec):
            return spec
    raise VragError(
        f"{where} is {spec!r}; expected the address of a Dask scheduler, such as tcp://node1:8786,"
        " or so many workers on this machine: local:2, in a parameter file `cluster: {local: 2}`."
    )


@dataclass(slots=True)
class DaskPool:
    """The workers of a connected Dask cluster."""

    client: Client
    name: str
    stopped: bool = False
    futures: list[Future[Any]] = field(default_factory=list)

    def threads(self) -> Counter[str]:
        """Return the number of parallel tasks of each machine that has joined."""
        threads: Counter[str] = Counter()
        for address, count in self.client.nthreads().items():
            threads[address.rpartition(":")[0]] += count
        return threads

    def stop(self) -> None:
        """Give up all submitted work: `call` raises for it."""
        self.stopped = True
        self.client.cancel(self.futures)

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> int:
        """Execute a notebook on a worker; returns papermill's exit status. Raises as `call`."""
        at_once = max(self.threads().values(), default=1)
        status: int = self.call(_execute, at_once, notebook, output, dict(parameters))
        return status

    def call(self, work: Callable[..., Any], *arguments: object) -> Any:
        """Run a function on a worker, in the project's folder, and return its result; if a worker
        dies, Dask gives it to another. Raises the function's `VragError`, and `VragError` if no
        worker finishes it, or the scheduler ends.
        """
        where = (project_root(), package_hash())
        try:
            future = self.client.submit(_on_worker, *where, work, *arguments, pure=False)
            self.futures.append(future)
            return future.result()
        except VragError:
            raise
        except CancelledError as error:
            raise VragError(
                f"{self.name}: its scheduler has gone away. What is finished and what is stored"
                " stay; start it and its workers again, then run the same command."
            ) from error
        except Exception as error:  # of a worker that died, of its disk
            raise VragError(
                f"{self.name} did not bring it to an end: {type(error).__name__}: {error}. What is"
                " stored stays; see the logs of its workers, and run again."
            ) from error


def _on_worker(root: Path, package: str, work: Callable[..., Any], *arguments: object) -> object:
    """On a worker, run a function in the project's folder."""
    if package_hash() != package:
        raise VragError(
            f"the worker on {platform.node()} has another version of vrag_kit. Start it in"
            " the environment of the runner."
        )
    os.chdir(root)
    return work(*arguments)


def _execute(at_once: int, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> int:
    """On a worker, execute a notebook as `vrag run` does locally; it ends with this process."""
    for name in _THREADS:
        os.environ.pop(name, None)
    return LocalPool(max(1, available_cores() // at_once)).execute(notebook, output, parameters)


@contextmanager
def open_cluster(name: str) -> Iterator[DaskPool]:
    """Connect to a cluster by its name from `parse_cluster`; one started here ends with the block.

    Raises `VragError` if Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ModuleNotFoundError as error:
        raise VragError(
            f"cluster {name}: Dask is not installed here ({error}). Run `pip install -c"
            ' constraints.txt -e ".[cluster]"`.'
        ) from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # `call` names it
    local = name.removeprefix("local:")
    with ExitStack() as stack:
        address: Any = name
        if local != name:
            # notebooks are processes of their own, and have the memory
            address = stack.enter_context(
                LocalCluster(
                    n_workers=int(local),
                    threads_per_worker=1,
                    memory_limit=None,
                    dashboard_address=None,
                    silence_logs=logging.ERROR,
                )
            )
        try:
            client = stack.enter_context(Client(address))
        except (OSError, ValueError) as error:
            raise VragError(
                f"cluster {name}: no scheduler of Dask answers there ({error}). Start one with"
                " `dask scheduler`; its first lines tell the address."
            ) from error
        pool = DaskPool(client, name)
        if not pool.threads():
            print("no worker has come yet: the work waits for the first", flush=True)
        yield pool
