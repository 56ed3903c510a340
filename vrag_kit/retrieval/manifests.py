"""Folders of an encoder's embeddings, and their manifests.

    <root>/<encoder>-<fingerprint>/
        manifest.json    encoder, fingerprint, normalized, number type, prompts, encoded
                         parts, key of document vectors, and the recipes of entries
                         that lead here
        queries/         shards of query vectors that use an image (`query_vectors`)
        runs/            finished searches (`searches`)
    <root>/<name>-<fingerprint of `Encoder.documents`>/
        shard-*          vectors of documents (`shards`)

Both are the same folder for an encoder with default query options. Encoders that differ
only on the query side share the second.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from vrag_kit.files import lock_folder, write_file
from vrag_kit.retrieval.encoders.base import Encoder


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder below `root` of everything that this encoder alone has made."""
    return Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder of the encoder's document vectors."""
    return Path(root) / f"{encoder.document_key.name}-{encoder.document_key.fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder, *, recipe: str | None = None) -> None:
    """Writes the manifest of `folder`: its encoder, and the recipes that lead to it. Recipes that
    it lists already are kept; other processes wait only while it is written.
    """
    with lock_folder(folder, "writing the manifest"):
        path = folder / "manifest.json"
        try:
            recipes = set(json.loads(path.read_text(encoding="utf-8"))["recipes"])
        except (OSError, ValueError, KeyError, TypeError):
            recipes = set()
        if recipe is not None:
            recipes.add(recipe)
        manifest = {
            "encoder": encoder.name,
            "fingerprint": encoder.fingerprint,
            "normalized": encoder.normalized,
            "dtype": "float32",
            "prompts": dict(encoder.prompts),
            "modalities": asdict(encoder.modalities),
            "documents": encoder.document_key._asdict(),
            "recipes": sorted(recipes),
        }
        write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))
