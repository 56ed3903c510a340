"""Documents, pools and labels for photographs in species folders, created on access because
there are millions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.images import ImageFile
from vrag_kit.string_index import StringIndex
from vrag_kit.types import DocId, Document, JsonView, LazyMapping, QueryId

Pools = Mapping[QueryId, tuple[DocId, ...]]
Qrels = Mapping[QueryId, Mapping[DocId, int]]


def species_images(names: StringIndex, image_root: Path) -> Mapping[DocId, Document]:
    """Return the documents of the files "<species folder>/<file>", created on access; names must
    be distinct.
    """
    return LazyMapping(names, partial(species_image, image_root=image_root))


def species_image(doc_id: str, image_root: Path) -> Document:
    """Return the document of a file in a species folder."""
    folder, name = doc_id.rsplit("/", 1)
    place, told = _shared(folder, image_root)
    return Document(doc_id=doc_id, image=ImageFile.from_folder(place, name), metadata=told)


@cache
def _shared(folder: str, image_root: Path) -> tuple[str, JsonView]:
    """What its pictures have in common, once for all of them."""
    return str(image_root / folder), {"folder": folder.partition("/")[0]}


def build_pools(names: StringIndex, numbers: Mapping[QueryId, np.ndarray]) -> Pools:
    """Return the pool of each query, whose documents are given as indices into `names`."""
    return LazyMapping(numbers, partial(_pool, names, numbers))


def _pool(
    names: StringIndex, numbers: Mapping[QueryId, np.ndarray], query_id: QueryId
) -> tuple[DocId, ...]:
    return tuple(names.take(numbers[query_id]))


def build_qrels(pools: Pools, labels: Mapping[QueryId, np.ndarray]) -> Qrels:
    """Return the labels of each query, which are given in the order of its pool."""
    return LazyMapping(labels, partial(_labels, pools, labels))


def _labels(
    pools: Pools, labels: Mapping[QueryId, np.ndarray], query_id: QueryId
) -> Mapping[DocId, int]:
    return dict(zip(pools[query_id], labels[query_id].tolist(), strict=True))
