"""Embedders made of multimodal language models, as VLM2Vec: an instruction, the picture
or question, and the last token's state.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from vrag_kit.checkpoints import check_weights, find_checkpoint
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders import picture_of, unit_rows
from vrag_kit.retrieval.pooling import pool
from vrag_kit.retrieval.source import Source
from vrag_kit.types import Evidence, Query

POSITIONS = ("model", "sequential")
_OF_TOKENS = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")


class InstructedEncoder:
    """Prompts as plain text, without chat template; the state of the last token, at
    unit length.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        name: str,
        fingerprint: str,
        query_prompt: str,
        document_prompt: str,
        positions: str = "model",
    ) -> None:
        """`model` gives `last_hidden_state`.

        `query_prompt` has "{text}" for the question, `document_prompt` the processor's
        image token for the picture.

        `positions`: "model" counts the tokens of a picture as the model does (Qwen2-VL:
        in a grid), "sequential" one after the other, as text.
        """
        self._model, self._processor, self._positions = model, processor, positions
        self._one_at_a_time = threading.Lock()  # tokenizers are not safe in threads
        self.name, self.fingerprint, self.normalized = name, fingerprint, True
        self.prompts: Mapping[str, str] = {"query": query_prompt, "document": document_prompt}

    @torch.inference_mode()
    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); one at a time, so that company
        changes nothing.
        """
        prompts = [self.prompts["query"].replace("{text}", query.text) for query in queries]
        rows = [
            self._embed([dict(self._processor(text=[prompt], return_tensors="pt"))])
            for prompt in prompts
        ]
        return (
            np.concatenate(rows)
            if rows
            else np.empty((0, self._model.config.get_text_config().hidden_size), np.float32)
        )

    def prepare(self, document: Evidence) -> dict[str, torch.Tensor]:
        """Tokens and pixels of the picture within its prompt."""
        picture = picture_of(document, self.name)
        with self._one_at_a_time:
            return dict(
                self._processor(
                    images=[picture], text=[self.prompts["document"]], return_tensors="pt"
                )
            )

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[Mapping[str, torch.Tensor]]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); a batch that does not fit into
        memory is halved. Raises `VragError` when one picture does not fit.
        """
        if (
            len(
                {
                    tuple(
                        (name, values.shape[1:])
                        for name, values in inputs.items()
                        if name not in _OF_TOKENS
                    )
                    for inputs in prepared
                }
            )
            > 1
        ):
            return np.concatenate(
                [self.encode_documents([inputs]) for inputs in prepared]
            )  # pictures that keep their own size do not stack
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
        return unit_rows(pool(states, batch["attention_mask"], "last"))

    def _batch(self, inputs: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Texts padded at the end, which a causal model does not see; pixels one after
        the other.
        """
        batch = {}
        for name in inputs[0]:
            parts = [each[name] for each in inputs]
            values = (
                pad_sequence([part[0] for part in parts], batch_first=True)
                if name in _OF_TOKENS
                else torch.cat(parts)
            )
            batch[name] = values.to(
                self._model.device, self._model.dtype if values.is_floating_point() else None
            )
        return batch


def load_instructed(
    source: Source,
    *,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    positions: str = "model",
    image_size: Mapping[str, int] | None = None,
) -> InstructedEncoder:
    """Load an image-text-to-text checkpoint, or a LoRA adapter of one, as an embedder.

    `image_size` replaces the size that the image processor brings pictures to. Raises
    `VragError` as `Source.read` does, when a prompt is missing or has no place for the
    question or picture, and for an adapter that does not fit its base model.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    if query_prompt is None or document_prompt is None:
        raise VragError(
            f"retriever {source.spec!r}: an embedder of this kind follows instructions, and its own"
            " are not known here. Add the options `query_prompt`, with "
            f'"{{text}}" where the question goes, and `document_prompt`, with the model\'s image'
            f" token, as its authors give them."
        )
    if positions not in POSITIONS:
        raise VragError(
            f"retriever {source.spec!r}: positions is {positions!r}; expected"
            f" {' or '.join(map(repr, POSITIONS))}."
        )
    adapter = source.folder / "adapter_config.json"
    base = replace(source, folder=_base_folder(source, adapter)) if adapter.is_file() else source
    model = base.read(AutoModelForImageTextToText, unused=("lm_head.",))
    if adapter.is_file():
        _merge(model, source)
    own = any(
        (source.folder / name).is_file()
        for name in ("processor_config.json", "preprocessor_config.json")
    )
    processor = (source if own else base).read_part(AutoProcessor, image_size=image_size)
    tokens = [
        token for name in ("image_token", "boi_token") if (token := getattr(processor, name, None))
    ]
    if tokens and not any(token in document_prompt for token in tokens):
        raise VragError(
            f"retriever {source.spec!r}: document_prompt is {document_prompt!r}, which has no place"
            f" for the picture; expected {' or '.join(tokens)} in it."
        )
    options = {
        "family": "instructed",
        "dtype": str(model.dtype),
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "positions": positions,
        "image_size": dict(image_size) if image_size else None,
    }
    return InstructedEncoder(
        model.base_model,
        processor,
        name=source.name,
        fingerprint=source.fingerprint(options, *([base.folder] if base is not source else [])),
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        positions=positions,
    )


def _base_folder(source: Source, adapter: Path) -> Path:
    with source.reading():
        stated = json.loads(adapter.read_text(encoding="utf-8"))
        return find_checkpoint(stated["base_model_name_or_path"], revision=stated.get("revision"))


def _merge(model: Any, source: Source) -> None:
    """Add the adapter's weights to the model's; every weight of the adapter must find
    its place, and every place its weight.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    source.check_formats()
    with source.reading():
        report = model.load_adapter(
            str(source.folder)
        )  # by transformers, which knows what its older versions called the places
    strangers, untrained = sorted(report.unexpected_keys), sorted(report.missing_keys)
    if strangers or untrained:
        raise VragError(
            f"retriever {source.spec!r}: the adapter does not fit its base model: {len(strangers)}"
            f" of its weights have no place{_such(strangers)}, and {len(untrained)} places have no"
            f" weight{_such(untrained)}. Check base_model_name_or_path in adapter_config.json, or"
            " merge the adapter with the library that made it."
        )
    check_weights(model, f"retriever {source.spec!r}")
    for layer in model.modules():
        if isinstance(layer, BaseTunerLayer):
            layer.merge()


def _such(names: Sequence[str]) -> str:
    return f" (such as {names[0]!r})" if names else ""
