"""How many notebooks run at once, and how many cores each of them gets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from vrag_kit.processes import available_cores
from vrag_kit.runner.params import MODELS
from vrag_kit.workspace import path as project_path

KERNEL = 2 * 2**30
"""Bytes that a notebook needs besides its models' weights; the demo's reach 1.3 GiB."""
_IN_MEMORY = 2
"""Bytes of memory per byte of a checkpoint, because half-precision weights are widened."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Number of notebooks at once, and of threads for each."""

    jobs: int  # notebooks at once
    threads: int | None  # of each; None: all cores, as its libraries like

    def __str__(self) -> str:
        each = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.jobs} notebooks at once, {each} each (`--jobs` says otherwise)"


def job_limits(settings: Sequence[Mapping[str, Any]], jobs: int | None = None) -> JobLimits:
    """Return how many notebooks run at once, and the threads of each; `settings` has one item each.

    `jobs` notebooks run at once, never more than there are. None means one per core, within three
    quarters of the free memory for their models' weights. It means 1 if a model is on another
    device, on an endpoint, or not local, because its size is unknown.
    """
    if jobs is None:
        here = all(all_local(each) for each in settings)
        jobs = min(available_cores(), _room(settings)) if here else 1
    jobs = max(1, min(jobs, len(settings)))
    all_of_them = jobs == 1 and available_cores() == os.cpu_count()
    return JobLimits(jobs, None if all_of_them else max(1, available_cores() // jobs))


def _room(settings: Sequence[Mapping[str, Any]]) -> int:
    """How many of the largest notebook the free memory holds."""
    free = 0.75 * psutil.virtual_memory().available
    largest = max((_memory(each) for each in settings), default=KERNEL)
    return int(free // largest)


def _memory(settings: Mapping[str, Any]) -> int:
    weights = {project_path(name) for name in _models(settings)}
    return KERNEL + _IN_MEMORY * sum(map(_size, weights))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("**/*.safetensors"))


def all_local(settings: Mapping[str, Any]) -> bool:
    """Return whether all models run on the CPU, from local folders."""
    if settings.get("hardware", {}).get("device", "cpu") != "cpu":
        return False
    elsewhere = [name for name in _models(settings) if "@" in name or "/" in name]
    return all(project_path(name).is_dir() for name in elsewhere)


def _models(settings: Mapping[str, Any]) -> Iterator[str]:
    """The models that parameters name."""
    for parameter in MODELS:
        value = settings.get(parameter)
        for entry in value if isinstance(value, list) else [value]:
            name = entry.get("model") if isinstance(entry, Mapping) else entry
            if isinstance(name, str) and name:
                yield name
