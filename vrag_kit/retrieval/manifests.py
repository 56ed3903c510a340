"""Folders of an encoder's embeddings, and their manifests.

    <root>/<encoder>-<fingerprint>/
        manifest.json    encoder, fingerprint, normalized, number type, prompts, encoded
                         parts, key of document vectors, versions of libraries
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

from vrag_kit.files import write_file
from vrag_kit.log import logger
from vrag_kit.retrieval.encoders.base import Encoder, library_versions


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder below `root` of everything that this encoder alone has made."""
    return Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Returns the folder of the encoder's document vectors."""
    return Path(root) / f"{encoder.document_key.name}-{encoder.document_key.fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder) -> None:
    """Writes the manifest of `folder`, unless it is there. A change of the libraries' versions is
    logged once; vectors are reused all the same.
    """
    path = folder / "manifest.json"
    versions = library_versions()
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        before = versions
    else:
        if before == versions:
            return
    if changed := {name for name in versions if before.get(name) != versions[name]}:
        words = [f"{name} {before.get(name)} → {versions[name]}" for name in sorted(changed)]
        logger.warning(
            f"{folder}: since its first vectors, {', '.join(words)}. They are reused; remove the"
            " folder to embed everything again."
        )
    manifest = {
        "encoder": encoder.name,
        "fingerprint": encoder.fingerprint,
        "normalized": encoder.normalized,
        "dtype": "float32",
        "prompts": dict(encoder.prompts),
        "modalities": asdict(encoder.modalities),
        "documents": encoder.document_key._asdict(),
        "versions": versions,
    }
    write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))
