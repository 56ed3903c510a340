"""Test whether a model's vision features and shared prefixes can be cached. The tests run when its
weights are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from PIL import Image

from vrag_kit.checkpoints import LibraryObject
from vrag_kit.generation.local.cross_attention import cache_cross_attention
from vrag_kit.generation.local.opened import Pictures, PromptInput
from vrag_kit.generation.local.prefix_cache import fork_kv_cache
from vrag_kit.generation.local.token_counter import Inputs, chat_content

if TYPE_CHECKING:
    from vrag_kit.generation.local.model import LoadedModel

_TRIAL: Pictures = {
    "a": Image.new("RGB", (64, 48), (200, 90, 30)),
    "b": Image.new("RGB", (40, 96), (20, 110, 190)),
    "c": Image.new("RGB", (64, 48), (90, 160, 40)),  # may be stacked with the first
}

_OTHERWISE = "a shared prefix gives other logits than whole prompts"


@torch.inference_mode()
def vision_cache_problem(answering: LoadedModel) -> str:
    """Return why vision features cannot be cached; "" if they can. They can if three images in one
    prompt give the same logits from cached features as from pixels.
    """
    if "mm_encoder_outputs" not in answering.takes:
        return "the model takes no precomputed features"
    if "token_type_ids" in answering.takes:
        return "it marks images by token types, which only its processor sets"
    batch = [_asked(answering, "abc")]
    try:
        reused = answering.model(**answering.inputs(batch, dict(_TRIAL))).logits[:, -1]
        own = answering.model(**answering.inputs(batch, dict(_TRIAL), reuse=False)).logits[:, -1]
    except Exception as error:  # whatever a family's code raises
        return f"its processor or model {_failed(error)}"
    return "" if _close(reused, own) else "precomputed features give other logits than pixels"


@torch.inference_mode()
def prefix_cache_problem(answering: LoadedModel) -> str:
    """Return why shared prefixes cannot be cached; "" if they can. They can if nested prompts give
    the same logits from a shared prefix as when computed apart.
    """
    if answering.opened.image_token is None:
        return "its config names no image token"
    batch = [_asked(answering, keys) for keys in ("abc", "a", "ba", "b")]  # two beginnings
    try:
        inputs = answering.inputs(batch, dict(_TRIAL))
        if answering.beside:
            once = cache_cross_attention(answering.model, inputs, [asked.images for asked in batch])
        else:
            plan = answering.plan_prefixes(batch, inputs)
            if len(plan.rows) < len(batch):
                return "a prompt with one picture does not begin that with more"
            longest = answering.inputs([batch[each] for each in plan.longest], dict(_TRIAL))
            batch = [batch[each] for each in plan.rows]
            inputs = answering.inputs(batch, dict(_TRIAL))
            once = fork_kv_cache(answering.model, inputs, longest, plan)
        stop = int(inputs["input_ids"][0, -1])
        together, apart = (_logits(answering.model, each, stop) for each in (once, inputs))
        if _close(together, apart):
            return ""
        alone = [answering.inputs([asked], dict(_TRIAL)) for asked in batch]
        one_by_one = torch.cat([_logits(answering.model, each, stop) for each in alone], dim=1)
        return "" if _differs_less(together, apart, one_by_one) else _OTHERWISE
    except Exception as error:  # whatever a family's code raises
        return f"it {_failed(error)}"


def _asked(answering: LoadedModel, keys: str) -> PromptInput:
    """A prompt that shows these pictures of `_TRIAL`."""
    opened = answering.opened
    parts = ["?", *(_TRIAL[key] for key in keys)]
    shown = chat_content(parts, opened.processor, string=opened.string)
    return PromptInput(0, [{"role": "user", "content": shown}], list(keys), [])


def _logits(model: LibraryObject, inputs: Inputs, token: int) -> torch.Tensor:
    """Logits of the next two tokens of each prompt, where all go on with the same `token`."""
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
