"""The images that annotations name come out of the archive whole, whatever happens on
the way, and nothing else is written.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
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


def test_an_archive_on_a_server_is_read_once(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.starts == [0]
    assert server.sent <= len(world.data)
    world.check(tmp_path)


def test_reading_stops_when_the_last_image_is_found(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    few = world.naming(tmp_path / "few.jsonl", world.wanted[:3])
    server.pause = 0.002
    fetch_visual_rag(few.annotations, server.url, tmp_path / "out")
    assert server.sent < len(world.data)
    few.check(tmp_path / "out")


def test_a_run_with_nothing_to_do_asks_for_no_archive(
    world: World, archive: Path, tmp_path: Path
) -> None:
    fetch_visual_rag(world.annotations, archive, tmp_path / "out")
    nowhere = "http://127.0.0.1:1/none.tar.gz"
    fetched = fetch_visual_rag(world.annotations, nowhere, tmp_path / "out")
    assert (fetched.had, fetched.by_size, fetched.fetched) == (100, 100, 0)
    assert fetched.complete
    world.check(tmp_path / "out")


def test_images_of_which_only_the_size_was_compared_are_not_called_complete_outright(
    world: World, archive: Path, tmp_path: Path
) -> None:
    arguments = world.command(archive, tmp_path / "out")
    assert CliRunner().invoke(app, arguments).output.endswith("out is complete\n")
    spoil(tmp_path / "out" / world.wanted[0])
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "100 of the existing images have the sizes in manifest.csv" in result.output
    assert result.output.endswith("out is complete, as far as names and sizes tell\n")


def test_a_connection_that_breaks_again_and_again_is_taken_up_where_it_broke(
    world: World, server: ArchiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cuts = (300_000, 0, 1, 500_000, 0, 0, 900_000)
    server.cuts = list(cuts)
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.sent <= len(world.data)
    assert server.starts == sorted(server.starts)
    assert len(server.starts) == len(cuts) + 1
    assert capsys.readouterr().out.count("trying again") == len(cuts)
    world.check(tmp_path)


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


def test_a_server_that_is_busy_is_asked_again_and_one_that_stays_so_is_given_up(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    server.statuses = [503, 503]
    assert fetch_visual_rag(world.annotations, server.url, tmp_path / "out").complete
    server.statuses[:] = [503] * 9
    with pytest.raises(VragError, match=r"gave up after 4 tries \(503 Service Unavailable\)"):
        fetch_visual_rag(world.annotations, server.url, tmp_path / "other")


def test_a_busy_server_is_asked_again_when_it_says(
    world: World, server: ArchiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    server.pause = 0
    for asked, waited in (("7", 7), ("9999", http.LONGEST_WAIT), ("soon", 0.01)):
        server.statuses, server.retry_after = [429], asked
        http.RangeReader(server.url).close()
        assert waits.pop(0) == waited


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


def _start(world: World, url: str, folder: Path) -> subprocess.Popen[bytes]:
    code = (
        "import sys\n"
        "from vrag_kit.fetching import resumable_tar, fetch_visual_rag\n"
        "resumable_tar.SPAN_BYTES = 1 << 18\n"
        "fetch_visual_rag(*sys.argv[1:])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(world.annotations), url, str(folder)],
        stdout=subprocess.DEVNULL,
    )


def _kill_midway(world: World, server: ArchiveServer, folder: Path) -> None:
    server.stall = int(0.75 * len(world.data))
    process = _start(world, server.url, folder)
    # what the client has done; the server is ahead of it
    while len(list(folder.glob("*/*.jpg"))) < 50 or not (folder / ".fetch-resume.json").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    server.stall = None
    time.sleep(0.1)  # until the server has noticed
    server.sent, server.starts = 0, []


@pytest.mark.slow
def test_a_process_that_was_killed_is_followed_by_one_that_does_not_read_the_beginning_again(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    _kill_midway(world, server, tmp_path)
    fetched = fetch_visual_rag(world.annotations, server.url, tmp_path)
    assert fetched.had > 20
    assert fetched.had + fetched.fetched == 100
    assert len(server.starts) == 1
    assert server.sent <= len(world.data) - server.starts[0] < 0.8 * len(world.data)
    world.check(tmp_path)


@pytest.mark.slow
def test_a_command_that_is_interrupted_says_that_it_can_be_run_again(
    world: World, tmp_path: Path
) -> None:
    with ArchiveServer(world.data, pause=0.02) as server:
        command = [sys.executable, "-m", "vrag_kit.runner", *world.command(server.url, tmp_path)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # it hears an interrupt also where these tests run in the background
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while not list(tmp_path.glob("*/*.jpg")):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "run the same command again" in told
        server.pause = 0
        assert fetch_visual_rag(world.annotations, server.url, tmp_path).had > 0
    world.check(tmp_path)


def _break_off(world: World, server: ArchiveServer, folder: Path, after: int = 4_000_000) -> None:
    server.cuts = [after, 0, 0, 0]
    with pytest.raises(VragError, match="run the same command again"):
        fetch_visual_rag(world.annotations, server.url, folder)
    server.starts.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        spoil,
        lambda path: path.write_bytes(path.read_bytes()[:300].ljust(path.stat().st_size, b"x")),
        Path.unlink,
    ],
)
def test_an_image_that_was_damaged_after_it_was_written_is_fetched_again(
    world: World, server: ArchiveServer, tmp_path: Path, damage: object
) -> None:
    _break_off(world, server, tmp_path)
    damage(next(tmp_path.glob("00001*/*")))
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert server.starts == [0]
    world.check(tmp_path)


@pytest.mark.slow
def test_for_an_image_that_is_gone_the_archive_is_read_from_the_beginning_only_once(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    names = [*world.wanted[:60], sorted(world.images)[-1]]  # the last one keeps the reading going
    late = world.naming(tmp_path / "late.jsonl", names)
    other = write_rows(tmp_path / "other.jsonl", names[-1:])
    fetch_visual_rag(other, server.url, tmp_path / "out")
    (tmp_path / "out" / names[-1]).unlink()
    server.starts.clear()
    _break_off(late, server, tmp_path / "out")
    assert fetch_visual_rag(late.annotations, server.url, tmp_path / "out").complete
    assert len(server.starts) == 1
    assert server.starts[0] > 1_000_000
    late.check(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", ["offset", "list", "text", "bytes"])
def test_a_note_of_the_last_stop_that_is_damaged_costs_time_and_nothing_else(
    world: World, server: ArchiveServer, tmp_path: Path, spoilt: str
) -> None:
    _break_off(world, server, tmp_path)
    path = tmp_path / ".fetch-resume.json"
    noted = json.loads(path.read_text())
    path.write_bytes(
        {
            "offset": json.dumps({**noted, "point": {"offset": "many", "index": ""}}).encode(),
            "list": b"[]",
            "text": b"{",
            "bytes": b"\xff\x00",
        }[spoilt]
    )
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).had > 0
    assert server.starts == [0]
    world.check(tmp_path)


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


def test_members_that_lead_outside_are_refused_and_named(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third, fourth, *_ = world.wanted
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"secret")
    hostile: list[tuple[str | tarfile.TarInfo, bytes]] = [
        (f"../../{first}", b"evil"),
        (f"/{first}", b"evil"),
        (f"train/../{first}", b"evil"),
        ("../../../outside.txt", b"evil"),
        (str(tmp_path / "absolute.jpg"), b"evil"),
        (_link(f"train/{second}", tarfile.SYMTYPE, str(secret)), b""),
        (_link(f"train/{third}", tarfile.LNKTYPE, "../../secret.jpg"), b""),
        (_link(f"train/{fourth}", tarfile.FIFOTYPE), b""),
        (_link(f"train/{fourth}", tarfile.CHRTYPE), b""),
        (_link("train/unwanted/link.jpg", tarfile.SYMTYPE, "/"), b""),
    ]
    path = tmp_path / "train.tar.gz"
    path.write_bytes(world.packed(*hostile))
    before = {item.name for item in tmp_path.iterdir()}
    fetched = fetch_visual_rag(world.annotations, path, tmp_path / "out")
    assert len(fetched.refused) == 9
    assert (fetched.fetched, fetched.complete) == (100, True)
    assert f"refused: ../../{first}: its name points outside the folder" in str(fetched)
    assert f"refused: train/{second}: no regular file, but a link" in str(fetched)
    assert {item.name for item in tmp_path.iterdir()} == before | {"out"}
    assert secret.read_bytes() == b"secret"
    world.check(tmp_path / "out")


def _sparse(name: str, size: int) -> bytes:
    """A member of the old GNU kind that says: `size` bytes, all of them a hole."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT)[-512:])  # behind the header of the long name
    header[386:410] = b"%011o\0%011o\0" % (size, 0)
    header[483:495] = b"%011o\0" % size
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    return info.tobuf(tarfile.GNU_FORMAT)[:-512] + bytes(header)


