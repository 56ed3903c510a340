"""Load a retriever of any family: the checkpoint's files say which it is, the entry's
options what they cannot say.

| option | meaning |
|---|---|
| dtype | number type of the weights: "auto" (the checkpoint's own), "float32",
"float16", "bfloat16" |
| revision | branch, tag or commit on the hub |
| trust_remote_code | true lets code that comes with the checkpoint run |
| query_prompt | what is said around a question, "{text}" being the question |
| document_prompt | what is said around a document: "{text}" for a text, the model's
image token for a picture |
| positions | of a picture's tokens in an instructed model: "model" or "sequential" |
| image_size | the size that an instructed model's preprocessing brings pictures to, as
its image processor words it |
| documents | the encoder of the document side, where there are two: a name, or a
mapping with "model" and "revision" |
| pooling | which token's state stands for a text: "cls", "mean", "last" |
| normalize | whether text vectors are brought to unit length |
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import torch

from vrag_kit.checkpoints import DTYPES, check_device, find_checkpoint
from vrag_kit.errors import VragError
from vrag_kit.options import Entry, read_entry
from vrag_kit.retrieval.dual import load_dual
from vrag_kit.retrieval.encoders import Encoder, load_open_clip
from vrag_kit.retrieval.instructed import load_instructed
from vrag_kit.retrieval.source import Source
from vrag_kit.retrieval.texts import load_sentence, load_text
from vrag_kit.workspace import path as project_path

_FAMILIES: dict[
    str, tuple[Callable[..., Encoder], tuple[str, ...]]
] = {  # loader, options that it takes
    "dual": (load_dual, ("query_prompt",)),
    "instructed": (
        load_instructed,
        ("query_prompt", "document_prompt", "positions", "image_size"),
    ),
    "sentence": (load_sentence, ("query_prompt", "document_prompt", "normalize")),
    "text": (
        load_text,
        ("query_prompt", "document_prompt", "documents", "pooling", "normalize"),
    ),
}
_OF_ALL = ("dtype", "revision", "trust_remote_code")
OPTIONS = tuple(
    sorted({*_OF_ALL, *(option for _, options in _FAMILIES.values() for option in options)})
)
"""All options of an entry, as in the table above; which of them a retriever takes
depends on its family.
"""


def load_encoder(entry: Entry, *, device: str = "cpu") -> Encoder:
    """Load what a parameter names: "<folder>", "<open_clip model>/<tag>", "<name on the
    hub>", or a mapping with "model" and options (`OPTIONS`).

    A folder with open_clip_config.json, and the name of an open_clip model, are
    open_clip's; everything else is read by transformers as the family that its files
    show: dual encoder, instructed multimodal model (also as LoRA adapter),
    sentence-transformers folder, plain text encoder. For the models in retrievers.json,
    the options that their authors give are filled in. Raises `VragError` for anything
    that cannot be loaded, and for an option that the family does not take.
    """
    spec, given = read_entry(entry, OPTIONS, "retriever")
    if _is_open_clip(spec):
        if given:
            raise VragError(
                f"retriever {spec!r}: open_clip models take no options, found"
                f" {', '.join(sorted(given))}. Remove them."
            )
        return load_open_clip(spec, device=device)
    check_device(device)
    options = {**_known(spec), **given}
    _check_values(spec, options)
    folder = find_checkpoint(spec, revision=options.pop("revision", None))
    source = Source(
        spec=spec,
        folder=folder,
        device=device,
        dtype=options.pop("dtype", "auto"),
        trust_remote_code=options.pop("trust_remote_code", False),
    )
    load, allowed = _FAMILIES[_family(source)]
    if strange := sorted(set(options) - set(allowed)):
        raise VragError(
            f"retriever {spec!r}: the option {strange[0]!r} means nothing to this kind of model;"
            f" expected {', '.join(sorted((*allowed, *_OF_ALL)))}."
        )
    try:
        return load(source, **options)
    except torch.OutOfMemoryError as error:
        raise VragError(
            f"retriever {spec!r} does not fit into the memory of {device!r}"
            f" ({str(error).splitlines()[0]}). Free it, or use a smaller number type or model."
        ) from error


def _is_open_clip(spec: str) -> bool:
    """Whether open_clip should load it, or say why it cannot: a folder of its layout,
    or a model name that is, or nearly is, one of its own.
    """
    folder = project_path(spec)
    if folder.is_dir() or spec.startswith((".", "/", "~")) or spec.count("/") != 1:
        return (folder / "open_clip_config.json").is_file()
    import open_clip

    return bool(
        difflib.get_close_matches(spec.partition("/")[0], open_clip.list_models(), n=1, cutoff=0.8)
    )


def _known(spec: str) -> dict[str, Any]:
    text = files("vrag_kit.retrieval").joinpath("retrievers.json").read_text(encoding="utf-8")
    return dict(json.loads(text).get(spec, {"options": {}})["options"])


def _check_values(spec: str, options: Mapping[str, Any]) -> None:
    """Raise `VragError` for a value of the wrong kind, and for a prompt without a place
    for the question.
    """
    kinds: dict[str, tuple[tuple[type, ...], str]] = {
        "trust_remote_code": ((bool,), "true or false"),
        "normalize": ((bool,), "true or false"),
        "image_size": ((Mapping,), "a mapping"),
        "documents": ((str, Mapping), "a name or a mapping"),
    }
    for name, value in options.items():
        kind, words = kinds.get(name, ((str,), "a text"))
        if not isinstance(value, kind):
            raise VragError(f"retriever {spec!r}: {name} is {value!r}; expected {words}.")
    if options.get("dtype", "auto") not in DTYPES:
        raise VragError(
            f"retriever {spec!r}: dtype is {options['dtype']!r}; expected one of"
            f" {', '.join(DTYPES)}."
        )
    if "{text}" not in options.get("query_prompt", "{text}"):
        raise VragError(
            f"retriever {spec!r}: query_prompt is {options['query_prompt']!r}; expected"
            ' "{text}" in it, where the question goes.'
        )


def _family(source: Source) -> str:
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    if (source.folder / "adapter_config.json").is_file():
        return "instructed"
    config = source.config()
    if config is not None and _embeds_both(config, source):
        return "dual"
    if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return "instructed"
    if (source.folder / "modules.json").is_file():
        return "sentence"
    if config is None:
        inside = ", ".join(sorted(path.name for path in source.folder.iterdir())[:8]) or "nothing"
        raise VragError(
            f"retriever {source.spec!r}: neither config.json, adapter_config.json, modules.json nor"
            f" open_clip_config.json in {source.folder}; found {inside}."
        )
    return "text"


def _embeds_both(config: Any, source: Source) -> bool:
    """Whether the model that would be loaded has features of texts and of pictures."""
    from transformers import MODEL_MAPPING
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    remote = getattr(config, "auto_map", {}).get("AutoModel") if source.trust_remote_code else None
    if remote:
        with source.reading():
            model_class = get_class_from_dynamic_module(remote, source.folder)
    else:
        model_class = MODEL_MAPPING.get(type(config), object)
    return hasattr(model_class, "get_text_features") and hasattr(model_class, "get_image_features")
