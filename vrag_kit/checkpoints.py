"""Find checkpoints, say what they are by their files, and refuse weights and devices
that would give wrong numbers or a late crash; for all models alike.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path

DTYPES = ("auto", "float32", "float16", "bfloat16")
"""Number types of weights; "auto" is the checkpoint's own."""
FILE_KINDS = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "*.py")
"""What a checkpoint consists of; weights in other formats (.bin, .pth) can run code
when they are read, and are never fetched.
"""


def check_device(device: str) -> None:
    """Raise `VragError` for a device that this machine does not have, before any
    weights are read.
    """
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise VragError(
            f"device {device!r} cannot be used on this machine ({str(error).splitlines()[0]}). Set"
            ' the parameter `device` to "cpu".'
        ) from error


def check_weights(model: nn.Module, owner: str) -> None:
    """Raise `VragError`, naming `owner` ("retriever 'x'") and the tensor, for weights
    that are NaN or infinite.
    """
    for name, values in model.state_dict().items():
        if values.is_floating_point() and not torch.isfinite(values).all():
            raise VragError(
                f"{owner}: weight {name!r} holds {int((~torch.isfinite(values)).sum())} values that"
                " are NaN or infinite. The checkpoint is damaged; fetch or train it again."
            )


def find_checkpoint(spec: str, *, revision: str | None = None) -> Path:
    """The folder of a checkpoint: a local one (relative paths start at the project),
    else the Hugging Face hub's `revision` of it, fetched once.

    Raises `VragError` for a path where there is no folder, naming what lies beside it,
    for a name that cannot be fetched, and for the revision of a folder.
    """
    folder = project_path(spec)
    if folder.is_dir():
        if revision is not None:
            raise VragError(
                f"checkpoint {spec!r} is a folder here, which has no revision {revision!r}. Remove"
                " the option `revision`, or give the name on the hub."
            )
        return folder
    if spec.startswith((".", "/", "~")) or spec.count("/") > 1:
        beside = (
            sorted(path.name for path in folder.parent.iterdir() if path.is_dir())
            if folder.parent.is_dir()
            else []
        )
        raise VragError(
            f"checkpoint {spec!r} cannot be loaded: there is no such"
            f" folder{'; beside it are ' + ', '.join(beside) if beside else ''}."
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                spec,
                revision=revision,
                allow_patterns=list(FILE_KINDS),
                ignore_patterns=["original/*", "consolidated*"],
            )
        )
    except (OSError, ValueError) as error:
        raise VragError(
            f"checkpoint {spec!r}{f' at revision {revision!r}' if revision else ''} is no folder"
            " here and cannot be fetched from the Hugging Face hub:"
            f" {str(error).strip().splitlines()[0]} Check the name, the network, and for gated"
            " models `hf auth login`; or give a local folder."
        ) from error


def check_code(folder: Path, owner: str, *, trusted: bool) -> None:
    """Raise `VragError` for a checkpoint that only code of its own can read, unless
    that code is trusted.
    """
    from transformers import CONFIG_MAPPING

    path = folder / "config.json"
    stated = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "auto_map" in stated and stated.get("model_type") not in CONFIG_MAPPING and not trusted:
        raise VragError(
            f"{owner} needs code that comes with its checkpoint"
            f" ({', '.join(sorted(map(str, stated['auto_map'].values())))}), and it is not run."
            " Read that code; if you trust it, add the option `trust_remote_code: true`."
        )


@contextmanager
def reading(owner: str, expected: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign checkpoint raises into one `VragError` with
    `owner` and what was `expected`; warnings and progress bars stay silent.
    """
    from transformers.utils import logging as progress

    noisy = logging.getLogger("transformers")
    level = noisy.level
    noisy.setLevel(logging.ERROR)
    progress.disable_progress_bar()
    try:
        yield
    except (VragError, torch.OutOfMemoryError):
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SyntaxError) as error:
        raise VragError(
            f"{owner} cannot be loaded:"
            f" {(str(error).strip() or type(error).__name__).splitlines()[0]} Expected {expected}."
        ) from error
    except Exception as error:  # safetensors raises its own class for a damaged file
        raise VragError(
            f"{owner} cannot be loaded: {type(error).__name__}: {error}. Copy or fetch the"
            " checkpoint again."
        ) from error
    finally:
        noisy.setLevel(level)
        progress.enable_progress_bar()


def files_fingerprint(folders: Sequence[Path], options: Mapping[str, Any]) -> str:
    """Hash of what checkpoints consist of (names and contents of `FILE_KINDS` in each
    folder and one level down) and of `options`.

    It does not depend on where the folders lie; READMEs and dot files do not count.
    `options` hold what JSON can write.
    """
    contents = [
        {path.relative_to(folder).as_posix(): _sha256(path) for path in _files(folder)}
        for folder in folders
    ]
    return hashlib.sha256(
        json.dumps([contents, dict(options)], sort_keys=True).encode()
    ).hexdigest()


def _files(folder: Path) -> list[Path]:
    found = {
        path
        for kind in FILE_KINDS
        for depth in ("", "*/")
        for path in folder.glob(depth + kind)
        if path.is_file()
    }
    return sorted(
        path
        for path in found
        if not any(part.startswith((".", "README")) for part in path.relative_to(folder).parts)
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