@pytest.mark.slow
def test_a_member_that_cannot_be_the_image_it_is_named_like_is_refused_with_the_reason(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "LARGEST_IMAGE", 1_000_000)
    link, folder, large, sparse, outside, absent, *_ = world.wanted
    strange: list[tuple[str | tarfile.TarInfo, bytes]] = [
        (_link(f"train/{link}", tarfile.LNKTYPE, "other"), b""),
        (_link(f"train/{folder}", tarfile.DIRTYPE), b""),
        (f"train/{large}", bytes(1_000_001)),
        (f"../{outside}", b"x"),
    ]
    rest = [
        (f"train/{name}", content)
        for name, content in world.images.items()
        if name not in world.wanted[:6]
    ]
    (tmp_path / "train.tar.gz").write_bytes(
        gzip.compress(
            _sparse(f"train/{sparse}", 300_000_000) + gzip.decompress(packed([*strange, *rest])), 1
        )
    )
    for _ in range(2):  # the second run reads nothing and remembers why
        fetched = fetch_visual_rag(world.annotations, tmp_path / "train.tar.gz", tmp_path / "out")
        tokens = {link: "link", folder: "folder", absent: "not in", large: "1,000,001 bytes"}
        tokens |= {sparse: "sparse", outside: "points outside"}
        assert fetched.missing.keys() == tokens.keys()
        assert all(token in fetched.missing[name] for name, token in tokens.items())
        assert fetched.had + fetched.fetched == 94
        assert (tmp_path / "out" / "missing.txt").read_text() == "".join(
            f"{name}\t{reason}\n" for name, reason in sorted(fetched.missing.items())
        )


