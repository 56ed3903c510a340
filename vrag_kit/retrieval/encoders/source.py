"""Transformers checkpoints of retrievers, and how their parts are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from vrag_kit.checkpoints import (
    LibraryObject,
    Options,
    catch_load_errors,
    check_weights,
    checkpoint_fingerprint,
    load_config,
    load_model,
)
from vrag_kit.retrieval.encoders.base import DocumentKey, InputModalities
from vrag_kit.workspace import path as project_path

_UNLIMITED = (
    1_000_000  # tokens; a tokenizer without a limit says 10³⁰, which is more than it can count
)
_EXPECTED = (
    "a folder, or a name on the hub, with config.json, weights (*.safetensors), tokenizer and, for"
    " pictures, preprocessing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSource:
    """Location of a checkpoint, and the settings for loading it."""

    spec: str
    """The name in the parameters."""
    folder: Path
    """The checkpoint folder."""
    partner: Path | None = None
    """The files of a second checkpoint that belongs to it: the base of an adapter or
    head, or the encoder of the document side.
    """
    device: str = "cpu"
    dtype: str = "auto"
    """Number type, one of `checkpoints.DTYPES`."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""
    modalities: InputModalities = field(default_factory=InputModalities)
    """Which parts of questions and documents are encoded."""

    @property
    def name(self) -> str:
        """Short name for tables and files."""
        return self.modalities.named(short_name(self.spec))

    @property
    def owner(self) -> str:
        """Prefix of error messages."""
        return f"retriever {self.spec!r}"

    def config(self) -> LibraryObject:
        """Returns the checkpoint's configuration; None without config.json.

        Raises `VragError` for one that needs code of its own which may not run.
        """
        if not (self.folder / "config.json").is_file():
            return None
        with self.reading():
            return load_config(self.folder, self.owner, trusted=self.trust_remote_code)

    def read(self, auto: LibraryObject, *, unused: tuple[str, ...] = ()) -> LibraryObject:
        """Loads the model by `auto` (a class with `from_pretrained`), on the device, in evaluation
        mode.

        Raises `VragError` for weights that are missing (but for those beginning with `unused`), or
        NaN.
        """
        how = {"dtype": self.dtype, "trust_remote_code": self.trust_remote_code}
        with self.reading():
            model = load_model(auto, self.folder, self.owner, how, unused=unused)
        check_weights(model, self.owner)
        return model.to(self.device).eval()

    def read_part(
        self, auto: LibraryObject, *, image_size: Mapping[str, int] | None = None
    ) -> LibraryObject:
        """Loads the tokenizer or processor by `auto`. `image_size` replaces the size that it
        resizes images to.
        """
        size = {"size": dict(image_size)} if image_size else {}
        with self.reading():
            trusted = self.trust_remote_code
            return auto.from_pretrained(self.folder, trust_remote_code=trusted, **size)

    def reading(self) -> AbstractContextManager[None]:
        """Returns a context manager that converts loading errors into `VragError`."""
        return catch_load_errors(self.owner, _EXPECTED)

    def fingerprint(self, options: Options) -> str:
        """Returns a hash of all files, including the partner's, and of the options that change an
        embedding.
        """
        folders = [self.folder] if self.partner is None else [self.folder, self.partner]
        trusted = {"trust_remote_code": self.trust_remote_code}
        return checkpoint_fingerprint(folders, {**options, **trusted, **self.modalities.told()})

    def document_key(self, options: Options) -> DocumentKey:
        """Returns the key of document vectors: as `fingerprint`, but without options that affect
        questions alone.
        """
        alone = replace(self, modalities=self.modalities.of_documents())
        usual = {"query_prompt": "{text}"} if "query_prompt" in options else {}
        return DocumentKey(alone.name, alone.fingerprint({**options, **usual}))


def short_name(spec: str) -> str:
    """Returns a short name for tables and files: that of the folder, or the one on the hub."""
    folder = project_path(spec)
    return folder.name if folder.is_dir() else spec.replace("/", "-")


def max_text_tokens(tokenizer: LibraryObject, config: LibraryObject) -> int:
    """Returns the number of tokens at which a text is truncated. Both the tokenizer and the model's
    positions limit it.
    """
    positions = getattr(config.get_text_config(), "max_position_embeddings", None) or _UNLIMITED
    return int(min(tokenizer.model_max_length, positions, _UNLIMITED))
