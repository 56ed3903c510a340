"""Checkpoints of multimodal models: their options, config files, processor and weights.

transformers and torch are imported only when a processor or weights are loaded, so that stored
answers are read without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vrag_kit.checkpoints import (
    LibraryObject,
    catch_load_errors,
    check_device,
    check_weights,
    find_checkpoint,
    load_model,
)
from vrag_kit.config import SAMPLING, Count, EntryOptions
from vrag_kit.errors import VragError
from vrag_kit.generation.local.families import FAMILIES, Family
from vrag_kit.types import Json

_EXPECTED = (
    "a folder with config.json, weights (*.safetensors) and processor, or a name on the hub, of a"
    " family that AutoModelForImageTextToText knows"
)


class LocalOptions(EntryOptions):
    """Options of an entry whose model runs on this machine; the defaults are the checkpoint's."""

    device: str | None = None
    """Replaces the device in `hardware`."""
    device_map: str | None = None
    """"auto" spreads the model over all devices, by accelerate."""
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    quantization: Literal["8bit", "4bit"] | None = None
    """By bitsandbytes; 4 bits are NF4."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""
    revision: str | None = None
    max_image_tokens: Count | None = None
    """Maximum tokens per image."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of a model, its family, and its options."""

    owner: str
    """The beginning of messages about this model."""
    folder: Path
    family: Family
    options: LocalOptions
    device: str


def open_checkpoint(spec: str, options: LocalOptions, device: str) -> Checkpoint:
    """Open the checkpoint that `spec` names, with the options of its entry, which may replace the
    `device`.

    Raises `VragError` for a checkpoint that is missing, and for options that its family does not
    have.
    """
    owner = f"model {spec!r}"
    folder = find_checkpoint(spec, revision=options.revision)
    family = FAMILIES.get(read_json(folder / "config.json").get("model_type", ""), Family())
    if options.max_image_tokens is not None and family.budget is None:
        words = "max_image_tokens cannot be set for this family; use max_image_side"
        raise VragError(f"{owner}: {words}.")
    return Checkpoint(owner, folder, family, options, options.device or device)


def read_json(path: Path) -> Json:
    """Return a JSON file of a checkpoint; empty if there is no such file. Raises `VragError` for
    one that holds no JSON object.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise VragError(f"{path}: no JSON object ({error}); fetch it anew.") from error


def load_processor(checkpoint: Checkpoint) -> tuple[LibraryObject, LibraryObject]:
    """Load (config, processor) of a checkpoint.

    Raises `VragError` for a checkpoint that cannot be read, for custom code that is not trusted, or
    without a chat template.
    """
    from transformers import AutoConfig, AutoProcessor

    owner, trusted = checkpoint.owner, checkpoint.options.trust_remote_code
    load: LibraryObject = AutoProcessor.from_pretrained
    with catch_load_errors(owner, _EXPECTED):
        config = AutoConfig.from_pretrained(checkpoint.folder, trust_remote_code=trusted)
        processor = load(checkpoint.folder, trust_remote_code=trusted)
    if not getattr(processor, "chat_template", None):
        # Phi-4's processor loses it in loading; its tokenizer has it
        tokenizer = getattr(processor, "tokenizer", None)
        processor.chat_template = getattr(tokenizer, "chat_template", None)
    if not processor.chat_template:
        hint = "Fetch the instruction-tuned model, or its chat_template.jinja."
        raise VragError(f"{owner} has no chat template. {hint}")
    return config, processor


def load_weights(checkpoint: Checkpoint) -> LibraryObject:
    """Load a model onto its device, ready to generate; weights come from safetensors only.

    Raises `VragError` for a checkpoint that is incomplete or of a family that takes no images, for
    weights that are NaN, a missing adapter, and a missing library.
    """
    import transformers

    owner, family = checkpoint.owner, checkpoint.family
    device, given = checkpoint.device, checkpoint.options
    check_device(device)
    options: dict[str, Any] = {  # Any: options of transformers' from_pretrained
        "dtype": given.dtype,
        "trust_remote_code": given.trust_remote_code,
    }
    with catch_load_errors(owner, _EXPECTED):
        if given.quantization:
            options["quantization_config"] = _quantization_config(given.quantization)
            options["device_map"] = {"": device}
        if given.device_map:
            options["device_map"] = given.device_map
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
    file = f"{subfolder}/adapter_model.safetensors"
    if not (folder / file).is_file():
        raise VragError(
            f"{owner}: its {name} adapter, {file}, is missing; fetch the whole checkpoint."
        )
    options = {"adapter_name": name, "adapter_kwargs": {"subfolder": subfolder}}
    report = model.load_adapter(str(folder), **options)
    if missing := [key for key in report.missing_keys if "lora_" in key and f".{name}" in key]:
        what = f"{len(missing)} weights of its {name} adapter are not in the checkpoint"
        raise VragError(f"{owner}: {what}, such as {min(missing)!r}. Fetch it again.")
    model.set_adapter(name)


def _quantization_config(bits: str) -> LibraryObject:
    """Raises `ImportError`, with the command to install it, if bitsandbytes is missing."""
    from transformers import BitsAndBytesConfig

    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": "bfloat16"}
    configure: LibraryObject = BitsAndBytesConfig
    return configure(load_in_8bit=True) if bits == "8bit" else configure(load_in_4bit=True, **four)
