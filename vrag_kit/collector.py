"""Python's collector of what nobody holds any more, put off for a moment."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While much is made that stays: else Python would look through all of it, again and
    again, for what can go. Not for work of others' code, or of more than seconds.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
