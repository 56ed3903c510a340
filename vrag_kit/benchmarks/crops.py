"""Which picture a crop was cut from, when it is a part of it at the same scale.

MRAG-Bench's Partial questions show half the height and width of a picture whose whole
lies in the corpus; nothing in the rows says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from PIL import Image

ALIKE = 0.88
"""Least correlation with the best place in a picture that counts as cut from it. In the
drawn edition true originals reach 0.92 to 1.00, other pictures 0.84 at most.
"""
_COARSE = 48  # pixels: the longer side of a crop is brought to this before it is compared


def originals(
    crops: Mapping[str, Image.Image], pictures: Iterable[tuple[str, Image.Image]]
) -> dict[str, str]:
    """Name of a crop → name of the picture that it was cut from, by half the height and
    width; crops of none of them are absent.

    Sizes must be half to a pixel. A crop is laid over each place of a picture, both
    shrunk, and compared by the correlation of their grey values (Lewis, Fast normalized
    cross-correlation, 1995); the picture with the highest wins, if it reaches `ALIKE`.
    """
    coarse = {name: _Coarse(crop) for name, crop in crops.items()}
    best = dict.fromkeys(crops, (ALIKE, ""))
    for name, picture in pictures:
        for crop, shrunk in coarse.items():
            if shrunk.half_of(picture.size):
                best[crop] = max(best[crop], (shrunk.correlation(picture), name))
    return {crop: name for crop, (_, name) in best.items() if name}


class _Coarse:
    """A crop, shrunk, without its mean."""

    def __init__(self, crop: Image.Image) -> None:
        self.size = crop.size
        self._factor = max(1.0, max(crop.size) / _COARSE)
        grey = self._shrunk(crop)
        self._template = grey - grey.mean()

    def half_of(self, size: tuple[int, int]) -> bool:
        """Whether a picture of this size is twice as high and wide, to a pixel each."""
        width, height = self.size
        return abs(size[0] - 2 * width) <= 1 and abs(size[1] - 2 * height) <= 1

    def correlation(self, picture: Image.Image) -> float:
        """The highest correlation with any place in the picture, in [−1, 1]; 0 for a crop
        of one shade.
        """
        grey = self._shrunk(picture)
        height, width = self._template.shape
        places = (grey.shape[0] - height + 1, grey.shape[1] - width + 1)
        spectrum = np.fft.rfft2(grey) * np.conj(np.fft.rfft2(self._template, grey.shape))
        products = np.fft.irfft2(spectrum, grey.shape)[: places[0], : places[1]]
        spread = _sums(grey**2, height, width) - _sums(grey, height, width) ** 2 / (height * width)
        lengths = np.sqrt(np.clip(spread, 0, None)) * np.linalg.norm(self._template)
        found = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 1e-6)
        return float(found.max())

    def _shrunk(self, picture: Image.Image) -> np.ndarray:
        width, height = (max(1, round(side / self._factor)) for side in picture.size)
        grey = picture.convert("L").resize((width, height), Image.Resampling.BOX)
        return np.asarray(grey, dtype=np.float64) / 255


def _sums(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Sums over every window of that height and width."""
    padded = np.pad(values, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    upper = padded[:-height, width:] - padded[:-height, :-width]
    sums: np.ndarray = padded[height:, width:] - padded[height:, :-width] - upper
    return sums
