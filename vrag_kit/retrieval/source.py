"""A retriever's checkpoint and how it is read; what all transformers retrievers have in
common when they are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.checkpoints import check_code, check_weights, files_fingerprint, reading
from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path

_UNLIMITED = (
    1_000_000  # tokens; a tokenizer without a limit says 10³⁰, which is more than it can count
)
_EXPECTED = (
    "a folder, or a name on the hub, with config.json, weights (*.safetensors), tokenizer and, for"
    " pictures, preprocessing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a checkpoint lies and how its weights are read."""

    spec: str
    """The name in the parameters."""
    folder: Path
    """Its files."""
    device: str = "cpu"
    dtype: str = "auto"
    """Number type, one of `checkpoints.DTYPES`."""
    trust_remote_code: bool = False
    """Whether code that comes with the checkpoint may run."""

    @property
    def name(self) -> str:
        """Short name for tables and files."""
        return self.folder.name if project_path(self.spec).is_dir() else self.spec.replace("/", "-")

    def config(self) -> Any:
        """The checkpoint's configuration, or None without config.json.

        Raises `VragError` for one that needs code of its own which may not run.
        """
        from transformers import AutoConfig

        if not (self.folder / "config.json").is_file():
            return None
        with self.reading():
            check_code(self.folder, f"retriever {self.spec!r}", trusted=self.trust_remote_code)
            return AutoConfig.from_pretrained(self.folder, trust_remote_code=self.trust_remote_code)

    def read(self, auto: Any, *, unused: tuple[str, ...] = ()) -> Any:
        """The model that `auto` (a class with `from_pretrained`) makes of the
        checkpoint, on the device, ready to encode.

        Raises `VragError` for weights that are not safetensors, missing (but for those
        beginning with `unused`), or NaN.
        """
        self.check_formats()
        with self.reading():
            model, report = auto.from_pretrained(
                self.folder,
                dtype=self.dtype,
                use_safetensors=True,
                trust_remote_code=self.trust_remote_code,
                output_loading_info=True,
            )
        if missing := sorted(
            name for name in report["missing_keys"] if not name.startswith(unused)
        ):
            raise VragError(
                f"retriever {self.spec!r}: {len(missing)} weights are not in the checkpoint, such"
                f" as {missing[0]!r}; they would be random. Fetch the checkpoint again."
            )
        check_weights(model, f"retriever {self.spec!r}")
        return model.to(self.device).eval()

    def read_part(self, auto: Any, *, image_size: Mapping[str, int] | None = None) -> Any:
        """The tokenizer or processor that `auto` makes of the checkpoint; `image_size`
        replaces the size that it brings pictures to.
        """
        with self.reading():
            return auto.from_pretrained(
                self.folder,
                trust_remote_code=self.trust_remote_code,
                **({"size": dict(image_size)} if image_size else {}),
            )

    def check_formats(self) -> None:
        """Raise `VragError` when some weights are there as pickles only, or not at all."""
        folders = [
            folder for folder in (self.folder, *sorted(self.folder.iterdir())) if folder.is_dir()
        ]
        safe = [path for folder in folders for path in folder.glob("*.safetensors")]
        pickles = [
            path
            for folder in folders
            for start, partner in (("pytorch_model", "*"), ("adapter_model", "adapter_model*"))
            for path in sorted(folder.glob(f"{start}*.bin"))
            if not any(folder.glob(f"{partner}.safetensors"))
        ]
        if pickles or not safe:
            found = (
                f"{pickles[0].relative_to(self.folder)} is a pickle"
                if pickles
                else f"there are no weights as *.safetensors in {self.folder}"
            )
            raise VragError(
                f"retriever {self.spec!r}: {found}; weights are read from safetensors only, because"
                " pickles can run code. Name a `revision` with safetensors (the hub's own"
                " conversions are under refs/pr/…), or convert it where you trust it, by"
                " from_pretrained and save_pretrained."
            )

    def reading(self) -> AbstractContextManager[None]:
        """The context in which the checkpoint's files are read."""
        return reading(f"retriever {self.spec!r}", _EXPECTED)

    def fingerprint(self, options: Mapping[str, Any], *more: Path) -> str:
        """Hash of all files, also those of the folders `more`, and of the options that
        change an embedding.
        """
        return files_fingerprint(
            [self.folder, *more], {**options, "trust_remote_code": self.trust_remote_code}
        )


def longest_text(tokenizer: Any, config: Any) -> int:
    """Number of tokens at which a text is cut: what both the tokenizer and the model's
    positions allow.
    """
    positions = getattr(config.get_text_config(), "max_position_embeddings", None) or _UNLIMITED
    return int(min(tokenizer.model_max_length, positions, _UNLIMITED))
