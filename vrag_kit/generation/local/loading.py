"""Checkpoints of multimodal models: their options, config files, processor and weights.

transformers and torch are imported only when a processor or weights are loaded, so that stored
answers are read without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    catch_load_errors,
    catch_out_of_memory,
    check_device,
    check_remote_code,
    check_weights,
    find_checkpoint,
    load_config,
    load_model,
)
from vrag_kit.config import SAMPLING
from vrag_kit.errors import VragError
from vrag_kit.generation.local.families import Family, family_of
from vrag_kit.types import Json

LOADING = ("device", "device_map", "dtype", "attention", "quantization", "trust_remote_code")
"""Options of an entry that say how weights are loaded."""
_OPTIONS = (*LOADING, "revision", "max_image_side", "max_image_tokens")
_QUANTIZATION: dict[str | None, float] = {"8bit": 0.55, "4bit": 0.3}
"""What remains of 16-bit weights; embeddings and norms are not quantized."""
_PROCESSORS = ("processor_config.json", "preprocessor_config.json")
_EXPECTED = (
    "a folder with config.json, weights (*.safetensors) and processor, or a name on the hub, of a"
    " family that AutoModelForImageTextToText knows"
)
_OUT_OF_MEMORY = (
    'Free it, set quantization to "4bit" or device_map to "auto", or use a smaller model.'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The folder of a model and its options; their defaults are the checkpoint's own."""

    spec: str
    """The model's name in parameters."""
    folder: Path
    family: Family
    revision: str | None = None
    device: str = "cpu"
    device_map: str | None = None
    """"auto" spreads the model over all devices, by accelerate."""
    dtype: str = "auto"
    """Number type: "auto" as in the checkpoint, else "bfloat16", "float16", "float32"."""
    attention: str | None = None
    """"sdpa", "eager", "flash_attention_2"; None lets transformers choose."""
    quantization: str | None = None
    """"8bit" or "4bit" (NF4), by bitsandbytes."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""
    max_image_side: int | None = None
    """Maximum side in pixels; larger images are shrunk first."""
    max_image_tokens: int | None = None
    """Maximum tokens per image."""

    @property
    def owner(self) -> str:
        """The beginning of messages about this model."""
        return f"model {self.spec!r}"


def open_checkpoint(spec: str, options: Options) -> Checkpoint:
    """Open the checkpoint that `spec` names, with the options of its entry.

    Raises `VragError` for a checkpoint that is missing or has no processor, for custom code that is
    not trusted, and for options that its family does not have.
    """
    folder = find_checkpoint(spec, revision=options.get("revision"))
    checkpoint = Checkpoint(
        spec=spec,
        folder=folder,
        family=family_of(read_json(folder / "config.json")),
        **{name: options[name] for name in _OPTIONS if name in options},
    )
    owner = checkpoint.owner
    for names in (("config.json",), _PROCESSORS):
        if not any((folder / name).is_file() for name in names):
            raise VragError(
                f"{owner} cannot be loaded: no {' or '.join(names)}. Expected {_EXPECTED}."
            )
    if checkpoint.max_image_tokens is not None and checkpoint.family.budget is None:
        raise VragError(
            f"{owner}: max_image_tokens cannot be set for this family. Use max_image_side, which"
            " makes the images smaller."
        )
    check_remote_code(folder, owner, trusted=checkpoint.trust_remote_code)
    return checkpoint


def read_json(path: Path) -> Json:
    """Return a JSON file of a checkpoint; empty if there is no such file. Raises `VragError` for a
    file that is not JSON.
    """
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise VragError(
            f"{path}: not readable JSON ({error}). Fetch the checkpoint again."
        ) from error


def load_processor(checkpoint: Checkpoint) -> tuple[LibraryObject, LibraryObject]:
    """Load (config, processor) of a checkpoint.

    Raises `VragError` for a checkpoint that cannot be read, or has no chat template.
    """
    from transformers import AutoProcessor

    owner, trusted = checkpoint.owner, checkpoint.trust_remote_code
    load: LibraryObject = AutoProcessor.from_pretrained
    with catch_load_errors(owner, _EXPECTED):
        config = load_config(checkpoint.folder, owner, trusted=trusted)
        processor = load(checkpoint.folder, trust_remote_code=trusted)
    if not getattr(processor, "chat_template", None):
        # Phi-4's processor loses it in loading; its tokenizer has it
        tokenizer = getattr(processor, "tokenizer", None)
        processor.chat_template = getattr(tokenizer, "chat_template", None)
    if not processor.chat_template:
        raise VragError(
            f"{owner} has no chat template, which says how its prompts look. Fetch the"
            " instruction-tuned model, or its chat_template.jinja."
        )
    return config, processor


def load_weights(checkpoint: Checkpoint) -> LibraryObject:
    """Load a model onto its device, ready to generate; weights come from safetensors only.

    Raises `VragError` for a checkpoint that is incomplete or of a family that takes no images, for
    weights that are NaN, a missing adapter, a missing library, and a device without enough memory.
    """
    import transformers

    owner = checkpoint.owner
    family = checkpoint.family
    device = checkpoint.device
    check_device(device)
    options: dict[str, Any] = {  # Any: options of transformers' from_pretrained
        "dtype": checkpoint.dtype,
        "trust_remote_code": checkpoint.trust_remote_code,
    }
    if checkpoint.attention:
        options["attn_implementation"] = checkpoint.attention
    if checkpoint.device_map:
        options["device_map"] = checkpoint.device_map
    with catch_load_errors(owner, _EXPECTED), catch_out_of_memory(owner, device, _OUT_OF_MEMORY):
        if checkpoint.quantization:
            options["quantization_config"] = _quantization_config(checkpoint.quantization)
            options.setdefault("device_map", {"": device})
        model = load_model(getattr(transformers, family.auto), checkpoint.folder, owner, options)
        if family.adapter:
            _load_adapter(checkpoint, model, *family.adapter)
        check_weights(model, owner)
        if "device_map" not in options:
            model = model.to(device)
    for name in SAMPLING:  # sampling fields that are not given must not come from the checkpoint
        setattr(model.generation_config, name, None)
    return model.eval()


def _load_adapter(checkpoint: Checkpoint, model: LibraryObject, name: str, subfolder: str) -> None:
    folder, owner = checkpoint.folder, checkpoint.owner
    if not (folder / subfolder / "adapter_model.safetensors").is_file():
        raise VragError(
            f"{owner}: its {name} adapter, {subfolder}/adapter_model.safetensors, is missing;"
            " without it the model hardly uses images. Fetch the whole checkpoint."
        )
    report = model.load_adapter(
        str(folder), adapter_name=name, adapter_kwargs={"subfolder": subfolder}
    )
    missing = [key for key in report.missing_keys if "lora_" in key and f".{name}" in key]
    if missing:
        raise VragError(
            f"{owner}: {len(missing)} weights of its {name} adapter are not in the checkpoint, such"
            f" as {min(missing)!r}. Fetch the whole checkpoint."
        )
    model.set_adapter(name)


def _quantization_config(bits: str) -> LibraryObject:
    """Raises `ImportError`, with the command to install it, if bitsandbytes is missing."""
    from transformers import BitsAndBytesConfig

    configure: LibraryObject = BitsAndBytesConfig
    if bits == "8bit":
        return configure(load_in_8bit=True)
    return configure(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype="bfloat16"
    )


def memory_note(checkpoint: Checkpoint, config: LibraryObject, tokens: int) -> str:
    """Return a note on the memory that the weights and the attention cache of a prompt of `tokens`
    tokens need, and what is free on the device; "" if they need less than a tenth of it.
    """
    import psutil
    import torch

    stored = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    dtype = stored if checkpoint.dtype == "auto" else getattr(torch, checkpoint.dtype)
    weights: float = sum(file.stat().st_size for file in checkpoint.folder.glob("*.safetensors"))
    weights *= dtype.itemsize / stored.itemsize * _QUANTIZATION.get(checkpoint.quantization, 1)
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    cache = 2 * text.num_hidden_layers * heads * width * tokens * dtype.itemsize
    if checkpoint.device.startswith("cuda") and torch.cuda.is_available():
        free = torch.cuda.mem_get_info(torch.device(checkpoint.device))[0]
    else:
        free = psutil.virtual_memory().available
    if weights + cache < 0.1 * free:
        return ""
    advice = ""
    if weights + cache >= 0.9 * free:
        advice = (
            ": too little, unless the model is loaded already. Quantize, or make images smaller"
        )
    return (
        f"needs about {weights / 2**30:.1f} GiB for weights and {cache / 2**30:.1f} GiB for the"
        f" longest prompt; {free / 2**30:.1f} GiB free on {checkpoint.device}{advice}"
    )
