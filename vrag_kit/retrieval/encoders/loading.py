"""Opens the encoder that a retriever's entry names: its checkpoint, family, key and weights.

`FAMILIES` names the module of each family. To add one, write a module with `load(checkpoint)`, a
class or function that returns an `EncoderModel`, add a row, and recognise its files in `_family`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    catch_load_errors,
    find_checkpoint,
)
from vrag_kit.config import Entry, StrictModel, read_entry, read_settings
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.files import escapes_folder, project_path
from vrag_kit.retrieval.encoders.base import Encoder, InputModalities
from vrag_kit.retrieval.encoders.checkpoint import Checkpoint, check_encoder_files
from vrag_kit.retrieval.encoders.custom import CustomEncoder, load_custom_encoder


class EncoderOptions(StrictModel):
    """Options of open_clip's models, and of every other family.

    In a dual encoder, "both" is the sum of the two unit vectors at unit length; a vision-language
    model reads image and text in one prompt.
    """

    query: Literal["text", "image", "both"] = "text"
    """What is encoded of a question."""
    document: Literal["auto", "image", "text", "both"] = "auto"
    """What is encoded of a document; "auto" is the image, or the text of one without an image."""


class DualOptions(EncoderOptions):
    """Options of transformers' dual encoders."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    """Number type of the weights; "auto" is the checkpoint's own."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""
    query_prompt: str | None = "{text}"
    """Prompt of a question: "{text}" for the question, the model's image token for its image."""


class VLMOptions(DualOptions):
    """Options of vision-language models."""

    document: Literal["image", "text", "both"] = "image"
    query_prompt: str | None = None
    document_prompt: str | None = None
    """Prompt of a document: "{text}" for a text, the model's image token for an image."""
    positions: Literal["model", "sequential"] = "model"
    """How the tokens of an image are numbered."""
    image_size: dict[str, int] | None = None
    """Size to which images are resized, as the image processor has it."""


class MultimodalOptions(DualOptions):
    """Options of sentence-transformers folders that encode images too."""

    document_prompt: str = "{text}"
    normalize: bool = False
    """Whether text vectors are brought to unit length."""


class SentenceOptions(MultimodalOptions):
    """Options of other sentence-transformers folders."""

    query: Literal["text"] = "text"
    document: Literal["text"] = "text"


class TextOptions(SentenceOptions):
    """Options of plain text encoders."""

    documents: str | dict[str, Any] | None = None
    """The encoder of documents, where there are two: a name, or {"model": …, "revision": …}."""
    pooling: Literal["cls", "mean", "last"] | None = None
    """How token states become a text's vector; replaces a sentence-transformers folder's own."""
    normalize: bool = True


class MagicLensOptions(EncoderOptions):
    """Options of MagicLens."""

    query: Literal["both", "image"] = "both"
    document: Literal["image", "both"] = "image"
    query_prompt: str = "{text}"


class VistaOptions(EncoderOptions):
    """Options of VISTA."""

    query: Literal["both", "image", "text"] = "both"
    document: Literal["image", "both", "text"] = "image"


class Family(NamedTuple):
    """A family of models."""

    module: str
    """The module that loads it."""
    options: type[EncoderOptions]
    base: tuple[str, str] = ("", "")
    """File, and key in it, that name the base of a checkpoint which is a head or an adapter."""


FAMILIES = {
    "open_clip": Family("open_clip", EncoderOptions),
    "dual": Family("dual", DualOptions),
    "vlm": Family("vlm", VLMOptions, ("adapter_config.json", "base_model_name_or_path")),
    "text": Family("sentence_transformers", TextOptions),
    "sentence": Family("sentence_transformers", SentenceOptions),
    "multimodal sentence": Family("sentence_transformers", MultimodalOptions),
    "magiclens": Family("magiclens", MagicLensOptions, ("config.json", "base")),
    "vista": Family("vista", VistaOptions),
}


def open_encoder(entry: Entry | CustomEncoder, *, device: str = "cpu") -> Encoder:
    """Returns the encoder that an entry names; its weights are loaded on first use. An entry is
    "<folder>", "<open_clip model>/<tag>", "<name on the hub>", "<package.module>:<Class>"
    (`CustomEncoder`), or a mapping with "model", `revision` (a branch, tag or commit on the hub)
    and options (`FAMILIES`; a class has its own). A checkpoint on the hub is downloaded once.

    open_clip loads a folder with open_clip_config.json, a name on the hub with that and no
    config.json of transformers, and the names of its own models. Any other checkpoint belongs to
    the family that its files show. Models in retrievers.json have their authors' options by
    default. Raises `VragError` for a malformed entry, a missing checkpoint, an option that the
    family does not take, and for an invalid value. A dry run checks
    the files too, and records the error.
    """
    dry_run = current_dry_run()
    try:
        if (custom := load_custom_encoder(entry, device=device)) is not None:
            return custom
        checkpoint = _resolve(entry)
        if dry_run is not None and checkpoint.folders:
            check_encoder_files(checkpoint.spec, checkpoint.folders[0])
        return replace(checkpoint, device=device)
    except VragError as error:
        if dry_run is None:
            raise
        dry_run.missing[str(error)] = None
        return _unavailable(entry)


def _unavailable(entry: object) -> Checkpoint:
    """Returns an encoder in place of one that a dry run cannot load."""
    spec = str(entry.get("model") if isinstance(entry, Mapping) else entry)
    kind = "unavailable"
    return Checkpoint(
        spec=spec, folders=(), family=kind, module="", options={}, modalities=InputModalities()
    )


