"""Multimodal models that run here: any image-text-to-text model of transformers,
answered in batches.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash, shrink, shrunk
from vrag_kit.generation.generator import (
    Forecast,
    Reply,
    Size,
    images_before_text,
    images_of,
    text_of,
)
from vrag_kit.generation.local.families import Family
from vrag_kit.generation.local.memory import memory_note
from vrag_kit.generation.local.ruler import Ruler, Shown, content, processed, takes_only_strings
from vrag_kit.generation.local.vision import Eyes, Seen, join
from vrag_kit.types import Failure, LazyImage, Prompt, Status


@dataclass(frozen=True, slots=True)
class _Asked:
    """One prompt of a batch."""

    number: int  # its place in the batch
    conversation: list[dict[str, Any]]  # as the chat template takes it
    images: list[str]  # keys of its pictures, in order
    shown: list[Shown]  # how it sees each


class LocalGenerator:
    """A transformers model with its processor; implements `Generator`.

    Made by `load_generator`; weights are read when they are first needed.
    """

    batched, concurrency, max_cost = True, 1, None

    def __init__(
        self,
        read: Callable[[], Any],
        processor: Any,
        config: Any,
        *,
        name: str,
        decoding: Mapping[str, Any],
        fingerprint: str,
        family: Family,
        budget: Mapping[str, Any],
        sent: Mapping[str, Any],
        max_image_side: int | None = None,
        weight_bytes: int = 0,
    ) -> None:
        self.name, self.decoding, self.fingerprint = name, dict(decoding), fingerprint
        self.sent = {**sent, "part_order": "images first" if family.images_first else "as written"}
        self._read, self._processor, self._config, self._family, self._budget, self._side = (
            read,
            processor,
            config,
            family,
            budget,
            max_image_side,
        )
        self._loaded: Any = None
        self._eyes: Eyes | None = None
        self._string = takes_only_strings(processor, f"model {name!r}")
        self._ruler = Ruler(processor, config, budget, string_template=self._string)
        self._weight_bytes = weight_bytes
        processor.tokenizer.padding_side = "left"
        self._control = {
            token
            for token in (
                getattr(processor, "image_token", None),
                *processor.tokenizer.all_special_tokens,
            )
            if token
        }
        self.context = int(
            getattr(config.get_text_config(), "max_position_embeddings", None) or 1 << 30
        )
        """Tokens of prompt and answer together that the model can hold."""

    @property
    def deterministic(self) -> bool:
        """True when decoding does not sample."""
        return not self.decoding.get("do_sample")

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """Nothing that can be told without reading the weights."""
        return ""

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """Prompts measured exactly, by the processor; which of them the model cannot
        hold; and what must fit into memory.
        """
        images = [len(images_of(prompt)) for prompt in prompts]
        lengths = [
            self._ruler.text(text_of(prompt))
            + sum(
                self._ruler.shown(shrunk(sizes[image.where], self._side)).tokens
                for image in images_of(prompt)
            )
            for prompt in prompts
        ]
        room = self.context - int(self.decoding["max_new_tokens"])
        misfits = [n for n, length in zip(images, lengths, strict=True) if length > room]
        longest = max(range(len(prompts)), key=lengths.__getitem__)
        notes = [
            f"the longest prompt, with {images[longest]}"
            f" image{'' if images[longest] == 1 else 's'}, takes {lengths[longest]:,} tokens; the"
            f" model holds {self.context:,}"
        ]
        if note := memory_note(
            self._config,
            self._weight_bytes,
            lengths[longest] + int(self.decoding["max_new_tokens"]),
            str(self.sent.get("device", "cpu")),
        ):
            notes.append(note)
        if misfits:
            advice = (
                "set max_image_tokens or max_image_side lower, or max_images, in the model's entry"
                if min(misfits)
                else "take a model with a longer context"
            )
            notes.append(
                f"{len(misfits):,} prompts do not fit, from {min(misfits)} images on: they will"
                f' fail as "too long"; {advice}'
            )
        return Forecast(
            calls=len(prompts),
            images=sum(images),
            tokens=sum(lengths),
            notes=tuple(notes),
            misfits=len(misfits),
        )

    def prepare(self) -> None:
        """Read the weights, once."""
        if self._loaded is None:
            self._loaded = self._read()
            stops = self._loaded.generation_config.eos_token_id
            self._stops = (
                frozenset()
                if stops is None
                else frozenset([stops] if isinstance(stops, int) else stops)
            )
            self._takes = frozenset(inspect.signature(self._loaded.forward).parameters)
            self._eyes = Eyes(self._loaded, self._processor, self._budget)
            if reason := self._why_not():
                self._eyes = None
                print(
                    f"{self.name}: pictures are looked at anew for every prompt, because {reason}",
                    flush=True,
                )
            else:
                self._eyes = Eyes(self._loaded, self._processor, self._budget)

    @property
    def _model(self) -> Any:
        self.prepare()
        return self._loaded

    @property
    def eyes(self) -> Eyes | None:
        """What has been seen; counts the pictures that did not have to be looked at
        again. None where this family's features cannot be reused.
        """
        self.prepare()
        return self._eyes

    @eyes.setter
    def eyes(self, eyes: Eyes | None) -> None:
        self._eyes = eyes

    @torch.inference_mode()
    def _why_not(self) -> str:
        """Why features cannot be reused; "" when two pictures in one prompt give the
        same logits from ready features as the family's own way.
        """
        if "mm_encoder_outputs" not in self._takes:
            return "the model takes no ready features"
        if "token_type_ids" in self._takes:
            return "it marks pictures by token types, which only its own way sets"
        pictures: dict[str, Image.Image | Seen] = {
            name: Image.new("RGB", size, color)
            for name, size, color in (
                ("a", (64, 48), (200, 90, 30)),
                ("b", (40, 96), (20, 110, 190)),
            )
        }
        asked = _Asked(
            0,
            [
                {
                    "role": "user",
                    "content": content(
                        ["?", *pictures.values()], self._processor, string=self._string
                    ),
                }
            ],
            ["a", "b"],
            [],
        )
        try:
            reused = self._loaded(**self._inputs([asked], pictures)).logits[:, -1]
            own = self._loaded(**self._inputs([asked], pictures, reuse=False)).logits[:, -1]
        except Exception as error:  # whatever a family's code raises: it works another way
            return (
                f"its processor or model works another way ({type(error).__name__}:"
                f" {str(error)[:80]})"
            )
        return (
            ""
            if torch.allclose(reused, own, atol=0.02 * float(own.std()), rtol=0)
            else "ready features give other answers than pixels do"
        )

    def __repr__(self) -> str:
        return (
            f"LocalGenerator({self.name}, {self._weight_bytes / 1e6:,.1f} MB of weights, context"
            f" {self.context:,} tokens)"
        )

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order.

        A prompt that the model cannot hold fails as `too_long`, an answer cut off at
        max_new_tokens as `truncated`; a prompt that it cannot take otherwise, such as
        one whose text holds a control token of the model, as `error`. When
        memory runs out the batch is halved, never its pictures. When decoding samples,
        each prompt is answered alone, seeded by itself and by `sample`, so that an
        answer does not depend on its company; greedy decoding ignores `sample`.
        """
        pictures = self._pictures(prompts)
        replies: dict[int, Reply] = {}
        batch = []
        for number, prompt in enumerate(prompts):
            if found := sorted(
                token
                for token in self._control
                if any(
                    token in part
                    for message in prompt
                    for part in message.parts
                    if isinstance(part, str)
                )
            ):
                replies[number] = Reply(
                    raw=None,
                    failure=Failure(
                        Status.ERROR, f"the text holds the model's control token {found[0]!r}"
                    ),
                )
            else:
                batch.append(
                    self._asked(
                        number,
                        images_before_text(prompt) if self._family.images_first else prompt,
                        pictures,
                    )
                )
        together = [[asked] for asked in batch] if self.decoding.get("do_sample") else [batch]
        if self._family.text_apart:
            together = [
                part
                for batch in together
                for part in (
                    [asked for asked in batch if asked.images],
                    [asked for asked in batch if not asked.images],
                )
            ]
        for part in together:
            replies.update(self._answer(part, pictures, sample))
        return [replies[number] for number in range(len(prompts))]

    def _pictures(self, prompts: Sequence[Prompt]) -> dict[str, Image.Image | Seen]:
        """Key → what was seen of a picture before, or else the decoded picture; decoded
        by threads, each once.
        """
        images = {_key(part): part for prompt in prompts for part in images_of(prompt)}
        eyes = self.eyes

        def read(key: str) -> Image.Image | Seen:
            return (eyes.recall(key) if eyes else None) or shrink(images[key].open(), self._side)

        with ThreadPoolExecutor(4) as pool:
            return dict(zip(images, pool.map(read, images), strict=True))

    def _asked(
        self, number: int, prompt: Prompt, pictures: Mapping[str, Image.Image | Seen]
    ) -> _Asked:
        conversation = [
            {
                "role": message.role,
                "content": content(
                    [
                        part if isinstance(part, str) else pictures[_key(part)]
                        for part in message.parts
                    ],
                    self._processor,
                    string=self._string,
                ),
            }
            for message in prompt
        ]
        keys = [_key(part) for part in images_of(prompt)]
        return _Asked(
            number, conversation, keys, [self._ruler.shown(pictures[key].size) for key in keys]
        )

    def _answer(
        self,
        batch: list[_Asked],
        pictures: dict[str, Image.Image | Seen],
        sample: int,
        *,
        last: bool = False,
    ) -> dict[int, Reply]:
        """Replies by number; a batch that fails is answered in halves, so that only a
        prompt that fails alone is a failure.
        """
        if not batch:
            return {}
        try:
            return self._try(batch, pictures, sample)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
            full = isinstance(error, torch.OutOfMemoryError)
            reason = (
                "out of memory"
                if full
                else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            )
        # Outside of the handler nothing holds the failed attempt's tensors any more.
        if full and self._eyes and not last:
            self._eyes.forget()  # what is remembered may be what fills the memory
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) == 1 and full and not last:
            return self._answer(batch, pictures, sample, last=True)
        if len(batch) == 1:
            return {batch[0].number: Reply(raw=None, failure=Failure(Status.ERROR, reason[:200]))}
        middle = len(batch) // 2
        return {
            **self._answer(batch[:middle], pictures, sample),
            **self._answer(batch[middle:], pictures, sample),
        }

    def _try(
        self, batch: list[_Asked], pictures: dict[str, Image.Image | Seen], sample: int
    ) -> dict[int, Reply]:
        inputs = self._inputs(batch, pictures)
        lengths = [int(n) for n in inputs["attention_mask"].sum(dim=1)]
        fits = [n + int(self.decoding["max_new_tokens"]) <= self.context for n in lengths]
        if all(fits):
            return self._decode(
                batch,
                inputs,
                lengths,
                (
                    [_pixels(pictures[key]) for key in batch[0].images]
                    if self.decoding.get("do_sample")
                    else []
                ),
                sample,
            )
        reason = "{:,} tokens of prompt and up to {} of answer, but the model holds {:,}"
        refused = {
            asked.number: Reply(
                raw=None,
                failure=Failure(
                    Status.TOO_LONG,
                    reason.format(n, self.decoding["max_new_tokens"], self.context),
                ),
                fields=_fields(asked),
                tokens=_tokens(asked, n),
            )
            for asked, n, fit in zip(batch, lengths, fits, strict=True)
            if not fit
        }
        return {
            **refused,
            **self._answer(
                [asked for asked, fit in zip(batch, fits, strict=True) if fit], pictures, sample
            ),
        }

    def _inputs(
        self, batch: list[_Asked], pictures: dict[str, Image.Image | Seen], *, reuse: bool = True
    ) -> dict[str, Any]:
        """What the model takes, padded on the left; pictures as ready features where
        the family allows it.
        """
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        conversations, wanted = (
            [asked.conversation for asked in batch],
            [key for asked in batch for key in asked.images],
        )
        if not (self._eyes and wanted and reuse):
            inputs = processed(
                self._processor, conversations, [pictures[key] for key in wanted], self._budget
            )
        else:
            seen = self._eyes.look(pictures, wanted)
            texts = [
                self._processor.apply_chat_template(
                    conversation, add_generation_prompt=True, tokenize=False
                )
                for conversation in conversations
            ]
            texts, _ = self._processor.get_text_with_replacements(
                list(texts), images_replacements=[s.words for s in seen]
            )
            bos = self._processor.tokenizer.bos_token
            inputs = dict(
                self._processor.tokenizer(
                    texts,
                    padding=True,
                    return_tensors="pt",
                    add_special_tokens=not (bos and texts[0].startswith(bos)),
                )
            )
            features, tensors = join(seen)
            inputs |= {
                **tensors,
                "mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=features)},
            }
            if "mm_token_type_ids" in self._takes:
                inputs["mm_token_type_ids"] = torch.tensor(
                    self._processor.create_mm_token_type_ids(inputs["input_ids"])
                )
        if "token_type_ids" not in self._takes:
            inputs.pop("token_type_ids", None)
        return {
            name: value.to(self._loaded.device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }

    @torch.inference_mode()
    def _decode(
        self,
        batch: list[_Asked],
        inputs: dict[str, Any],
        lengths: list[int],
        pixels: list[str],
        sample: int,
    ) -> dict[int, Reply]:
        with torch.random.fork_rng():
            torch.manual_seed(
                int.from_bytes(
                    hashlib.sha256(
                        repr([sample, pixels, inputs["input_ids"].tolist()]).encode()
                    ).digest()[:6],
                    "big",
                )
            )
            out = self._loaded.generate(**inputs, **self.decoding)[
                :, inputs["input_ids"].shape[1] :
            ]
        replies = {}
        for asked, ids, length in zip(batch, out.tolist(), lengths, strict=True):
            stop = next((i for i, token in enumerate(ids) if token in self._stops), None)
            raw = self._processor.tokenizer.decode(ids[:stop], skip_special_tokens=True).strip()
            failure = None
            if stop is None:
                words = f"cut off at {self.decoding['max_new_tokens']} tokens"
                failure = Failure(Status.TRUNCATED, words)
            elif not raw:
                failure = Failure(Status.EMPTY, "the model ended without a word")
            replies[asked.number] = Reply(
                raw=raw or None,
                failure=failure,
                fields=_fields(asked),
                tokens={
                    **_tokens(asked, length),
                    "completion": len(ids) if stop is None else stop + 1,
                },
            )
        return replies


def _fields(asked: _Asked) -> dict[str, Any]:
    """Of each picture: width and height seen (of a tile), tiles, visual tokens."""
    return {"images": [list(shown) for shown in asked.shown]} if asked.shown else {}


def _tokens(asked: _Asked, prompt: int) -> dict[str, int]:
    return {
        "prompt": prompt,
        **(
            {"visual": sum(shown.tokens + shown.outside for shown in asked.shown)}
            if asked.shown
            else {}
        ),
    }


def _pixels(picture: Image.Image | Seen) -> str:
    return picture.pixels if isinstance(picture, Seen) else pixel_hash(picture)


def _key(image: LazyImage) -> str:
    return f"{image.where} {image.stamp}"
