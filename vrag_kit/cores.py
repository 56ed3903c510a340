"""How many cores this process may use, of those that the machine has."""

from __future__ import annotations


def cores() -> int:
    """At least 1: what the process is bound to, and no more than its container's quota."""
    from joblib import cpu_count

    return int(cpu_count())
