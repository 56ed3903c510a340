"""A random order in which adding or removing one name moves no other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def ordered(items: Iterable[str], *names: object) -> list[str]:
    """The items in the random order that `names` (such as seed, query, stream, draw)
    stand for: by a hash of the names and the item.
    """
    prefix = "/".join(map(str, names)) + "/"
    return sorted(items, key=lambda item: hashlib.sha256((prefix + item).encode()).digest())
