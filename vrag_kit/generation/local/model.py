"""`LoadedModel`: a checkpoint with its weights, which answers batches of prompts."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

import torch
from PIL import Image

from vrag_kit.benchmarks.images import pixel_hash, shrink
from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.generation.generator import PROBABILITY, Reply, images_before_text, iter_images
from vrag_kit.generation.local.cross_attention import cache_cross_attention, uses_cross_attention
from vrag_kit.generation.local.opened import Pictures, PromptInput, PromptProcessor, image_key
from vrag_kit.generation.local.prefix_cache import (
    PrefixPlan,
    TokenRow,
    fork_kv_cache,
    plan_prefixes,
)
from vrag_kit.generation.local.sequence_probability import SequenceProbability
from vrag_kit.generation.local.token_counter import Inputs, process_batch
from vrag_kit.generation.local.trials import prefix_cache_problem, vision_cache_problem
from vrag_kit.generation.local.vision_cache import ImageFeatures, VisionCache, batch_features
from vrag_kit.generation.local.weights import load_weights
from vrag_kit.types import Failure, Prompt, Status

_BROKEN = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError)
"""What a family's code raises for a prompt that it cannot take."""


class LoadedModel:
    """A model with loaded weights, ready to answer prompts."""

    def __init__(self, opened: PromptProcessor, name: str, decoding: Options) -> None:
        """Load the weights; raises `VragError` when that fails."""
        self.model: LibraryObject = load_weights(opened.checkpoint)
        self.opened = opened
        self._processor = opened.processor
        self._decoding = decoding
        stops = self.model.generation_config.eos_token_id
        self._stops = frozenset([stops] if isinstance(stops, int) else stops or ())
        self.takes = frozenset(inspect.signature(self.model.forward).parameters)
        self.beside = uses_cross_attention(self.takes)
        self.eyes: VisionCache | None = self._new_eyes()
        reason = vision_cache_problem(self)
        self.eyes = None if reason else self._new_eyes()
        if reason:
            print(
                f"{name}: image features are computed for every prompt, because {reason}",
                flush=True,
            )
        self.nests = False
        """Whether prefixes or images that prompts share are computed once."""
        if self._greedy:
            reason = prefix_cache_problem(self)
            self.nests = not reason
            if reason:
                print(f"{name}: prompts share no prefix, because {reason}", flush=True)
            self.eyes = self.eyes and self._new_eyes()

    def generate(self, prompts: Sequence[Prompt], sample: int) -> list[Reply]:
        """Return one reply per prompt, in order; see `LocalGenerator.generate`."""
        pictures = self._pictures(prompts)
        replies: dict[int, Reply] = {}
        batch = []
        for number, prompt in enumerate(prompts):
            if token := self.opened.control_token(prompt):
                words = f"the text holds the model's control token {token!r}"
                replies[number] = Reply(raw=None, failure=Failure(Status.ERROR, words))
                continue
            if self.opened.checkpoint.family.images_first:
                prompt = images_before_text(prompt)
            batch.append(self.opened.asked(number, prompt, pictures))
        for part in self._together(batch):
            replies.update(self._answer(part, pictures, sample))
        return [replies[number] for number in range(len(prompts))]

    def _new_eyes(self) -> VisionCache:
        return VisionCache(self.model, self._processor, self.opened.budget)

    def _together(self, batch: list[PromptInput]) -> list[list[PromptInput]]:
        """The prompts that may share a batch: all of them when greedy, each alone when
        decoding samples, those without pictures apart where the family needs it.
        """
        if self._decoding.get("do_sample"):
            return [[asked] for asked in batch]
        if not self.opened.checkpoint.family.text_apart:
            return [batch]
        with_images = [asked for asked in batch if asked.images]
        without = [asked for asked in batch if not asked.images]
        return [with_images, without]

    def _pictures(self, prompts: Sequence[Prompt]) -> Pictures:
        """Key → what was seen of a picture before, or else the decoded picture; decoded
        by threads, each once.
        """
        images = {image_key(image): image for image in iter_images(prompts)}
        side, eyes = self.opened.checkpoint.max_image_side, self.eyes

        def read(key: str) -> Image.Image | ImageFeatures:
            seen = eyes.get(key) if eyes else None
            return seen or shrink(images[key].open(), side)

        with ThreadPoolExecutor(4) as pool:
            return dict(zip(images, pool.map(read, images), strict=True))

    def _answer(
        self, batch: list[PromptInput], pictures: Pictures, sample: int, *, last: bool = False
    ) -> dict[int, Reply]:
        """Replies by number; a batch that fails is answered in halves, so that only a
        prompt that fails alone is a failure.
        """
        if not batch:
            return {}
        try:
            return self._try(batch, pictures, sample)
        except _BROKEN as error:
            full = isinstance(error, torch.OutOfMemoryError)
            words = str(error).splitlines()[0] if str(error) else ""
            reason = "out of memory" if full else f"{type(error).__name__}: {words}"
        # Outside of the handler nothing holds the failed attempt's tensors any more.
        if full and self.eyes and not last:
            self.eyes.clear()  # what is remembered may be what fills the memory
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) > 1:
            middle = len(batch) // 2
            first = self._answer(batch[:middle], pictures, sample)
            return {**first, **self._answer(batch[middle:], pictures, sample)}
        if full and not last:
            return self._answer(batch, pictures, sample, last=True)
        failure = Failure(Status.ERROR, reason[:200])
        return {batch[0].number: Reply(raw=None, failure=failure)}

    def _try(self, batch: list[PromptInput], pictures: Pictures, sample: int) -> dict[int, Reply]:
        """Answer the prompts that fit; the others fail as too long."""
        inputs = self.inputs(batch, pictures)
        lengths = [int(n) for n in inputs["attention_mask"].sum(dim=1)]
        room = self.opened.context - int(self._decoding["max_new_tokens"])
        if all(length <= room for length in lengths):
            pixels = []
            if self._decoding.get("do_sample"):
                pixels = [_pixels(pictures[key]) for key in batch[0].images]
            near = [length <= self.opened.near for length in lengths]
            if any(near) and not all(near):
                return self._by_length(batch, near, pictures, sample)
            if self.nests and self.beside:
                return self._decode(
                    batch, self._cached_features(batch, inputs), lengths, [sample, []]
                )
            if self.nests and (plan := self.plan_prefixes(batch, inputs)).chains:
                return self._nestwise(batch, plan, pictures, sample)
            return self._decode(batch, inputs, lengths, [sample, pixels])
        fitting = []
        replies = {}
        for asked, length in zip(batch, lengths, strict=True):
            if length <= room:
                fitting.append(asked)
            else:
                replies[asked.number] = self._too_long(asked, length)
        return {**replies, **self._answer(fitting, pictures, sample)}

    def _by_length(
        self, batch: list[PromptInput], near: list[bool], pictures: Pictures, sample: int
    ) -> dict[int, Reply]:
        """Answer the short prompts of a batch and the long ones apart, so that no answer
        depends on its company.
        """
        replies: dict[int, Reply] = {}
        for side in (True, False):
            part = [asked for asked, each in zip(batch, near, strict=True) if each is side]
            replies.update(self._answer(part, pictures, sample))
        return replies

    @torch.inference_mode()
    def _cached_features(self, batch: list[PromptInput], inputs: Inputs) -> Inputs:
        """Inputs for which all pictures were looked at, each once."""
        images = [asked.images for asked in batch]
        return cache_cross_attention(self.model, inputs, images)

    def plan_prefixes(self, batch: list[PromptInput], inputs: Inputs) -> PrefixPlan:
        """Find the prompts of a batch that share a prefix."""
        ids = inputs["input_ids"].tolist()
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        rows = [
            TokenRow(tuple(each[-length:]), tuple(asked.images))
            for asked, each, length in zip(batch, ids, lengths, strict=True)
        ]
        return plan_prefixes(rows, self.opened.image_token)

    def _nestwise(
        self, batch: list[PromptInput], plan: PrefixPlan, pictures: Pictures, sample: int
    ) -> dict[int, Reply]:
        """Answer a batch in which some prompts begin alike: beginnings are read once."""
        replies = self._answer([batch[number] for number in plan.apart], pictures, sample)
        rows = [batch[number] for number in plan.rows]
        inputs = self.inputs(rows, pictures)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        longest = self.inputs([batch[number] for number in plan.longest], pictures)
        inputs = fork_kv_cache(self.model, inputs, longest, plan)
        return {**replies, **self._decode(rows, inputs, lengths, [sample, []])}

    def _too_long(self, asked: PromptInput, length: int) -> Reply:
        words = (
            f"{length:,} tokens of prompt and up to {self._decoding['max_new_tokens']} of answer,"
            f" but the model holds {self.opened.context:,}"
        )
        return Reply(
            raw=None,
            failure=Failure(Status.TOO_LONG, words),
            fields=asked.fields(),
            tokens=asked.tokens(length),
        )

    def inputs(self, batch: list[PromptInput], pictures: Pictures, *, reuse: bool = True) -> Inputs:
        """Return the model's inputs, padded on the left. If the family allows it, vision features
        from the cache stand for the images.
        """
        conversations = [asked.conversation for asked in batch]
        wanted = list(chain.from_iterable(asked.images for asked in batch))
        if self.eyes and wanted and reuse:
            inputs = self._with_features(conversations, self.eyes.encode(pictures, wanted))
        else:
            shown = [pictures[key] for key in wanted]
            inputs = process_batch(self._processor, conversations, shown, self.opened.budget)
        if "token_type_ids" not in self.takes:
            inputs.pop("token_type_ids", None)
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                inputs[name] = value.to(self.model.device)
        return inputs

    def _with_features(
        self, conversations: Sequence[LibraryObject], seen: Sequence[ImageFeatures]
    ) -> Inputs:
        """Inputs with precomputed image features in place of pixels."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        processor = self._processor
        texts = [
            processor.apply_chat_template(each, add_generation_prompt=True, tokenize=False)
            for each in conversations
        ]
        words = [each.words for each in seen]
        texts, _ = processor.get_text_with_replacements(texts, images_replacements=words)
        bos = processor.tokenizer.bos_token
        inputs = dict(
            processor.tokenizer(
                texts,
                padding=True,
                return_tensors="pt",
                add_special_tokens=not (bos and texts[0].startswith(bos)),
            )
        )
        features, tensors = batch_features(seen)
        inputs |= tensors
        pooled: LibraryObject = features  # Llama's is a list, which the class does not say
        inputs["mm_encoder_outputs"] = {"image": BaseModelOutputWithPooling(pooler_output=pooled)}
        if "mm_token_type_ids" in self.takes:
            types = processor.create_mm_token_type_ids(inputs["input_ids"])
            inputs["mm_token_type_ids"] = torch.tensor(types)
        return inputs

    @torch.inference_mode()
    def _decode(
        self, batch: list[PromptInput], inputs: Inputs, lengths: list[int], seed: list[object]
    ) -> dict[int, Reply]:
        """Generate, seeded by `seed` and the prompt's tokens."""
        told = repr([*seed, inputs["input_ids"].tolist()])
        sure = SequenceProbability() if self._greedy else None
        listening = {"logits_processor": [sure]} if sure else {}
        with torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(hashlib.sha256(told.encode()).digest()[:6], "big"))
            out = self.model.generate(**inputs, **self._decoding, **listening)
        answers = out[:, inputs["input_ids"].shape[1] :].tolist()
        replies = {}
        for row, (asked, ids, length) in enumerate(zip(batch, answers, lengths, strict=True)):
            reply = self._reply(asked, ids, length)
            if sure:
                probability = sure.probability(row, reply.tokens["completion"])
                reply = replace(reply, fields={**reply.fields, PROBABILITY: probability})
            replies[asked.number] = reply
        return replies

    @property
    def _greedy(self) -> bool:
        """Whether the most probable token is taken each time."""
        return not self._decoding.get("do_sample") and self._decoding.get("num_beams") in (None, 1)

    def _reply(self, asked: PromptInput, ids: list[int], length: int) -> Reply:
        """The tokens of an answer as a reply."""
        stop = next((i for i, token in enumerate(ids) if token in self._stops), None)
        raw = self._processor.tokenizer.decode(ids[:stop], skip_special_tokens=True).strip()
        failure = None
        if stop is None:
            words = f"cut off at {self._decoding['max_new_tokens']} tokens"
            failure = Failure(Status.TRUNCATED, words)
        elif not raw:
            failure = Failure(Status.EMPTY, "the model ended without a word")
        completion = len(ids) if stop is None else stop + 1
        return Reply(
            raw=raw or None,
            failure=failure,
            fields=asked.fields(),
            tokens={**asked.tokens(length), "completion": completion},
        )


def _pixels(picture: Image.Image | ImageFeatures) -> str:
    return picture.pixels if isinstance(picture, ImageFeatures) else pixel_hash(picture)
