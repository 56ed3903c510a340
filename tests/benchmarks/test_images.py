"""A picture of more pixels than any data set has is refused before it is decoded, by its file
and size: a file of 20 KB may hold one that fills the memory.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from archive_server import packed
from PIL import Image

from vrag_kit.benchmarks.images import ImageFile, damage, open_image
from vrag_kit.errors import VragError
from vrag_kit.fetching import fetch_images
from vrag_kit.generation.remote.generator import data_url
from vrag_kit.retrieval.encoders.pixels import decode_rgb

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
"""pytest has filters of its own; what a user sees is looked at below."""
SIZES = {"10001x10000": "100010000 pixels", "30000x30000": "900000000 pixels"}
"""The first decodes to 300 MB."""


def chunk(kind: bytes, data: bytes) -> bytes:
    """A part of a PNG file."""
    whole = kind + data
    return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))


def black(width: int, height: int) -> bytes:
    """A PNG file of one bit a pixel, some KB; nothing of it is held unpacked."""
    packer, row = zlib.compressobj(9), bytes(1 + (width + 7) // 8)
    packed = b"".join([*(packer.compress(row) for _ in range(height)), packer.flush()])
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", packed), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.fixture(scope="module", params=SIZES)
def large(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("images") / f"{request.param}.png"
    file.write_bytes(black(*map(int, request.param.split("x"))))
    return file


READERS: dict[str, Callable[[ImageFile], object]] = {
    "open": lambda image: image.open(),
    "send": lambda image: data_url(image),
    "send smaller": lambda image: data_url(image, 512),
    "embed": lambda image: decode_rgb(image.data(), image.where),
    "measure": lambda image: open_image(image.data(), image.where),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_it_is_refused_by_file_and_size_wherever_it_is_read(large, reader):
    with pytest.raises(VragError, match=rf"^{large}: .*{SIZES[large.stem]}"):
        READERS[reader](ImageFile(large))


def test_checks_and_fetching_name_it(large, tmp_path):
    words, name = SIZES[large.stem], f"moth/{large.name}"
    assert words in damage(ImageFile(large))  # what `vrag check` says
    (tmp_path / "a.tar.gz").write_bytes(packed([(f"train/{name}", large.read_bytes())]))
    fetched = fetch_images([name], tmp_path / "a.tar.gz", tmp_path / "out")
    assert words in fetched.missing[name]


@pytest.mark.slow
def test_it_is_not_decoded_and_pillows_own_warning_does_not_show(tmp_path):
    large = tmp_path / "a.png"
    large.write_bytes(black(30000, 30000))
    code = f"""
import resource
from vrag_kit.benchmarks.images import ImageFile, VragError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    ImageFile({str(large)!r}).open()
except VragError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    told = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert int(told.stdout) < 20_000  # KB
    assert "DecompressionBomb" not in told.stderr


def test_images_are_upright_and_rgb_and_16_bits_keep_their_shades(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees to see it upright
    Image.new("L", (30, 20), 200).save(tmp_path / "a.jpg", exif=exif)
    turned = ImageFile(tmp_path / "a.jpg").open()
    assert (turned.size, turned.mode) == ((20, 30), "RGB")
    shades = np.arange(256, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(shades * 257).save(tmp_path / "deep.png")
    deep = np.asarray(ImageFile(tmp_path / "deep.png").open())
    np.testing.assert_array_equal(deep[..., 0], shades)


def test_an_image_is_its_path_also_in_another_process(tmp_path):
    image = ImageFile(tmp_path / "a" / "b.png")
    assert image == ImageFile(f"{tmp_path}/a//b.png") == pickle.loads(pickle.dumps(image))
    assert image != ImageFile(tmp_path / "b.png")
    assert (image.path, image.where) == (tmp_path / "a" / "b.png", str(image.path))
