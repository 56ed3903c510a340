"""Encoders place questions and documents in one space; here the protocol, what all of
them share, and the one for open_clip models.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as pixels_of

from vrag_kit.benchmarks.images import decode
from vrag_kit.checkpoints import check_device, check_weights
from vrag_kit.errors import VragError
from vrag_kit.types import Evidence, Query
from vrag_kit.workspace import path as project_path


class Encoder(Protocol):
    """Two verbs, because real encoders differ between the sides in prompt, weights and
    modality.

    Preparing (decoding, resizing) is apart from encoding, so that it can run ahead in
    threads.
    """

    name: str
    """Short name for tables, figures and folders."""
    fingerprint: str
    """Hash of all that determines an embedding: weights, prompts, preprocessing, number
    type.
    """
    normalized: bool
    """True when every row has unit length, so that a dot product is a cosine."""
    prompts: Mapping[str, str]
    """What is said around a question ("query", with "{text}" for the question) and a
    document ("document"); empty where nothing is.
    """

    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """float32, shape (n, d); (0, d) for no queries."""

    def prepare(self, document: Evidence) -> Any:
        """Whatever `encode_documents` needs of one document; runs in threads.

        Raises `VragError` naming the document.
        """

    def encode_documents(self, prepared: Sequence[Any]) -> np.ndarray:
        """float32, shape (n, d), one row for each prepared document."""


def decode_rgb(data: bytes, where: str) -> torch.Tensor:
    """Decode to uint8 RGB, shape (3, height, width), EXIF orientation applied; by
    torchvision, and by Pillow for formats it lacks.
    """
    if data[:3] == b"\xff\xd8\xff" or data[:8] == b"\x89PNG\r\n\x1a\n":
        try:
            image = decode_image(
                torch.frombuffer(bytearray(data), dtype=torch.uint8),
                ImageReadMode.RGB,
                apply_exif_orientation=True,
            )
            if image.dtype == torch.uint8:  # not so for 16-bit files
                return image
        except RuntimeError:
            pass  # truncated files and rare colour spaces: Pillow reads them or says what is wrong
    return torch.from_numpy(np.array(decode(data, where))).permute(2, 0, 1)


def picture_of(document: Evidence, encoder: str) -> torch.Tensor:
    """What the document shows: uint8 RGB, upright, shape (3, height, width).

    Raises `VragError` naming a document without a picture.
    """
    if document.image is None:
        raise VragError(
            f"document {document.doc_id!r} has no image; {encoder} encodes images only."
        )
    return decode_rgb(document.image.data(), document.image.where)


def text_or_picture(document: Evidence, encoder: str) -> str | torch.Tensor:
    """What a dual encoder encodes: the picture, as `picture_of` gives it, or the text
    of a document without one. Raises `VragError` naming a document with neither.
    """
    if document.image is None and not (document.text or "").strip():
        raise VragError(
            f"document {document.doc_id!r} has no image and no text; {encoder} encodes one or the"
            " other."
        )
    return document.text or "" if document.image is None else picture_of(document, encoder)


def rows_of(
    prepared: Sequence[Any],
    texts: Callable[[list[str]], np.ndarray],
    pictures: Callable[[list[Any]], np.ndarray],
) -> np.ndarray:
    """One row for each prepared document, in order: texts through one tower, everything
    else through the other.
    """
    said = [place for place, each in enumerate(prepared) if isinstance(each, str)]
    shown = [place for place, each in enumerate(prepared) if not isinstance(each, str)]
    rows = [
        tower([prepared[place] for place in places])
        for tower, places in ((texts, said), (pictures, shown))
        if places
    ]
    return np.concatenate(rows)[np.argsort(said + shown)]


def unit_rows(vectors: torch.Tensor) -> np.ndarray:
    """Each row at unit length, float32; a row with a NaN or an infinite value becomes
    NaN, which the store refuses.
    """
    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()


def resize_for(
    image: torch.Tensor, size: tuple[int, int], mode: str, interpolation: str
) -> torch.Tensor:
    """Bring a uint8 image to `size` as open_clip does: "shortest" side and centre crop,
    or "squash".

    Returns uint8, shape (3, *size).
    """
    how = InterpolationMode.BICUBIC if interpolation == "bicubic" else InterpolationMode.BILINEAR
    if mode == "squash":
        return pixels_of.resize(image, list(size), how, antialias=True)
    height, width = image.shape[-2:]
    scale = max(size[0] / height, size[1] / width)
    resized = (
        [
            size[0] if height <= width else int(size[0] * height / width),
            size[1] if width <= height else int(size[1] * width / height),
        ]
        if size[0] == size[1]
        else [round(height * scale), round(width * scale)]
    )
    return pixels_of.center_crop(pixels_of.resize(image, resized, how, antialias=True), list(size))


class OpenClipEncoder:
    """A dual encoder of open_clip: a model name with a pretrained tag, or a local
    folder in open_clip's layout.
    """

    def __init__(
        self, model: torch.nn.Module, tokenizer: Any, *, name: str, device: str = "cpu"
    ) -> None:
        self._model, self._tokenizer, self._device = model.eval().to(device), tokenizer, device
        self._config = dict(model.visual.preprocess_cfg)
        size = self._config["size"]
        self._size = (size, size) if isinstance(size, int) else tuple(size)
        self._dtype = next(model.parameters()).dtype
        self._mean, self._std = (
            torch.tensor(self._config[key], device=device, dtype=torch.float32).view(1, 3, 1, 1)
            for key in ("mean", "std")
        )
        self.name, self.normalized = name, True
        self.prompts: Mapping[str, str] = {}
        self.fingerprint = _fingerprint(model, tokenizer, self._config)

    @torch.inference_mode()
    def encode_queries(self, queries: Sequence[Query]) -> np.ndarray:
        """Unit-length rows of the question texts (no prompt), float32, shape (n, d);
        texts are cut at the model's context length.
        """
        rows = [
            self._of_texts([query.text]) for query in queries
        ]  # one at a time, so that company changes nothing
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def prepare(self, document: Evidence) -> str | torch.Tensor:
        """The picture as uint8, shape (3, height, width) of the model's input; the text
        of a document without one.
        """
        content = text_or_picture(document, self.name)
        return (
            content
            if isinstance(content, str)
            else resize_for(
                content,
                self._size,
                self._config.get("resize_mode", "shortest"),
                self._config.get("interpolation", "bicubic"),
            )
        )

    @torch.inference_mode()
    def encode_documents(self, prepared: Sequence[str | torch.Tensor]) -> np.ndarray:
        """Unit-length rows, float32, shape (n, d); texts as questions are."""
        return rows_of(prepared, self._of_texts, self._of_pictures)

    def _of_texts(self, texts: list[str]) -> np.ndarray:
        return (
            self._model.encode_text(self._tokenizer(texts).to(self._device), normalize=True)
            .float()
            .cpu()
            .numpy()
        )

    def _of_pictures(self, pictures: list[torch.Tensor]) -> np.ndarray:
        batch = torch.stack(pictures).to(self._device).float().div_(255)
        return (
            self._model.encode_image(
                batch.sub_(self._mean).div_(self._std).to(self._dtype), normalize=True
            )
            .float()
            .cpu()
            .numpy()
        )

    @property
    def dim(self) -> int:
        """Number of components of an embedding."""
        return int(self._model.encode_text(self._tokenizer(["a"]).to(self._device)).shape[-1])


def load_open_clip(spec: str, *, device: str = "cpu") -> OpenClipEncoder:
    """Load "<model>/<pretrained tag>", such as "ViT-L-14-336-quickgelu/openai", or a
    folder with `open_clip_config.json`.

    Raises `VragError` for an unknown model or tag, weights that are missing or not
    finite, and a model whose activation (QuickGELU) is not the one its weights were
    trained with, of which open_clip only warns, and a device that this machine does not
    have.
    """
    import open_clip

    check_device(device)
    folder = project_path(spec)
    local = (folder / "open_clip_config.json").is_file()
    if local:
        if not any(folder.glob("open_clip_*model.safetensors")) and not any(
            folder.glob("*.safetensors")
        ):
            raise VragError(
                f"{folder}: no weights (*.safetensors) beside open_clip_config.json. Copy the"
                " checkpoint's weights there."
            )
        source, tag = f"local-dir:{folder}", None
    else:
        source, _, tag = spec.rpartition("/")
        _check_names(spec, source, tag, open_clip)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logging.disable(logging.WARNING)
        try:
            model = open_clip.create_model(
                source, pretrained=tag, device=device, require_pretrained=True
            )
            tokenizer = open_clip.get_tokenizer(source)
        except (RuntimeError, ValueError, OSError) as error:
            raise VragError(
                f"retriever {spec!r} cannot be loaded: {str(error).rstrip('. ')}. Without a"
                " network, give a local folder in open_clip's layout."
            ) from error
        finally:
            logging.disable(logging.NOTSET)
    if mismatch := [str(w.message) for w in caught if "QuickGELU mismatch" in str(w.message)]:
        raise VragError(
            f"retriever {spec!r}: {mismatch[0]} The embeddings would be wrong. Use the model name"
            f" with '-quickgelu', such as {source.removesuffix('-quickgelu')}-quickgelu/{tag}, or a"
            " tag trained without it."
        )
    check_weights(model, f"retriever {spec!r}")
    return OpenClipEncoder(
        model, tokenizer, name=folder.name if local else spec.replace("/", "-"), device=device
    )


def _check_names(spec: str, model: str, tag: str, open_clip: Any) -> None:
    if "/" not in spec or spec.startswith((".", "/")) or model not in open_clip.list_models():
        near = [
            name for name in open_clip.list_models() if name.lower().startswith(spec.lower()[:5])
        ][:6]
        raise VragError(
            f"unknown retriever {spec!r}: neither a folder with open_clip_config.json nor"
            " '<model>/<pretrained tag>'."
            f" {'Similar names: ' + ', '.join(near) + '. ' if near else ''}List all with `python -c"
            ' "import open_clip; print(open_clip.list_pretrained())"`.'
        )
    tags = open_clip.list_pretrained_tags_by_model(model)
    if tag not in tags:
        raise VragError(
            f"unknown pretrained tag {tag!r} for {model}; expected one of {', '.join(tags)}."
        )


def _fingerprint(model: torch.nn.Module, tokenizer: Any, preprocessing: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(preprocessing, sort_keys=True, default=str).encode())
    digest.update(
        tokenizer(["What color are the hindwings of Papaipema inquaesita?"]).numpy().tobytes()
    )
    for name, values in sorted(model.state_dict().items()):
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        buffer = io.BytesIO()
        np.save(buffer, values.detach().float().cpu().numpy(), allow_pickle=False)
        digest.update(buffer.getbuffer())
    return digest.hexdigest()
