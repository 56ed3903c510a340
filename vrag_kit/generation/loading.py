"""Load an image-text-to-text checkpoint, and refuse one that would answer wrongly."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import torch

from vrag_kit.checkpoints import check_device, check_weights
from vrag_kit.errors import VragError
from vrag_kit.generation.local import LocalGenerator
from vrag_kit.workspace import path as project_path

_SAMPLING = ("do_sample", "temperature", "top_p", "top_k", "min_p", "typical_p", "num_beams", "repetition_penalty", "no_repeat_ngram_size")


def load_generator(spec: str, *, device: str = "cpu", decoding: str = "checkpoint", max_new_tokens: int = 128) -> LocalGenerator:
    """Load a folder or a hub name by `AutoModelForImageTextToText` and `AutoProcessor`.

    `decoding`: "checkpoint" decodes as the checkpoint's generation config says (the paper's way), "greedy" takes the most probable
    token. Weights are read from safetensors only. Raises `VragError` for a checkpoint that is missing, incomplete, without a chat template
    or of a family that takes no images, weights that are NaN, and a device that this machine does not have.
    """
    if decoding not in ("checkpoint", "greedy"):
        raise VragError(f"decoding is {decoding!r}; expected \"checkpoint\" or \"greedy\".")
    check_device(device)
    folder = project_path(spec)
    model, processor = _read(spec, folder)
    check_weights(model, f"model {spec!r}")
    try:
        model = model.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise VragError(f"model {spec!r} does not fit into the memory of {device!r} ({str(error).splitlines()[0]}). Free it, or use a smaller model.") from error
    fingerprint, config = _fingerprint(model, processor), model.generation_config
    chosen = {"do_sample": False, "num_beams": 1} if decoding == "greedy" else {name: value for name in _SAMPLING if (value := getattr(config, name, None)) is not None}
    if decoding == "greedy":
        for name in _SAMPLING:
            setattr(model.generation_config, name, None)
    name = folder.name if folder.is_dir() else spec.replace("/", "-")
    return LocalGenerator(model, processor, name=name, decoding={**chosen, "max_new_tokens": max_new_tokens}, fingerprint=fingerprint)


def _read(spec: str, folder: Path) -> tuple[Any, Any]:
    """(model, processor) from the folder when there is one, else from the hub."""
    from transformers import AutoModelForImageTextToText, AutoProcessor
    from transformers.utils import logging as progress

    if not folder.is_dir() and (spec.startswith((".", "/", "~")) or spec.count("/") > 1):
        beside = sorted(path.name for path in folder.parent.iterdir() if path.is_dir()) if folder.parent.is_dir() else []
        raise VragError(f"model {spec!r} cannot be loaded: there is no such folder{'; beside it are ' + ', '.join(beside) if beside else ''}.")
    source = str(folder) if folder.is_dir() else spec
    noisy = logging.getLogger("transformers")
    level = noisy.level
    noisy.setLevel(logging.ERROR)  # missing weights are an error below, not a warning
    progress.disable_progress_bar()
    try:
        model, report = AutoModelForImageTextToText.from_pretrained(source, dtype="auto", use_safetensors=True, output_loading_info=True)
        processor = AutoProcessor.from_pretrained(source)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SyntaxError) as error:
        raise VragError(f"model {spec!r} cannot be loaded: {str(error).strip().splitlines()[0]} Expected a folder with config.json, weights and processor, or a name "
                        f"on the hub, of a family that AutoModelForImageTextToText knows.") from error
    except Exception as error:  # safetensors raises its own class for a damaged file
        raise VragError(f"model {spec!r} cannot be loaded: {type(error).__name__}: {error}. Copy or fetch the checkpoint again.") from error
    finally:
        noisy.setLevel(level)
        progress.enable_progress_bar()
    if not getattr(processor, "chat_template", None):
        raise VragError(f"model {spec!r} has no chat template, so nothing says how its prompts look. Fetch the instruction-tuned model, or its chat_template.jinja.")
    if report["missing_keys"]:
        raise VragError(f"model {spec!r}: {len(report['missing_keys'])} weights are not in the checkpoint, such as {sorted(report['missing_keys'])[0]!r}; "
                        f"they would be random. Fetch the checkpoint again.")
    return model, processor


def _fingerprint(model: Any, processor: Any) -> str:
    """Hash of everything that an answer depends on besides prompt and decoding: weights, precision, configurations, chat template, tokenizer, preprocessing."""
    images = processor.image_processor.to_dict() if hasattr(processor, "image_processor") else {}
    words = getattr(processor.tokenizer, "backend_tokenizer", None)
    parts = [model.config.to_dict(), images, model.generation_config.to_dict(), str(processor.chat_template),
             words.to_str() if words else sorted(processor.tokenizer.get_vocab().items())]
    for part in parts[:3]:
        for place in ("_name_or_path", "name_or_path", "transformers_version"):  # where it lies and who wrote it change no answer
            part.pop(place, None)
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode())
    for name, values in sorted(model.state_dict().items()):
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
