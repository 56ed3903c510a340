"""Models of the sentence-transformers library: its folders, also multimodal ones, and plain text
checkpoints whose token states are pooled by an option, with one encoder per side if necessary
(DRAGON+).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.images import decode
from vrag_kit.checkpoints import LibraryObject, check_weights, load_model
from vrag_kit.errors import VragError
from vrag_kit.files import safe_join
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint
from vrag_kit.retrieval.encoders.pixels import normalize_rows

_POOLINGS = {"cls": "cls", "mean": "mean", "last": "lasttoken"}
"""Option `pooling` → the library's name."""


class SentenceModel:
    """Encodes queries and documents by `encode_query` and `encode_document` of the library."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Loads a folder of the library, or a plain text checkpoint, and its second one as the
        encoder of documents.

        Raises `VragError` as `Checkpoint.read_model`, for a plain checkpoint without the option
        `pooling`, for prompts of a folder that do not end with "{text}", where the library puts the
        text, and when `normalize` is false but the folder's own modules normalize.
        """
        pooling = checkpoint.options.get("pooling")
        if checkpoint.family == "text" and pooling is None:
            raise VragError(
                f"{checkpoint.owner}: pooling is None. Add the option `pooling`, one of"
                f" {', '.join(_POOLINGS)}, and `normalize`, as its authors give them."
            )
        models = [_read(checkpoint, folder, pooling) for folder in checkpoint.folders]
        self._sides = {"query": models[0], "document": models[-1]}
        self._normalize = bool(checkpoint.options["normalize"])
        self._prompts = checkpoint.prompts if checkpoint.family == "text" else {}

    def prepare(self, content: EncoderInput, side: str) -> dict[str, object]:
        """Returns the text and the decoded image; raises `VragError` for a damaged image."""
        text, image = content
        prepared: dict[str, object] = {}
        if text is not None:
            prepared["text"] = self._prompts.get(side, "{text}").replace("{text}", text)
        if image is not None:
            prepared["image"] = decode(image.data(), image.where)
        return prepared

    def embed(self, prepared: Sequence[Mapping[str, object]], side: str) -> np.ndarray:
        """Returns vectors, float32, shape (n, d)."""
        if len({tuple(each) for each in prepared}) > 1:  # a text and an image do not stack
            return np.concatenate([self.embed([each], side) for each in prepared])
        model = self._sides[side]
        encode = model.encode_query if side == "query" else model.encode_document
        vectors = encode(list(prepared), convert_to_tensor=True, show_progress_bar=False)
        rows: np.ndarray = vectors.float().cpu().numpy()
        return normalize_rows(vectors) if self._normalize else rows


load = SentenceModel


def _read(checkpoint: Checkpoint, folder: Path, pooling: str | None) -> LibraryObject:
    """Returns a `SentenceTransformer`; `pooling` takes the place of all modules after the first."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    prompts = {} if pooling else checkpoint.prompts
    for side, prompt in prompts.items():
        if not prompt.endswith("{text}"):
            raise VragError(
                f'{checkpoint.owner}: {side}_prompt is {prompt!r}; expected "{{text}}" at its end.'
            )
    listed = folder / "modules.json"
    with checkpoint.reading():
        parts = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else []
        folders = [safe_join(folder, part["path"], str(listed)) for part in parts] or [folder]
        model: LibraryObject = SentenceTransformer(
            str(folder),
            device=checkpoint.device,
            prompts={side: prompt.removesuffix("{text}") for side, prompt in prompts.items()},
            trust_remote_code=checkpoint.trusted,
            local_files_only=True,
            model_kwargs={"dtype": checkpoint.options["dtype"], "use_safetensors": True},
        )
        if pooling:
            model[0].tokenizer.padding_side = "right"
            pooled = Pooling(model[0].get_embedding_dimension(), _POOLINGS[pooling])
            model = SentenceTransformer(modules=[model[0], pooled], device=checkpoint.device)
    for module, place in zip(model, folders, strict=False):
        if isinstance(module, Transformer):  # the library does not report missing weights
            names_only = {"device_map": "meta", "trust_remote_code": checkpoint.trusted}
            kind = type(module.model)
            with checkpoint.reading():
                load_model(kind, place, checkpoint.owner, names_only, unused=("pooler.",))
    check_weights(model, checkpoint.owner)
    if not checkpoint.options["normalize"] and any(isinstance(each, Normalize) for each in model):
        raise VragError(f"{checkpoint.owner}: normalize is false; its modules make unit length.")
    return model.eval()
