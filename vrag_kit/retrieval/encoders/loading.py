"""Loads a retriever of any model family, chosen by its files and the entry's options.

| option | meaning |
|---|---|
| query | what is encoded of a question: "text", "image" or "both" |
| document | what is encoded of a document: "image", "text", "both", or "auto", the
image, or the text of a document without one |
| dtype | number type of the weights: "auto" (the checkpoint's own), "float32",
"float16", "bfloat16" |
| revision | branch, tag or commit on the hub |
| trust_remote_code | true lets code that comes with the checkpoint run |
| query_prompt | prompt of a question: "{text}" for the question, the model's image
token for its image |
| document_prompt | prompt of a document: "{text}" for a text, the model's image token
for an image |
| positions | of an image's tokens in an instructed model: "model" or "sequential" |
| image_size | the size that an instructed model's preprocessing resizes images to, in
the format of its image processor |
| documents | the encoder of the document side, where there are two: a name, or a
mapping with "model" and "revision" |
| pooling | how token states become a text's vector: "cls", "mean", "last"; for a
sentence-transformers folder, replaces its own modules |
| normalize | whether text vectors are brought to unit length |

In a dual encoder, "both" is the sum of the two unit vectors at unit length; an
instructed model reads image and text in one prompt. Visual-RAG's CLIP encodes the text
of a question; that of MRAG-Bench, and of CRAG-MM's image search, the image alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vrag_kit.checkpoints import LibraryObject, catch_out_of_memory, check_device
from vrag_kit.errors import VragError
from vrag_kit.options import Entry
from vrag_kit.retrieval.encoders.base import DOCUMENT_PARTS, QUERY_PARTS, Encoder, InputModalities
from vrag_kit.retrieval.encoders.custom import CustomEncoder, load_custom_encoder
from vrag_kit.retrieval.encoders.finding import (
    OF_OPEN_CLIP,
    EncoderSpec,
    check_encoder_files,
    resolve_encoder,
)
from vrag_kit.retrieval.encoders.own_kinds import builtin_architecture
from vrag_kit.retrieval.encoders.source import CheckpointSource

_OF_ALL = ("document", "dtype", "query", "revision", "trust_remote_code")


@dataclass(frozen=True, slots=True)
class _Family:
    """Loader and options of a model family."""

    load: Callable[..., Encoder]  # each takes options of its own
    options: tuple[str, ...]
    query: tuple[str, ...]
    """Query parts that it can encode, the default first."""
    document: tuple[str, ...]
    """Document parts that it can encode, the default first."""


def load_encoder(entry: Entry | CustomEncoder, *, device: str = "cpu") -> Encoder:
    """Loads the encoder that an entry names. An entry is "<folder>", "<open_clip model>/<tag>",
    "<name on the hub>", "<package.module>:<Class>" (`CustomEncoder`), or a mapping with "model" and
    options (`OPTIONS`; a class has its own).

    open_clip loads a folder with open_clip_config.json, a name on the hub with that and no
    config.json, and the name of an open_clip model. transformers loads everything else as the
    family that its files show: dual encoder, instructed multimodal model (also as LoRA adapter),
    sentence-transformers folder, plain text encoder, or a built-in architecture, as its config.json
    says (`own_kinds`). Models in retrievers.json have their authors' options by default. Raises
    `VragError` for anything that cannot be loaded, and for an option that the family does not take.
    """
    check_device(device)
    own = load_custom_encoder(entry, device=device)
    return load_encoder_spec(resolve_encoder(entry), device=device) if own is None else own


def load_encoder_spec(found: EncoderSpec, *, device: str = "cpu") -> Encoder:
    """Loads the encoder of a resolved entry; raises as `load_encoder` does."""
    check_device(device)
    for folder in (found.folder, found.partner):
        if folder is not None:
            check_encoder_files(found.spec, folder)
    advice = "Free it, or use a smaller number type or model."
    with catch_out_of_memory(f"retriever {found.spec!r}", device, advice):
        return _open_clip(found, device) if found.by_open_clip else _transformers(found, device)


def _open_clip(found: EncoderSpec, device: str) -> Encoder:
    from vrag_kit.retrieval.encoders.open_clip import load_open_clip

    if strange := sorted(set(found.options) - set(OF_OPEN_CLIP)):
        raise VragError(
            f"retriever {found.spec!r}: open_clip models take no option {strange[0]!r}; expected"
            f" {', '.join(OF_OPEN_CLIP)}. Remove it."
        )
    modalities = InputModalities(**found.options)
    return load_open_clip(found.spec, folder=found.folder, device=device, modalities=modalities)


def _transformers(found: EncoderSpec, device: str) -> Encoder:
    if found.folder is None:
        raise ValueError(f"{found.spec} has no folder")
    options = dict(found.options)
    document = options.pop("document", "auto")
    source = CheckpointSource(
        spec=found.spec,
        folder=found.folder,
        partner=found.partner,
        device=device,
        dtype=options.pop("dtype", "auto"),
        trust_remote_code=options.pop("trust_remote_code", False),
    )
    kind = _kind(source)
    if kind == "sentence" and "pooling" in options:
        kind = "text"  # its weights as asked, not as its modules say
    family = _family(kind)
    if strange := sorted(set(options) - {*family.options, "query"}):
        known = sorted((*family.options, *_OF_ALL))
        raise VragError(
            f"{source.owner}: the option {strange[0]!r} means nothing to this kind of model;"
            f" expected {', '.join(known)}."
        )
    query = options.pop("query", family.query[0])
    usual = family.document[0]
    document = usual if document == "auto" else document
    for name, part, parts in (
        ("query", query, family.query),
        ("document", document, family.document),
    ):
        if part not in parts:
            raise VragError(
                f"{source.owner}: {name} is {part!r}, which this kind of model cannot encode;"
                f" expected {' or '.join(map(repr, parts))}."
            )
    modalities = InputModalities(
        query=query, document=document, usual=usual, usual_query=family.query[0]
    )
    options.pop("documents", None)  # found already: it is the partner
    return family.load(replace(source, modalities=modalities), **options)


def _family(kind: str) -> _Family:
    """Returns the loader and options of a model family; its module is imported only when needed."""
    prompts = ("query_prompt", "document_prompt")
    if kind == "dual":
        from vrag_kit.retrieval.encoders.dual import load_dual_encoder

        return _Family(load_dual_encoder, ("query_prompt",), QUERY_PARTS, DOCUMENT_PARTS)
    if kind == "instructed":
        from vrag_kit.retrieval.encoders.instructed import load_vlm_encoder

        return _Family(
            load_vlm_encoder,
            (*prompts, "positions", "image_size"),
            QUERY_PARTS,
            ("image", "text", "both"),
        )
    if kind == "magiclens":
        from vrag_kit.retrieval.encoders.magiclens import load_magiclens

        return _Family(load_magiclens, ("query_prompt",), ("both", "image"), ("image", "both"))
    if kind == "vista":
        from vrag_kit.retrieval.encoders.vista import load_vista

        parts = ("both", "image", "text")
        return _Family(load_vista, (), parts, ("image", "both", "text"))
    if kind == "sentence":
        from vrag_kit.retrieval.encoders.texts import load_sentence_transformer

        return _Family(load_sentence_transformer, (*prompts, "normalize"), ("text",), ("text",))
    from vrag_kit.retrieval.encoders.texts import load_text_encoder

    options = (*prompts, "documents", "pooling", "normalize")
    return _Family(load_text_encoder, options, ("text",), ("text",))


def _kind(source: CheckpointSource) -> str:
    """Returns one of `own_kinds.KINDS`, "dual", "instructed", "sentence" or "text", by the
    checkpoint's files.
    """
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    if own := builtin_architecture(source.folder):
        return own
    if (source.folder / "adapter_config.json").is_file():
        return "instructed"
    config = source.config()
    if config is not None and _embeds_both(config, source):
        return "dual"
    if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return "instructed"
    if (source.folder / "modules.json").is_file():
        return "sentence"
    return "text"


def _embeds_both(config: LibraryObject, source: CheckpointSource) -> bool:
    """Whether the model to be loaded has features of texts and of images."""
    from transformers import MODEL_MAPPING
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    remote = getattr(config, "auto_map", {}).get("AutoModel") if source.trust_remote_code else None
    if remote:
        with source.reading():
            model: LibraryObject = get_class_from_dynamic_module(remote, source.folder)
    else:
        model = MODEL_MAPPING.get(type(config), object)
    return all(hasattr(model, name) for name in ("get_text_features", "get_image_features"))
