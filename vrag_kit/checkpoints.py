"""Locating, checking, loading and hashing of model checkpoints.

Weights or devices that would give incorrect numbers or a late crash raise `VragError`. Heavy
libraries are imported only when weights or a device are needed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.files import project_path, safe_join, shipped_models
from vrag_kit.types import Json, JsonView

if TYPE_CHECKING:
    from torch import nn

Options = JsonView
"""Model options as in parameters and libraries: names with values of any type."""
LibraryObject = Any
"""An object that a library loads from a checkpoint (model, tokenizer, processor), or the class that
loads it. These classes share no base type.
"""

FILE_KINDS = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "*.py")
"""Glob patterns of a checkpoint's files. Weights in other formats (.bin, .pth) can run code when
they are loaded, and are never fetched.
"""
_LEFT_OUT = ["original/*", "consolidated*"]
"""Second copies of weights in checkpoints of Meta and Mistral."""
_SHA256 = re.compile("[0-9a-f]{64}")


def check_device(device: str) -> None:
    """Raise `VragError` if this machine lacks the device; call it before loading weights."""
    if device == "cpu":  # PyTorch takes seconds to import
        return
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise VragError(f'device {device!r}: {reason}. Set `device` to "cpu".') from error


def check_weights(model: nn.Module, owner: str) -> None:
    """Raise `VragError` if any weight is NaN or infinite. The message names `owner` ("retriever
    'x'") and the tensor.
    """
    import torch

    for name, values in model.state_dict().items():
        if values.is_floating_point() and not torch.isfinite(values).all():
            raise VragError(f"{owner}: weight {name!r} holds values that are NaN or infinite.")


def find_checkpoint(spec: str, *, revision: str | None = None) -> Path:
    """Return the folder of a checkpoint: a local one, or `revision` from the Hugging Face hub. A
    relative path starts at the project root; a hub checkpoint is fetched once, and not in a dry
    run.

    Raises `VragError` for a folder that does not exist, for a name on the hub without its owner, or
    that cannot be fetched, and for the revision of a folder.
    """
    folder = project_path(spec)
    if folder.is_dir():
        if revision is not None:
            raise VragError(f"checkpoint {spec!r} is a folder, with no revision {revision!r}.")
        return folder
    if spec.count("/") != 1 or spec.startswith((".", "/", "~")):
        hint = did_you_mean(spec, shipped_models())
        raise VragError(f"checkpoint {spec!r} cannot be loaded: there is no such folder.{hint}")
    from huggingface_hub import snapshot_download

    is_dry_run = current_dry_run() is not None
    wanted: Json = {"allow_patterns": list(FILE_KINDS), "ignore_patterns": _LEFT_OUT}
    try:
        found = snapshot_download(spec, revision=revision, local_files_only=is_dry_run, **wanted)
        return Path(found)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        failed = "" if is_dry_run else f", and cannot be fetched ({reason})"
        option = f" --revision {revision}" if revision else ""
        raise VragError(
            f"checkpoint {spec!r} is not on this machine yet{failed}. `hf download"
            f" {spec}{option}` fetches it. Check the name, the network, and for gated models"
            " `hf auth login`; or give a local folder."
        ) from error


def check_safetensors(folder: Path, owner: str) -> None:
    """Raise `VragError`, beginning with `owner` ("retriever 'x'"), if no weights exist, some exist
    only as pickles, the length of a file contradicts its header, or a shard lies outside the
    folder. No weights are read.
    """
    from safetensors import SafetensorError, safe_open

    paths = checkpoint_files(folder)
    found = ""
    if not any(path.suffix == ".safetensors" for path in paths):
        found = f"there are no weights as *.safetensors in {folder}"
    for name, safe in (("pytorch_model", ""), ("adapter_model", "adapter_model")):
        for pickle in [*folder.glob(f"{name}*.bin"), *folder.glob(f"*/{name}*.bin")]:
            if not any(pickle.parent.glob(f"{safe}*.safetensors")):
                found = f"{pickle.relative_to(folder)} is a pickle"
    if found:
        raise VragError(
            f"{owner} cannot be loaded: {found}; weights are read from safetensors only, because"
            " pickles can run code. Name a `revision` with safetensors (such as refs/pr/…)."
        )
    for path in paths:
        where = f"{owner} cannot be loaded: {path}"
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, framework="numpy"):
                    continue
            if path.name.endswith(".safetensors.index.json"):
                for shard in json.loads(path.read_bytes())["weight_map"].values():
                    safe_join(path.parent, shard, where)
        except (SafetensorError, OSError, ValueError, LookupError) as error:
            raise VragError(f"{where}: {error}.") from error


def load_model(
    auto: LibraryObject, folder: Path, owner: str, how: Options, *, unused: tuple[str, ...] = ()
) -> LibraryObject:
    """Load a model from the weights in `folder` with `auto`, a class of transformers.

    Reads safetensors only; `how` is passed to `from_pretrained`. Raises `VragError`, naming
    `owner`, if weights are missing, except those whose names begin with one of `unused`:
    transformers would initialise them at random.
    """
    model, report = auto.from_pretrained(
        folder, use_safetensors=True, output_loading_info=True, **how
    )
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(unused))
    if missing:
        raise VragError(
            f"{owner}: {len(missing)} weights are not in the checkpoint, such as {missing[0]!r}."
        )
    return model


@contextmanager
def catch_load_errors(owner: str, expected: str) -> Iterator[None]:
    """Convert any error of loading a checkpoint, but a lack of memory, to one `VragError` with
    `owner` and what was `expected`. Transformers' warnings and progress bars are switched off.
    """
    import torch
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers' own
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' own
    try:
        yield
    except (VragError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # safetensors raises its own class for a damaged file
        words = " ".join(str(error).split())[:600] or type(error).__name__
        raise VragError(f"{owner} cannot be loaded: {words} Expected {expected}.") from error


def checkpoint_fingerprint(folders: Sequence[Path], options: Options) -> str:
    """Hash the contents of checkpoints and their `options`. Names and contents of `FILE_KINDS` in
    each folder and one level down are included.

    The hash does not depend on where the folders lie, nor on READMEs and hidden files. `options`
    must be JSON-serialisable.
    """
    contents = [
        {path.relative_to(folder).as_posix(): file_hash(path) for path in checkpoint_files(folder)}
        for folder in folders
    ]
    whole = json.dumps([contents, dict(options)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def checkpoint_files(folder: Path) -> list[Path]:
    """List the files of a checkpoint: `FILE_KINDS` in its folder and one level down, without
    READMEs and hidden files.
    """
    found = []
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        parts = path.relative_to(folder).parts
        extra = any(part.startswith((".", "README")) for part in parts)
        if path.is_file() and not extra and any(map(path.match, FILE_KINDS)):
            found.append(path)
    return found


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's contents, in hexadecimal, as the hub's cache names large
    files. It is cached in this process while the file's size, inode and times stay the same.
    """
    place = path.resolve()
    if place.parent.name == "blobs" and _SHA256.fullmatch(place.name):
        return place.name
    stat = place.stat()
    return _hash_of(place, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))


@cache
def _hash_of(place: Path, state: tuple[int, ...]) -> str:
    """The hash of a file that is in that state."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
