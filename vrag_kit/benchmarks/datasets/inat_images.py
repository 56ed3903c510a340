"""Photographs in species folders, as iNaturalist has them: documents, pools and labels that are
created on access because there are millions, and an unlabelled corpus of a benchmark's species,
such as iNaturalist 2024 (Visual-RAG, Table 5).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.images import ImageFile, list_images
from vrag_kit.errors import VragError
from vrag_kit.string_index import StringIndex
from vrag_kit.types import Benchmark, DocId, Document, JsonView, LazyMapping, QueryId

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


def load_inat_corpus(benchmark: Benchmark, image_root: Path | str, *, name: str) -> Benchmark:
    """Load the queries of `benchmark` over the images of their species' folders in `image_root`.

    A query's pool is its species' folder; there are no labels, so qrels are empty. Folders are
    named as in iNaturalist, NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species; they are
    matched by scientific name, and numbers may differ. Queries without images are left out:
    compare `len(benchmark.queries)` before and after. Raises `VragError` if the folder is
    missing, or if no species is found in it.
    """
    root = Path(image_root)
    folders = _folders(root)
    species = {query.entity for query in benchmark.queries.values()} & folders.keys()
    names, documents = _images({each: folders[each] for each in sorted(species)})
    kept = [
        query_id
        for query_id, query in benchmark.queries.items()
        if len(documents.get(query.entity, ()))
    ]
    if not kept:
        raise VragError(
            f"{root}: none of its {len(folders)} folders is a species of {benchmark.name}, such as"
            f" {next(iter(benchmark.queries.values())).entity!r}. Expected folders like"
            " 'NNNNN_…_Genus_species'; is this the folder that holds them?"
        )
    part = benchmark.subset(kept)
    digest = hashlib.sha256(part.fingerprint.encode())
    for doc_id in names:
        digest.update(f"\n{doc_id}".encode())
    pools = {query_id: documents[query.entity] for query_id, query in part.queries.items()}
    return replace(
        part,
        name=name,
        fingerprint=digest.hexdigest(),
        corpus=species_images(names, root),
        qrels={query_id: {} for query_id in part.queries},
        pools=build_pools(names, pools),
    )


def _images(folders: Mapping[str, Path]) -> tuple[StringIndex, dict[str, np.ndarray]]:
    """The images in species' folders, and for each species the numbers of its own."""
    counts: list[int] = []

    def files() -> Iterator[str]:
        for folder in folders.values():
            images = list_images(folder)
            counts.append(len(images))
            yield from (f"{folder.name}/{path.name}" for path in images)

    names = StringIndex(files())
    numbers = np.split(np.arange(len(names), dtype=np.int32), np.cumsum(counts)[:-1])
    return names, dict(zip(folders, numbers, strict=False))  # without folders one, of none


def _folders(root: Path) -> dict[str, Path]:
    """Scientific name → folder; of two of one name the last. Raises `VragError` where
    there is no such root.
    """
    if not root.is_dir():
        raise VragError(
            f"{root}: no such folder; expected the one that holds the second corpus' species"
            " folders (for iNaturalist archives usually 'train')."
        )
    return {
        " ".join(folder.name.split("_")[6:]): folder
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    }
