"""What is wrong with a checkpoint's files, told by small files, headers, and the smallest
of its weights; nothing heavy is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vrag_kit.checkpoints import files_of
from vrag_kit.errors import VragError
from vrag_kit.files import inside
from vrag_kit.plain import Json

_OPEN_CLIP = "open_clip_config.json"
_READ = (
    *("config.json", _OPEN_CLIP, "adapter_config.json", "modules.json", "generation_config.json"),
    *("preprocessor_config.json", "processor_config.json", "chat_template.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json"),
)
"""JSON files that are read of a checkpoint, beside the lists of shards."""
_VOCABULARIES = (
    *("tokenizer.json", "vocab.json", "vocab.txt", "tekken.json", "*.model", "*.tiktoken"),
    "tokenization_*.py",  # code of its own knows where its words are
)
_BYTES = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
"""Tokenizers that need no vocabulary."""
_PICTURES = ("preprocessor_config.json", "processor_config.json")
_SIZE = 8
"""Bytes at the start of a safetensors file that say how long its header is."""
_LONGEST = 100_000_000
"""Bytes that safetensors lets a header have."""
_TRIED = 8
"""Of each file of weights so many are read, the smallest, to see whether they are numbers."""
_NUMBERS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""Number type in a header → how its bytes are read."""
_AGAIN = "Copy or fetch the checkpoint again"


def check_words(folder: Path, owner: str, *, tokenizer: bool = True) -> None:
    """Raise `VragError` for a checkpoint in `folder` with a JSON file that is none, a
    configuration that lacks what no model can be built without, or no vocabulary of a
    `tokenizer`; `owner` ("retriever 'x'") begins the message.
    """
    stated = {}
    for path in files_of(folder):
        if path.name in _READ or path.name.endswith(".index.json"):
            stated[path.relative_to(folder).as_posix()] = _json(path, owner)
    if _OPEN_CLIP in stated:
        text = _open_clip(folder / _OPEN_CLIP, stated[_OPEN_CLIP], owner)
        tokenizer = tokenizer and "hf_tokenizer_name" in text
    config = stated.get("config.json", {})
    if not isinstance(config, dict):
        raise damaged(owner, folder / "config.json", f"holds {str(config)[:40]}", "an object")
    if tokenizer and "vision_config" in config and not _has(folder, _PICTURES):
        raise _lacking(owner, folder, "preprocessing of pictures", _PICTURES)
    told = stated.get("tokenizer_config.json")
    needs_none = isinstance(told, dict) and told.get("tokenizer_class") in _BYTES
    if tokenizer and not needs_none and not _has(folder, _VOCABULARIES):
        raise _lacking(owner, folder, "tokenizer", _VOCABULARIES)


def check_headers(folder: Path, owner: str) -> None:
    """Raise `VragError` for a file of weights (*.safetensors) that is not as long as its
    own header says, or whose smallest weights are NaN or infinite, and for a list of shards
    of which some are not there.
    """
    for path in files_of(folder):
        if path.suffix == ".safetensors":
            _check_numbers(path, _header(path, owner), owner)
        elif path.name.endswith(".safetensors.index.json"):
            _check_shards(path, owner)


