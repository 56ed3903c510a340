"""open_clip models, by name and pretrained tag or from a folder in open_clip's layout."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from vrag_kit.checkpoints import LibraryObject, Options, check_device, check_weights
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.retrieval.encoders.pixels import resize_for
from vrag_kit.retrieval.encoders.source import short_name
from vrag_kit.retrieval.encoders.towers import DualEncoderBase
from vrag_kit.workspace import path as project_path


class OpenClipEncoder(DualEncoderBase):
    """A dual encoder from open_clip, which encodes questions without a prompt."""

    def __init__(
        self,
        model: LibraryObject,
        tokenizer: LibraryObject,
        *,
        name: str,
        device: str = "cpu",
        modalities: InputModalities | None = None,
    ) -> None:
        """`name` is the checkpoint's; non-default encoded parts are appended to it."""
        self._model = model.eval().to(device)
        self._tokenizer = tokenizer
        self._device = device
        self._config: Options = dict(model.visual.preprocess_cfg)
        size = self._config["size"]
        self._size = (size, size) if isinstance(size, int) else tuple(size)
        self._dtype = next(model.parameters()).dtype
        self._mean = self._channels("mean")
        self._std = self._channels("std")
        self.modalities = modalities or InputModalities()
        self.name = self.modalities.named(name)
        self._checkpoint = name
        self.prompts: Mapping[str, str] = {}

    def _channels(self, key: str) -> torch.Tensor:
        values = torch.tensor(self._config[key], device=self._device, dtype=torch.float32)
        return values.view(1, 3, 1, 1)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]  # read once, when it is asked for
        """Hash of weights, preprocessing, tokenizer, and encoded parts."""
        return self._fingerprint(self.modalities)

    @cached_property
    def document_key(self) -> DocumentKey:  # type: ignore[override]  # as the fingerprint
        """Name and fingerprint of document vectors, without the query side."""
        alone = self.modalities.of_documents()
        return DocumentKey(alone.named(self._checkpoint), self._fingerprint(alone))

    def _fingerprint(self, modalities: InputModalities) -> str:
        told = modalities.told()
        if not told:
            return self._weights
        whole = json.dumps([self._weights, told], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()

    @cached_property
    def _weights(self) -> str:
        return _fingerprint(self._model, self._tokenizer, self._config)

    @property
    def dim(self) -> int:
        """Number of components of an embedding."""
        return int(self._model.encode_text(self._tokenizer(["a"]).to(self._device)).shape[-1])

    def pixels(self, picture: torch.Tensor) -> torch.Tensor:
        """Resizes an image to the model's input size: uint8, shape (3, height, width)."""
        mode = self._config.get("resize_mode", "shortest")
        interpolation = self._config.get("interpolation", "bicubic")
        return resize_for(picture, self._size, mode, interpolation)

    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Encodes all texts in one batch, each padded to the model's length."""
        tokens = self._tokenizer(texts).to(self._device)
        return _rows(self._model.encode_text(tokens))

    def image_features(self, pictures: list[torch.Tensor]) -> torch.Tensor:
        """Encodes all images in one batch."""
        return _rows(self._model.encode_image(self._batch(pictures)))

    def stage_features(self, pictures: list[torch.Tensor], stage: int) -> torch.Tensor:
        """Returns each channel's mean and maximum in the map of a stage of the image tower. Stages
        are counted from 1; float32, shape (n, 2 channels).
        """
        tower = self._model.visual
        told = tower.forward_intermediates(self._batch(pictures), [stage], intermediates_only=True)
        found: torch.Tensor = told["image_intermediates"][0].float()
        return torch.cat([found.mean((2, 3)), found.amax((2, 3))], dim=1)

    def _batch(self, pictures: list[torch.Tensor]) -> torch.Tensor:
        batch = torch.stack(pictures).to(self._device).float().div_(255)
        return batch.sub_(self._mean).div_(self._std).to(self._dtype)


def _rows(features: LibraryObject) -> torch.Tensor:
    rows: torch.Tensor = features
    return rows


def load_open_clip(
    spec: str,
    *,
    folder: Path | None = None,
    device: str = "cpu",
    modalities: InputModalities | None = None,
) -> OpenClipEncoder:
    """Loads an open_clip model by "<model>/<pretrained tag>", or from a folder. Examples are
    "ViT-L-14-336-quickgelu/openai", and a folder with `open_clip_config.json`: the one that `spec`
    names, or `folder`, the download of a hub name in `spec`.

    Raises `VragError` for an unknown model or tag, weights that are missing or not finite, a model
    whose activation (QuickGELU) is not the one its weights were trained with, of which open_clip
    only warns, and a device that this machine does not have.
    """
    import open_clip

    check_device(device)
    here = project_path(spec)
    if folder is None and (here / "open_clip_config.json").is_file():
        folder = here
    if folder is None:
        source = spec.rpartition("/")[0]
        tag = spec.rpartition("/")[2]
        _check_names(spec, source, tag, open_clip)
    else:
        if not any(folder.glob("*.safetensors")):
            raise VragError(
                f"{folder}: no weights (*.safetensors) beside open_clip_config.json. Copy the"
                " checkpoint's weights there."
            )
        source = f"local-dir:{folder}"
        tag = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, tokenizer = _read(spec, source, tag, device)
    if mismatch := [str(w.message) for w in caught if "QuickGELU mismatch" in str(w.message)]:
        raise VragError(
            f"retriever {spec!r}: {mismatch[0]} The embeddings would be wrong. Use the model name"
            f" with '-quickgelu', such as {source.removesuffix('-quickgelu')}-quickgelu/{tag}, or a"
            " tag trained without it."
        )
    check_weights(model, f"retriever {spec!r}")
    return OpenClipEncoder(
        model, tokenizer, name=short_name(spec), device=device, modalities=modalities
    )


def _read(spec: str, source: str, tag: str, device: str) -> tuple[LibraryObject, LibraryObject]:
    """(model, tokenizer), without open_clip's own log lines."""
    import open_clip

    logging.disable(logging.WARNING)
    try:
        model = open_clip.create_model(
            source, pretrained=tag or None, device=device, require_pretrained=True
        )
        return model, open_clip.get_tokenizer(source)
    except Exception as error:  # safetensors raises its own class, a layer any
        raise VragError(
            f"retriever {spec!r} cannot be loaded from {source}: {type(error).__name__}: {error}."
            " Expected is open_clip's layout; without a network, give a local folder in it."
        ) from error
    finally:
        logging.disable(logging.NOTSET)


def _check_names(spec: str, model: str, tag: str, open_clip: LibraryObject) -> None:
    models = open_clip.list_models()
    if "/" not in spec or spec.startswith((".", "/")) or model not in models:
        near = [name for name in models if name.lower().startswith(spec.lower()[:5])][:6]
        similar = f"Similar names: {', '.join(near)}. " if near else ""
        raise VragError(
            f"unknown retriever {spec!r}: neither a folder with open_clip_config.json nor"
            f" '<model>/<pretrained tag>'. {similar}List all with `python -c"
            ' "import open_clip; print(open_clip.list_pretrained())"`.'
        )
    tags = open_clip.list_pretrained_tags_by_model(model)
    if tag not in tags:
        raise VragError(
            f"unknown pretrained tag {tag!r} for {model}; expected one of {', '.join(tags)}."
        )


def _fingerprint(model: LibraryObject, tokenizer: LibraryObject, preprocessing: Options) -> str:
    digest = hashlib.sha256(json.dumps(preprocessing, sort_keys=True, default=str).encode())
    digest.update(
        tokenizer(["What color are the hindwings of Papaipema inquaesita?"]).numpy().tobytes()
    )
    for name, values in sorted(model.state_dict().items()):
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        buffer = io.BytesIO()
        np.save(buffer, values.detach().float().cpu().numpy(), allow_pickle=False)
        digest.update(buffer.getbuffer())
    return digest.hexdigest()
