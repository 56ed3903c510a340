"""Checkpoints: where they are, what they are by their files, and their weights, read.

Weights and devices that would give wrong numbers or a late crash are refused, for all
models alike. Nothing heavy is imported before weights or a device are asked for.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.errors import VragError
from vrag_kit.files import inside
from vrag_kit.plain import JsonView
from vrag_kit.workspace import own_models
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from torch import nn

Options = JsonView
"""Options as parameters and libraries have them: values of any kind."""
Made = Any
"""What a library makes of a checkpoint's files (model, tokenizer, processor), or makes
it with: their classes have no type in common.
"""

DTYPES = ("auto", "float32", "float16", "bfloat16")
"""Number types of weights; "auto" is the checkpoint's own."""
FILE_KINDS = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "*.py")
"""What a checkpoint consists of; weights in other formats (.bin, .pth) can run code
when they are read, and are never fetched.
"""
_SHA256 = re.compile("[0-9a-f]{64}")


def check_device(device: str) -> None:
    """Raise `VragError` for a device that this machine does not have, before any
    weights are read.
    """
    if device == "cpu":  # which every machine has; PyTorch takes seconds to begin
        return
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        words = str(error).splitlines()[0]
        if words.startswith("Expected one of"):  # of which torch lists all that it ever had
            words = 'expected "cuda", "cuda:1" for the second card, "mps" on a Mac, or "cpu"'
        raise VragError(
            f"device {device!r} cannot be used on this machine ({words}). Set the parameter"
            ' `device` to "cpu".'
        ) from error


def check_weights(model: nn.Module, owner: str) -> None:
    """Raise `VragError`, naming `owner` ("retriever 'x'") and the tensor, for weights
    that are NaN or infinite.
    """
    import torch

    for name, values in model.state_dict().items():
        if values.is_floating_point() and not torch.isfinite(values).all():
            raise VragError(
                f"{owner}: weight {name!r} holds {int((~torch.isfinite(values)).sum())} values that"
                " are NaN or infinite. The checkpoint is damaged; fetch or train it again."
            )


