"""`LocalGenerator`: runs any image-text-to-text model of transformers on this machine, in batches.
The weights are loaded for the first prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.checkpoints import Options, check_safetensors, checkpoint_fingerprint
from vrag_kit.config import GREEDY, SAMPLING
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.generation.generators import CostEstimate, Generator, Reply, Size, prompt_images
from vrag_kit.generation.local.loading import LocalOptions, open_checkpoint, read_json
from vrag_kit.types import Json, Prompt

if TYPE_CHECKING:
    from vrag_kit.generation.local.model import LoadedModel
    from vrag_kit.generation.local.processors import PromptProcessor


class LocalGenerator(Generator):
    """A transformers model with its processor.

    Made by `load_generator`. The processor is loaded when prompts are first measured, the weights
    when the first is answered.
    """

    def __init__(self, spec: str, options: LocalOptions, device: str) -> None:
        """Open the checkpoint of a folder or hub name; raises `VragError` as `open_checkpoint`."""
        checkpoint = self.checkpoint = open_checkpoint(spec, options, device)
        folder_name = Path(spec).name if project_path(spec).is_dir() else spec.replace("/", "-")
        self.name = options.name or folder_name
        sampling = _sampling(checkpoint.folder, options.decoding)
        self.decoding = {**sampling, "max_new_tokens": options.max_new_tokens}
        images_first = checkpoint.family.images_first
        shaping = {
            "dtype": options.dtype,
            "quantization": options.quantization,
            "max_image_side": options.max_image_side,
            "max_image_tokens": options.max_image_tokens,
            "images_first": images_first,
        }
        self.fingerprint = checkpoint_fingerprint([checkpoint.folder], shaping)
        self.deterministic = not self.decoding.get("do_sample")
        self.sent = {
            **shaping,
            "device": checkpoint.device,
            "revision": options.revision,
            "part_order": "images first" if images_first else "as written",
        }

    @cached_property
    def processor(self) -> PromptProcessor:
        """Counts the tokens of prompts. Raises `VragError` if it cannot be loaded."""
        from vrag_kit.generation.local.processors import PromptProcessor

        return PromptProcessor(self.checkpoint)

    @cached_property
    def loaded(self) -> LoadedModel:
        """The model with its weights. Raises `VragError` if they cannot be loaded."""
        from vrag_kit.generation.local.model import LoadedModel

        return LoadedModel(self.processor, self.name, self.decoding)

    @property
    def shares_prefixes(self) -> bool:
        """Whether prefixes or images that prompts share are computed once: in greedy decoding, if
        the family allows it.
        """
        return self.loaded.shares_prefixes

    def missing(self) -> str:
        """Return what is missing from the weights, according to their files' headers."""
        try:
            check_safetensors(self.checkpoint.folder, self.checkpoint.owner)
        except VragError as error:
            return str(error).removeprefix(f"{self.checkpoint.owner} ")
        return ""

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Measure prompts exactly, by the processor; report those that do not fit."""
        context = self.processor.context
        images = [len(prompt_images(prompt)) for prompt in prompts]
        lengths = [self.processor.count_tokens(prompt, sizes) for prompt in prompts]
        room = context - int(self.decoding["max_new_tokens"])
        misfits = [n for n, length in zip(images, lengths, strict=True) if length > room]
        notes = [f"the longest prompt takes {max(lengths):,} tokens; the model holds {context:,}"]
        if misfits:
            notes.append(
                f"{len(misfits):,} prompts do not fit, from {min(misfits)} images on: they will"
                ' fail as "too long"; lower max_image_tokens, max_image_side or max_images in the'
                " model's entry, or use a model with a longer context"
            )
        return CostEstimate(
            calls=len(prompts),
            images=sum(images),
            tokens=sum(lengths),
            notes=tuple(notes),
            misfits=len(misfits),
        )

    def prepare(self) -> None:
        """Load the weights, once."""
        _ = self.loaded

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order.

        A prompt that does not fit into the model's context fails as `too_long`, an answer cut off
        at max_new_tokens as `truncated`; a prompt that it cannot take otherwise, such as one whose
        text holds a control token of the model, as `error`. When memory runs out, the batch is
        halved; images are never reduced. When decoding samples, each prompt is answered alone,
        seeded by itself and by `sample`, so that an answer does not depend on its batch; greedy
        decoding ignores `sample`.
        """
        return self.loaded.generate(prompts, sample)


def _sampling(folder: Path, given: Options) -> Json:
    """The sampling fields for transformers' `generate`: those given, else the checkpoint's own."""
    if given == GREEDY:
        return {"do_sample": False, "num_beams": 1}
    if given:
        return {"do_sample": True, **given}
    stated = read_json(folder / "generation_config.json")
    return {name: stated[name] for name in SAMPLING if stated.get(name) is not None}
