"""Tests whether a model's vision features and shared prefixes can be cached. They run when its
weights are loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from PIL import Image

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.generation.local.cross_attention_cache import cache_cross_attention
from vrag_kit.generation.local.processors import Inputs, PromptImage, PromptInput

if TYPE_CHECKING:
    from vrag_kit.generation.local.model import LoadedModel

_IMAGES = {
    "a": Image.new("RGB", (64, 48), (200, 90, 30)),
    "b": Image.new("RGB", (40, 96), (20, 110, 190)),
    "c": Image.new("RGB", (64, 48), (90, 160, 40)),  # may be stacked with the first
}
_OTHER_LOGITS = "a shared prefix gives other logits than whole prompts"


@torch.inference_mode()
def vision_cache_problem(model: LoadedModel) -> str:
    """Return why vision features cannot be cached; "" if they can. They can if three images in one
    prompt give the same logits from cached features as from pixels.
    """
    if "mm_encoder_outputs" not in model.parameters:
        return "the model takes no precomputed features"
    if "token_type_ids" in model.parameters:
        return "it marks images by token types, which only its processor sets"
    try:
        reused = model.model(**model.inputs(_prompts(model, ["abc"]))).logits[:, -1]
        own = model.model(**model.inputs(_prompts(model, ["abc"]), reuse=False)).logits[:, -1]
    except Exception as error:  # whatever a family's code raises
        return f"its processor or model {_failed(error)}"
    return "" if _close(reused, own) else "precomputed features give other logits than pixels"


@torch.inference_mode()
def prefix_cache_problem(model: LoadedModel) -> str:
    """Return why shared prefixes cannot be cached; "" if they can. They can if nested prompts give
    the same logits from a shared prefix as when computed apart.
    """
    if model.processor.image_token is None:
        return "its config names no image token"
    try:
        batch = _prompts(model, ["abc", "a", "ba", "b"])  # two prefixes
        inputs = model.inputs(batch)
        if model.has_cross_attention:
            keys = [[image.key for image in prompt.images] for prompt in batch]
            shared = cache_cross_attention(model.model, inputs, keys)
        else:
            plan = model.plan_prefixes(batch, inputs)
            if len(plan.rows) < len(batch):
                return "a prompt with one image is not a prefix of one with more"
            batch, shared = model.fork_prefixes(batch, plan)
            inputs = model.inputs(batch)
        stop = int(inputs["input_ids"][0, -1])
        together, apart = (_logits(model.model, each, stop) for each in (shared, inputs))
        if _close(together, apart):
            return ""
        alone = [_logits(model.model, model.inputs([prompt]), stop) for prompt in batch]
        return "" if _differs_less(together, apart, torch.cat(alone, dim=1)) else _OTHER_LOGITS
    except Exception as error:  # whatever a family's code raises
        return f"it {_failed(error)}"


def _prompts(model: LoadedModel, shown: Sequence[str]) -> list[PromptInput]:
    """Prompts that show these images of `_IMAGES`, in their order."""
    images = {key: PromptImage(key, image) for key, image in _IMAGES.items()}
    prompts = []
    for number, keys in enumerate(shown):
        parts = [images[key] for key in keys]
        text = model.processor.render([("user", ["?", *parts])])
        prompts.append(PromptInput(number, text, parts))
    return prompts


def _logits(model: LibraryObject, inputs: Inputs, token: int) -> torch.Tensor:
    """Logits of the next two tokens of each prompt, where all continue with the same `token`."""
    out = model.generate(
        **inputs,
        do_sample=False,
        max_new_tokens=2,
        prefix_allowed_tokens_fn=lambda _row, _ids: [token],
        output_logits=True,
        return_dict_in_generate=True,
    )
    return torch.stack(out.logits)


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Within the rounding of half precision."""
    return torch.allclose(one, other, atol=0.02 * float(other.std()), rtol=0)


def _differs_less(together: torch.Tensor, apart: torch.Tensor, alone: torch.Tensor) -> bool:
    """Whether a shared prefix changes the logits by no more than twice what a batch changes against
    prompts computed one by one. In bfloat16, a model of 28 layers rounds to 4 % of their spread.
    """
    return float((together - apart).abs().max()) <= 2 * float((alone - apart).abs().max())


def _failed(error: Exception) -> str:
    return f"failed ({type(error).__name__}: {str(error)[:80]})"
