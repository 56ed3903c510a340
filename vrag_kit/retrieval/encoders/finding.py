"""Resolves a retriever entry to its checkpoint and options, without loading weights.

The libraries that read weights are not imported here.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from vrag_kit.checkpoints import (
    DTYPES,
    Options,
    check_safetensors_headers,
    checkpoint_fingerprint,
    find_checkpoint,
    require_safetensors,
)
from vrag_kit.errors import VragError
from vrag_kit.options import read_entry
from vrag_kit.retrieval.encoders.base import DOCUMENT_PARTS, QUERY_PARTS
from vrag_kit.retrieval.encoders.own_kinds import base_encoder, builtin_architecture
from vrag_kit.retrieval.encoders.source import short_name
from vrag_kit.workspace import path as project_path

OPTIONS = (
    "document",
    "document_prompt",
    "documents",
    "dtype",
    "image_size",
    "normalize",
    "pooling",
    "positions",
    "query",
    "query_prompt",
    "revision",
    "trust_remote_code",
)
"""All options of an entry, as `loading` describes them; which of them a retriever takes
depends on its family.
"""
OF_OPEN_CLIP = ("document", "query", "revision")
"""Options that open_clip models take."""
_KNOWN_BY = ("config.json", "adapter_config.json", "modules.json", "open_clip_config.json")
"""Files of which each checkpoint has at least one."""
_READERS = ("open_clip_torch", "sentence-transformers", "transformers")
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "trust_remote_code": (bool, "true or false"),
    "normalize": (bool, "true or false"),
    "image_size": (Mapping, "a mapping"),
    "documents": ((str, Mapping), "a name or a mapping"),
}
"""Option → (kind of its value, in words); any other is a text."""
_CHOICES = {"dtype": DTYPES, "query": QUERY_PARTS, "document": DOCUMENT_PARTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """A resolved retriever entry, before anything is loaded."""

    spec: str
    """The name in the parameters."""
    options: Options
    """Options of the entry, and its authors' options for a known model; without revision."""
    folder: Path | None
    """The checkpoint folder; None for a model that open_clip knows by name and tag."""
    partner: Path | None = None
    """The files of a second checkpoint that belongs to it: the base of an adapter or
    head, or the encoder of the document side.
    """

    @property
    def by_open_clip(self) -> bool:
        """Whether open_clip loads the checkpoint."""
        return self.folder is None or _is_open_clips(self.folder, self.spec)

    def cache_key(self) -> str:
        """Returns a hash of everything that determines the encoder: files, options, name, and the
        versions of the libraries that read it.

        A model known by name and tag is assumed never to change.
        """
        told = {
            "name": short_name(self.spec),
            "options": self.options,
            "readers": {reader: version(reader) for reader in _READERS},
        }
        folders = [folder for folder in (self.folder, self.partner) if folder is not None]
        return checkpoint_fingerprint(folders, told)


def resolve_encoder(entry: object) -> EncoderSpec:
    """Find the checkpoint that an entry names, downloading it from the hub if necessary.

    Raises `VragError` for a malformed entry, an unknown option or one with an invalid value, and a
    missing checkpoint.
    """
    spec, given = read_entry(entry, OPTIONS, "retriever")
    options = {**_known(spec, given.get("query", "text")), **given}
    _check_values(spec, options)
    revision = options.pop("revision", None)
    if _is_tagged(spec):
        if revision is not None:
            raise VragError(
                f"retriever {spec!r}: a model of open_clip has a tag, and no revision"
                f" {revision!r}. Remove the option `revision`."
            )
        return EncoderSpec(spec=spec, options=options, folder=None)
    folder = find_checkpoint(spec, revision=revision)
    return EncoderSpec(
        spec=spec, options=options, folder=folder, partner=_partner(spec, folder, options)
    )


def check_encoder_files(spec: str, folder: Path) -> None:
    """Raise `VragError` for a checkpoint without configuration, or whose weights are truncated or
    not safetensors.
    """
    owner = f"retriever {spec!r}"
    if not any((folder / name).is_file() for name in _KNOWN_BY):
        inside = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        *most, last = _KNOWN_BY
        raise VragError(
            f"{owner}: neither {', '.join(most)} nor {last} in {folder}; found {inside}."
        )
    require_safetensors(folder, owner)
    check_safetensors_headers(folder, owner)


def open_clip_models() -> list[str]:
    """Returns the names of the models that open_clip can build. They are read from its
    configuration files: importing it takes seconds.
    """
    found = find_spec("open_clip")
    places = found.submodule_search_locations if found is not None else None
    names: list[str] = []
    for place in places or []:
        names += [path.stem for path in Path(place).glob("model_configs/*.json")]
    return sorted(names)


def _is_tagged(spec: str) -> bool:
    """Whether `spec` is, or nearly is, a model's name and tag in open_clip. If it is nearly one,
    open_clip reports why it cannot load it.
    """
    folder = project_path(spec)
    if folder.is_dir() or spec.startswith((".", "/", "~")) or spec.count("/") != 1:
        return False
    name = spec.partition("/")[0]
    return bool(difflib.get_close_matches(name, open_clip_models(), n=1, cutoff=0.8))


def _is_open_clips(folder: Path, spec: str) -> bool:
    """Whether a checkpoint is in open_clip's layout. A name on the hub that has both
    layouts is read by transformers, a folder here by open_clip.
    """
    if not (folder / "open_clip_config.json").is_file():
        return False
    return project_path(spec).is_dir() or not (folder / "config.json").is_file()


def _partner(spec: str, folder: Path, options: Options) -> Path | None:
    if "documents" in options:
        other, told = read_entry(options["documents"], ("revision",), "documents")
        return find_checkpoint(other, revision=told.get("revision"))
    if builtin_architecture(folder) == "magiclens":
        return find_checkpoint(base_encoder(folder))
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        return None
    try:
        stated = json.loads(adapter.read_text(encoding="utf-8"))
        base, revision = stated["base_model_name_or_path"], stated.get("revision")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VragError(
            f"retriever {spec!r} cannot be loaded: {adapter.name} says {error}; expected a JSON"
            " object with base_model_name_or_path. Copy or fetch the adapter again."
        ) from error
    return find_checkpoint(base, revision=revision)


def _known(spec: str, query: object) -> Options:
    """Returns the authors' options for a model and the encoded part of a question."""
    text = files("vrag_kit.retrieval").joinpath("retrievers.json").read_text(encoding="utf-8")
    stated = json.loads(text).get(spec, {})
    return {**stated.get("options", {}), **stated.get("by_query", {}).get(query, {})}


def _check_values(spec: str, options: Options) -> None:
    """Raise `VragError` for a value of the wrong type, and for a prompt without "{text}" for the
    question.
    """
    for name, value in options.items():
        kind, words = _KINDS.get(name, (str, "a text"))
        if not isinstance(value, kind):
            raise VragError(f"retriever {spec!r}: {name} is {value!r}; expected {words}.")
        choices = _CHOICES.get(name)
        if choices and value not in choices:
            raise VragError(
                f"retriever {spec!r}: {name} is {value!r}; expected one of {', '.join(choices)}."
            )
    asked = options.get("query_prompt", "{text}")
    if "{text}" not in asked and options.get("query") != "image":
        raise VragError(
            f"retriever {spec!r}: query_prompt is {asked!r}; expected"
            ' "{text}" in it, where the question goes.'
        )
