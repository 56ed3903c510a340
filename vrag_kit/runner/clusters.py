"""Clusters by their names: Dask's, that is running somewhere or is started here.

tcp://node1:8786    a scheduler of Dask, with the workers that it has
local: 2            two workers on this machine, ended with us
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
"""The reserved line of a parameter file that names one."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers that wait for something to do."""

    client: Client
    name: str
    at_once: int | None
    """How many tasks run at once on the machine that runs most; None: nobody knows."""
    slots: int | None
    """And on all together."""


def read_cluster(told: object, where: str) -> str:
    """The name of a cluster as a parameter file or a command line tells it, "local:2" or
    an address; raises `VragError` that begins with `where` for anything else.
    """
    if isinstance(told, Mapping) and list(told) == ["local"]:
        told = f"local:{told['local']}"
    if isinstance(told, str):
        count = told.removeprefix("local:").strip()
        if told.startswith("local:") and count.isdecimal() and int(count) > 0:
            return f"local:{int(count)}"
        if re.match(r"(tcp|tls|ucx)://.", told):
            return told
    raise VragError(
        f"{where} is {told!r}; expected the address of a Dask scheduler, such as tcp://node1:8786,"
        " or so many workers on this machine: local:2, in a parameter file `cluster: {local: 2}`."
    )


@contextmanager
def open_cluster(name: str) -> Iterator[Cluster]:
    """A cluster by the name that `read_cluster` gives; one that is started here ends with
    the block.

    Raises `VragError` where Dask is not installed, or no scheduler answers.
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
