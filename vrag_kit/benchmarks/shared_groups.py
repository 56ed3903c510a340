"""Groups of questions that share evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping


def connected_groups(keys: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Map each question to the first of its group: questions that share keys, also indirectly.
    Groups are the connected components of the graph of questions and keys. A question without
    keys is a group by itself.
    """
    having: dict[str, list[str]] = defaultdict(list)
    for name, its in keys.items():
        for key in its:
            having[key].append(name)
    first: dict[str, str] = {}
    for start in keys:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in first:
                continue
            first[name] = start
            for key in keys[name]:
                waiting += having.pop(key, [])
    return first
