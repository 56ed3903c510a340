"""How many cores this process may use, of those that the machine has."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OWN_GROUPS = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """How many cores this process may use, at least 1: what it is bound to (on Linux), and
    no more than its container's share of their time, a begun core being one.
    """
    bound = hasattr(os, "sched_getaffinity")  # not on macOS
    there = len(os.sched_getaffinity(0)) if bound else os.cpu_count() or 1
    return max(1, min([there, *map(math.ceil, _quotas())]))


def _quotas() -> Iterator[float]:
    """The cores of each control group that this process is in, of both versions, as far
    as they are limited.
    """
    try:
        groups = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in groups:
        kinds, path = line.split(":", 2)[1:]
        if kinds and "cpu" not in kinds.split(","):
            continue
        for mount in ("cpu", "cpu,cpuacct") if kinds else ("", "unified"):
            group = _CGROUPS / mount / path.lstrip("/")
            for folder in (group, *group.parents):
                # in a container its own group may be the mount's root
                if folder.is_relative_to(_CGROUPS / mount):
                    yield from _quota(folder)


def _quota(group: Path) -> Iterator[float]:
    """Microseconds of work over microseconds of time, where a group has a limit."""
    with suppress(OSError, ValueError):  # "max" and -1: no limit
        allowed, period = (group / "cpu.max").read_text(encoding="ascii").split()
        yield int(allowed) / int(period)
    with suppress(OSError, ValueError):
        allowed = (group / "cpu.cfs_quota_us").read_text(encoding="ascii")
        period = (group / "cpu.cfs_period_us").read_text(encoding="ascii")
        if int(allowed) > 0:
            yield int(allowed) / int(period)
