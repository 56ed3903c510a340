"""Embedding models based on vision-language models, such as VLM2Vec and E5-V: the last token's
state.

The question or document is inserted into an instruction prompt, its image where the model's image
token is. The prompt is plain text, without a chat template.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from vrag_kit.checkpoints import LibraryObject, check_weights
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows

_OF_TOKENS = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")


class VLMModel:
    """Encodes a prompt as the last token's unit-length state."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Loads an image-text-to-text checkpoint, or a LoRA adapter of one, as an embedder.

        Raises `VragError` as `Checkpoint.read_model`, when a prompt has no place for an encoded
        image or a place for one that is not encoded, and for an adapter that does not fit its base.
        """
        from transformers import AutoModelForImageTextToText, AutoProcessor

        folder, base = checkpoint.folders[0], checkpoint.folders[-1]
        model = checkpoint.read_model(AutoModelForImageTextToText, base, unused=("lm_head.",))
        if base != folder:
            _merge(model, checkpoint)
        own = any(folder.glob("p*processor_config.json"))
        size = checkpoint.options["image_size"]
        settings = {"size": size} if size else {}
        self._processor = checkpoint.read_part(AutoProcessor, folder if own else base, **settings)
        _fill_in(self._processor, model.config)
        names = (getattr(self._processor, name, None) for name in ("image_token", "boi_token"))
        if tokens := list(filter(None, names)):
            checkpoint.check_prompts(tokens, "picture", unless="text")
        self._model = model.base_model
        self._prompts = checkpoint.prompts
        self._sequential = checkpoint.options["positions"] == "sequential"
        self._tokenizing = threading.Lock()  # tokenizers are not safe in threads

    def prepare(self, content: EncoderInput, side: str) -> dict[str, torch.Tensor]:
        """Returns tokens and pixels of an input within its prompt."""
        text, image = content
        prompt = self._prompts[side]
        parts: dict[str, LibraryObject] = {
            "text": [prompt if text is None else prompt.replace("{text}", text)]
        }
        if image is not None:
            parts["images"] = [decode_rgb(image.data(), image.where)]
        with self._tokenizing:
            return dict(self._processor(**parts, return_tensors="pt"))

    def embed(self, prepared: Sequence[Mapping[str, torch.Tensor]], side: str) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d). A batch that does not fit into memory is
        halved. Raises `torch.OutOfMemoryError` when one image does not fit.
        """
        if len({_pixel_shapes(inputs) for inputs in prepared}) > 1:  # they do not stack
            return np.concatenate([self.embed([inputs], side) for inputs in prepared])
        try:
            return self._embed(prepared)
        except torch.OutOfMemoryError:
            if len(prepared) == 1:
                raise
        half = len(prepared) // 2
        return np.concatenate(
            [self.embed(some, side) for some in (prepared[:half], prepared[half:])]
        )

    @torch.inference_mode()
    def _embed(self, inputs: Sequence[Mapping[str, torch.Tensor]]) -> np.ndarray:
        """Pads texts at the end, which a causal model does not see, and concatenates pixels."""
        batch = {}
        for name in inputs[0]:
            parts = [each[name] for each in inputs]
            if name in _OF_TOKENS:
                values = pad_sequence([part[0] for part in parts], batch_first=True)
            else:
                values = torch.cat(parts)
            if values.is_floating_point():
                values = values.to(self._model.dtype)
            batch[name] = values.to(self._model.device)
        mask = batch["attention_mask"]
        if self._sequential:
            batch["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        states = self._model(**batch, use_cache=False).last_hidden_state
        rows = torch.arange(len(states), device=states.device)
        return normalize_rows(states[rows, mask.sum(1) - 1])


def _pixel_shapes(inputs: Mapping[str, torch.Tensor]) -> tuple[tuple[str, torch.Size], ...]:
    return tuple((name, inputs[name].shape[1:]) for name in inputs if name not in _OF_TOKENS)


load = VLMModel


def _fill_in(processor: LibraryObject, config: LibraryObject) -> None:
    """Set what a LLaVA processor of older transformers, such as E5-V's, needs to count image
    tokens. These are the model's own patches, features, and CLIP's first token.
    """
    if getattr(processor, "patch_size", 0) is not None:
        return
    processor.patch_size = config.vision_config.patch_size
    processor.vision_feature_select_strategy = config.vision_feature_select_strategy
    has_first = config.vision_config.model_type == "clip_vision_model"
    processor.num_additional_image_tokens = int(has_first)


def _merge(model: LibraryObject, checkpoint: Checkpoint) -> None:
    """Merge the adapter's weights into the model's. Every weight of the adapter must find its
    place, and every place its weight.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    with checkpoint.reading():  # transformers knows the places' names in its older versions
        report = model.load_adapter(str(checkpoint.folders[0]))
    if wrong := sorted(report.unexpected_keys | report.missing_keys):
        raise VragError(
            f"{checkpoint.owner}: the adapter does not fit its base model: {len(wrong)} weights are"
            f" missing or have no place, such as {wrong[0]!r}."
        )
    check_weights(model, checkpoint.owner)
    for layer in model.modules():
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
