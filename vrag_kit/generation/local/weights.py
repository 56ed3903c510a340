"""Read the weights and the processor of a multimodal checkpoint, and refuse those that
would answer wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vrag_kit.checkpoints import check_weights, fitting, load_config, load_model, reading
from vrag_kit.errors import VragError
from vrag_kit.generation.local.families import Family

QUANTIZATION = ("8bit", "4bit")
_ROOM = 'Free it, set quantization to "4bit" or device_map to "auto", or use a smaller model.'
_EXPECTED = (
    "a folder with config.json, weights (*.safetensors) and processor, or a name on the hub, of a"
    " family that AutoModelForImageTextToText knows"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How weights are put into memory; the defaults are the checkpoint's own."""

    device: str = "cpu"
    device_map: str | None = None
    """"auto" spreads the model over all devices, by accelerate."""
    dtype: str = "auto"
    """Number type: "auto" as the checkpoint says, else "bfloat16", "float16",
    "float32".
    """
    attention: str | None = None
    """"sdpa", "eager", "flash_attention_2"; None lets transformers choose."""
    quantization: str | None = None
    """"8bit" or "4bit" (NF4), by bitsandbytes."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""


def read_config(spec: str, folder: Path, loading: Loading) -> tuple[Any, Any]:
    """(config, processor) of a checkpoint.

    Raises `VragError` for one that cannot be read, or has no chat template.
    """
    from transformers import AutoProcessor

    with reading(f"model {spec!r}", _EXPECTED):
        config = load_config(folder, f"model {spec!r}", trusted=loading.trust_remote_code)
        processor = AutoProcessor.from_pretrained(
            folder, trust_remote_code=loading.trust_remote_code
        )
    if not getattr(
        processor, "chat_template", None
    ):  # Phi-4's processor drops it in loading; its tokenizer has it
        processor.chat_template = getattr(
            getattr(processor, "tokenizer", None), "chat_template", None
        )
    if not processor.chat_template:
        raise VragError(
            f"model {spec!r} has no chat template, so nothing says how its prompts look. Fetch the"
            " instruction-tuned model, or its chat_template.jinja."
        )
    return config, processor


def read_weights(spec: str, folder: Path, family: Family, loading: Loading) -> Any:
    """The model on its device, ready to answer; weights come from safetensors only.

    Raises `VragError` for a checkpoint that is incomplete or of a family that takes no
    images, for weights that are NaN, a missing adapter, a missing library, and a device
    without room.
    """
    import transformers

    how: dict[str, Any] = {
        "dtype": loading.dtype,
        "trust_remote_code": loading.trust_remote_code,
    }
    how |= {
        name: value
        for name, value in (
            ("attn_implementation", loading.attention),
            ("device_map", loading.device_map),
        )
        if value
    }
    if loading.quantization:
        how["quantization_config"] = _quantization(spec, loading.quantization)
        how.setdefault("device_map", {"": loading.device})
    room = fitting(f"model {spec!r}", loading.device, _ROOM)
    with reading(f"model {spec!r}", _EXPECTED), room:
        auto = getattr(transformers, family.auto)
        model = load_model(auto, folder, f"model {spec!r}", how)
        if family.adapter:
            _adapt(spec, folder, model, *family.adapter)
        check_weights(model, f"model {spec!r}")
        return model.eval() if "device_map" in how else model.to(loading.device).eval()


def _adapt(spec: str, folder: Path, model: Any, name: str, subfolder: str) -> None:
    """Load the adapter that the family cannot see without."""
    if not (folder / subfolder / "adapter_model.safetensors").is_file():
        raise VragError(
            f"model {spec!r}: its {name} adapter, {subfolder}/adapter_model.safetensors, is"
            " missing; without it the model hardly sees. Fetch the whole checkpoint."
        )
    report = model.load_adapter(
        str(folder), adapter_name=name, adapter_kwargs={"subfolder": subfolder}
    )
    if missing := sorted(
        key for key in report.missing_keys if "lora_" in key and f".{name}" in key
    ):
        raise VragError(
            f"model {spec!r}: {len(missing)} weights of its {name} adapter are not in the"
            f" checkpoint, such as {missing[0]!r}. Fetch the whole checkpoint."
        )
    model.set_adapter(name)


def _quantization(spec: str, bits: str) -> Any:
    from importlib.util import find_spec

    from transformers import BitsAndBytesConfig

    if bits not in QUANTIZATION:
        raise VragError(
            f"model {spec!r}: quantization is {bits!r}; expected"
            f" {' or '.join(map(repr, QUANTIZATION))}."
        )
    if find_spec("bitsandbytes") is None:
        raise VragError(
            f"model {spec!r}: quantization needs bitsandbytes. Install it with `pip install"
            " bitsandbytes`."
        )
    return (
        BitsAndBytesConfig(load_in_8bit=True)
        if bits == "8bit"
        else BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    )
