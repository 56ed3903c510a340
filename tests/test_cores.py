"""A process counts on the cores that it may use, not on those that the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vrag_kit import cores as module
from vrag_kit.cores import cores
from vrag_kit.runner.shares import shares

HAS = 64


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores whose control groups are files below the folder."""
    monkeypatch.setattr(module, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(module, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "cpu_count", lambda: HAS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(HAS)), raising=False)
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="ascii")


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),  # docker run --cpus 2
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "250000 100000"}, 3),  # a begun core is one
        ("0::/", {"cpu.max": "max 100000"}, HAS),
        ("0::/", {}, HAS),
        ("0::/pod/me", {"pod/me/cpu.max": "max 100000", "pod/cpu.max": "400000 100000"}, 4),
        ("0::/pod/me", {"pod/me/cpu.max": "30000 10000", "pod/cpu.max": "400000 100000"}, 3),
        (
            "4:memory:/\n3:cpu,cpuacct:/docker/f00",  # seen from within: the mount's root
            {"cpu,cpuacct/cpu.cfs_quota_us": "150000", "cpu,cpuacct/cpu.cfs_period_us": "50000"},
            3,
        ),
        ("1:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, HAS),
        ("1:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "10000", "cpu/a/cpu.cfs_period_us": "5000"}, 2),
        ("2:cpuset:/a\n0::/", {"unified/cpu.max": "700000 100000"}, 7),
    ],
)
def test_a_containers_quota_counts(
    container: Path, groups: str, files: dict[str, str], expected: int
) -> None:
    write(container, {"own": groups})
    write(container / "cgroup", files)
    assert cores() == expected
    together = shares([{"models": []}] * 2, 2)
    assert together.threads == max(1, expected // 2)
    alone = shares([{"models": []}], 1)
    assert alone.threads == (None if expected == HAS else expected)  # else libraries take 64


def test_so_do_the_cores_that_a_process_is_bound_to(
    container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 8}, raising=False)
    assert cores() == 3
    write(container, {"own": "0::/"})
    write(container / "cgroup", {"cpu.max": "200000 100000"})
    assert cores() == 2
