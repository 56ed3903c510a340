"""Images are fetched by address once, from public hosts alone, and what cannot be fetched is
listed and left out.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from archive_server import ArchiveServer
from crag_rows import picture

from vrag_kit.benchmarks.datasets.crag_mm import cached_image_name
from vrag_kit.errors import VragError
from vrag_kit.fetching import downloads
from vrag_kit.fetching.downloads import download, download_images
from vrag_kit.fetching.http import AGENT, new_client

MOTH = picture("red", (60, 80))
fetch_by_url = partial(download_images, allow_private=True)
"""The tests' servers are on this machine."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PAUSES", (0.0, 0.0))


def addresses(server: ArchiveServer, *paths: str) -> dict[str, str]:
    """File → address of these paths on a server."""
    urls = [server.url.replace("/2021/train.tar.gz", f"/{path}") for path in paths]
    return {cached_image_name(url): url for url in urls}


def test_every_image_is_fetched_once_and_listed_with_its_size(tmp_path: Path) -> None:
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


def test_what_fails_is_listed_and_tried_by_the_next_run(tmp_path: Path) -> None:
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


def test_many_failures_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_FAILURES", 2)
    with ArchiveServer(MOTH, statuses=(503,) * 100) as server:
        fetched = fetch_by_url(addresses(server, *"abcde"), tmp_path)
        assert len(server.paths) == 2 * 3
    assert sum("not tried" in each for each in fetched.missing.values()) == 3


def test_an_image_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LARGEST_IMAGE", 100)
    with ArchiveServer(MOTH) as server, pytest.raises(VragError, match="100 bytes"):
        download(server.url, new_client(AGENT))


@pytest.mark.parametrize(
    "host", ["localhost", "2130706433", "[::ffff:127.0.0.1]", "169.254.169.254"]
)
def test_a_private_address_out_of_data_is_named_and_never_asked(host: str, tmp_path: Path) -> None:
    with ArchiveServer(MOTH) as server:
        url = server.url.replace("127.0.0.1", host)
        message = download_images({"url/a.jpg": url}, tmp_path).missing["url/a.jpg"]
        assert server.paths == []
    assert url in message
    assert "--allow-private" in message


@pytest.mark.parametrize("proxied", [False, True])
def test_a_redirect_to_a_private_address_is_refused(
    proxied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "is_public", "127.0.0.1".__eq__)
    with ArchiveServer(MOTH, statuses=(302,)) as server:
        server.location = server.url.replace("127.0.0.1", "127.0.0.2")
        if proxied:
            monkeypatch.setenv("http_proxy", server.url)
        message = download_images({"url/a.jpg": server.url}, tmp_path).missing["url/a.jpg"]
        assert len(server.paths) == 1
    assert "127.0.0.2" in message


def test_a_server_that_drips_is_left_when_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "DEADLINE", 0.5)
    with ArchiveServer(bytes(1 << 20)) as server:
        server.pause = 0.1  # a piece, of sixteen
        with pytest.raises(VragError, match=r"a\.jpg: .*0\.5 s"):
            download(f"{server.url}/a.jpg", new_client(AGENT))
