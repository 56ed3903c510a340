"""Pictures in files: always RGB, upright, decoded only when needed, never skipped."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from vrag_kit.errors import VragError
from vrag_kit.types import LazyImage

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
"""Endings, in any case, of the files in a folder that are its pictures."""

MOST_PIXELS = 100_000_000
"""Of a picture: far above any data set's here, while a file of 20 KB may hold one that fills
the memory.
"""
warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # `opened` says it, and where


def list_images(folder: Path) -> list[Path]:
    """The picture files in a folder, by name; hidden ones are left out."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ImageFile:
    """A picture in a file; implements `LazyImage`. Those of one folder share its name in
    memory.
    """

    _folder: str
    _name: str

    def __init__(self, path: Path | str) -> None:
        folder, name = os.path.split(Path(path))
        object.__setattr__(self, "_folder", sys.intern(folder))
        object.__setattr__(self, "_name", name)

    @classmethod
    def inside(cls, folder: str, name: str) -> ImageFile:
        """A file in a folder, whose path is written as `Path` writes it; for millions."""
        image = cls.__new__(cls)
        object.__setattr__(image, "_folder", folder)
        object.__setattr__(image, "_name", name)
        return image

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._folder, self._name)

    @property
    def where(self) -> str:
        """The file's path."""
        return os.path.join(self._folder, self._name)

    def __repr__(self) -> str:
        return f"ImageFile({self.where!r})"

    @property
    def stamp(self) -> str:
        """Size and modification time in nanoseconds: a replaced file gets a new stamp."""
        try:
            stat = os.stat(self.where)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return f"{stat.st_size}-{stat.st_mtime_ns}"

    def data(self) -> bytes:
        """The file's bytes."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def open(self) -> Image.Image:
        """The decoded picture: RGB, EXIF orientation applied."""
        return decode(self.data(), self.where)


def opened(file: bytes | Path, where: str) -> Image.Image:
    """A picture of which only the head is read; every one is opened here. Raises
    `VragError`, which begins with `where`, for one of more than `MOST_PIXELS`, and
    `OSError` for what is no picture.
    """
    try:
        picture = Image.open(io.BytesIO(file) if isinstance(file, bytes) else file)
        pixels = picture.width * picture.height
    except Image.DecompressionBombError as error:  # Pillow's own limit, above ours
        pixels = int(re.findall(r"\d+", str(error))[0])
    except OSError:
        raise
    except Exception as error:  # of a head that is damaged, decoders raise what they like
        raise OSError(str(error)) from error
    if pixels > MOST_PIXELS:
        raise VragError(
            f"{where}: a picture of {pixels:,} pixels; expected at most {MOST_PIXELS:,}. Make it"
            " smaller, or leave it out."
        )
    return picture


def decode(data: bytes, where: str) -> Image.Image:
    """Decode `data` to 8-bit RGB with EXIF orientation applied; raises `VragError`
    naming `where` when it is damaged or too large.
    """
    try:
        with opened(data, where) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I"):  # 16 bits a pixel, which Pillow would clip to white
                shades = np.asarray(upright).astype(np.uint32) >> 8
                upright = Image.fromarray(shades.clip(0, 255).astype(np.uint8))
            return upright.convert("RGB")
    except VragError:
        raise
    # each decoder raises what it likes for damaged bytes (AVIF RuntimeError, DDS
    # NotImplementedError), and one file must not end the work on all
    except Exception as error:
        what = str(error) or type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            what = "of no known format"
        raise VragError(
            f"{where}: not a readable picture ({what}; {len(data):,} bytes). Copy or fetch it"
            " again; `vrag check` lists every damaged one."
        ) from error


def find_strangers(files: Iterable[Path]) -> list[Path]:
    """The files that do not even begin as a picture does, in order; only heads are read,
    so that a picture which is damaged further on is not among them. Raises `VragError` for
    one that is too large.
    """

    def begins(file: Path) -> bool:
        try:
            with opened(file, str(file)):
                return True
        except (UnidentifiedImageError, OSError):
            return False

    files = list(files)
    with ThreadPoolExecutor(4) as pool:
        return [file for file, good in zip(files, pool.map(begins, files), strict=True) if not good]


def stored_size(image: LazyImage, data: bytes) -> tuple[int, int]:
    """Width and height as stored, of which the head of the image's `data` tells; raises
    `VragError` that names a damaged one.
    """
    try:
        with opened(data, image.where) as picture:
            return picture.size
    except (UnidentifiedImageError, OSError):
        return image.open().size


def shrunk(size: tuple[int, int], side: int | None) -> tuple[int, int]:
    """The size of a picture (width, height) when its longer side is brought to at most
    `side`; as it is for None.
    """
    longer = max(size)
    if side is None or longer <= side:
        return size
    width, height = size
    return max(1, round(width * side / longer)), max(1, round(height * side / longer))


def shrink(picture: Image.Image, side: int | None) -> Image.Image:
    """The picture with its longer side at most `side` pixels (Lanczos); itself when it
    is not larger.
    """
    size = shrunk(picture.size, side)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def find_damaged(images: Iterable[LazyImage], *, workers: int = 4) -> list[str]:
    """One message for each picture that is missing or damaged, in order; opens all."""

    def problem(image: LazyImage) -> str | None:
        try:
            image.open()
        except VragError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(workers) as pool:
        return [message for message in pool.map(problem, images) if message]


def _unreadable(path: Path, error: OSError) -> VragError:
    return VragError(
        f"{path}: cannot be read ({error.strerror}). Check that the image folder is complete; `vrag"
        " check` lists every missing file."
    )


def pixel_hash(picture: Image.Image) -> str:
    """Hash of a picture's size and pixels: the same picture in another file, or format
    of the same pixels, is the same picture.
    """
    return hashlib.sha256(f"{picture.size}".encode() + picture.tobytes()).hexdigest()
