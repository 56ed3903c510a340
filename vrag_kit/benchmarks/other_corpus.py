"""The same questions over other images of their species: an image folder without labels.

Such as iNaturalist 2024 (Visual-RAG, Table 5).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import chain
from pathlib import Path

from vrag_kit.benchmarks.images import list_images
from vrag_kit.benchmarks.visual_rag import photograph
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark


def load_other_corpus(benchmark: Benchmark, image_root: Path | str, *, name: str) -> Benchmark:
    """The queries of `benchmark` whose species has a folder in `image_root`, each
    searched in that folder's images; there are no labels, so qrels are empty.

    Folders are named as in iNaturalist,
    NNNNN_Kingdom_Phylum_Class_Order_Family_Genus_species; numbers may differ from those
    of the benchmark, the scientific name counts. Queries without a folder are left out:
    `len(benchmark.queries)` before and after tells how many. Raises `VragError` when
    the folder is missing, or no species is found in it.
    """
    root = Path(image_root)
    if not root.is_dir():
        raise VragError(
            f"{root}: no such folder; expected the one that holds the second corpus' species"
            " folders (for iNaturalist archives usually 'train')."
        )
    folders = _folders(root)
    documents: dict[str, tuple[str, ...]] = {}
    for species in sorted({query.entity for query in benchmark.queries.values()} & folders.keys()):
        folder = folders[species]
        documents[species] = tuple(f"{folder.name}/{path.name}" for path in list_images(folder))
    kept = [
        query_id for query_id, query in benchmark.queries.items() if documents.get(query.entity)
    ]
    if not kept:
        raise VragError(
            f"{root}: none of its {len(folders)} folders is a species of {benchmark.name}, such as"
            f" {next(iter(benchmark.queries.values())).entity!r}. Expected folders like"
            " 'NNNNN_…_Genus_species'; is this the folder that holds them?"
        )
    corpus = {doc_id: photograph(doc_id, root) for doc_id in chain(*documents.values())}
    part = benchmark.subset(kept)
    digest = hashlib.sha256("\n".join([part.fingerprint, *corpus]).encode())
    return replace(
        part,
        name=name,
        fingerprint=digest.hexdigest(),
        corpus=corpus,
        qrels={query_id: {} for query_id in part.queries},
        pools={query_id: documents[query.entity] for query_id, query in part.queries.items()},
    )


def _folders(root: Path) -> dict[str, Path]:
    """Scientific name → folder; of two of one name the last."""
    return {
        " ".join(folder.name.split("_")[6:]): folder
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    }
