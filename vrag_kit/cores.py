"""Number of CPU cores that this process may use."""

from __future__ import annotations


def available_cores() -> int:
    """Return the usable CPU cores, at least 1, by CPU affinity and container quota."""
    from joblib import cpu_count

    return int(cpu_count())