@pytest.mark.slow
def test_of_members_with_one_name_the_first_is_taken(world: World, tmp_path: Path) -> None:
    twice = [
        (f"train/{name}", content)
        for name, content in world.images.items()
        for content in (content, b"other")[: 1 + (name in world.wanted[:7])]
    ]
    (tmp_path / "train.tar.gz").write_bytes(packed(twice))
    fetch_visual_rag(world.annotations, tmp_path / "train.tar.gz", tmp_path / "out")
    world.check(tmp_path / "out")


@pytest.mark.slow
def test_names_of_refused_members_can_be_printed_whatever_their_bytes(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "train.tar.gz").write_bytes(world.packed(("../\x1b[2J\udcff.jpg", b"")))
    told = str(fetch_visual_rag(world.annotations, tmp_path / "train.tar.gz", tmp_path / "out"))
    assert "refused: ../�[2J�.jpg: its name points outside the folder" in told.encode().decode()


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


@pytest.mark.parametrize(
    "name",
    [
        "../a.jpg",
        "/etc/a.jpg",
        "a/../../b.jpg",
        "deep/er/a.jpg",
        "a.jpg",
        "a//b.jpg",
        "./a/b.jpg",
        "a/b\u0000.jpg",
        "a b/c.jpg",
        "..\\a/b.jpg",
    ],
)
def test_annotations_that_name_an_image_outside_are_refused_before_anything_is_written(
    archive: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(VragError, match="line 1: image"):
        fetch_visual_rag(write_rows(tmp_path / "bad.jsonl", [name]), archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


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


@pytest.mark.slow
def test_an_image_that_is_damaged_in_one_archive_is_sought_in_another_even_after_an_interruption(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    damaged = world.wanted[-1]
    cut = {**world.images, damaged: world.images[damaged][:700]}
    server.data = replace(world, images=cut).packed()
    for asked_for in ([0], []):
        server.starts = []
        fetched = fetch_visual_rag(world.annotations, server.url, tmp_path)
        assert (list(fetched.missing), server.starts) == ([damaged], asked_for)
    server.data, server.etag = world.data, '"second"'
    _break_off(world, server, tmp_path)
    assert fetch_visual_rag(world.annotations, server.url, tmp_path).complete
    assert len(server.starts) == 1
    assert server.starts[0] > 1_000_000
    world.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.5, 0.97])
def test_an_archive_that_is_cut_off_gives_what_it_has_and_an_error(
    world: World, tmp_path: Path, kept: float
) -> None:
    path, names = tmp_path / "train.tar.gz", sorted(world.images)
    last = world.naming(tmp_path / "last.jsonl", names[::5] + names[-1:])
    path.write_bytes(world.data[: int(kept * len(world.data))])
    with pytest.raises(VragError, match=r"cut off.* of 61 images .*run the same command again"):
        fetch_visual_rag(last.annotations, path, tmp_path / "out")
    path.write_bytes(world.data)
    assert fetch_visual_rag(last.annotations, path, tmp_path / "out").had > 10
    last.check(tmp_path / "out")


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


def test_bytes_that_were_changed_on_the_way_are_an_error(world: World, tmp_path: Path) -> None:
    path, data = tmp_path / "train.tar.gz", bytearray(world.data)
    data[3_000_000:3_050_000] = b"x" * 50_000
    path.write_bytes(data)
    with pytest.raises(VragError, match="damaged"):
        fetch_visual_rag(world.annotations, path, tmp_path / "out")


def test_an_archive_that_is_not_there_is_an_error_that_hides_keys(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match=r"train.tar.gz.missing.*404") as caught:
        fetch_visual_rag(world.annotations, f"{server.url}.missing?signature=KEY", tmp_path)
    assert "KEY" not in str(caught.value)
    for place, words in (
        ("http://127.0.0.1:1/a.tar.gz", "cannot be reached"),
        (str(tmp_path / "none.tar.gz"), "No such file"),
        (str(tmp_path), "Is a directory"),
    ):
        with pytest.raises(VragError, match=words) as caught:
            fetch_visual_rag(world.annotations, place, tmp_path / "out")
        assert "KEY" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/a b.tgz?key=SECRET",
        "http://127.0.0.1:1/ü.tgz?key=SECRET",
        "http://[::1/x?key=SECRET",
        "http://127.0.0.1:SECRET/x",
        "http://me:SEC/SECRET@h/x",
        "http://h:0/x?key=SECRET",
        "https:/h/x?key=SECRET",
        " https://h/x?key=SECRET",
        "s3://b/x?key=SECRET",
        "me:SECRET@h/x",
        "//me:SECRET@h/x",
        "http://127.0.0.1:1/x?key=SECRET",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_its_keys(
    world: World, tmp_path: Path, address: str
) -> None:
    with pytest.raises(VragError) as caught:
        fetch_visual_rag(world.annotations, address, tmp_path)
    assert "SECRET" not in str(caught.value)
    assert re.search("://host/path|http://|cannot be read|cannot be reached", str(caught.value))


def test_an_address_that_a_server_sends_us_on_to_is_not_repeated(
    world: World, server: ArchiveServer, tmp_path: Path
) -> None:
    server.statuses = [302]
    with pytest.raises(VragError, match=r"refuses.*302") as caught:
        fetch_visual_rag(world.annotations, server.url, tmp_path)
    assert "SECRET" not in str(caught.value)


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


def test_annotations_that_are_not_there_and_a_folder_that_cannot_be_written_are_errors(
    world: World, archive: Path, tmp_path: Path
) -> None:
    with pytest.raises(VragError, match="no such annotation file"):
        fetch_visual_rag(tmp_path / "none.jsonl", archive, tmp_path / "out")
    for folder in (archive, archive / "below"):
        with pytest.raises(VragError, match="cannot be written"):
            fetch_visual_rag(world.annotations, archive, folder)


@pytest.mark.slow
def test_a_full_disk_is_an_error_after_which_the_next_run_goes_on(
    world: World, archive: Path, tmp_path: Path
) -> None:
    code = (
        "import resource, sys\n"
        "from vrag_kit.fetching import fetch_visual_rag\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))\n"
        "fetch_visual_rag(*sys.argv[1:])"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            str(world.annotations),
            str(archive),
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "VragError" in done.stderr
    assert "cannot be written (File too large). Make room there" in done.stderr
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
    for name in ("../a.jpg", "/etc/passwd", "a.jpg", "a/b/c.jpg", "a/..", "./a.jpg", "a/\n.jpg"):
        with pytest.raises(VragError, match="expected '<folder>/<file>'"):
            fetch_images([name], archive, tmp_path / "out")