def find_checkpoint(spec: str, *, revision: str | None = None) -> Path:
    """The folder of a checkpoint: a local one (relative paths start at the project),
    else the Hugging Face hub's `revision` of it, fetched once.

    Raises `VragError` for a path where there is no folder, for a name that cannot be
    fetched, and for the revision of a folder; where a name is nearly another's, with that
    (`near_name`).
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
        raise VragError(
            f"checkpoint {spec!r} cannot be loaded: there is no such folder.{_meant(spec)}"
        )
    if "/" not in spec and (meant := _meant(spec)):
        raise VragError(
            f"checkpoint {spec!r} is not here.{meant} It is no folder, and no model that comes with"
            " the kit."
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
        version = f" at revision {revision!r}" if revision else ""
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise VragError(
            f"checkpoint {spec!r}{version} is no folder here and cannot be fetched from the Hugging"
            f" Face hub.{_meant(spec)} {reason}. Check the name, the network, and for gated models"
            " `hf auth login`; or give a local folder."
        ) from error


def near_name(spec: str) -> str | None:
    """What may have been meant by a name that nothing here has: a model that comes with
    the kit, or a folder beside the one that is named.
    """
    folder = project_path(spec)
    names = own_models() if "/" not in spec else []
    if folder.parent.is_dir():
        names += [path.name for path in folder.parent.iterdir() if path.is_dir()]
    near = get_close_matches(folder.name, names, n=1, cutoff=0.75)
    return f"{spec.rstrip('/').removesuffix(folder.name)}{near[0]}" if near else None


def _meant(spec: str) -> str:
    """The question whether that was meant, "" where there is nothing near."""
    near = near_name(spec)
    return f" Did you mean {near!r}?" if near else ""


def check_formats(folder: Path, owner: str) -> None:
    """Raise `VragError` when some weights are there as pickles only, or not at all; `owner`
    ("retriever 'x'") begins the message.
    """
    pickles: list[Path] = []
    safe = False
    for place in [folder, *sorted(folder.iterdir())]:
        if place.is_dir():
            safe = safe or any(place.glob("*.safetensors"))
            pickles += _pickles_alone(place)
    if safe and not pickles:
        return
    found = f"there are no weights as *.safetensors in {folder}"
    if pickles:
        found = f"{pickles[0].relative_to(folder)} is a pickle"
    raise VragError(
        f"{owner}: {found}; weights are read from safetensors only, because"
        " pickles can run code. Name a `revision` with safetensors (the hub's own"
        " conversions are under refs/pr/…), or convert it where you trust it, by"
        " from_pretrained and save_pretrained."
    )


def _pickles_alone(folder: Path) -> list[Path]:
    """The weights in a folder that are there as pickles only."""
    alone: list[Path] = []
    if not any(folder.glob("*.safetensors")):
        alone += sorted(folder.glob("pytorch_model*.bin"))
    if not any(folder.glob("adapter_model*.safetensors")):
        alone += sorted(folder.glob("adapter_model*.bin"))
    return alone


def check_headers(folder: Path, owner: str) -> None:
    """Raise `VragError` for a file of weights that is not as long as its header says, and
    for shards that lie outside the folder; no weights are read.
    """
    from safetensors import SafetensorError, safe_open

    for path in files_of(folder):
        where = f"{owner} cannot be loaded: {path}"
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, framework="numpy"):
                    continue
            if path.name.endswith(".safetensors.index.json"):
                for shard in json.loads(path.read_bytes())["weight_map"].values():
                    inside(path.parent, shard, where)
        except (SafetensorError, OSError, ValueError, LookupError, TypeError) as error:
            raise VragError(f"{where}: {error}. Copy or fetch the checkpoint again.") from error


def check_code(folder: Path, owner: str, *, trusted: bool) -> None:
    """Raise `VragError` for a checkpoint that only code of its own can read, unless
    that code is trusted.
    """
    path = folder / "config.json"
    stated = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "auto_map" not in stated or trusted:
        return
    from transformers import CONFIG_MAPPING

    if stated.get("model_type") not in CONFIG_MAPPING:
        raise VragError(
            f"{owner} needs code that comes with its checkpoint"
            f" ({', '.join(sorted(map(str, stated['auto_map'].values())))}), and it is not run."
            " Read that code; if you trust it, add the option `trust_remote_code: true`."
        )


def load_config(folder: Path, owner: str, *, trusted: bool) -> Made:
    """The configuration in `folder`, of transformers' class for it.

    Raises `VragError`, naming `owner` ("model 'x'"), as `check_code` does.
    """
    from transformers import AutoConfig

    check_code(folder, owner, trusted=trusted)
    return AutoConfig.from_pretrained(folder, trust_remote_code=trusted)


def load_model(
    auto: Made, folder: Path, owner: str, how: Options, *, unused: tuple[str, ...] = ()
) -> Made:
    """The model that `auto` (a class of transformers) makes of the weights in `folder`.

    Weights are read from safetensors only; `how` goes to `from_pretrained`. Raises
    `VragError`, naming `owner`, when some are missing, but for those whose names begin
    with one of `unused`: transformers would fill them with random numbers.
    """
    model, report = auto.from_pretrained(
        folder, use_safetensors=True, output_loading_info=True, **how
    )
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(unused))
    if missing:
        raise VragError(
            f"{owner}: {len(missing)} weights are not in the checkpoint, such as {missing[0]!r};"
            " they would be random. Fetch the checkpoint again."
        )
    return model


@contextmanager
def fitting(owner: str, device: str, advice: str) -> Iterator[None]:
    """Turn a device's running out of memory into a `VragError` that ends with `advice`."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise VragError(
            f"{owner} does not fit into the memory of {device!r} ({str(error).splitlines()[0]})."
            f" {advice}"
        ) from error


@contextmanager
def reading(owner: str, expected: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign checkpoint raises into one `VragError` with
    `owner` and what was `expected`; warnings and progress bars stay silent.
    """
    import torch
    from transformers.utils import logging as progress

    noisy = logging.getLogger("transformers")
    level = noisy.level
    noisy.setLevel(logging.ERROR)
    progress.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' own
    try:
        yield
    except (VragError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # safetensors raises its own class for a damaged file
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise VragError(f"{owner} cannot be loaded: {words} Expected {expected}.") from error
    finally:
        noisy.setLevel(level)
        progress.enable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' own


def files_fingerprint(folders: Sequence[Path], options: Options) -> str:
    """Hash of what checkpoints consist of (names and contents of `FILE_KINDS` in each
    folder and one level down) and of `options`.

    It does not depend on where the folders lie; READMEs and dot files do not count.
    `options` hold what JSON can write.
    """
    contents = []
    for folder in folders:
        hashes = {path.relative_to(folder).as_posix(): file_hash(path) for path in files_of(folder)}
        contents.append(hashes)
    whole = json.dumps([contents, dict(options)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def files_of(folder: Path) -> list[Path]:
    """What a checkpoint consists of: `FILE_KINDS` in its folder and one level down,
    without READMEs and hidden files.
    """
    found: set[Path] = set()
    for kind in FILE_KINDS:
        found.update(folder.glob(kind))
        found.update(folder.glob(f"*/{kind}"))
    return sorted(path for path in found if path.is_file() and not _is_beside(path, folder))


def _is_beside(path: Path, folder: Path) -> bool:
    """Whether a file only lies beside a checkpoint: a README, or hidden."""
    parts = path.relative_to(folder).parts
    return any(part.startswith((".", "README")) for part in parts)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal, by which the hub's cache names large
    files. A file is read once a process, as long as its size, inode and times stay.
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