def load_encoder(entry: Entry | CustomEncoder, *, device: str = "cpu") -> Encoder:
    """As `open_encoder`, but loads the weights at once.

    Raises `VragError` also for weights that are damaged, missing, not finite or not safetensors,
    and for a device that this machine lacks.
    """
    encoder = open_encoder(entry, device=device)
    if isinstance(encoder, Checkpoint):
        _ = encoder.model
    return encoder


def _resolve(entry: object) -> Checkpoint:
    """Returns the checkpoint of an entry; raises `VragError` as `open_encoder`."""
    spec, given = read_entry(entry, "retriever")
    owner = f"retriever {spec!r}"
    given = {**_authors_options(spec, given.get("query") or "text"), **given}
    given = {name: value for name, value in given.items() if value is not None}
    folders: list[Path] = []
    kind = "open_clip"
    if not _is_open_clip_name(spec):
        folders.append(find_checkpoint(spec, revision=given.pop("revision", None)))
        kind = _family(owner, folders[0], given, on_hub=not project_path(spec).is_dir())
    family = FAMILIES[kind]
    by_library = kind.endswith("sentence")
    stated = _sentence_defaults(folders[0]) if by_library else {}
    settings = read_settings(family.options, {**stated, **given}, owner)
    options = settings.model_dump()
    if folders:
        folders += _second(folders[0], family.base, options.pop("documents", None))
    fields = family.options.model_fields
    modalities = InputModalities(
        query=options.pop("query"),
        document=options.pop("document"),
        default_query=fields["query"].default,
        default_document=fields["document"].default,
    )
    checkpoint = Checkpoint(
        spec=spec,
        folders=tuple(folders),
        family=kind,
        module=family.module,
        options=options,
        modalities=modalities,
    )
    if not by_library:  # which puts its prompts before images too
        checkpoint.check_prompts(["{text}"], "text", unless="image")
    return checkpoint


def _authors_options(spec: str, query: str) -> Options:
    """Returns the authors' options of a known model for the encoded part of a question."""
    text = files("vrag_kit.retrieval").joinpath("retrievers.json").read_text(encoding="utf-8")
    stated = json.loads(text).get(spec, {})
    return {**stated.get("options", {}), **stated.get("by_query", {}).get(query, {})}


def _is_open_clip_name(spec: str) -> bool:
    """Whether `spec` is "<model>/<tag>" of a model whose configuration comes with open_clip."""
    parts = spec.split("/")
    # found without importing open_clip, which takes seconds
    package = str(getattr(find_spec("open_clip"), "origin", ""))
    known = Path(package).with_name("model_configs") / f"{parts[0]}.json"
    return len(parts) == 2 and known.is_file() and not project_path(spec).is_dir()


def _family(owner: str, folder: Path, given: Options, *, on_hub: bool) -> str:
    """Returns which of `FAMILIES` a checkpoint belongs to, by its files."""
    config = _read_json(folder / "config.json")
    kind = config.get("model_type")
    if (folder / "open_clip_config.json").is_file() and not (on_hub and kind):
        return "open_clip"
    if kind in ("magiclens", "vista"):
        return str(kind)
    if (folder / "modules.json").is_file() and not {"pooling", "positions"} & given.keys():
        images = [*folder.glob("*processor_config.json"), *folder.glob("*/*processor_config.json")]
        return "multimodal sentence" if images else "sentence"
    if (folder / "adapter_config.json").is_file():
        return "vlm"
    if not (folder / "config.json").is_file():
        return "text"

    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, MODEL_MAPPING, AutoConfig
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    with catch_load_errors(owner, "a config.json of transformers"):
        trusted = bool(given.get("trust_remote_code"))
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
        remote = getattr(config, "auto_map", {}).get("AutoModel") if trusted else None
        model: LibraryObject = MODEL_MAPPING.get(type(config), object)
        if remote:
            model = get_class_from_dynamic_module(remote, folder)
    if hasattr(model, "get_text_features") and hasattr(model, "get_image_features"):
        return "dual"
    return "vlm" if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING else "text"


def _second(folder: Path, base_in: tuple[str, str], documents: object) -> list[Path]:
    """Returns the folder of a second checkpoint that belongs to the first, if there is one: the
    encoder of `documents`, or the base that a file and key name.
    """
    if documents is not None:
        spec, options = read_entry(documents, "documents", ("revision",))
        return [find_checkpoint(spec, revision=options.get("revision"))]
    name, key = base_in
    if not (folder / name).is_file():
        return []
    stated = _read_json(folder / name)
    base = stated[key]
    if not escapes_folder(base) and (folder / base).is_dir():
        return [folder / base]
    return [find_checkpoint(base, revision=stated.get("revision"))]


def _sentence_defaults(folder: Path) -> Options:
    """Returns the prompts of a sentence-transformers folder, and whether it normalizes vectors."""
    prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts", {})
    modules = (folder / "modules.json").read_text(encoding="utf-8")
    sides = ("query", "document")
    defaults = {f"{side}_prompt": f"{prompts.get(side) or ''}{{text}}" for side in sides}
    return {**defaults, "normalize": "Normalize" in modules}


def _read_json(path: Path) -> Options:
    """Returns the object in a JSON file; empty if there is none. What is wrong with the file, its
    library says when it is loaded.
    """
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stated if isinstance(stated, dict) else {}
