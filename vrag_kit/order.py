"""Random orders in which adding or removing one item moves no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def ordered(items: Iterable[str], *names: object) -> list[str]:
    """Return the items in the random order determined by `names` (such as seed, query, stream,
    draw). Items are sorted by a hash of the names and the item.
    """
    prefix = "/".join(map(str, names)) + "/"
    return sorted(items, key=lambda item: hashlib.sha256((prefix + item).encode()).digest())
