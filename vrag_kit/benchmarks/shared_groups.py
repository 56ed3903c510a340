"""Clusters of questions that share what answers them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping


def shared_groups(keys: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Question → the first of all questions that share a key with it, directly or through
    others: the components of the graph of questions and keys, each named by its first.
    A question without keys is a group of its own.
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
