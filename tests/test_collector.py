"""Python's collector is put off for a moment, and is as it was afterwards."""

from __future__ import annotations

import gc

import pytest

from vrag_kit.collector import uncollected


def work() -> None:
    """Fails, within two pauses."""
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()  # the outer one is not over
        raise RuntimeError


def test_what_nobody_holds_is_looked_for_again_afterwards_even_after_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        work()
    assert gc.isenabled()
