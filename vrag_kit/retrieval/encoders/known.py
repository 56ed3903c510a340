"""Identifies a retriever that was loaded before without reading its weights.

The manifest of a retriever's embeddings lists the recipes (`EncoderSpec.cache_key`) that led to it.
An entry whose recipe is listed has that name and fingerprint; its weights are read when something
is left to encode.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError
from vrag_kit.options import Entry
from vrag_kit.retrieval.encoders.base import DocumentKey, Encoder, InputModalities, Prepared
from vrag_kit.retrieval.encoders.custom import CustomEncoder, load_custom_encoder
from vrag_kit.retrieval.encoders.finding import EncoderSpec, resolve_encoder
from vrag_kit.retrieval.encoders.loading import load_encoder_spec
from vrag_kit.retrieval.manifests import embeddings_folder, write_manifest
from vrag_kit.types import Document, Query


class LazyEncoder:
    """An encoder whose weights are loaded on first use."""

    def __init__(self, manifest: Path, stated: Options, load: Callable[[], Encoder]) -> None:
        """`stated` is the content of the manifest; raises `KeyError` or `TypeError` where it is
        incomplete.
        """
        self._manifest = manifest
        self._load = load
        self._loaded: Encoder | None = None
        self._one_at_a_time = threading.Lock()
        self.name = str(stated["encoder"])
        self.fingerprint = str(stated["fingerprint"])
        self.normalized = bool(stated["normalized"])
        self.prompts: Mapping[str, str] = dict(stated["prompts"])
        self.modalities = InputModalities(**stated["modalities"])
        self.document_key = DocumentKey(**stated["documents"])

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Calls the encoder's `encode_queries`, loading it if necessary."""
        return self._encoder().encode_queries(queries)

    def prepare(self, document: Document) -> Prepared:
        """Calls the encoder's `prepare`, loading it if necessary."""
        return self._encoder().prepare(document)

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Calls the encoder's `encode_documents`, loading it if necessary."""
        return self._encoder().encode_documents(prepared)

    def _encoder(self) -> Encoder:
        with self._one_at_a_time:
            if self._loaded is None:
                self._loaded = self._load()
                self._check(self._loaded)
        return self._loaded

    def _check(self, loaded: Encoder) -> None:
        told = self.name, self.fingerprint, self.document_key
        if told != (loaded.name, loaded.fingerprint, loaded.document_key):
            raise VragError(
                f"{self._manifest}: it says that this is {self.name}, fingerprint"
                f" {self.fingerprint[:12]}, of documents {self.document_key.fingerprint[:12]}; but"
                f" that checkpoint is now {loaded.name}, {loaded.fingerprint[:12]}, of documents"
                f" {loaded.document_key.fingerprint[:12]}. Empty its list `recipes`, and"
                " search again."
            )


def open_encoder(entry: Entry | CustomEncoder, root: Path | str, *, device: str = "cpu") -> Encoder:
    """Returns the encoder of an entry; one that is recorded below `root` is loaded on first use.
    Any other is loaded now, and recorded there. A custom class or object is used as it is.

    Raises `VragError` as `load_encoder` does, now or when it is loaded.
    """
    if (own := load_custom_encoder(entry, device=device)) is not None:
        return own
    found = resolve_encoder(entry)
    known = _known(found, root, device)
    if known is not None:
        return known
    encoder = load_encoder_spec(found, device=device)
    folder = embeddings_folder(encoder, root)
    try:
        write_manifest(folder, encoder, recipe=found.cache_key())
    except OSError as error:
        raise VragError(
            f"{folder}: cannot be written ({error.strerror or error}). Free space or choose another"
            " `cache_dir`."
        ) from error
    return encoder


def cached_encoder(entry: Entry | CustomEncoder, root: Path | str) -> Encoder | None:
    """Returns the encoder of an entry if it was loaded before for embeddings below `root`. Loads no
    checkpoint. Raises `VragError` for an entry without a checkpoint here, and for a custom class as
    `load_encoder` does.
    """
    if (own := load_custom_encoder(entry)) is not None:
        return own
    return _known(resolve_encoder(entry), root, "cpu")


def _known(found: EncoderSpec, root: Path | str, device: str) -> LazyEncoder | None:
    recipe = found.cache_key()
    for manifest in sorted(Path(root).glob("*/manifest.json")):
        try:
            stated = json.loads(manifest.read_text(encoding="utf-8"))
            if recipe in stated["recipes"]:
                return LazyEncoder(
                    manifest, stated, lambda: load_encoder_spec(found, device=device)
                )
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged one: it is written anew
    return None
