"""`Checkpoint`: a local model as its config files describe it, and its decoding. Nothing heavy is
imported, so that stored answers can be read without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from vrag_kit.checkpoints import Options, check_remote_code, find_checkpoint
from vrag_kit.config import GREEDY, SAMPLING
from vrag_kit.errors import VragError
from vrag_kit.generation.local.families import Family, family_of
from vrag_kit.plain import Json

QUANTIZATION = ("8bit", "4bit")
EXPECTED = (
    "a folder with config.json, weights (*.safetensors) and processor, or a name on the hub, of a"
    " family that AutoModelForImageTextToText knows"
)
LOADING = ("device", "device_map", "dtype", "attention", "quantization", "trust_remote_code")
"""Options of an entry that are fields of `LoadOptions`."""
_PROCESSORS = ("processor_config.json", "preprocessor_config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How weights are loaded; the defaults are the checkpoint's own."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The folder of a model, its loading options, and its limits on images."""

    spec: str
    """The model's name in parameters."""
    folder: Path
    family: Family
    loading: LoadOptions
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
    loading = LoadOptions(**{name: options[name] for name in LOADING if name in options})
    if loading.quantization not in (None, *QUANTIZATION):
        raise VragError(
            f"model {spec!r}: quantization is {loading.quantization!r}; expected"
            f" {' or '.join(map(repr, QUANTIZATION))}."
        )
    folder = find_checkpoint(spec, revision=options.get("revision"))
    checkpoint = Checkpoint(
        spec=spec,
        folder=folder,
        family=family_of(_read(folder / "config.json")),
        loading=loading,
        max_image_side=options.get("max_image_side"),
        max_image_tokens=options.get("max_image_tokens"),
    )
    _check(checkpoint)
    check_remote_code(folder, checkpoint.owner, trusted=loading.trust_remote_code)
    return checkpoint


def local_decoding(folder: Path, sampling: Options) -> Json:
    """Return the sampling fields for transformers' `generate`: those given, else the checkpoint's
    own.
    """
    if sampling == GREEDY:
        return {"do_sample": False, "num_beams": 1}
    if sampling:
        return {"do_sample": True, **sampling}
    stated = _read(folder / "generation_config.json")
    return {name: stated[name] for name in SAMPLING if stated.get(name) is not None}


def _check(checkpoint: Checkpoint) -> None:
    """Raise `VragError` for what would fail as soon as something is asked."""
    folder, owner = checkpoint.folder, checkpoint.owner
    if not (folder / "config.json").is_file():
        raise VragError(f"{owner} cannot be loaded: no config.json. Expected {EXPECTED}.")
    if not any((folder / name).is_file() for name in _PROCESSORS):
        raise VragError(
            f"{owner} cannot be loaded: neither {' nor '.join(_PROCESSORS)}. Expected {EXPECTED}."
        )
    if checkpoint.max_image_tokens is not None and checkpoint.family.budget is None:
        raise VragError(
            f"{owner}: max_image_tokens cannot be set for this family. Use max_image_side, which"
            " makes the pictures smaller."
        )


def _read(path: Path) -> Json:
    """A JSON file of a checkpoint; empty when it is not there.

    Raises `VragError` for a file that is no JSON.
    """
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise VragError(
            f"{path}: not readable JSON ({error}). Fetch the checkpoint again."
        ) from error
    return found if isinstance(found, dict) else {}
