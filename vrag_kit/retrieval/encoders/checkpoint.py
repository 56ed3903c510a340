"""The encoder of a checkpoint: its name and key, and the loading of its parts on first use."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    catch_load_errors,
    check_device,
    check_safetensors,
    check_weights,
    checkpoint_fingerprint,
    load_model,
)
from vrag_kit.config import StrictModel, read_settings
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.retrieval.encoders.base import DocumentKey, EncoderModel, InputModalities, Prepared
from vrag_kit.types import Document, Query

if TYPE_CHECKING:
    from torch import nn

PREPROCESSING = 1
"""Version of our own preprocessing. It rises when pixels or tokens change, and then everything is
embedded again.
"""
_UNLIMITED = 1_000_000  # tokens; a tokenizer without a limit says 10³⁰, more than it can count
_KNOWN_BY = ("config.json", "adapter_config.json", "modules.json", "open_clip_config.json")
"""Files of which each checkpoint has at least one."""
_Sizes = TypeVar("_Sizes", bound=StrictModel)
_Module = TypeVar("_Module", bound="nn.Module")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A resolved entry, as an `Encoder` whose weights are loaded on first use."""

    spec: str
    """The name in the parameters."""
    folders: tuple[Path, ...]
    """The checkpoint's folder, and that of a second one which belongs to it: the base of an adapter
    or head, or the encoder of documents. Empty for a model that open_clip knows by name and tag.
    """
    family: str
    """The key in `loading.FAMILIES`."""
    module: str
    """The module of this package that loads the family."""
    options: Options
    """The family's options with their defaults."""
    modalities: InputModalities
    device: str = "cpu"
    _loading: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Short name for tables and files: that of the folder, or the one on the hub."""
        folder = project_path(self.spec)
        name = folder.name if folder.is_dir() else self.spec.replace("/", "-")
        return f"{name}{self.modalities.suffix}"

    @property
    def owner(self) -> str:
        """Prefix of error messages."""
        return f"retriever {self.spec!r}"

    @property
    def prompts(self) -> dict[str, str]:
        """Prompt templates of the sides "query" and "document", where the family takes them."""
        names = {side: f"{side}_prompt" for side in ("query", "document")}
        return {side: self.options[name] for side, name in names.items() if name in self.options}

    @property
    def normalized(self) -> bool:
        """Whether vectors have unit length."""
        return bool(self.options.get("normalize", True))

    @property
    def trusted(self) -> bool:
        """Whether code that comes with the checkpoint may run."""
        return bool(self.options.get("trust_remote_code", False))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all files, options and encoded parts, and of `PREPROCESSING`. A model that
        open_clip knows by name and tag is assumed never to change.
        """
        options = {**self.options, **self.modalities.overrides()}
        name = {} if self.folders else {"open_clip": self.spec}
        versions = {"family": self.family, "preprocessing": PREPROCESSING}
        return checkpoint_fingerprint(self.folders, {**options, **name, **versions})

    @cached_property
    def document_key(self) -> DocumentKey:
        """The key of document vectors, which no option of the query side changes."""
        parts = replace(self.modalities, query=self.modalities.default_query)
        usual = {"query_prompt": "{text}"} if "query_prompt" in self.options else {}
        side = replace(self, modalities=parts, options={**self.options, **usual})
        return DocumentKey(side.name, side.fingerprint)

    @property
    def model(self) -> EncoderModel:
        """The model with its weights; raises `VragError` as `load_encoder` when it is loaded."""
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> EncoderModel:
        check_device(self.device)
        for folder in self.folders:
            check_encoder_files(self.spec, folder)
        module = import_module(f"{__package__}.{self.module}")
        model: EncoderModel = module.load(self)
        return model

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Returns query vectors, float32, shape (n, d). Queries are encoded one at a time, so the
        result does not depend on other queries.

        Raises `VragError` naming a query without an image that is to be encoded.
        """
        inputs = [self.modalities.of_query(query, self.name) for query in queries]
        prepared = (self.model.prepare(each, "query") for each in inputs)
        return np.concatenate([self.model.embed([each], "query") for each in prepared])

    def prepare(self, document: Document) -> Prepared:
        """Returns the document's encoded parts, preprocessed.

        Raises `VragError` naming a document that lacks one, or has a damaged image.
        """
        return self.model.prepare(self.modalities.of_document(document, self.name), "document")

    def encode_documents(self, prepared: Sequence[Prepared]) -> np.ndarray:
        """Returns document vectors, float32, shape (n, d)."""
        return self.model.embed(prepared, "document")

    def check_prompts(self, tokens: Sequence[str], what: str, *, unless: str) -> None:
        """Raise `VragError` for a missing prompt, for one without any of the `tokens` (the places
        of a text or image) though it is encoded, and for one with a token though it is not, as the
        encoded part is `unless`. A prompt that is a token and nothing else is right for every part.
        """
        for side, prompt in self.prompts.items():
            part = getattr(self.modalities, side)
            found = any(token in (prompt or "") for token in tokens)
            if found != (part != unless) and prompt not in tokens:
                raise VragError(
                    f"{self.owner}: {side}_prompt is {prompt!r}, but `{side}` is {part!r}; expected"
                    f" its authors' prompts, with {' or '.join(tokens)} for the {what} alone."
                )

    def reading(self) -> AbstractContextManager[None]:
        """Returns a context manager that converts loading errors into `VragError`."""
        return catch_load_errors(self.owner, "config.json, weights (*.safetensors) and tokenizer")

    def read_model(
        self, auto: LibraryObject, folder: Path, *, unused: tuple[str, ...] = ()
    ) -> LibraryObject:
        """Loads the model in a folder by `auto` (a class with `from_pretrained`), on the device, in
        evaluation mode.

        Raises `VragError` for weights that are missing (but for those beginning with `unused`), or
        not finite.
        """
        how = {"dtype": self.options["dtype"], "trust_remote_code": self.trusted}
        with self.reading():
            model = load_model(auto, folder, self.owner, how, unused=unused)
        check_weights(model, self.owner)
        return model.to(self.device).eval()

    def read_part(self, auto: LibraryObject, folder: Path, **settings: object) -> LibraryObject:
        """Loads the tokenizer or processor in a folder by `auto`."""
        with self.reading():
            return auto.from_pretrained(folder, trust_remote_code=self.trusted, **settings)

    def read_sizes(self, sizes: type[_Sizes]) -> _Sizes:
        """Returns the sizes of one of the kit's own modules, which config.json holds.

        Raises `VragError` for an unknown one, or one of another type.
        """
        path = self.folders[0] / "config.json"
        stated = json.loads(path.read_text(encoding="utf-8"))
        given = {key: stated[key] for key in stated if key not in ("model_type", "base")}
        return read_settings(sizes, given, f"{self.owner}: {path}")

    def read_into(self, module: _Module) -> _Module:
        """Returns one of the kit's own modules with the weights of model.safetensors, on the
        device, in evaluation mode.

        Raises `VragError` for weights that are missing, unexpected, of another shape or not finite.
        """
        from safetensors.torch import load_file

        with self.reading():
            weights = load_file(self.folders[0] / "model.safetensors")
            module.load_state_dict(weights)
        check_weights(module, self.owner)
        return module.to(self.device).eval()


def check_encoder_files(spec: str, folder: Path) -> None:
    """Raise `VragError` for a checkpoint without configuration, or whose weights are truncated or
    not safetensors.
    """
    owner = f"retriever {spec!r}"
    if not any((folder / name).is_file() for name in _KNOWN_BY):
        raise VragError(f"{owner}: neither {', '.join(_KNOWN_BY)} in {folder}.")
    check_safetensors(folder, owner)


def max_text_tokens(tokenizer: LibraryObject, config: LibraryObject) -> int:
    """Returns the number of tokens at which a text is truncated. Both the tokenizer and the model's
    positions limit it.
    """
    positions = getattr(config.get_text_config(), "max_position_embeddings", None) or _UNLIMITED
    return int(min(tokenizer.model_max_length, positions, _UNLIMITED))
