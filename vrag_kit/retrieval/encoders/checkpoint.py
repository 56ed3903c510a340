"""A resolved checkpoint: its name and key, and the loading of its parts."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    catch_load_errors,
    check_weights,
    checkpoint_fingerprint,
    load_model,
)
from vrag_kit.config import StrictModel, read_settings
from vrag_kit.errors import VragError
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from torch import nn

PREPROCESSING = 1
"""Version of our own preprocessing. It rises when pixels or tokens change, and then everything is
embedded again.
"""
_UNLIMITED = 1_000_000  # tokens; a tokenizer without a limit says 10³⁰, more than it can count
_Sizes = TypeVar("_Sizes", bound=StrictModel)
_Module = TypeVar("_Module", bound="nn.Module")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A resolved entry: the files of a checkpoint, and how they are loaded."""

    spec: str
    """The name in the parameters."""
    folders: tuple[Path, ...]
    """The checkpoint's folder, and that of a second one which belongs to it: the base of an adapter
    or head, or the encoder of documents. Empty for a model that open_clip knows by name and tag.
    """
    family: str
    """The key in `loading.FAMILIES`."""
    options: Options
    """The family's options with their defaults."""
    modalities: InputModalities
    device: str

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
    def trusted(self) -> bool:
        """Whether code that comes with the checkpoint may run."""
        return bool(self.options.get("trust_remote_code", False))

    def fingerprint(self) -> str:
        """Returns a hash of all files, options and encoded parts, and of `PREPROCESSING`. A model
        that open_clip knows by name and tag is assumed never to change.
        """
        options = {**self.options, **self.modalities.overrides()}
        name = {} if self.folders else {"open_clip": self.spec}
        versions = {"family": self.family, "preprocessing": PREPROCESSING}
        return checkpoint_fingerprint(self.folders, {**options, **name, **versions})

    def document_key(self) -> DocumentKey:
        """Returns the key of document vectors, which no option of the query side changes."""
        parts = replace(self.modalities, query=self.modalities.default_query)
        usual = {"query_prompt": "{text}"} if "query_prompt" in self.options else {}
        side = replace(self, modalities=parts, options={**self.options, **usual})
        return DocumentKey(side.name, side.fingerprint())

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

        path = self.folders[0] / "model.safetensors"
        with self.reading():
            weights = load_file(path)
        expected, found = (
            {name: tuple(values.shape) for name, values in each.items()}
            for each in (module.state_dict(), weights)
        )
        if wrong := sorted({name for name, _ in expected.items() ^ found.items()}):
            raise VragError(
                f"{self.owner}: {path}: {len(wrong)} weights differ, such as {wrong[0]!r}: found"
                f" {found.get(wrong[0])}; expected {expected.get(wrong[0])}, as config.json says."
            )
        module.load_state_dict(weights)
        check_weights(module, self.owner)
        return module.to(self.device).eval()


def max_text_tokens(tokenizer: LibraryObject, config: LibraryObject) -> int:
    """Returns the number of tokens at which a text is truncated. Both the tokenizer and the model's
    positions limit it.
    """
    positions = getattr(config.get_text_config(), "max_position_embeddings", None) or _UNLIMITED
    return int(min(tokenizer.model_max_length, positions, _UNLIMITED))
