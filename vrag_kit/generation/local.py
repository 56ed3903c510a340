"""Multimodal models that run here: any image-text-to-text model of transformers, answered in batches."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.generation.generator import Reply
from vrag_kit.generation.vision import Eyes, Seen, join
from vrag_kit.types import LazyImage, Prompt


@dataclass(frozen=True, slots=True)
class _Asked:
    """One prompt of a batch."""

    number: int                             # its place in the batch
    conversation: list[dict[str, Any]]      # as the chat template takes it
    images: list[str]                       # keys of its pictures, in order


class LocalGenerator:
    """A transformers model with its processor; implements `Generator`. Made by `load_generator`."""

    def __init__(self, model: Any, processor: Any, *, name: str, decoding: Mapping[str, Any], fingerprint: str) -> None:
        self.name, self.decoding, self.fingerprint = name, dict(decoding), fingerprint
        self._model, self._processor = model, processor
        processor.tokenizer.padding_side = "left"
        stops = model.generation_config.eos_token_id
        self._stops = frozenset() if stops is None else frozenset([stops] if isinstance(stops, int) else stops)
        self._control = {token for token in (getattr(processor, "image_token", None), *processor.tokenizer.all_special_tokens) if token}
        self._takes = frozenset(inspect.signature(model.forward).parameters)
        self.context = int(getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 30)
        """Tokens of prompt and answer together that the model can hold."""
        self.eyes: Eyes | None = Eyes(model, processor)
        """What has been seen; counts the pictures that did not have to be looked at again. None where this family's features cannot be reused."""
        if reason := self._why_not():
            self.eyes = None
            print(f"{name}: pictures are looked at anew for every prompt, because {reason}", flush=True)
        else:
            self.eyes = Eyes(model, processor)

    @torch.inference_mode()
    def _why_not(self) -> str:
        """Why features cannot be reused; "" when two pictures in one prompt give the same logits from ready features as the family's own way."""
        if "mm_encoder_outputs" not in self._takes:
            return "the model takes no ready features"
        if "token_type_ids" in self._takes:
            return "it marks pictures by token types, which only its own way sets"
        pictures: dict[str, Image.Image | Seen] = {name: Image.new("RGB", size, color) for name, size, color in (("a", (64, 48), (200, 90, 30)), ("b", (40, 96), (20, 110, 190)))}
        asked = _Asked(0, [{"role": "user", "content": [{"type": "text", "text": "?"}, *({"type": "image", "image": picture} for picture in pictures.values())]}], ["a", "b"])
        try:
            reused = self._model(**self._inputs([asked], pictures)).logits[:, -1]
            own = self._model(**self._inputs([asked], pictures, reuse=False)).logits[:, -1]
        except Exception as error:  # whatever a family's code raises: it works another way
            return f"its processor or model works another way ({type(error).__name__}: {str(error)[:80]})"
        return "" if torch.allclose(reused, own, atol=0.02 * float(own.std()), rtol=0) else "ready features give other answers than pixels do"

    def __repr__(self) -> str:
        size = sum(parameter.numel() for parameter in self._model.parameters())
        return f"LocalGenerator({self.name}, {size / 1e6:,.1f} M parameters, context {self.context:,} tokens)"

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order.

        A prompt that the model cannot hold gets the status "too long: …"; one that it cannot take otherwise, such as one whose text holds a
        control token of the model, "error: …". When memory runs out the batch is halved. When decoding samples, each prompt is
        answered alone, seeded by itself and by `sample`, so that an answer does not depend on its company; greedy decoding ignores `sample`.
        """
        pictures = self._pictures(prompts)
        replies: dict[int, Reply] = {}
        batch = []
        for number, prompt in enumerate(prompts):
            texts = [part for message in prompt for part in message.parts if isinstance(part, str)]
            if found := sorted(token for token in self._control if any(token in text for text in texts)):
                replies[number] = Reply(raw=None, status=f"error: the text holds the model's control token {found[0]!r}")
            else:
                batch.append(self._asked(number, prompt, pictures))
        for part in [[asked] for asked in batch] if self.decoding.get("do_sample") else [batch]:
            replies.update(self._answer(part, pictures, sample))
        return [replies[number] for number in range(len(prompts))]

    def _pictures(self, prompts: Sequence[Prompt]) -> dict[str, Image.Image | Seen]:
        """Key → what was seen of a picture before, or else the decoded picture; decoded by threads, each once."""
        images = {_key(part): part for prompt in prompts for message in prompt for part in message.parts if not isinstance(part, str)}

        def read(key: str) -> Image.Image | Seen:
            return (self.eyes.recall(key) if self.eyes else None) or images[key].open()

        with ThreadPoolExecutor(4) as pool:
            return dict(zip(images, pool.map(read, images), strict=True))

    def _asked(self, number: int, prompt: Prompt, pictures: Mapping[str, Image.Image | Seen]) -> _Asked:
        conversation = [{"role": message.role, "content": [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": pictures[_key(part)]}
                                                           for part in message.parts]} for message in prompt]
        return _Asked(number, conversation, [_key(part) for message in prompt for part in message.parts if not isinstance(part, str)])

    def _answer(self, batch: list[_Asked], pictures: dict[str, Image.Image | Seen], sample: int, *, last: bool = False) -> dict[int, Reply]:
        """Replies by number; a batch that fails is answered in halves, so that only a prompt that fails alone is a failure."""
        if not batch:
            return {}
        try:
            return self._try(batch, pictures, sample)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
            full = isinstance(error, torch.OutOfMemoryError)
            reason = "out of memory" if full else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        # Outside of the handler nothing holds the failed attempt's tensors any more.
        if full and self.eyes and not last:
            self.eyes.forget()  # what is remembered may be what fills the memory
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) == 1 and full and not last:
            return self._answer(batch, pictures, sample, last=True)
        if len(batch) == 1:
            return {batch[0].number: Reply(raw=None, status=f"error: {reason[:200]}")}
        middle = len(batch) // 2
        return {**self._answer(batch[:middle], pictures, sample), **self._answer(batch[middle:], pictures, sample)}

    def _try(self, batch: list[_Asked], pictures: dict[str, Image.Image | Seen], sample: int) -> dict[int, Reply]:
        inputs = self._inputs(batch, pictures)
        lengths = [int(n) for n in inputs["attention_mask"].sum(dim=1)]
        fits = [n + int(self.decoding["max_new_tokens"]) <= self.context for n in lengths]
        if all(fits):
            return self._decode(batch, inputs, lengths, [_pixels(pictures[key]) for key in batch[0].images] if self.decoding.get("do_sample") else [], sample)
        reason = "too long: {:,} tokens of prompt and up to {} of answer, but the model holds {:,}"
        refused = {asked.number: Reply(raw=None, status=reason.format(n, self.decoding["max_new_tokens"], self.context), tokens={"prompt": n})
                   for asked, n, fit in zip(batch, lengths, fits, strict=True) if not fit}
        return {**refused, **self._answer([asked for asked, fit in zip(batch, fits, strict=True) if fit], pictures, sample)}

    def _inputs(self, batch: list[_Asked], pictures: dict[str, Image.Image | Seen], *, reuse: bool = True) -> dict[str, Any]:
        """What the model takes, padded on the left; pictures as ready features where the family allows it."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        conversations, wanted = [asked.conversation for asked in batch], [key for asked in batch for key in asked.images]
        if not (self.eyes and wanted and reuse):
            inputs = dict(self._processor.apply_chat_template(conversations, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt",
                                                              processor_kwargs={"padding": True}))
        else:
            seen = self.eyes.look(pictures, wanted)
            texts = self._processor.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False)
            texts, _ = self._processor.get_text_with_replacements(list(texts), images_replacements=[s.words for s in seen])
            bos = self._processor.tokenizer.bos_token
            inputs = dict(self._processor.tokenizer(texts, padding=True, return_tensors="pt", add_special_tokens=not (bos and texts[0].startswith(bos))))
            features, tensors = join(seen)
            inputs |= {**tensors, "mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=features)}}
            if "mm_token_type_ids" in self._takes:
                inputs["mm_token_type_ids"] = torch.tensor(self._processor.create_mm_token_type_ids(inputs["input_ids"]))
        if "token_type_ids" not in self._takes:
            inputs.pop("token_type_ids", None)
        return {name: value.to(self._model.device) if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}

    @torch.inference_mode()
    def _decode(self, batch: list[_Asked], inputs: dict[str, Any], lengths: list[int], pixels: list[str], sample: int) -> dict[int, Reply]:
        with torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(hashlib.sha256(repr([sample, pixels, inputs["input_ids"].tolist()]).encode()).digest()[:6], "big"))
            out = self._model.generate(**inputs, **self.decoding)[:, inputs["input_ids"].shape[1]:]
        replies = {}
        for asked, ids, length in zip(batch, out.tolist(), lengths, strict=True):
            stop = next((i for i, token in enumerate(ids) if token in self._stops), None)
            raw = self._processor.tokenizer.decode(ids[:stop], skip_special_tokens=True).strip()
            replies[asked.number] = Reply(raw=raw or None, status="ok" if raw else "empty: the model ended without a word", fields={} if stop is not None else {"truncated": True},
                                          tokens={"prompt": length, "completion": len(ids) if stop is None else stop + 1})
        return replies


def _pixels(picture: Image.Image | Seen) -> str:
    return picture.pixels if isinstance(picture, Seen) else pixel_hash(picture)


def _key(image: LazyImage) -> str:
    return f"{image.where} {image.stamp}"
