"""Photographs in folders of species, and the pools that are searched: millions of them,
made when they are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.made import Made
from vrag_kit.names import Names
from vrag_kit.plain import JsonView
from vrag_kit.types import DocId, Evidence, QueryId

Pools = Mapping[QueryId, tuple[DocId, ...]]
Qrels = Mapping[QueryId, Mapping[DocId, int]]


def photographs(names: Names, image_root: Path) -> Mapping[DocId, Evidence]:
    """The documents of files in species' folders, "<species folder>/<file>"; names come
    once.
    """
    return Made(names, partial(photograph, image_root=image_root))


def photograph(doc_id: str, image_root: Path) -> Evidence:
    """The document of a file in a species' folder."""
    folder, name = doc_id.rsplit("/", 1)
    place, told = _shared(folder, image_root)
    return Evidence(doc_id=doc_id, image=ImageFile.inside(place, name), metadata=told)


@cache
def _shared(folder: str, image_root: Path) -> tuple[str, JsonView]:
    """What its pictures have in common, once for all of them."""
    return str(image_root / folder), {"folder": folder.partition("/")[0]}


def pools_of(names: Names, numbers: Mapping[QueryId, np.ndarray]) -> Pools:
    """The pool of each query, whose documents are given by their numbers."""
    return Made(numbers, partial(_pool, names, numbers))


def _pool(
    names: Names, numbers: Mapping[QueryId, np.ndarray], query_id: QueryId
) -> tuple[DocId, ...]:
    return tuple(names.at(numbers[query_id]))


def labels_of(pools: Pools, labels: Mapping[QueryId, np.ndarray]) -> Qrels:
    """The labels of each query, given in the order of its pool."""
    return Made(labels, partial(_labels, pools, labels))


def _labels(
    pools: Pools, labels: Mapping[QueryId, np.ndarray], query_id: QueryId
) -> Mapping[DocId, int]:
    return dict(zip(pools[query_id], labels[query_id].tolist(), strict=True))
