"""Images in WebQA's imgs.tsv, one per line, read one by one when they are used.

An image is in the line of its id modulo 10,000,000, counted from 0: the same id, a tab,
the image file as base64. imgs.lineidx in the same folder has the byte at which each line
begins, one number per line.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from vrag_kit.benchmarks.images import decode
from vrag_kit.benchmarks.rows import Kind, Problems
from vrag_kit.errors import VragError, short_repr

LINES = 10_000_000
"""An image's line is its id modulo this number."""
_FETCH = "Fetch all parts again and unpack them by `7z x imgs.7z.001`."


@dataclass(frozen=True, slots=True)
class TsvImage:
    """An image in a line of imgs.tsv; implements `LazyImage`."""

    path: Path
    image_id: int
    offset: int  # of the line's first byte

    @property
    def where(self) -> str:
        """A URI: the file, and as its fragment the image id and the byte offset of its line."""
        return f"{self.path}#image={self.image_id}&byte={self.offset}"

    @property
    def stamp(self) -> str:
        """Size and modification time of the whole file, and the offset of the line: in a replaced
        file every image gets a new stamp.
        """
        try:
            stat = self.path.stat()
        except OSError as error:
            raise self._unreadable(error) from error
        return f"{stat.st_size}-{stat.st_mtime_ns}-{self.offset}"

    def data(self) -> bytes:
        """Return the bytes of the image file; reads one line.

        Raises `VragError` if the line belongs to another image or is not base64.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                line = file.readline()
        except OSError as error:
            raise self._unreadable(error) from error
        found = line.partition(b"\t")[0]
        encoded = line.partition(b"\t")[2]
        if not found.strip().isdigit() or int(found) != self.image_id:
            raise VragError(
                f"{self.where}: the line begins with {found[:20]!r}, expected the image's id and a"
                " tab. This imgs.lineidx belongs to another imgs.tsv, or one of them is"
                f" incomplete. {_FETCH}"
            )
        try:
            return base64.b64decode(encoded.strip(), validate=True)
        except binascii.Error as error:
            raise VragError(
                f"{self.where}: not base64 ({error}; {len(encoded):,} bytes), expected an encoded"
                f" picture after the tab. {_FETCH}"
            ) from error

    def open(self) -> Image.Image:
        """Return the decoded image: RGB, with EXIF orientation applied."""
        return decode(self.data(), self.where)

    def _unreadable(self, error: OSError) -> VragError:
        return VragError(f"{self.where}: cannot be read ({error.strerror}). {_FETCH}")


_URI = re.compile(r"(.+)#image=(\d+)&byte=(\d+)")


def tsv_image_from_uri(uri: str) -> TsvImage | None:
    """Return the image with this `where`, or None for another kind of image."""
    found = _URI.fullmatch(uri)
    return TsvImage(Path(found[1]), int(found[2]), int(found[3])) if found else None


class TsvFile:
    """The file imgs.tsv with its index of line offsets."""

    def __init__(self, path: Path) -> None:
        """Read the index. Raises `VragError` if it or the file is missing, or if it contains
        anything but numbers.
        """
        self.path = path
        self.index = path.with_suffix(".lineidx")
        try:
            self._size = path.stat().st_size
            lines = self.index.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError as error:
            raise VragError(
                f"{error.filename}: cannot be read ({error.strerror}); expected imgs.tsv with"
                f" imgs.lineidx beside it. {_FETCH}"
            ) from error
        for number, line in enumerate(lines, start=1):
            if not line.strip().isdigit():
                raise VragError(
                    f"{self.index} line {number}: found {short_repr(line)}; expected the byte at"
                    f" which a line of {path.name} begins. {_FETCH}"
                )
        self._offsets = [int(line) for line in lines]

    def image(self, image_id: int, where: str, problems: Problems) -> TsvImage | None:
        """Return the image with this id; an image beyond the end of the index or the file is a
        problem at `where`.
        """
        line = image_id % LINES
        if line >= len(self._offsets):
            found = f"line {line:,}, counted from 0, but {self.index} has {len(self._offsets):,}"
            words = f"image {image_id} would be in {found} lines. {_FETCH}"
        elif self._offsets[line] >= self._size:
            found = f"byte {self._offsets[line]:,}, but {self.path} ends at {self._size:,}"
            words = f"image {image_id} begins at {found}: it is incomplete. {_FETCH}"
        else:
            return TsvImage(self.path, image_id, self._offsets[line])
        problems.add(Kind.MISSING, where, words, str(image_id))
        return None
