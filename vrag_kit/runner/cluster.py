"""Connections to Dask clusters by name, to a running scheduler or to workers started here.

tcp://node1:8786    a running Dask scheduler, with its workers
local: 2            two workers on this machine, which end with this process
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_kit.errors import VragError

if TYPE_CHECKING:
    from distributed import Client

CLUSTER = "cluster"
"""Reserved key of a parameter file that names a cluster."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connected Dask cluster."""

    client: Client
    name: str
    at_once: int | None
    """Number of parallel tasks on the machine that runs most; None if unknown."""
    slots: int | None
    """Number of parallel tasks on all machines together; None if unknown."""


def parse_cluster(spec: object, where: str) -> str:
    """Return the name of a cluster from a parameter file or a command line: "local:2" or an
    address. Raises `VragError`, beginning with `where`, for anything else.
    """
    if isinstance(spec, Mapping) and list(spec) == ["local"]:
        spec = f"local:{spec['local']}"
    if isinstance(spec, str):
        count = spec.removeprefix("local:").strip()
        if spec.startswith("local:") and count.isdecimal() and int(count) > 0:
            return f"local:{int(count)}"
        if re.match(r"(tcp|tls|ucx)://.", spec):
            return spec
    raise VragError(
        f"{where} is {spec!r}; expected the address of a Dask scheduler, such as tcp://node1:8786,"
        " or so many workers on this machine: local:2, in a parameter file `cluster: {local: 2}`."
    )


@contextmanager
def open_cluster(name: str) -> Iterator[Cluster]:
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
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we say it ourselves
    with ExitStack() as stack:
        if name.startswith("local:"):
            count = int(name.removeprefix("local:"))
            # notebooks are processes of their own, and have the memory
            here = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=None,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            )
            client = stack.enter_context(Client(stack.enter_context(here)))
        else:
            try:
                client = stack.enter_context(Client(name))
            except (OSError, ValueError) as error:
                raise VragError(
                    f"cluster {name}: no scheduler of Dask answers there ({error}). Start one with"
                    " `dask scheduler`; its first lines tell the address."
                ) from error
        threads = _threads(client)
        most, slots = max(threads.values(), default=None), threads.total() or None
        yield Cluster(client, name, most, slots)


def _threads(client: Client) -> Counter[str]:
    """Threads of the workers that there are by now, machine by machine."""
    threads: Counter[str] = Counter()
    for address, count in client.nthreads().items():
        threads[address.rpartition(":")[0]] += count
    if not threads:
        print("no worker has come yet: the work waits for the first", flush=True)
    return threads
