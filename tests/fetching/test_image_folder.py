"""The images that annotations name come out of the archive whole, whatever happens on the way, and
nothing else is written; images by address come once, from public hosts alone.
"""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from traceback import format_exception

import numpy as np
import pytest
from archive_server import ArchiveServer, packed
from commands import said
from crag_rows import picture
from PIL import Image

from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching import downloads, extract, fetch_images, http, image_folder, resumable_tar
from vrag_kit.fetching.downloads import download, download_images
from vrag_kit.fetching.extract import NOTE
from vrag_kit.fetching.http import AGENT, new_client


@dataclass(frozen=True)
class World:
    """An archive as it is published, what it was built of, and a third of its names."""

    data: bytes
    images: dict[str, bytes]  # all, by "<folder>/<file>"
    wanted: list[str]

    def check(self, folder: Path) -> None:
        """Every wanted image is there, byte for byte; nothing else is."""
        files = {path.relative_to(folder).as_posix(): path for path in folder.glob("*/*")}
        found = {name: path.read_bytes() for name, path in files.items()}
        assert found == {name: self.images[name] for name in self.wanted}
        assert [path.name for path in folder.iterdir() if path.is_file()] == [".lock"]


@cache
def world() -> World:
    rng = np.random.default_rng(7)
    images = {}
    for number in range(120):
        file = io.BytesIO()
        pixels = rng.integers(0, 256, (110, 130, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file, "JPEG", quality=97)
        folder = f"{number // 30:05d}_Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta_x"
        images[f"{folder}/{number:08x}-{'long-name-' * 6}.jpg"] = file.getvalue()
    data = packed((f"2021/train/{name}", content) for name, content in images.items())
    return World(data, images, sorted(images)[::3])


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "train.tar.gz"
    path.write_bytes(world().data)
    return path


@pytest.fixture
def server():
    with ArchiveServer(world().data) as started:
        yield started


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(http, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(resumable_tar, "SPAN_BYTES", 1 << 20)


def test_a_local_archive_gives_what_is_named(archive, tmp_path):
    row = {"question": "Q?", "answer": ["black"], "sn": "Branta x"}
    row["images"] = dict.fromkeys(world().wanted, 1)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    out = tmp_path / "out"
    good, bad = world().wanted[:2]
    (out / good).parent.mkdir(parents=True)
    (out / good).write_bytes(world().images[good])  # by hand
    (out / bad).write_bytes(world().images[bad][:500])
    command = ["data", "fetch", "visual-rag", "--to", out, "--annotations", tmp_path / "rows.jsonl"]
    _, output = said(*command, "--archive", archive)
    assert "40 images wanted: 1 existed, 39 fetched, 0 missing" in output
    world().check(out)
    assert said(*command, "--archive", "http://127.0.0.1:1/none")[0] == 0


@pytest.mark.parametrize("cuts", [(), (300_000, 0, 1, 500_000, 0, 0, 900_000)])
def test_an_archive_is_read_once_through_breaks(server, tmp_path, cuts):
    server.cuts = list(cuts)
    assert not fetch_images(world().wanted, server.url, tmp_path).missing
    assert server.sent <= len(world().data)
    assert server.starts == sorted(server.starts)
    assert len(server.starts) == len(cuts) + 1
    world().check(tmp_path)


def test_reading_stops_at_the_last_image(server, tmp_path):
    server.pause = 0.002
    fetched = fetch_images([world().wanted[1]] * 2, server.url, tmp_path)
    assert (fetched.wanted, fetched.fetched) == (1, 1)
    assert server.sent < len(world().data)


def test_a_server_without_ranges_fails(server, tmp_path):
    server.cuts, server.ranges = [1_000_000], False
    with pytest.raises(VragError, match="no Range support"):
        fetch_images(world().wanted, server.url, tmp_path)


def test_a_replaced_archive_is_an_error(server, tmp_path):
    other = packed((f"train/{name}", data[::-1]) for name, data in world().images.items())
    server.cuts = [1_000_000]
    server.replacement = (other[: len(world().data)].ljust(len(world().data), b"\0"), '"second"')
    with pytest.raises(VragError, match=r'"first".*"second"'):
        fetch_images(world().wanted, server.url, tmp_path)
    for path in tmp_path.glob("*/*"):
        assert path.read_bytes() == world().images[path.relative_to(tmp_path).as_posix()]


def test_a_remote_file_reads_like_a_local_one_in_any_order(monkeypatch):
    monkeypatch.setattr(http, "WINDOW_BYTES", 1000)
    rng = np.random.default_rng(3)
    data = rng.bytes(20_000)
    local = io.BytesIO(data)
    with (
        ArchiveServer(data, cuts=(500, 0, 3000, 7000)) as server,
        io.BufferedReader(http.RangeReader(server.url), 100) as far,
    ):
        for step in rng.integers(-4000, 6000, 60):
            place = int(np.clip(local.tell() + step, 0, 21_000))
            assert far.seek(place) == local.seek(place)
            count = int(rng.integers(0, 5000))
            assert far.read(count) == local.read(count)
        assert far.seek(-7, io.SEEK_END) == 19_993
        assert far.read() == data[-7:]


@pytest.mark.parametrize("change", ["archive", "wanted", "image", "note"])
def test_no_image_is_missed(server, tmp_path, change):
    server.cuts = [len(world().data) * 2 // 3, 0, 0, 0]
    with pytest.raises(VragError, match="gave up after 4 tries"):
        fetch_images(world().wanted, server.url, tmp_path)
    server.starts.clear()
    if change == "archive":
        server.etag = '"second"'
    elif change == "image":
        path = next(tmp_path.glob("00000*/*"))
        path.write_bytes(bytes(path.stat().st_size))  # as a power cut leaves it
    elif change == "note":
        (tmp_path / NOTE).write_bytes(b'{"point": {"offset": "many", "index": ""}}')
    more = [sorted(world().images)[1]] if change == "wanted" else []
    after = World(world().data, world().images, sorted([*world().wanted, *more]))
    fetched = fetch_images(after.wanted, server.url, tmp_path)
    assert server.starts == [0]
    assert fetched.had > 10
    after.check(tmp_path)


def test_runs_wait_for_one_another(archive, tmp_path):
    def run(_: int) -> int:
        return fetch_images(world().wanted, archive, tmp_path / "out").fetched

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(run, range(4))) == [0, 0, 0, 40]
    world().check(tmp_path / "out")


def test_what_is_missing_is_listed(server, tmp_path):
    absent, damaged = world().wanted[:25], world().wanted[30]
    content = {**world().images, damaged: world().images[damaged][:700]}
    server.data = packed((name, data) for name, data in content.items() if name not in absent)
    for _ in range(2):
        server.starts = []
        printed = str(fetch_images(world().wanted, server.url, tmp_path))
        assert "26 missing" in printed
        assert printed.count("missing: 0") == 20
    assert server.starts > [len(server.data) // 2]
    lines = (tmp_path / "missing.txt").read_text().splitlines()
    reasons = dict(line.split("\t") for line in lines)
    assert reasons.keys() == {*absent, damaged}
    assert reasons[absent[0]] == f"not in {server.url}"
    assert "not a readable picture" in reasons[damaged]
    server.data, server.etag = world().data, '"second"'
    assert not fetch_images(world().wanted, server.url, tmp_path).missing
    world().check(tmp_path)


def test_a_tar_cut_off_before_compression_is_an_error(tmp_path):
    """Its gzip is whole, and its last member too: only the end mark of the tar is missing."""
    path, data = tmp_path / "train.tar.gz", gzip.decompress(world().data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        last = tar.getmembers()[-1]
    path.write_bytes(gzip.compress(data[: last.offset], compresslevel=1))
    with pytest.raises(VragError, match=r"cut off.* end mark"):
        fetch_images([last.name.removeprefix("2021/train/")], path, tmp_path / "out")


def test_a_damaged_archive_is_an_error(archive, tmp_path):
    changed = bytearray(world().data)
    changed[1_500_000:1_550_000] = b"x" * 50_000
    for data in (changed, world().data[: len(world().data) // 2]):
        archive.write_bytes(data)
        with pytest.raises(VragError, match=r"train\.tar\.gz: cut off, damaged"):
            fetch_images(world().wanted, archive, tmp_path / "out")
    archive.write_bytes(world().data)
    assert fetch_images(world().wanted, archive, tmp_path / "out").had > 5
    world().check(tmp_path / "out")


def test_a_busy_server_is_asked_again(server, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for asked, waited in (("7", 7), ("9999", http.LONGEST_WAIT), ("soon", 0.01)):
        server.statuses, server.retry_after = [429], asked
        http.RangeReader(server.url).close()
        assert waited in waits
    server.statuses = [503] * 9
    with pytest.raises(VragError, match="503"):
        http.RangeReader(server.url)
    assert len(server.statuses) == 5


@pytest.mark.slow
def test_a_kill_loses_no_progress(server, tmp_path):
    server.stall = int(0.75 * len(world().data))
    code = "import json, sys\nfrom vrag_kit.fetching import extract, resumable_tar\n"
    code += "resumable_tar.SPAN_BYTES = 1 << 19\n"
    code += "extract.fetch_images(json.loads(sys.argv[1]), *sys.argv[2:])"
    command = [sys.executable, "-c", code, json.dumps(world().wanted), server.url, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while len(list(tmp_path.glob("*/*.jpg"))) < 12 or not (tmp_path / NOTE).exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    server.stall = None
    time.sleep(0.1)  # until the server has noticed
    server.sent, server.starts = 0, []
    fetched = fetch_images(world().wanted, server.url, tmp_path)
    assert fetched.had >= 12
    assert fetched.had + fetched.fetched == 40
    assert server.sent <= len(world().data) - server.starts[0] < 0.8 * len(world().data)
    world().check(tmp_path)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_stopped_run_goes_on(archive, tmp_path, stop):
    replace = os.replace

    def stopped(source: Path, target: Path) -> None:
        if target.name == Path(world().wanted[9]).name:
            raise stop
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_folder.os, "replace", stopped)
        with pytest.raises((VragError, KeyboardInterrupt)):
            fetch_images(world().wanted, archive, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*/.*"))
    assert fetch_images(world().wanted, archive, tmp_path / "out").had == 9
    world().check(tmp_path / "out")


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(f"train/{name}")
    info.type, info.linkname = kind, target
    return info, b""


def test_hostile_members_are_refused_and_named(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(extract, "LARGEST_IMAGE", 1_000_000)
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"secret")
    bad = world().wanted[:5]
    link, hard = bad[:2]
    large, outside = bad[2:4]
    hostile: list[tuple[str | tarfile.TarInfo, bytes]] = [
        (f"../../{outside}", b"evil"),
        (f"train/../{outside}", b"evil"),
        (str(tmp_path / "absolute.jpg"), b"evil"),
        ("../\x1b[2J\udcff.jpg", b""),
        special(link, tarfile.SYMTYPE, str(secret)),
        special(hard, tarfile.LNKTYPE, "../../secret.jpg"),
        special(bad[4], tarfile.DIRTYPE),
        (f"train/{large}", bytes(1_000_001)),
    ]
    again = [(f"train/{name}", b"other") for name in world().wanted[5:9]]
    good = [(f"train/{name}", data) for name, data in world().images.items() if name not in bad]
    archive.write_bytes(packed([*hostile, *good, *again]))
    before = {item.name for item in tmp_path.iterdir()}
    for _ in range(2):  # the second run remembers why
        fetched = fetch_images(world().wanted, archive, tmp_path / "out")
        assert list(fetched.missing) == bad
        assert "1,000,001 bytes" in fetched.missing[large]
        assert "link" in fetched.missing[hard]
        assert len(fetched.refused) == 8
        assert f"../../{outside}" in str(fetched)
        assert "\x1b" not in str(fetched)
    assert {item.name for item in tmp_path.iterdir()} == before | {"out"}
    assert secret.read_bytes() == b"secret"


def test_a_key_in_an_address_is_neither_shown_nor_stored(server, tmp_path, capsys, caplog):
    server.cuts = [1_500_000, 0, 0, 0]
    url = f"{server.url}?key=SECRET"
    with caplog.at_level("DEBUG"), pytest.raises(VragError) as caught:
        fetch_images(world().wanted, url, tmp_path)
    traceback = "".join(format_exception(caught.value, chain=True))
    assert "SECRET" not in traceback + capsys.readouterr().out + caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"SECRET" in path.read_bytes()]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("http://[::1/x?key=SECRET", "http"),
        ("http://me:SEC/SECRET@h/x", "http"),
        ("s3://b/x?key=SECRET", "http"),
        ("http://127.0.0.1:1/x?key=SECRET", "127.0.0.1:1/x"),
        ("{server}.missing?key=SECRET", "train.tar.gz.missing.*404"),
        ("{server}?key=SECRET", "refuses"),
    ],
)
def test_no_refusal_repeats_a_key(server, tmp_path, address, found):
    server.statuses = [302]
    with pytest.raises(VragError, match=found) as caught:
        fetch_images(["a/b.jpg"], address.format(server=server.url), tmp_path)
    assert "SECRET" not in str(caught.value)


def test_bad_names_and_places_are_refused(archive, tmp_path):
    for name in ("../a.jpg", "a.jpg", "a/b/c.jpg", "a/\n.jpg"):
        with pytest.raises(VragError, match="<folder>/<file>"):
            fetch_images([name], archive, tmp_path / "out")
    with pytest.raises(VragError, match=r"none\.tar\.gz"):
        fetch_images(world().wanted, tmp_path / "none.tar.gz", tmp_path / "out")
    with pytest.raises(VragError, match=r"train\.tar\.gz"):
        fetch_images(world().wanted, archive, archive / "below")
    assert not list(tmp_path.rglob("*.jpg"))


MOTH = picture("red", (60, 80))
fetch_by_url = partial(download_images, allow_private=True)
"""The tests' servers are on this machine."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(downloads, "PAUSES", (0.0, 0.0))


def addresses(server: ArchiveServer, *paths: str) -> dict[str, str]:
    """File → address of these paths on a server."""
    urls = [server.url.replace("/2021/train.tar.gz", f"/{path}") for path in paths]
    return {cached_image_name(url): url for url in urls}


def test_every_image_is_fetched_once_and_listed_with_its_size(tmp_path):
    with ArchiveServer(MOTH) as server:
        wanted = addresses(server, "moth.jpg?size=1", "moth.jpg?size=2", "a moth é.jpg")
        first = fetch_by_url(wanted, tmp_path, agent="me (me@x.org)")
        assert (first.fetched, first.had, first.missing) == (3, 0, {})
        assert server.agents == {"me (me@x.org)"}
        assert "/a%20moth%20%C3%A9.jpg" in server.paths
        damaged, *_ = wanted
        (tmp_path / damaged).write_bytes(MOTH[:200])
        again = fetch_by_url(wanted, tmp_path)
        assert (again.fetched, again.had, len(server.paths)) == (1, 2, 4)
    assert {name: (tmp_path / name).read_bytes() for name in wanted} == dict.fromkeys(wanted, MOTH)


def test_what_fails_is_listed_and_tried_by_the_next_run(tmp_path):
    with ArchiveServer(MOTH, cuts=(100,), statuses=(429, 503)) as server:
        wanted = addresses(server, "a.jpg", "missing.jpg")
        wanted |= {"url/b.jpg": "file:///etc/passwd"}
        fetched = fetch_by_url(wanted, tmp_path)
        assert (fetched.fetched, len(fetched.missing)) == (0, 3)
        assert fetch_by_url(wanted, tmp_path).fetched == 1
        server.data = b"<html>not here</html>"
        more = fetch_by_url(wanted | addresses(server, "page.jpg"), tmp_path)
        assert (more.had, more.fetched, len(more.missing)) == (1, 0, 3)
        lines = (tmp_path / "missing.txt").read_text(encoding="utf-8")
        for words in ("missing.jpg: .*404", "file:///etc/passwd", "page.jpg: not a readable"):
            assert re.search(words, lines)
        assert len(list((tmp_path / "url").iterdir())) == 1
        assert not fetch_by_url(addresses(server, "a.jpg"), tmp_path).missing
    assert not (tmp_path / "missing.txt").exists()


def test_many_failures_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "MAX_FAILURES", 2)
    with ArchiveServer(MOTH, statuses=(503,) * 100) as server:
        fetched = fetch_by_url(addresses(server, *"abcde"), tmp_path)
        assert len(server.paths) == 2 * 3
    assert sum("not tried" in each for each in fetched.missing.values()) == 3


def test_an_image_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(downloads, "LARGEST_IMAGE", 100)
    with ArchiveServer(MOTH) as server, pytest.raises(VragError, match="100 bytes"):
        download(server.url, new_client(AGENT))


@pytest.mark.parametrize(
    "host", ["localhost", "2130706433", "[::ffff:127.0.0.1]", "169.254.169.254"]
)
def test_a_private_address_out_of_data_is_named_and_never_asked(host, tmp_path):
    with ArchiveServer(MOTH) as server:
        url = server.url.replace("127.0.0.1", host)
        message = download_images({"url/a.jpg": url}, tmp_path).missing["url/a.jpg"]
        assert server.paths == []
    assert url in message
    assert "--allow-private" in message


@pytest.mark.parametrize("proxied", [False, True])
def test_a_redirect_to_a_private_address_is_refused(proxied, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "is_public", "127.0.0.1".__eq__)
    with ArchiveServer(MOTH, statuses=(302,)) as server:
        server.location = server.url.replace("127.0.0.1", "127.0.0.2")
        if proxied:
            monkeypatch.setenv("http_proxy", server.url)
        message = download_images({"url/a.jpg": server.url}, tmp_path).missing["url/a.jpg"]
        assert len(server.paths) == 1
    assert "127.0.0.2" in message


def test_a_server_that_drips_is_left_when_time_is_over(monkeypatch):
    monkeypatch.setattr(downloads, "DEADLINE", 0.5)
    with ArchiveServer(bytes(1 << 20)) as server:
        server.pause = 0.1  # a piece, of sixteen
        with pytest.raises(VragError, match=r"a\.jpg: .*0\.5 s"):
            download(f"{server.url}/a.jpg", new_client(AGENT))
