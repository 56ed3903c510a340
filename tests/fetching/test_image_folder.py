"""The images that annotations name come out of the archive whole, whatever happens on
the way, and nothing else is written.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import format_exception

import numpy as np
import pytest
from archive_server import ArchiveServer
from PIL import Image
from typer.testing import CliRunner

from vrag_kit.errors import VragError
from vrag_kit.fetching import (
    extract,
    fetch_images,
    fetch_visual_rag,
    http,
    resumable_tar,
)
from vrag_kit.runner.cli import app

TAXON = "Animalia_Chordata_Aves_Anseriformes_Anatidae_Branta"


@dataclass(frozen=True)
class World:
    """An archive as it is published, what it was built of, and annotations that name a
    third of it.
    """

    data: bytes
    images: dict[str, bytes]  # all, by "<folder>/<file>"
    wanted: list[str]
    annotations: Path

    def naming(self, path: Path, names: list[str]) -> World:
        """The archive with annotations, written to `path`, that name these images alone."""
        return replace(self, wanted=names, annotations=write_rows(path, names))

    def packed(self, *first: tuple[str | tarfile.TarInfo, bytes], **form: int) -> bytes:
        """Its images as an archive, behind other members."""
        members = ((f"train/{name}", content) for name, content in self.images.items())
        return packed([*first, *members], **form)

    def command(self, archive: Path | str, folder: Path) -> list[str]:
        """What `vrag` is called with to fetch them."""
        places = ("--archive", str(archive), "--to", str(folder))
        return ["fetch", "visual-rag", "--annotations", str(self.annotations), *places]

    def check(self, folder: Path) -> None:
        """Every wanted image is there, byte for byte, and listed; nothing else is."""
        assert {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("*/*")
        } == {name: self.images[name] for name in self.wanted}
        with (folder / "manifest.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert rows == [
            ["image", "bytes"],
            *([name, str(len(self.images[name]))] for name in sorted(self.wanted)),
        ]
        assert {path.name for path in folder.iterdir() if path.is_file()} == {
            "manifest.csv",
            ".lock",
        }


def write_rows(path: Path, names: Iterable[str]) -> Path:
    row = {"question": "Q?", "answer": ["black"], "sn": "Branta x"}
    path.write_text(json.dumps({**row, "images": dict.fromkeys(names, 1)}) + "\n")
    return path


def spoil(path: Path) -> None:
    """Zeros in place of a file's bytes, as a power cut leaves them."""
    path.write_bytes(bytes(path.stat().st_size))


def packed(
    members: Iterable[tuple[str | tarfile.TarInfo, bytes]], form: int = tarfile.GNU_FORMAT
) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=form, compresslevel=1) as tar:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    rng = np.random.default_rng(7)
    images = {}
    for species in range(10):
        for number in range(30):
            file = io.BytesIO()
            picture = Image.fromarray(rng.integers(0, 256, (110, 130, 3), dtype=np.uint8))
            picture.save(file, "JPEG", quality=97)
            folder = f"{species:05d}_{TAXON}_species{species}"
            name = f"{number:08x}-{'long-name-' * 6}{number}.jpg"
            images[f"{folder}/{name}"] = file.getvalue()
    wanted = sorted(images)[::3]
    data = packed((f"2021/train/{name}", content) for name, content in images.items())
    rows = write_rows(tmp_path_factory.mktemp("world") / "v2.jsonl", wanted)
    return World(data, images, wanted, rows)


@pytest.fixture
def archive(world: World, tmp_path: Path) -> Path:
    path = tmp_path / "train.tar.gz"
    path.write_bytes(world.data)
    return path