def tensor_shapes(folder: Path, owner: str) -> dict[str, tuple[int, ...]]:
    """Name → shape of the weights in a folder's files, as their headers say; raises
    `VragError` as `check_headers` does for one without a whole header.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        shapes |= {name: tensor.shape for name, tensor in _header(path, owner).items()}
    return shapes


def check_formats(folder: Path, owner: str) -> None:
    """Raise `VragError` when some weights are there as pickles only, or not at all."""
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


def _json(path: Path, owner: str) -> object:
    try:
        found: object = json.loads(path.read_bytes())
    except ValueError as error:  # of UTF-8 too
        size = f"{path.stat().st_size:,} bytes that are not"
        raise damaged(owner, path, f"holds {size} JSON ({error})", "JSON") from error
    return found


def _open_clip(path: Path, stated: object, owner: str) -> Json:
    """What open_clip_config.json says of the text tower."""
    model = stated.get("model_cfg") if isinstance(stated, dict) else None
    if not isinstance(model, dict):
        raise damaged(owner, path, "has no model_cfg", "an object with model_cfg")
    for name, kind in (("embed_dim", int), ("vision_cfg", dict), ("text_cfg", dict)):
        if not isinstance(model.get(name), kind):
            found = f"says {name}: {model[name]!r}" if name in model else f"has no {name}"
            keys = ", ".join(sorted(model)) or "nothing"
            raise damaged(
                owner,
                path,
                f"{found} in model_cfg, which holds {keys}",
                "embed_dim (a number), vision_cfg and text_cfg (objects)",
            )
    text: Json = model["text_cfg"]
    return text


def _has(folder: Path, names: Sequence[str]) -> bool:
    """Whether a file of these names is in a folder, or one level down."""
    places = [*names, *(f"*/{name}" for name in names)]
    return any(any(folder.glob(place)) for place in places)


def _lacking(owner: str, folder: Path, what: str, names: Sequence[str]) -> VragError:
    return VragError(
        f"{owner} cannot be loaded: no {what} in {folder}; expected one of {', '.join(names)}."
        f" {_AGAIN}, with all its files."
    )


class _Tensor(NamedTuple):
    """A weight, as a header tells of it."""

    kind: str  # its number type
    shape: tuple[int, ...]
    start: int  # where its bytes begin in the file …
    end: int  # … and end


def _header(path: Path, owner: str) -> dict[str, _Tensor]:
    """The weights in a file, by name; its size is held against where they end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_SIZE), "little")
        whole = _SIZE + length
        try:
            header = json.loads(file.read(length)) if length < _LONGEST else {}
            header.pop("__metadata__", None)
            tensors = {name: _told(each, whole) for name, each in header.items()}
            whole = max(each.end for each in tensors.values())
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            words = f"holds {size:,} bytes without a whole header"
            raise damaged(owner, path, words, "a file as safetensors writes them") from error
    if size != whole:
        raise damaged(owner, path, f"holds {size:,} bytes", f"{whole:,}, as its header says")
    return tensors


def _told(stated: Json, start: int) -> _Tensor:
    begins, ends = stated["data_offsets"]
    shape = tuple(map(int, stated["shape"]))
    return _Tensor(str(stated["dtype"]), shape, start + int(begins), start + int(ends))


def _check_numbers(path: Path, tensors: Mapping[str, _Tensor], owner: str) -> None:
    """Read the smallest weights: where a training went astray, they are NaN too."""
    known = [name for name, each in tensors.items() if each.kind in _NUMBERS]
    known.sort(key=lambda name: tensors[name].end - tensors[name].start)
    with path.open("rb") as file:
        for name in known[:_TRIED]:
            tensor = tensors[name]
            file.seek(tensor.start)
            values = np.frombuffer(file.read(tensor.end - tensor.start), _NUMBERS[tensor.kind])
            if tensor.kind == "BF16":  # the upper half of a float32
                values = (values.astype("<u4") << 16).view("<f4")
            if wrong := int((~np.isfinite(values)).sum()):
                words = f"holds {wrong:,} values that are NaN or infinite in weight {name!r}"
                raise damaged(owner, path, words, "numbers")


def _check_shards(path: Path, owner: str) -> None:
    stated = _json(path, owner)
    shards = stated.get("weight_map") if isinstance(stated, dict) else None
    if not isinstance(shards, dict):
        raise damaged(owner, path, "has no weight_map", "the file of each weight")
    names = sorted(set(map(str, shards.values())))
    where = f"{owner} cannot be loaded: {path}"
    if absent := [name for name in names if not inside(path.parent, name, where).is_file()]:
        found = f"names {len(names)} files, of which {len(absent)} are not there ({absent[0]} …)"
        raise damaged(owner, path, found, "all of them beside it")


def damaged(owner: str, path: Path, found: str, expected: str) -> VragError:
    """The error that says what is wrong in a checkpoint's file, and to copy it again."""
    return VragError(f"{owner} cannot be loaded: {path} {found}; expected {expected}. {_AGAIN}.")
