"""Multimodal models that run here: any image-text-to-text model of transformers,
answered in batches. Nothing of it is loaded before something is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_kit.checkpoints import Made, Options, check_headers, files_fingerprint
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Forecast, Reply, Size
from vrag_kit.generation.local.checkpoint import Checkpoint, local_decoding, open_checkpoint
from vrag_kit.types import Prompt
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from vrag_kit.generation.local.answering import Answering
    from vrag_kit.generation.local.opened import Opened
    from vrag_kit.generation.local.vision import Eyes


class LocalGenerator:
    """A transformers model with its processor; implements `Generator`.

    Made by `load_generator`. The processor is read when prompts are first measured, the
    weights when the first is asked.
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
        self._answering: Answering | None = None

    def __repr__(self) -> str:
        return f"LocalGenerator({self.name} in {self._checkpoint.folder})"

    @property
    def deterministic(self) -> bool:
        """True when decoding does not sample."""
        return not self.decoding.get("do_sample")

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """What the headers of its files of weights say is not there."""
        try:
            check_headers(self._checkpoint.folder, self._checkpoint.owner)
        except VragError as error:
            return str(error).removeprefix(f"{self._checkpoint.owner} ")
        return ""

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """Prompts measured exactly, by the processor; which of them the model cannot
        hold; and what must fit into memory.
        """
        return self._opened.forecast(prompts, sizes, int(self.decoding["max_new_tokens"]))

    def prepare(self) -> None:
        """Read the weights, once."""
        self._ready()

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order.

        A prompt that the model cannot hold fails as `too_long`, an answer cut off at
        max_new_tokens as `truncated`; a prompt that it cannot take otherwise, such as
        one whose text holds a control token of the model, as `error`. When memory runs
        out the batch is halved, never its pictures. When decoding samples, each prompt
        is answered alone, seeded by itself and by `sample`, so that an answer does not
        depend on its company; greedy decoding ignores `sample`.
        """
        return self._ready().generate(prompts, sample)

    @property
    def nests(self) -> bool:
        """Whether what prompts begin alike with is read once, or looked at: greedily, and
        where the family allows it.
        """
        return self._ready().nests

    @nests.setter
    def nests(self, nests: bool) -> None:
        self._ready().nests = nests

    @property
    def context(self) -> int:
        """Tokens of prompt and answer together that the model can hold."""
        return self._opened.context

    @property
    def eyes(self) -> Eyes | None:
        """What has been seen; counts the pictures that did not have to be looked at
        again. None where this family's features cannot be reused.
        """
        return self._ready().eyes

    @eyes.setter
    def eyes(self, eyes: Eyes | None) -> None:
        self._ready().eyes = eyes

    @cached_property
    def _opened(self) -> Opened:
        from vrag_kit.generation.local.opened import Opened

        return Opened(self._checkpoint)

    def _ready(self) -> Answering:
        """The model with its weights."""
        if self._answering is None:
            from vrag_kit.generation.local.answering import Answering

            self._answering = Answering(self._opened, self.name, self.decoding)
        return self._answering

    @property
    def _model(self) -> Made:
        return self._ready().model

    @property
    def _processor(self) -> Made:
        return self._opened.processor


def load_local(spec: str, options: Options) -> LocalGenerator:
    """The generator for a checkpoint's folder or name on the hub, with the options of
    its entry. Raises `VragError` as `open_checkpoint` does.
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
        fingerprint=files_fingerprint([checkpoint.folder], shaping),
        sent={
            **shaping,
            "device": loading.device,
            "attention": loading.attention,
            "revision": options.get("revision"),
        },
    )
