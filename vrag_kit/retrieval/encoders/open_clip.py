"""open_clip models, by name and pretrained tag or from a folder in open_clip's layout."""

from __future__ import annotations

import logging
import warnings

import torch

from vrag_kit.checkpoints import LibraryObject, check_weights
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint
from vrag_kit.retrieval.encoders.dual import DualModel
from vrag_kit.retrieval.encoders.pixels import normalize_pixels, resize_for


class OpenClipModel(DualModel):
    """A dual encoder from open_clip, which encodes questions without a prompt."""

    def __init__(self, model: LibraryObject, tokenizer: LibraryObject, device: str = "cpu") -> None:
        self._model = model.eval().to(device)
        self._tokenizer = tokenizer
        self._device = device
        config = model.visual.preprocess_cfg
        size = config["size"]
        self._size = (size, size) if isinstance(size, int) else tuple(size)
        self._resize_mode = config.get("resize_mode", "shortest")
        self._interpolation = config.get("interpolation", "bicubic")
        self._mean, self._std = config["mean"], config["std"]
        self._dtype = next(model.parameters()).dtype

    def pixels(self, image: torch.Tensor) -> torch.Tensor:
        """Resizes an image to the model's input size: uint8, shape (3, height, width)."""
        return resize_for(image, self._size, self._resize_mode, self._interpolation)

    def text_features(self, texts: list[str]) -> torch.Tensor:
        """Encodes all texts in one batch, each padded to the model's length."""
        rows: torch.Tensor = self._model.encode_text(self._tokenizer(texts).to(self._device))
        return rows

    def image_features(self, images: list[torch.Tensor]) -> torch.Tensor:
        """Encodes all images in one batch."""
        rows: torch.Tensor = self._model.encode_image(self._batch(images))
        return rows

    def stage_features(self, images: list[torch.Tensor], stage: int) -> torch.Tensor:
        """Returns each channel's mean and maximum in the map of a stage of the image tower. Stages
        are counted from 1; float32, shape (n, 2 channels).
        """
        tower = self._model.visual
        output = tower.forward_intermediates(self._batch(images), [stage], intermediates_only=True)
        features: torch.Tensor = output["image_intermediates"][0].float()
        return torch.cat([features.mean((2, 3)), features.amax((2, 3))], dim=1)

    def _batch(self, images: list[torch.Tensor]) -> torch.Tensor:
        batch = normalize_pixels(images, self._mean, self._std, self._device)
        return batch.to(self._dtype)


def load(checkpoint: Checkpoint) -> OpenClipModel:
    """Loads an open_clip model by "<model>/<pretrained tag>", such as
    "ViT-L-14-336-quickgelu/openai", or from a folder with open_clip_config.json.

    Raises `VragError` as `read_open_clip`.
    """
    if checkpoint.folders:
        source, tag = f"local-dir:{checkpoint.folders[0]}", ""
    else:
        source, tag = checkpoint.spec.split("/")
    return read_open_clip(checkpoint.owner, source, tag, checkpoint.device)


def read_open_clip(owner: str, source: str, tag: str, device: str) -> OpenClipModel:
    """Loads `source`, a model's name or "local-dir:<folder>", with a pretrained tag.

    Raises `VragError`, naming `owner` ("retriever 'x'"), for an unknown model or tag, weights that
    are missing, not safetensors or not finite, and for a model whose activation (QuickGELU) is not
    the one its weights were trained with, of which open_clip only warns.
    """
    import open_clip

    logging.disable(logging.WARNING)  # open_clip's own lines
    try:
        weights = open_clip.factory.download_pretrained(open_clip.get_pretrained_cfg(source, tag))
        if weights and not weights.endswith(".safetensors"):
            raise ValueError(f"its weights {weights} are a pickle; expected safetensors.")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = open_clip.create_model(
                source, pretrained=tag or None, device=device, require_pretrained=True
            )
        tokenizer = open_clip.get_tokenizer(source)
    except Exception as error:  # safetensors raises its own class, a layer any
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(source)) or "none"
        raise VragError(
            f"{owner} cannot be loaded from {source}: {type(error).__name__}: {error} Expected is"
            f" open_clip's layout, or '<model>/<pretrained tag>'; tags of {source}: {tags}."
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    if mismatch := [str(w.message) for w in caught if "QuickGELU mismatch" in str(w.message)]:
        raise VragError(
            f"{owner}: {mismatch[0]} Name {source.removesuffix('-quickgelu')}-quickgelu/{tag}, or a"
            " tag trained without it."
        )
    check_weights(model, owner)
    return OpenClipModel(model, tokenizer, device)
