"""`LocalGenerator`: runs any image-text-to-text model of transformers here, in batches. Nothing is
loaded before the first prompt is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    check_safetensors_headers,
    checkpoint_fingerprint,
)
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import CostEstimate, Reply, Size
from vrag_kit.generation.local.checkpoint import Checkpoint, local_decoding, open_checkpoint
from vrag_kit.types import Prompt
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from vrag_kit.generation.local.model import LoadedModel
    from vrag_kit.generation.local.opened import PromptProcessor
    from vrag_kit.generation.local.vision_cache import VisionCache


class LocalGenerator:
    """A transformers model with its processor; implements `Generator`.

    Made by `load_generator`. The processor is loaded when prompts are first measured, the weights
    when the first is asked.
    """

    batched = True
    concurrency = 1
    max_cost: float | None = None

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        name: str,
        decoding: Options,
        fingerprint: str,
        sent: Options,
    ) -> None:
        self.name = name
        self.decoding: Options = dict(decoding)
        self.fingerprint = fingerprint
        order = "images first" if checkpoint.family.images_first else "as written"
        self.sent: Options = {**sent, "part_order": order}
        self._checkpoint = checkpoint
        self._answering: LoadedModel | None = None

    def __repr__(self) -> str:
        return f"LocalGenerator({self.name} in {self._checkpoint.folder})"

    @property
    def deterministic(self) -> bool:
        """True when decoding does not sample."""
        return not self.decoding.get("do_sample")

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return 0: nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """Return what is missing from the weights, according to their files' headers."""
        try:
            check_safetensors_headers(self._checkpoint.folder, self._checkpoint.owner)
        except VragError as error:
            return str(error).removeprefix(f"{self._checkpoint.owner} ")
        return ""

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Measure prompts exactly, by the processor; report those that do not fit, and the memory
        needed.
        """
        return self._opened.forecast(prompts, sizes, int(self.decoding["max_new_tokens"]))

    def prepare(self) -> None:
        """Load the weights, once."""
        self._ready()

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order.

        A prompt that does not fit into the model's context fails as `too_long`, an answer cut off
        at max_new_tokens as `truncated`; a prompt that it cannot take otherwise, such as one whose
        text holds a control token of the model, as `error`. When memory runs out, the batch is
        halved; images are never reduced. When decoding samples, each prompt is answered alone,
        seeded by itself and by `sample`, so that an answer does not depend on its batch; greedy
        decoding ignores `sample`.
        """
        return self._ready().generate(prompts, sample)

    @property
    def nests(self) -> bool:
        """Whether prefixes or images that prompts share are computed once: in greedy decoding, if
        the family allows it.
        """
        return self._ready().nests

    @nests.setter
    def nests(self, nests: bool) -> None:
        self._ready().nests = nests

    @property
    def context(self) -> int:
        """Maximum number of tokens of prompt and answer together."""
        return self._opened.context

    @property
    def eyes(self) -> VisionCache | None:
        """The cache of vision features, which counts images that were reused; None if this family's
        features cannot be.
        """
        return self._ready().eyes

    @eyes.setter
    def eyes(self, eyes: VisionCache | None) -> None:
        self._ready().eyes = eyes

    @cached_property
    def _opened(self) -> PromptProcessor:
        from vrag_kit.generation.local.opened import PromptProcessor

        return PromptProcessor(self._checkpoint)

    def _ready(self) -> LoadedModel:
        """The model with its weights."""
        if self._answering is None:
            from vrag_kit.generation.local.model import LoadedModel

            self._answering = LoadedModel(self._opened, self.name, self.decoding)
        return self._answering

    @property
    def _model(self) -> LibraryObject:
        return self._ready().model

    @property
    def _processor(self) -> LibraryObject:
        return self._opened.processor


def load_local_generator(spec: str, options: Options) -> LocalGenerator:
    """Load the generator for a checkpoint's folder or hub name, with its entry's options. Raises
    `VragError` as `open_checkpoint` does.
    """
    checkpoint = open_checkpoint(spec, options)
    loading = checkpoint.loading
    shaping = {
        "dtype": loading.dtype,
        "quantization": loading.quantization,
        "max_image_side": checkpoint.max_image_side,
        "max_image_tokens": checkpoint.max_image_tokens,
        "images_first": checkpoint.family.images_first,
    }
    decoding = local_decoding(checkpoint.folder, options["decoding"])
    folder_name = Path(spec).name if project_path(spec).is_dir() else spec.replace("/", "-")
    return LocalGenerator(
        checkpoint,
        name=options.get("name") or folder_name,
        decoding={**decoding, "max_new_tokens": options["max_new_tokens"]},
        fingerprint=checkpoint_fingerprint([checkpoint.folder], shaping),
        sent={
            **shaping,
            "device": loading.device,
            "attention": loading.attention,
            "revision": options.get("revision"),
        },
    )
