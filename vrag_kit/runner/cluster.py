"""Execution of notebooks on the workers of a running Dask scheduler, such as tcp://node1:8786.

All machines see the project folder under the same path, on a shared disk. A notebook has the
threads that OMP_NUM_THREADS gives where its worker was started; Dask sets it to 1.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.errors import VragError
from vrag_kit.files import project_root
from vrag_kit.runner.job import LocalPool
from vrag_kit.runner.stamp import package_hash

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(slots=True)
class DaskPool:
    """The workers of a connected Dask cluster."""

    client: Client
    name: str
    futures: list[Future[int]] = field(default_factory=list)

    def stop(self) -> None:
        """Give up all submitted work: `execute` raises for it."""
        self.client.cancel(self.futures)

    def execute(self, notebook: Path, output: Path, parameters: Mapping[str, Any]) -> int:
        """Execute a notebook on a worker; returns papermill's exit status. If the worker dies,
        Dask gives it to another. Raises `VragError` if no worker finishes it.
        """
        work = (project_root(), package_hash(), notebook, output, dict(parameters))
        future = self.client.submit(_execute, *work, pure=False)
        self.futures.append(future)
        try:
            return future.result()
        except VragError:
            raise
        except Exception as error:  # of a scheduler or a worker that died, of its disk
            raise VragError(
                f"{self.name} did not bring it to an end: {type(error).__name__}: {error}. What is"
                " stored stays: run the same command again."
            ) from error


def _execute(
    root: Path, package: str, notebook: Path, output: Path, parameters: dict[str, Any]
) -> int:
    """On a worker, execute a notebook as `vrag run` does locally; it ends with this process."""
    if package_hash() != package:
        raise VragError(f"the worker on {platform.node()} has another version of vrag_kit.")
    os.chdir(root)
    return LocalPool().execute(notebook, output, parameters)


@contextmanager
def open_cluster(name: str) -> Iterator[DaskPool]:
    """Connect to the Dask scheduler at the address `name` within the block. Raises `VragError` for
    anything but an address, if Dask is not installed, or no scheduler answers.
    """
    if not re.match("(tcp|tls|ucx)://", name):
        expected = "the address of a Dask scheduler, such as tcp://node1:8786"
        raise VragError(f"--cluster is {name!r}; expected {expected}.")
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise VragError(
            f'cluster {name}: {error}. Run `pip install -c constraints.txt -e ".[cluster]"`.'
        ) from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # `execute` names it
    try:
        connection = Client(name)
    except (OSError, ValueError) as error:
        raise VragError(f"cluster {name}: no scheduler answers there ({error}).") from error
    with connection as client:
        print(f"cluster {name}: {len(client.nthreads())} workers", flush=True)
        yield DaskPool(client, name)