@pytest.fixture
def server(world: World) -> Iterator[ArchiveServer]:
    with ArchiveServer(world.data) as started:
        yield started


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(resumable_tar, "SPAN_BYTES", 1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_local_archive_gives_exactly_the_images_that_the_annotations_name(
    world: World, tmp_path: Path, form: int
) -> None:
    path = tmp_path / "train.tar.gz"
    path.write_bytes(world.packed(form=form))
    fetched = fetch_visual_rag(world.annotations, path, tmp_path / "out")
    assert (fetched.wanted, fetched.had, fetched.fetched) == (100, 0, 100)
    assert fetched.refused == ()
    assert fetched.complete
    world.check(tmp_path / "out")


def test_reading_stops_when_the_last_image_is_found(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    few = world.naming(tmp_path / "few.jsonl", world.wanted[:3])
    server.pause = 0.002
    fetch_visual_rag(few.annotations, server.url, tmp_path / "out")
    assert server.sent < len(world.data)
    few.check(tmp_path / "out")


def test_a_server_that_sends_no_parts_is_read_again_and_says_so(
    world: World, server: ArchiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.ranges = False
    server.cuts = [2_000_000]
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.starts == [0, 0]
    assert "no Range support; reading the first 2.0 MB again" in capsys.readouterr().out
    world.check(tmp_path)


def test_an_archive_that_is_replaced_while_it_is_read_is_an_error_and_no_mixture(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    turned = {name: content[::-1] for name, content in world.images.items()}
    other = replace(world, images=turned).packed()
    server.cuts = [2_000_000]
    server.replacement = (other[: len(world.data)].ljust(len(world.data), b"\0"), '"second"')
    with pytest.raises(VragError, match=r'"first".*"second".* of 100 images are in'):
        fetch_visual_rag(world.annotations, server.url, tmp_path)
    assert all(
        path.read_bytes() == world.images[path.relative_to(tmp_path).as_posix()]
        for path in tmp_path.glob("*/*")
    )


def test_a_new_archive_is_read_from_the_beginning_and_the_images_of_the_old_one_stay(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    server.cuts = [3_000_000, 0, 0, 0]
    with pytest.raises(VragError, match=r"at 3\.0 of .*gave up"):
        fetch_visual_rag(world.annotations, server.url, tmp_path)
    server.etag = '"second"'
    server.starts.clear()
    fetched = fetch_visual_rag(world.annotations, server.url, tmp_path)
    assert server.starts == [0]
    assert fetched.had > 0
    world.check(tmp_path)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_remote_file_reads_like_a_local_one_whatever_the_order(
    monkeypatch: pytest.MonkeyPatch, ranges: bool
) -> None:
    monkeypatch.setattr(http, "WINDOW_BYTES", 1000)
    rng = np.random.default_rng(3)
    data = rng.bytes(20_000)
    local = io.BytesIO(data)
    with (
        ArchiveServer(data, ranges=ranges, cuts=(500, 0, 3000, 7000)) as server,
        io.BufferedReader(http.RangeReader(server.url), 100) as far,
    ):
        for step in rng.integers(-4000, 6000, 60):
            place = int(np.clip(local.tell() + step, 0, 21_000))
            assert far.seek(place) == local.seek(place)
            count = int(rng.integers(0, 5000))
            assert far.read(count) == local.read(count)
            assert far.tell() == local.tell()
        assert far.seek(-7, io.SEEK_END) == 19_993
        assert far.read() == data[-7:]


def _break_off(world: World, server: ArchiveServer, folder: Path, after: int = 4_000_000) -> None:
    server.cuts = [after, 0, 0, 0]
    with pytest.raises(VragError, match="run the same command again"):
        fetch_visual_rag(world.annotations, server.url, folder)
    server.starts.clear()


def test_runs_that_start_together_wait_for_one_another(
    world: World, archive: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(12) as pool:
        runs = list(
            pool.map(
                lambda _: fetch_visual_rag(world.annotations, archive, tmp_path / "out"),
                range(12),
            )
        )
    assert sorted(run.fetched for run in runs) == [0] * 11 + [100]
    world.check(tmp_path / "out")


@pytest.mark.slow
def test_a_run_does_not_go_on_where_it_would_miss_images(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    names = sorted([*world.wanted, sorted(world.images)[1]])
    after = world.naming(tmp_path / "more.jsonl", names)
    _break_off(world, server, tmp_path / "out")
    fetch_visual_rag(after.annotations, server.url, tmp_path / "out")
    assert server.starts == [0]
    after.check(tmp_path / "out")


def test_images_put_there_by_hand_are_opened_and_only_the_damaged_ones_fetched(
    world: World, archive: Path, tmp_path: Path
) -> None:
    good, bad = world.wanted[:2]
    for name in (good, bad):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / good).write_bytes(world.images[good])
    (tmp_path / "out" / bad).write_bytes(world.images[bad][:500])
    fetched = fetch_visual_rag(world.annotations, archive, tmp_path / "out")
    assert (fetched.had, fetched.fetched, fetched.complete) == (1, 99, True)
    world.check(tmp_path / "out")


def _link(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_nothing_is_written_through_links_that_lie_in_the_folder(
    world: World, archive: Path, tmp_path: Path
) -> None:
    elsewhere, out, name = tmp_path / "elsewhere", tmp_path / "out", world.wanted[0]
    elsewhere.mkdir()
    out.mkdir()
    folder = out / Path(name).parts[0]
    folder.symlink_to(elsewhere)
    with pytest.raises(VragError, match=r"a link to .*elsewhere; images would be written outside"):
        fetch_visual_rag(world.annotations, archive, out)
    folder.unlink()
    folder.mkdir()
    for link in (out / name, folder / f".{Path(name).name}.part"):
        link.symlink_to(elsewhere / "target.jpg")
    assert fetch_visual_rag(world.annotations, archive, out).complete
    assert list(elsewhere.iterdir()) == []
    assert not (out / name).is_symlink()
    world.check(out)


@pytest.mark.slow
def test_what_an_archive_lacks_or_has_damaged_is_listed_and_it_is_not_read_twice(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    absent, damaged = world.wanted[:25], world.wanted[30]
    content = {**world.images, damaged: world.images[damaged][:700]}
    for name in absent:
        del content[name]
    server.data, out = replace(world, images=content).packed(), tmp_path / "out"
    for asked_for in ([0], []):
        server.starts = []
        result = CliRunner().invoke(app, world.command(server.url, out))
        assert (result.exit_code, server.starts) == (1, asked_for)
        assert "26 missing" in result.output
        assert result.output.count("missing: 0") == 20
    lines = (out / "missing.txt").read_text().splitlines()
    reasons = dict(line.split("\t") for line in lines)
    assert sorted(reasons) == sorted([*absent, damaged])
    assert reasons[absent[0]] == f"not in {server.url}"
    assert "damaged" in reasons[damaged]
    assert f"{server.url}: {damaged}: not a readable picture" in reasons[damaged]
    assert len((out / "manifest.csv").read_text().splitlines()) == 1 + 74
    server.data, server.etag = world.data, '"second"'
    assert fetch_visual_rag(world.annotations, server.url, out).complete
    world.check(out)


def test_a_tar_that_was_cut_off_before_it_was_compressed_is_an_error(
    world: World, tmp_path: Path
) -> None:
    """Its gzip is whole, and its last member too: only the end mark of the tar is missing."""
    path, data = tmp_path / "train.tar.gz", gzip.decompress(world.data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        last = tar.getmembers()[-1]
    path.write_bytes(gzip.compress(data[: last.offset], compresslevel=1))
    rows = write_rows(tmp_path / "last.jsonl", [last.name.removeprefix("2021/train/")])
    with pytest.raises(VragError, match=r"cut off .* end mark"):
        fetch_visual_rag(rows, path, tmp_path / "out")


def test_a_key_in_an_address_that_works_is_neither_shown_nor_stored(
    world: World,
    server: ArchiveServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.cuts = [4_000_000, 0, 0, 0]
    url = f"{server.url}?key=SECRET"
    with caplog.at_level("DEBUG"), pytest.raises(VragError) as caught:
        fetch_visual_rag(world.annotations, url, tmp_path)
    traceback = "".join(format_exception(caught.value, chain=True))
    assert "SECRET" not in traceback + capsys.readouterr().out + caplog.text
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()
    ]


@pytest.mark.parametrize("cuts", [(), (300_000, 0, 1, 500_000, 0, 0, 900_000)])
def test_an_archive_on_a_server_is_read_once_however_often_the_connection_breaks(
    world: World, server: ArchiveServer, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    server.cuts = list(cuts)
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.sent <= len(world.data)
    assert server.starts == sorted(server.starts)
    assert len(server.starts) == len(cuts) + 1
    world.check(tmp_path)


def test_a_finished_run_asks_for_no_archive_and_says_that_it_compared_sizes_alone(
    world: World, archive: Path, tmp_path: Path
) -> None:
    arguments = world.command(archive, tmp_path / "out")
    assert CliRunner().invoke(app, arguments).output.endswith("out is complete\n")
    spoil(tmp_path / "out" / world.wanted[0])
    nowhere = world.command("http://127.0.0.1:1/none.tar.gz", tmp_path / "out")
    result = CliRunner().invoke(app, nowhere)
    assert result.exit_code == 0
    assert "100 of the existing images have the sizes in manifest.csv" in result.output


def test_a_busy_server_is_asked_again_when_it_says_and_given_up_if_it_stays_so(
    world: World, server: ArchiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    for asked, waited in (("7", 7), ("9999", http.LONGEST_WAIT), ("soon", 0.01)):
        server.statuses, server.retry_after = [429], asked
        http.RangeReader(server.url).close()
        assert waited in waits
    server.statuses = [503] * 9
    with pytest.raises(VragError, match="503"):
        fetch_visual_rag(world.annotations, server.url, tmp_path / "other")
    assert len(server.statuses) == 5


def _run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"import sys\n{code}", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


SMALL_SPANS = """from vrag_kit.fetching import resumable_tar, fetch_visual_rag
resumable_tar.SPAN_BYTES = 1 << 18
fetch_visual_rag(*sys.argv[1:])"""


@pytest.mark.slow
def test_after_a_kill_the_next_process_does_not_read_the_beginning_again(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    server.stall = int(0.75 * len(world.data))
    process = _run(SMALL_SPANS, world.annotations, server.url, tmp_path)
    noted = tmp_path / ".fetch-resume.json"
    while len(list(tmp_path.glob("*/*.jpg"))) < 50 or not noted.exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    server.stall = None
    time.sleep(0.1)  # until the server has noticed
    server.sent, server.starts = 0, []
    fetched = fetch_visual_rag(world.annotations, server.url, tmp_path)
    assert fetched.had > 20
    assert fetched.had + fetched.fetched == 100
    assert server.sent <= len(world.data) - server.starts[0] < 0.8 * len(world.data)
    world.check(tmp_path)


@pytest.mark.slow
def test_an_interrupted_command_says_that_it_can_be_run_again(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    server.pause = 0.02
    # it hears an interrupt also where these tests run in the background
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from vrag_kit.runner.cli import main; main()"
    process = _run(code, *world.command(server.url, tmp_path))
    while not list(tmp_path.glob("*/*.jpg")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command again" in printed
    server.pause = 0
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).had > 0
    world.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("note", [b'{"point": {"offset": "many", "index": ""}}', b"\xff\x00"])
def test_a_damaged_image_or_a_damaged_note_of_the_last_stop_means_reading_from_the_beginning(
    world: World, server: ArchiveServer, tmp_path: Path, note: bytes
) -> None:
    _break_off(world, server, tmp_path)
    spoil(next(tmp_path.glob("00001*/*")))
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.starts == [0]
    world.check(tmp_path)
    (tmp_path / world.wanted[-1]).unlink()
    (tmp_path / ".fetch-resume.json").write_bytes(note)
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).had == 99
    world.check(tmp_path)


def test_members_that_lead_outside_are_refused_and_named(world: World, tmp_path: Path) -> None:
    first, second, third, fourth, *_ = world.wanted
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"secret")
    hostile: list[tuple[str | tarfile.TarInfo, bytes]] = [
        (f"../../{first}", b"evil"),
        (f"train/../{first}", b"evil"),
        (str(tmp_path / "absolute.jpg"), b"evil"),
        ("../\x1b[2J\udcff.jpg", b""),
        (_link(f"train/{second}", tarfile.SYMTYPE, str(secret)), b""),
        (_link(f"train/{third}", tarfile.LNKTYPE, "../../secret.jpg"), b""),
        (_link(f"train/{fourth}", tarfile.FIFOTYPE), b""),
    ]
    again = [(f"train/{name}", b"other") for name in world.wanted[:7]]
    good = [(f"train/{name}", content) for name, content in world.images.items()]
    (tmp_path / "train.tar.gz").write_bytes(packed([*hostile, *good[:30], *again, *good[30:]]))
    before = {item.name for item in tmp_path.iterdir()}
    fetched = fetch_visual_rag(world.annotations, tmp_path / "train.tar.gz", tmp_path / "out")
    assert len(fetched.refused) == 7
    assert (fetched.fetched, fetched.complete) == (100, True)
    assert f"../../{first}" in str(fetched)
    assert f"train/{second}" in str(fetched)
    assert "\x1b" not in str(fetched)
    assert {item.name for item in tmp_path.iterdir()} == before | {"out"}
    assert secret.read_bytes() == b"secret"
    world.check(tmp_path / "out")


@pytest.mark.slow
def test_a_damaged_archive_is_an_error_and_what_it_gave_stays(world: World, tmp_path: Path) -> None:
    path, changed = tmp_path / "train.tar.gz", bytearray(world.data)
    changed[3_000_000:3_050_000] = b"x" * 50_000
    for data, word in ((changed, "damaged"), (world.data[: len(world.data) // 2], "cut off")):
        path.write_bytes(data)
        with pytest.raises(VragError, match=word):
            fetch_visual_rag(world.annotations, path, tmp_path / "out")
    path.write_bytes(world.data)
    assert fetch_visual_rag(world.annotations, path, tmp_path / "out").had > 10
    world.check(tmp_path / "out")


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("http://127.0.0.1:1/a b.tgz?key=SECRET", "http"),
        ("http://[::1/x?key=SECRET", "http"),
        ("http://me:SEC/SECRET@h/x", "http"),
        ("s3://b/x?key=SECRET", "http"),
        ("//me:SECRET@h/x", "h/x"),
        ("http://127.0.0.1:1/x?key=SECRET", "127.0.0.1:1/x"),
        ("{server}.missing?key=SECRET", "train.tar.gz.missing.*404"),
        ("{server}?key=SECRET", "302"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_its_keys(
    world: World, server: ArchiveServer, tmp_path: Path, address: str, found: str
) -> None:
    server.statuses = [302]
    with pytest.raises(VragError, match=found) as caught:
        fetch_visual_rag(world.annotations, address.format(server=server.url), tmp_path)
    assert "SECRET" not in str(caught.value)


def test_places_that_cannot_be_read_or_written_are_named(
    world: World, archive: Path, tmp_path: Path
) -> None:
    outside = write_rows(tmp_path / "outside.jsonl", ["../a.jpg"])
    for rows, source, to, found in (
        (tmp_path / "none.jsonl", archive, tmp_path / "out", "none.jsonl"),
        (outside, archive, tmp_path / "out", r"line 1.*\.\./a\.jpg"),
        (world.annotations, tmp_path / "none.tar.gz", tmp_path / "out", "none.tar.gz"),
        (world.annotations, archive, archive / "below", "below"),
    ):
        with pytest.raises(VragError, match=found):
            fetch_visual_rag(rows, source, to)
    assert not list(tmp_path.rglob("*.jpg"))


@pytest.mark.slow
def test_after_a_full_disk_the_next_run_goes_on(
    world: World, archive: Path, tmp_path: Path
) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (10_000, -1))\n"
    process = _run(limit + SMALL_SPANS, world.annotations, archive, tmp_path / "out")
    _, printed = process.communicate()
    assert "File too large" in printed
    assert list((tmp_path / "out").glob("*/*")) == list((tmp_path / "out").glob("*/.*")) == []
    assert fetch_visual_rag(world.annotations, archive, tmp_path / "out").complete
    world.check(tmp_path / "out")


def test_images_of_any_collection_are_fetched_by_their_names(
    world: World, archive: Path, tmp_path: Path
) -> None:
    names = [world.wanted[4], world.wanted[2], world.wanted[4]]
    fetched = fetch_images(names, archive, tmp_path / "out")
    assert (fetched.wanted, fetched.fetched, fetched.complete) == (2, 2, True)
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == world.images[name]
    for name in ("../a.jpg", "a.jpg", "a/b/c.jpg", "a/\n.jpg"):
        with pytest.raises(VragError, match="<folder>/<file>"):
            fetch_images([name], archive, tmp_path / "out")


@pytest.mark.slow
def test_a_member_that_cannot_be_the_image_it_is_named_like_is_refused_with_the_reason(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "LARGEST_IMAGE", 1_000_000)
    link, folder, large, outside, absent, *_ = world.wanted
    strange: list[tuple[str | tarfile.TarInfo, bytes]] = [
        (_link(f"train/{link}", tarfile.LNKTYPE, "other"), b""),
        (_link(f"train/{folder}", tarfile.DIRTYPE), b""),
        (f"train/{large}", bytes(1_000_001)),
        (f"../{outside}", b"x"),
    ]
    bad = {link, folder, large, outside, absent}
    good = [(f"train/{name}", data) for name, data in world.images.items() if name not in bad]
    (tmp_path / "train.tar.gz").write_bytes(packed([*strange, *good]))
    for _ in range(2):  # the second run reads nothing and remembers why
        fetched = fetch_visual_rag(world.annotations, tmp_path / "train.tar.gz", tmp_path / "out")
        tokens = {link: "link", folder: "folder", absent: "not in", large: "1,000,001 bytes"}
        tokens[outside] = "points outside"
        assert fetched.missing.keys() == tokens.keys()
        assert all(token in fetched.missing[name] for name, token in tokens.items())
        assert fetched.had + fetched.fetched == 95
