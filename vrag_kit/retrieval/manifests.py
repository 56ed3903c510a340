"""Where an encoder's embeddings lie, and what is noted about it there.

    <root>/<encoder>-<fingerprint>/
        manifest.json    encoder, fingerprint, normalized, number type, prompts, what is
                         shown, what documents are known by, and the recipes of entries
                         that lead here
        queries/         shards of questions asked by their picture (`query_vectors`)
        runs/            finished searches (`searches`)
    <root>/<name>-<fingerprint of `Encoder.documents`>/
        shard-*          vectors of documents (`shards`)

The second is the first for an encoder that is asked as usual. Others that differ in
questions alone share it with that one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.retrieval.encoders import Encoder


def embeddings_folder(encoder: Encoder, root: Path | str) -> Path:
    """Where everything lies that `encoder` alone has made below `root`."""
    return Path(root) / f"{encoder.name}-{encoder.fingerprint[:12]}"


def documents_folder(encoder: Encoder, root: Path | str) -> Path:
    """Where the vectors of its documents lie."""
    return Path(root) / f"{encoder.documents.name}-{encoder.documents.fingerprint[:12]}"


def write_manifest(folder: Path, encoder: Encoder, *, recipe: str | None = None) -> None:
    """Say in `folder` what made the embeddings there, and which recipes lead to it:
    those that stood there, and `recipe`. Others wait only while this is written.
    """
    with one_at_a_time(folder, "writing the manifest"):
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
            "shown": asdict(encoder.shown),
            "documents": encoder.documents._asdict(),
            "recipes": sorted(recipes),
        }
        write_file(path, json.dumps(manifest, indent=2, ensure_ascii=False))
