"""Load the weights and the processor of a multimodal checkpoint, and refuse defective ones."""

from __future__ import annotations

from typing import Any

import torch

from vrag_kit.checkpoints import (
    LibraryObject,
    catch_load_errors,
    catch_out_of_memory,
    check_device,
    check_weights,
    load_config,
    load_model,
)
from vrag_kit.config import SAMPLING
from vrag_kit.errors import VragError
from vrag_kit.generation.local.checkpoint import EXPECTED, Checkpoint

_ROOM = 'Free it, set quantization to "4bit" or device_map to "auto", or use a smaller model.'


def load_processor(checkpoint: Checkpoint) -> tuple[LibraryObject, LibraryObject]:
    """Load (config, processor) of a checkpoint.

    Raises `VragError` for a checkpoint that cannot be read, or has no chat template.
    """
    from transformers import AutoProcessor

    trusted, folder = checkpoint.loading.trust_remote_code, checkpoint.folder
    load: LibraryObject = AutoProcessor.from_pretrained
    with catch_load_errors(checkpoint.owner, EXPECTED):
        config = load_config(folder, checkpoint.owner, trusted=trusted)
        processor = load(folder, trust_remote_code=trusted)
    if not getattr(processor, "chat_template", None):
        # Phi-4's processor drops it in loading; its tokenizer has it
        tokenizer = getattr(processor, "tokenizer", None)
        processor.chat_template = getattr(tokenizer, "chat_template", None)
    if not processor.chat_template:
        raise VragError(
            f"{checkpoint.owner} has no chat template, so nothing says how its prompts look. Fetch"
            " the instruction-tuned model, or its chat_template.jinja."
        )
    return config, processor


def load_weights(checkpoint: Checkpoint) -> LibraryObject:
    """Load a model onto its device, ready to answer; weights come from safetensors only.

    Raises `VragError` for a checkpoint that is incomplete or of a family that takes no images, for
    weights that are NaN, a missing adapter, a missing library, and a device without enough memory.
    """
    import transformers

    loading = checkpoint.loading
    family = checkpoint.family
    owner = checkpoint.owner
    check_device(loading.device)
    how: dict[str, Any] = {  # Any: options of transformers' from_pretrained
        "dtype": loading.dtype,
        "trust_remote_code": loading.trust_remote_code,
    }
    if loading.attention:
        how["attn_implementation"] = loading.attention
    if loading.device_map:
        how["device_map"] = loading.device_map
    if loading.quantization:
        how["quantization_config"] = _quantization(owner, loading.quantization)
        how.setdefault("device_map", {"": loading.device})
    with catch_load_errors(owner, EXPECTED), catch_out_of_memory(owner, loading.device, _ROOM):
        auto = getattr(transformers, family.auto)
        model = load_model(auto, checkpoint.folder, owner, how)
        if family.adapter:
            _adapt(checkpoint, model, *family.adapter)
        check_weights(model, owner)
        if "device_map" not in how:
            model = model.to(loading.device)
    for name in SAMPLING:  # what is not asked for must not come from the checkpoint
        setattr(model.generation_config, name, None)
    return model.eval()


def _adapt(checkpoint: Checkpoint, model: LibraryObject, name: str, subfolder: str) -> None:
    """Load the adapter that the family cannot see without."""
    folder, owner = checkpoint.folder, checkpoint.owner
    if not (folder / subfolder / "adapter_model.safetensors").is_file():
        raise VragError(
            f"{owner}: its {name} adapter, {subfolder}/adapter_model.safetensors, is"
            " missing; without it the model hardly sees. Fetch the whole checkpoint."
        )
    report = model.load_adapter(
        str(folder), adapter_name=name, adapter_kwargs={"subfolder": subfolder}
    )
    own = [key for key in report.missing_keys if "lora_" in key and f".{name}" in key]
    if own:
        raise VragError(
            f"{owner}: {len(own)} weights of its {name} adapter are not in the"
            f" checkpoint, such as {min(own)!r}. Fetch the whole checkpoint."
        )
    model.set_adapter(name)


def _quantization(owner: str, bits: str) -> LibraryObject:
    from importlib.util import find_spec

    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise VragError(
            f"{owner}: quantization needs bitsandbytes. Install it with `pip install bitsandbytes`."
        )
    configure: LibraryObject = BitsAndBytesConfig
    if bits == "8bit":
        return configure(load_in_8bit=True)
    return configure(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
