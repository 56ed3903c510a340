"""`LoadedModel`: a checkpoint with its weights, which answers batches of prompts."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

import torch

from vrag_kit.benchmarks.images import pixel_hash, shrink
from vrag_kit.checkpoints import LibraryObject, Options
from vrag_kit.generation.generators import PROBABILITY, Reply, iter_images
from vrag_kit.generation.local.cross_attention_cache import cache_cross_attention
from vrag_kit.generation.local.loading import load_weights
from vrag_kit.generation.local.prefix_cache import (
    PrefixPlan,
    TokenRow,
    fork_kv_cache,
    plan_prefixes,
)
from vrag_kit.generation.local.processors import (
    Inputs,
    PromptImage,
    PromptInput,
    PromptProcessor,
    image_key,
)
from vrag_kit.generation.local.self_test import prefix_cache_problem, vision_cache_problem
from vrag_kit.generation.local.vision_cache import ImageFeatures, VisionCache, feature_inputs
from vrag_kit.log import logger
from vrag_kit.types import Failure, LazyImage, Prompt, Status

_MODEL_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError)
"""What a family's code raises for a prompt that it cannot take."""


class SequenceProbability:
    """A logits processor that records token probabilities and changes no logits."""

    def __init__(self) -> None:
        self._steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Record the log probability of the next greedy token: of `scores`, the highest. `scores`
        has the shape (prompts, tokens).
        """
        self._steps.append(scores.float().log_softmax(dim=-1).amax(dim=-1).cpu())
        return scores

    def probability(self, row: int, length: int) -> float:
        """Return the probability of a reply's first `length` tokens, in [0, 1], to six decimals."""
        return round(math.exp(sum(float(step[row]) for step in self._steps[:length])), 6)


