"""A process counts on the cores that it may use, not on those that the machine has."""

from __future__ import annotations

import os

import pytest

from vrag_kit.processes import available_cores
from vrag_kit.runner.run import job_limits

HAS = 64


@pytest.mark.parametrize("bound", [3, HAS])
def test_notebooks_share_the_cores_that_a_process_is_bound_to(
    bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: HAS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(bound)), raising=False)
    if available_cores() != bound:
        pytest.skip("a container's quota is lower")
    assert job_limits([{"models": []}] * 2, 2).threads == bound // 2
    alone = job_limits([{"models": []}], 1)
    assert alone.threads == (None if bound == HAS else bound)  # else libraries take 64
