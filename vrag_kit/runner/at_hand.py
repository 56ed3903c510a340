"""Whether a model's or retriever's files are on this machine, told without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TypeGuard

from vrag_kit.benchmarks.images import (
    SUFFIXES,
    ImageFile,
    find_damaged,
    find_strangers,
    list_images,
)
from vrag_kit.checkpoints import find_checkpoint, near_name
from vrag_kit.cores import cores
from vrag_kit.errors import VragError
from vrag_kit.options import Entry, read_entry
from vrag_kit.retrieval import OPTIONS
from vrag_kit.retrieval.finding import check_files
from vrag_kit.retrieval.given_run import run_file
from vrag_kit.retrieval.own_encoder import own_encoder
from vrag_kit.workspace import path as project_path

_OPENED = 3000
"""Pictures that a check opens: some ten seconds."""


def retriever_problem(entry: Entry) -> str:
    """What is wrong with a retriever, as far as that can be told without loading it;
    "" when nothing. That it is not here yet is not wrong (`not_here`).
    """
    try:
        if (run := run_file(entry)) is not None:
            run.rows()
            return ""
        if own_encoder(entry) is not None:
            return ""
        spec, _ = read_entry(entry, OPTIONS, "retriever")
        if spec.startswith((".", "/", "~")) or spec.count("/") > 1:
            find_checkpoint(spec)
        if (folder := project_path(spec)).is_dir():
            check_files(spec, folder)
    except VragError as error:
        return str(error)
    return ""


def pictures_problem(pictures: object) -> str:
    """Which files in species folders of one's own are no pictures, or damaged ones; ""
    where all are whole, and where `pictures`, the parameter, names no folder. Of more than
    `_OPENED` pictures every second is opened, or every third, and so on.
    """
    root = project_path(str(pictures["images"])) if _names_images(pictures) else None
    folders = sorted(root.iterdir()) if root is not None and root.is_dir() else []
    files = list(chain.from_iterable(list_images(each) for each in folders if each.is_dir()))
    try:
        odd = find_strangers(files)
    except VragError as error:
        return str(error)
    if odd:
        return (
            f"{odd[0]}: no picture, though it is called like one; so are {len(odd):,} of the"
            f" {len(files):,} files ({', '.join(SUFFIXES)}) in {root}. Put the pictures in their"
            " place, or remove the files."
        )
    opened = files[:: -(-len(files) // _OPENED)] if files else []
    if damaged := find_damaged(map(ImageFile, opened), workers=cores()):
        return (
            f"{damaged[0]} So are {len(damaged):,} of {len(opened):,} that were opened in {root}."
        )
    return ""


def _names_images(pictures: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(pictures, Mapping) and "images" in pictures


def of_open_clip(entry: Entry) -> bool:
    """Whether open_clip knows an entry by its name, whose weights are in its own cache."""
    return (
        isinstance(entry, str)
        and entry.count("/") == 1
        and not project_path(entry).is_dir()
        and entry.partition("/")[0] in open_clip_models()
    )


@cache
def open_clip_models() -> frozenset[str]:
    """The names that open_clip knows models by, from its files: importing it takes
    seconds.
    """
    package = find_spec("open_clip")
    folders = package.submodule_search_locations if package else None
    configs: list[Path] = []
    for folder in folders or ():
        configs += Path(folder, "model_configs").glob("*.json")
    return frozenset(config.stem for config in configs)


def not_here(entry: Entry, what: str) -> str:
    """Why an entry's checkpoint is not on this machine, as far as that can be told
    without loading it; "" when nothing speaks against it.
    """
    from huggingface_hub import try_to_load_from_cache

    if not isinstance(entry, str | Mapping):
        return f'{what}: found {entry!r}, expected a name, or a mapping with "model" and options'
    spec = entry if isinstance(entry, str) else str(entry.get("model"))
    if (
        "@" in spec
        or project_path(spec).exists()
        or spec.startswith((".", "/", "~"))
        or spec.count("/") != 1  # also of a class of one's own
        or of_open_clip(spec)
    ):
        # an endpoint, a folder, a run, or something that loading will explain; open_clip keeps its
        # weights in a cache of its own
        return ""
    given = None if isinstance(entry, str) else entry.get("revision")
    revision = None if given is None else str(given)
    for name in ("config.json", "adapter_config.json", "modules.json"):
        if isinstance(try_to_load_from_cache(spec, name, revision=revision), str):
            return ""
    option = f" --revision {revision}" if revision else ""
    near = near_name(spec)
    download = f"the first run fetches it, or `hf download {spec}{option}` does now"
    if near:
        return (
            f"{what} {spec!r}: there is no such folder. Did you mean {near!r}? If it is a model of"
            f" the hub, {download}"
        )
    return f"{what} {spec!r} is not on this machine yet; {download}"