class LoadedModel:
    """A model with its weights, ready to answer prompts."""

    def __init__(self, processor: PromptProcessor, name: str, decoding: Options) -> None:
        """Load the weights, and test which caches the model can use; prints why it cannot.

        Raises `VragError` if the weights cannot be loaded.
        """
        self.model: LibraryObject = load_weights(processor.checkpoint)
        self.processor = processor
        self._family = processor.checkpoint.family
        self._decoding = decoding
        stops = self.model.generation_config.eos_token_id
        self._stops = frozenset([stops] if isinstance(stops, int) else stops or ())
        self.parameters = frozenset(inspect.signature(self.model.forward).parameters)
        self.has_cross_attention = "cross_attention_mask" in self.parameters
        self.vision_cache: VisionCache | None = VisionCache(self.model, processor)
        """Features of images that were encoded before; None if they cannot be reused."""
        self.shares_prefixes = False
        """Whether prefixes or images that prompts share are computed once."""
        if reason := vision_cache_problem(self):
            self.vision_cache = None
            logger.info(f"{name}: image features are computed for every prompt, because {reason}")
        if self._greedy:
            reason = prefix_cache_problem(self)
            self.shares_prefixes = not reason
            if reason:
                logger.info(f"{name}: prompts share no prefix, because {reason}")
        if self.vision_cache:  # without the images of the tests
            self.vision_cache = VisionCache(self.model, processor)

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt], sample: int) -> list[Reply]:
        """Return one reply per prompt, in order; see `LocalGenerator.generate`."""
        images = self._images(prompts)
        replies: dict[int, Reply] = {}
        batch = []
        for number, prompt in enumerate(prompts):
            if token := self.processor.control_token(prompt):
                words = f"the text holds the model's control token {token!r}"
                replies[number] = Reply.failed(Status.ERROR, words)
            else:
                batch.append(self.processor.prompt_input(number, prompt, images))
        for part in self._parts(batch):
            replies |= self._answer(part, sample)
        return [replies[number] for number in range(len(prompts))]

    def _images(self, prompts: Sequence[Prompt]) -> dict[str, PromptImage]:
        """Key → image: its cached features, or its pixels, decoded by threads and once each."""
        side = self.processor.checkpoint.options.max_image_side

        def read(key: str, image: LazyImage) -> PromptImage:
            features = self.vision_cache and self.vision_cache.get(key)
            return PromptImage(key, features or shrink(image.open(), side))

        images = {image_key(image): image for image in iter_images(prompts)}
        with ThreadPoolExecutor(4) as pool:
            return dict(zip(images, pool.map(read, images, images.values()), strict=True))

    def _parts(self, batch: list[PromptInput]) -> list[list[PromptInput]]:
        """The prompts that may share a batch: all of them when greedy, each alone when decoding
        samples, those without images apart if the family needs it.
        """
        if self._decoding.get("do_sample"):
            return [[prompt] for prompt in batch]
        if not self._family.text_apart:
            return [batch]
        with_images = [prompt for prompt in batch if prompt.images]
        without = [prompt for prompt in batch if not prompt.images]
        return [with_images, without]

    def _answer(
        self, batch: list[PromptInput], sample: int, *, last: bool = False
    ) -> dict[int, Reply]:
        """Replies by number; a batch that fails is answered in halves, so that only a prompt that
        fails alone is a failure.
        """
        if not batch:
            return {}
        try:
            return self._answer_batch(batch, sample)
        except _MODEL_ERRORS as error:
            out_of_memory = isinstance(error, torch.OutOfMemoryError)
            words = str(error).splitlines()[0] if str(error) else ""
            reason = "out of memory" if out_of_memory else f"{type(error).__name__}: {words}"
        # Outside of the handler nothing holds the failed attempt's tensors any more.
        if out_of_memory and self.vision_cache and not last:
            self.vision_cache.clear()  # it may be what fills the memory
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(batch) > 1:
            middle = len(batch) // 2
            first = self._answer(batch[:middle], sample)
            return {**first, **self._answer(batch[middle:], sample)}
        if out_of_memory and not last:
            return self._answer(batch, sample, last=True)
        return {batch[0].number: Reply.failed(Status.ERROR, reason[:200])}

    def _answer_batch(self, batch: list[PromptInput], sample: int) -> dict[int, Reply]:
        """Answer the prompts that fit; the others fail as too long."""
        inputs = self.inputs(batch)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        room = self.processor.context - int(self._decoding["max_new_tokens"])
        replies: dict[int, Reply] = {}
        short, long = [], []  # apart, so that no answer depends on its batch (LongRoPE)
        for prompt, length in zip(batch, lengths, strict=True):
            if length > room:
                words = (
                    f"{length:,} tokens of prompt and up to {self._decoding['max_new_tokens']} of"
                    f" answer, but the model holds {self.processor.context:,}"
                )
                replies[prompt.number] = Reply.failed(Status.TOO_LONG, words)
            elif length <= self.processor.short_context:
                short.append(prompt)
            else:
                long.append(prompt)
        if replies or (short and long):
            return {**replies, **self._answer(short, sample), **self._answer(long, sample)}
        if self.shares_prefixes and self.has_cross_attention:
            keys = [[image.key for image in prompt.images] for prompt in batch]
            inputs = cache_cross_attention(self.model, inputs, keys)
        elif self.shares_prefixes and (plan := self.plan_prefixes(batch, inputs)).chains:
            replies = self._answer([batch[number] for number in plan.apart], sample)
            batch, inputs = self.fork_prefixes(batch, plan)
            lengths = inputs["attention_mask"].sum(dim=1).tolist()
            return {**replies, **self._decode(batch, inputs, lengths, sample)}
        return self._decode(batch, inputs, lengths, sample)

    def plan_prefixes(self, batch: Sequence[PromptInput], inputs: Inputs) -> PrefixPlan:
        """Find the prompts of a batch that share a prefix."""
        ids = inputs["input_ids"].tolist()
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        rows = [
            TokenRow(tuple(row[-length:]), tuple(image.key for image in prompt.images))
            for prompt, row, length in zip(batch, ids, lengths, strict=True)
        ]
        return plan_prefixes(rows, self.processor.image_token)

    def fork_prefixes(
        self, batch: Sequence[PromptInput], plan: PrefixPlan
    ) -> tuple[list[PromptInput], Inputs]:
        """Return the rows of a plan, and inputs that continue from their shared prefixes."""
        rows = [batch[number] for number in plan.rows]
        longest = self.inputs([batch[numbers[0]] for numbers in plan.chains])
        return rows, fork_kv_cache(self.model, self.inputs(rows), longest, plan)

    def inputs(self, batch: Sequence[PromptInput], *, reuse: bool = True) -> Inputs:
        """Return the model's inputs, padded on the left. If the family allows it, vision features
        from the cache stand for the images.
        """
        images = list(chain.from_iterable(prompt.images for prompt in batch))
        if self.vision_cache and images and reuse:
            features = self.vision_cache.encode(images)
            inputs = self.processor.inputs(batch, features)
            inputs |= feature_inputs(features)
            if "mm_token_type_ids" in self.parameters:
                types = self.processor.processor.create_mm_token_type_ids(inputs["input_ids"])
                inputs["mm_token_type_ids"] = torch.tensor(types)
        else:
            inputs = self.processor.inputs(batch)
        if "token_type_ids" not in self.parameters:
            inputs.pop("token_type_ids", None)
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                inputs[name] = value.to(self.model.device)
        return inputs

    def _decode(
        self, batch: list[PromptInput], inputs: Inputs, lengths: list[int], sample: int
    ) -> dict[int, Reply]:
        """Generate; a sampled prompt, which is alone in its batch, is seeded by its images, its
        tokens and `sample`.
        """
        images = batch[0].images if self._decoding.get("do_sample") else []
        seed = repr([sample, [_pixel_hash(each) for each in images], inputs["input_ids"].tolist()])
        recorder = SequenceProbability() if self._greedy else None
        options = {"logits_processor": [recorder]} if recorder else {}
        with torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:6], "big"))
            out = self.model.generate(**inputs, **self._decoding, **options)
        answers = out[:, inputs["input_ids"].shape[1] :].tolist()
        replies = {}
        for row, (prompt, ids, length) in enumerate(zip(batch, answers, lengths, strict=True)):
            reply = self._reply(ids, length)
            if recorder:
                probability = recorder.probability(row, reply.tokens["completion"])
                reply = replace(reply, fields={PROBABILITY: probability})
            replies[prompt.number] = reply
        return replies

    @property
    def _greedy(self) -> bool:
        """Whether the most probable token is taken each time."""
        return not self._decoding.get("do_sample") and self._decoding.get("num_beams") in (None, 1)

    def _reply(self, ids: list[int], length: int) -> Reply:
        """The reply of an answer's tokens, to a prompt of `length` tokens."""
        stop = next((i for i, token in enumerate(ids) if token in self._stops), None)
        tokenizer = self.processor.processor.tokenizer
        raw = tokenizer.decode(ids[:stop], skip_special_tokens=True).strip()
        failure = None
        if stop is None:
            words = f"cut off at {self._decoding['max_new_tokens']} tokens"
            failure = Failure(Status.TRUNCATED, words)
        completion = len(ids) if stop is None else stop + 1
        return Reply(
            raw=raw or None, failure=failure, tokens={"prompt": length, "completion": completion}
        )


def _pixel_hash(image: PromptImage) -> str:
    if isinstance(image.content, ImageFeatures):
        return image.content.pixel_hash
    return pixel_hash(image.content)
