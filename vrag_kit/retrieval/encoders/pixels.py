"""Images as tensors: decoded upright, and resized as open_clip does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as pixels_of

from vrag_kit.benchmarks.images import decode, open_image
from vrag_kit.errors import VragError

FAST = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")
"""First bytes of JPEG and PNG files, which torchvision decodes faster than Pillow."""


def decode_rgb(data: bytes, where: str) -> torch.Tensor:
    """Decode an image to uint8 RGB, shape (3, height, width), with EXIF orientation applied.
    torchvision decodes it, or Pillow for formats that torchvision lacks.

    Raises `VragError` naming `where` for a damaged image.
    """
    if data.startswith(FAST):
        try:
            open_image(data, where)
            encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            image: torch.Tensor = decode_image(
                encoded, ImageReadMode.RGB, apply_exif_orientation=True
            )
            if image.dtype == torch.uint8:  # not so for 16-bit files
                return image
        except (RuntimeError, OSError, VragError):
            pass  # truncated, rare or too large ones: `decode` reads them or says what is wrong
    return torch.from_numpy(np.array(decode(data, where))).permute(2, 0, 1)


def resize_for(
    image: torch.Tensor, size: tuple[int, int], mode: str, interpolation: str
) -> torch.Tensor:
    """Resize a uint8 image to `size` (height, width) as open_clip does: "squash", or "shortest"
    side and centre crop, for square sizes.

    Returns uint8, shape (3, *size).
    """
    how = InterpolationMode.BICUBIC if interpolation == "bicubic" else InterpolationMode.BILINEAR
    if mode == "squash":
        squashed: torch.Tensor = pixels_of.resize(image, list(size), how, antialias=True)
        return squashed
    resized = pixels_of.resize(image, [size[0]], how, antialias=True)
    cropped: torch.Tensor = pixels_of.center_crop(resized, list(size))
    return cropped


def normalize_pixels(
    images: Sequence[torch.Tensor], mean: Sequence[float], std: Sequence[float], device: str
) -> torch.Tensor:
    """Returns uint8 images, each of shape (3, height, width), as one batch on the device, float32:
    scaled to [0, 1], less the mean of each channel, over its standard deviation.
    """
    batch = torch.stack(list(images)).to(device).float().div_(255)
    center, scale = (torch.tensor(each, device=device).view(3, 1, 1) for each in (mean, std))
    return batch.sub_(center).div_(scale)


def normalize_rows(vectors: torch.Tensor) -> np.ndarray:
    """Returns each row at unit length, float32. A row with a NaN or an infinite value becomes NaN,
    which validation rejects.
    """
    rows: np.ndarray = torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()
    return rows
