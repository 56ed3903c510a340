"""Checks whether a model's or retriever's files are on this machine, without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TypeGuard

from vrag_kit.benchmarks.images import (
    SUFFIXES,
    ImageFile,
    find_damaged,
    find_non_images,
    list_images,
)
from vrag_kit.checkpoints import find_checkpoint, similar_checkpoint
from vrag_kit.config import Entry, read_entry
from vrag_kit.errors import VragError
from vrag_kit.processes import available_cores
from vrag_kit.retrieval.encoders.checkpoint import check_encoder_files
from vrag_kit.retrieval.encoders.custom import load_custom_encoder
from vrag_kit.retrieval.encoders.loading import OPTIONS, open_clip_models
from vrag_kit.retrieval.runs import find_run_file
from vrag_kit.workspace import path as project_path

_OPENED = 3000
"""Maximum number of images that a check opens: some ten seconds."""


def retriever_problem(entry: Entry) -> str:
    """Return the problem of a retriever that shows without loading it; "" if there is none. A
    checkpoint that is not downloaded yet is no problem here (`missing_checkpoint`).
    """
    try:
        if (run := find_run_file(entry)) is not None:
            run.rows()
            return ""
        if load_custom_encoder(entry) is not None:
            return ""
        spec, _ = read_entry(entry, OPTIONS, "retriever")
        if spec.startswith((".", "/", "~")) or spec.count("/") > 1:
            find_checkpoint(spec)
        if (folder := project_path(spec)).is_dir():
            check_encoder_files(spec, folder)
    except VragError as error:
        return str(error)
    return ""


def images_problem(pictures: object) -> str:
    """Return which files in custom species folders are not images, or are damaged. The result is ""
    if all are intact, or if `pictures`, the parameter, names no folder. Of more than `_OPENED`
    images only every second, third, … is opened.
    """
    root = project_path(str(pictures["images"])) if _names_images(pictures) else None
    folders = sorted(root.iterdir()) if root is not None and root.is_dir() else []
    files = list(chain.from_iterable(list_images(each) for each in folders if each.is_dir()))
    try:
        odd = find_non_images(files)
    except VragError as error:
        return str(error)
    if odd:
        return (
            f"{odd[0]}: no picture, though it is called like one; so are {len(odd):,} of the"
            f" {len(files):,} files ({', '.join(SUFFIXES)}) in {root}. Put the pictures in their"
            " place, or remove the files."
        )
    opened = files[:: -(-len(files) // _OPENED)] if files else []
    if damaged := find_damaged(map(ImageFile, opened), workers=available_cores()):
        return (
            f"{damaged[0]} So are {len(damaged):,} of {len(opened):,} that were opened in {root}."
        )
    return ""


def _names_images(pictures: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(pictures, Mapping) and "images" in pictures


def is_open_clip_model(entry: Entry) -> bool:
    """Return whether an entry is a model name of open_clip, which has a cache of its own."""
    return (
        isinstance(entry, str)
        and entry.count("/") == 1
        and not project_path(entry).is_dir()
        and entry.partition("/")[0] in open_clip_models()
    )


def missing_checkpoint(entry: Entry, what: str) -> str:
    """Return why an entry's checkpoint is not on this machine, without loading it. The result is ""
    if nothing indicates that it is missing.
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
        or is_open_clip_model(spec)
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
    return (
        f"{what} {spec!r} is not on this machine yet; the first run fetches it, or"
        f" `hf download {spec}{option}` does now.{similar_checkpoint(spec)}"
    )
