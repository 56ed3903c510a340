"""Embedding models based on multimodal language models, such as VLM2Vec: the last token's state.

The question or document is inserted into an instruction prompt, its image where the model's image
token is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from vrag_kit.checkpoints import LibraryObject, Options, check_weights
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import EncoderInput
from vrag_kit.retrieval.encoders.pixels import decode_rgb, normalize_rows
from vrag_kit.retrieval.encoders.pooling import pool
from vrag_kit.retrieval.encoders.source import CheckpointSource
from vrag_kit.types import Document, Query

POSITIONS = ("model", "sequential")
_OF_TOKENS = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")


class VLMEncoder:
    """Encodes a plain-text prompt, without chat template, as the last token's unit-length state."""

    normalized = True

    def __init__(
        self,
        model: LibraryObject,
        processor: LibraryObject,
        *,
        source: CheckpointSource,
        options: Options,
        prompts: Mapping[str, str],
        positions: str = "model",
    ) -> None:
        """`model` returns `last_hidden_state`.

        `prompts` has one for a "query" and one for a "document", with "{text}" where a text goes
        and the processor's image token where an image goes.

        `positions`: "model" numbers the tokens of an image as the model does (Qwen2-VL: in a grid),
        "sequential" one after the other, as text.
        """
        self._model = model
        self._processor = processor
        self._positions = positions
        self._one_at_a_time = threading.Lock()  # tokenizers are not safe in threads
        self.name = source.name
        self.fingerprint = source.fingerprint(options)
        self.document_key = source.document_key(options)
        self.prompts = prompts
        self.modalities = source.modalities

    @torch.inference_mode()
    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d). Queries are encoded one at a time, so
        the result does not depend on other queries.
        """
        rows = []
        for query in queries:
            content = self.modalities.of_query(query, self.name)
            rows.append(self._embed([self._inputs("query", content)]))
        if not rows:
            return np.empty((0, self._model.config.get_text_config().hidden_size), np.float32)
        return np.concatenate(rows)

    def prepare(self, document: Document) -> dict[str, torch.Tensor]:
        """Returns tokens and pixels of the document's encoded parts within its prompt."""
        return self._inputs("document", self.modalities.of_document(document, self.name))

    def _inputs(self, side: str, content: EncoderInput) -> dict[str, torch.Tensor]:
        prompt = self.prompts[side]
        if content.text is not None:
            prompt = prompt.replace("{text}", content.text)
        parts: dict[str, LibraryObject] = {"text": [prompt]}
        if content.image is not None:
            parts["images"] = [decode_rgb(content.image.data(), content.image.where)]
        with self._one_at_a_time:
            return dict(self._processor(**parts, return_tensors="pt"))

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[Mapping[str, torch.Tensor]]) -> np.ndarray:
        """Returns unit-length rows, float32, shape (n, d). A batch that does not fit into memory is
        halved. Raises `VragError` when one image does not fit.
        """
        shapes = {_shapes(inputs) for inputs in prepared}
        if len(shapes) > 1:  # pictures that keep their own size do not stack
            return np.concatenate([self.encode_documents([inputs]) for inputs in prepared])
        try:
            return self._embed(prepared)
        except torch.OutOfMemoryError as error:
            if len(prepared) == 1:
                raise VragError(
                    f"{self.name}: one picture does not fit into the memory of {self._model.device}"
                    f" ({str(error).splitlines()[0]}). Free it, or set `image_size` to fewer"
                    " pixels."
                ) from error
        middle = len(prepared) // 2
        return np.concatenate(
            [self.encode_documents(prepared[:middle]), self.encode_documents(prepared[middle:])]
        )

    def _embed(self, inputs: Sequence[Mapping[str, torch.Tensor]]) -> np.ndarray:
        batch = self._batch(inputs)
        if self._positions == "sequential":
            batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
        states = self._model(**batch, use_cache=False).last_hidden_state
        return normalize_rows(pool(states, batch["attention_mask"], "last"))

    def _batch(self, inputs: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
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
        return batch


def _shapes(inputs: Mapping[str, torch.Tensor]) -> tuple[tuple[str, torch.Size], ...]:
    """The shapes of what must stack: pixels, not tokens."""
    pixels = [name for name in inputs if name not in _OF_TOKENS]
    return tuple((name, inputs[name].shape[1:]) for name in pixels)


def load_vlm_encoder(
    source: CheckpointSource,
    *,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    positions: str = "model",
    image_size: Mapping[str, int] | None = None,
) -> VLMEncoder:
    """Load an image-text-to-text checkpoint, or a LoRA adapter of one, as an embedder.

    `image_size` replaces the size that the image processor resizes images to. Raises `VragError` as
    `CheckpointSource.read` does, when a prompt is missing or has no place for the question or
    image, and for an adapter that does not fit its base model.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    prompts = _prompts(source, query_prompt, document_prompt)
    if positions not in POSITIONS:
        raise VragError(
            f"{source.owner}: positions is {positions!r}; expected"
            f" {' or '.join(map(repr, POSITIONS))}."
        )
    base = source if source.partner is None else replace(source, folder=source.partner)
    model = base.read(AutoModelForImageTextToText, unused=("lm_head.",))
    if base is not source:
        _merge(model, source)
    processors = ("processor_config.json", "preprocessor_config.json")
    own = any((source.folder / name).is_file() for name in processors)
    processor = (source if own else base).read_part(AutoProcessor, image_size=image_size)
    _fill_in(processor, model.config)
    _check_prompts(source, prompts, processor)
    options = {
        "family": "instructed",
        "dtype": str(model.dtype),
        "query_prompt": prompts["query"],
        "document_prompt": prompts["document"],
        "positions": positions,
        "image_size": dict(image_size) if image_size else None,
    }
    return VLMEncoder(
        model.base_model,
        processor,
        source=source,
        options=options,
        prompts=prompts,
        positions=positions,
    )


def _prompts(source: CheckpointSource, query: str | None, document: str | None) -> dict[str, str]:
    """The two prompts; raises `VragError` when one is missing."""
    if query is None or document is None:
        raise VragError(
            f"{source.owner}: an embedder of this kind follows instructions, and its own"
            " are not known here. Add the options `query_prompt`, with "
            f'"{{text}}" where the question goes, and `document_prompt`, with the model\'s image'
            f" token, as its authors give them."
        )
    return {"query": query, "document": document}


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


def _check_prompts(
    source: CheckpointSource, prompts: Mapping[str, str], processor: LibraryObject
) -> None:
    """Raise `VragError` for a prompt that lacks a place for an encoded part. The same holds for one
    with a place for an image that is not encoded.
    """
    names = [getattr(processor, name, None) for name in ("image_token", "boi_token")]
    tokens = [token for token in names if token]
    for side, part in (
        ("query", source.modalities.query),
        ("document", source.modalities.document),
    ):
        prompt = prompts[side]
        places = {"the text": ["{text}"], "the picture": tokens}
        wanted = {"the text": part in ("text", "both"), "the picture": part in ("image", "both")}
        for what, marks in places.items():
            has = any(mark in prompt for mark in marks)
            if marks and has != wanted[what]:
                verdict = "no place" if wanted[what] else "a place"
                mending = "expected" if wanted[what] else "remove"
                raise VragError(
                    f"{source.owner}: {side}_prompt is {prompt!r}, which has {verdict} for {what},"
                    f" though `{side}` is {part!r}; {mending} {' or '.join(marks)} in it."
                )


def _merge(model: LibraryObject, source: CheckpointSource) -> None:
    """Merge the adapter's weights into the model's. Every weight of the adapter must find its
    place, and every place its weight.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    with source.reading():
        report = model.load_adapter(
            str(source.folder)
        )  # by transformers, which knows what its older versions called the places
    strangers, untrained = sorted(report.unexpected_keys), sorted(report.missing_keys)
    if strangers or untrained:
        raise VragError(
            f"{source.owner}: the adapter does not fit its base model: {len(strangers)}"
            f" of its weights have no place{_such(strangers)}, and {len(untrained)} places have no"
            f" weight{_such(untrained)}. Check base_model_name_or_path in adapter_config.json, or"
            " merge the adapter with the library that made it."
        )
    check_weights(model, source.owner)
    for layer in model.modules():
        if isinstance(layer, BaseTunerLayer):
            layer.merge()


def _such(names: Sequence[str]) -> str:
    return f" (such as {names[0]!r})" if names else ""
