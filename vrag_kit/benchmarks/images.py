"""Image files: decoded only when needed, to upright RGB; an unreadable one is never skipped."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from vrag_kit.errors import VragError
from vrag_kit.types import LazyImage

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
"""Suffixes, in any case, of the files in a folder that count as images."""

MOST_PIXELS = 100_000_000
"""Maximum pixels of an image. It is far above any data set's here; a file of 20 KB may decode
to an image that fills the memory.
"""
Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2  # Pillow warns of more, and refuses twice as many
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def list_images(folder: Path) -> list[Path]:
    """List the image files in a folder by name, without hidden files."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


@dataclass(frozen=True, slots=True, init=False)
class ImageFile:
    """An image in a file; implements `LazyImage`."""

    where: str
    """The path of the file as text."""

    def __init__(self, path: Path | str) -> None:
        object.__setattr__(self, "where", str(Path(path)))

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.where)

    @property
    def stamp(self) -> str:
        """Size and modification time in nanoseconds: a replaced file gets a new stamp."""
        try:
            stat = self.path.stat()
        except OSError as error:
            raise unreadable(self.path, error) from error
        return f"{stat.st_size}-{stat.st_mtime_ns}"

    def data(self) -> bytes:
        """Return the bytes of the file."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise unreadable(self.path, error) from error

    def open(self) -> Image.Image:
        """Return the decoded image: RGB, with EXIF orientation applied."""
        return decode(self.data(), self.where)


@dataclass(frozen=True, slots=True)
class ResizedImage:
    """An image resized to fixed dimensions, whatever its shape; implements `LazyImage`."""

    image: LazyImage
    size: tuple[int, int]  # width and height in pixels

    @property
    def where(self) -> str:
        """The `where` of the original image."""
        return self.image.where

    @property
    def stamp(self) -> str:
        """The stamp of the original image, followed by the size."""
        return f"{self.image.stamp}-{self.size[0]}x{self.size[1]}"

    def data(self) -> bytes:
        """Return the resized image as a PNG file."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()

    def open(self) -> Image.Image:
        """Return the resized image, RGB (bicubic)."""
        return self.image.open().resize(self.size, Image.Resampling.BICUBIC)


def open_image(file: bytes | Path, where: str) -> Image.Image:
    """Open an image and read only its header; all images are opened here. Raises `VragError`,
    which begins with `where`, if it is damaged or has more than `MOST_PIXELS` pixels.
    """
    try:
        return Image.open(io.BytesIO(file) if isinstance(file, bytes) else file)
    except Exception as error:
        raise _damaged(where, error) from error


def decode(data: bytes, where: str) -> Image.Image:
    """Decode `data` to 8-bit RGB with EXIF orientation applied; raises `VragError`
    naming `where` when it is damaged or too large.
    """
    with open_image(data, where) as image:
        try:
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I"):  # 16 bits a pixel, which Pillow would clip to white
                shades = np.asarray(upright).astype(np.uint32) >> 8
                upright = Image.fromarray(shades.clip(0, 255).astype(np.uint8))
            return upright.convert("RGB")
        except Exception as error:
            raise _damaged(where, error) from error


def _damaged(where: str, error: Exception) -> VragError:
    """The error for an image that a decoder refuses. Decoders raise what they like (AVIF
    RuntimeError, DDS NotImplementedError), and one file must not end the work on all.
    """
    is_unknown = isinstance(error, UnidentifiedImageError)
    what = "of no known format" if is_unknown else str(error) or type(error).__name__
    return VragError(f"{where}: not a readable picture ({what}); `vrag data check` lists all.")


def shrunk_size(size: tuple[int, int], side: int | None) -> tuple[int, int]:
    """Return the (width, height) of an image after shrinking its longer side to at most `side`;
    unchanged if `side` is None.
    """
    longer = max(size)
    if side is None or longer <= side:
        return size
    width, height = size
    return max(1, round(width * side / longer)), max(1, round(height * side / longer))


def shrink(picture: Image.Image, side: int | None) -> Image.Image:
    """Shrink an image to at most `side` pixels on its longer side (Lanczos); an image that is not
    larger is returned itself.
    """
    size = shrunk_size(picture.size, side)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def damage(image: LazyImage) -> str:
    """Return why an image cannot be opened; "" if it can."""
    try:
        image.open()
    except VragError as error:
        return str(error)
    return ""


def unreadable(path: Path, error: OSError) -> VragError:
    """Return the error for a file that cannot be read."""
    words = f"cannot be read ({error.strerror}); `vrag data check` lists every missing file"
    return VragError(f"{path}: {words}.")


def pixel_hash(picture: Image.Image) -> str:
    """Hash the size and pixels of an image. Files with the same pixels get the same hash, in any
    format.
    """
    return hashlib.sha256(f"{picture.size}".encode() + picture.tobytes()).hexdigest()
