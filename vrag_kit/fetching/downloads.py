"""Download images from URLs that come from data: public hosts only, within a time limit."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx2

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.fetching.http import AGENT, TemporaryError, new_client, retry
from vrag_kit.fetching.image_folder import (
    LARGEST_IMAGE,
    FetchReport,
    ResumeNote,
    open_image_folder,
)
from vrag_kit.log import track

PAUSES: tuple[float, ...] = (1, 5, 20)
"""Seconds before each retry of a URL."""
DEADLINE = 300.0
"""Maximum seconds for one attempt to download a file."""
MAX_FAILURES = 10
"""Consecutive temporary failures after which the remaining images are not tried."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # addresses that stand for an IPv4 address


def download_images(
    urls: Mapping[str, str],
    to: Path | str,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> FetchReport:
    """Download images, "<folder>/<file>" → http(s) URL, to `to`/<folder>/<file>.

    A URL on this machine or the local network is refused unless `allow_private`. Existing
    images are not downloaded again; a killed run is simply run again. `to`/manifest.csv lists
    the images (image, bytes) that exist and can be opened, `to`/missing.txt, with reasons,
    the others, which the next run tries again. After `MAX_FAILURES` failures of servers or
    network in a row the rest is not tried.

    Raises `VragError` if the folder cannot be written.
    """
    missing: dict[str, str] = {}
    failures = 0
    with open_image_folder(to, urls) as folder:
        folder.save_note(ResumeNote())
        names = folder.absent()
        for name in track(names, "fetching", len(names), "images"):
            url = urls[name]
            if failures >= MAX_FAILURES:
                missing[name] = f"{url}: not tried, as {failures} before it failed. Run it again."
                continue
            try:
                data = download(url, agent, allow_private=allow_private)
                decode(data, url)
            except VragError as error:
                missing[name] = str(error)
                failures = failures + 1 if isinstance(error, TemporaryError) else 0
            else:
                folder.add(name, data)
                failures = 0
        return folder.finish(missing)


def download(url: str, agent: str = AGENT, *, allow_private: bool = False) -> bytes:
    """Return the complete content of an http(s) URL.

    Raises `VragError` if the URL is refused or larger than `LARGEST_IMAGE`; `TemporaryError` if it
    is not complete after `DEADLINE` seconds or not served after the last retry; and, unless
    `allow_private`, `VragError` for a host, also of a redirect, without a public address.
    """
    if not re.match(r"https?://[^/\s]", url):
        raise VragError(f"{url}: no http(s) address, which is all that is fetched.")
    return retry(partial(_download_once, url, agent, allow_private), url, PAUSES)


def _download_once(url: str, agent: str, allow_private: bool) -> bytes:
    data = bytearray()
    with (
        _Guard(url, allow_private) as guard,
        new_client(agent, guard.check_request) as client,
        client.stream("GET", url.strip()) as response,
    ):
        response.raise_for_status()
        for chunk in response.iter_raw():
            data += chunk
            if len(data) > LARGEST_IMAGE:
                raise VragError(f"{url}: more than {LARGEST_IMAGE:,} bytes; too large.")
    return bytes(data)


class _Guard:
    """Limits one download: to hosts with public addresses, and to `DEADLINE` seconds.

    After these its connections are shut down, because the timeout of a socket is for one read
    only, and a server may send a byte now and then. The addresses are checked twice: those of
    a name before a request, also of a redirect, and the one that was connected to, because a
    name may change its address. A proxy resolves names itself.
    """

    def __init__(self, url: str, allow_private: bool) -> None:
        self._url = url
        self._allow_private = allow_private
        self._host = ""
        self._is_direct = True
        self._is_over = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(DEADLINE, self._shut_down)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for each in self._sockets:
            each.close()
        if self._is_over:  # a response without a length looks complete where it was cut
            raise TemporaryError(f"{self._url}: not complete after {DEADLINE:g} s. Run it again.")

    def check_request(self, request: httpx2.Request) -> None:
        """Raise `VragError` if the request's host has no public address."""
        self._host = request.url.raw_host.decode("ascii")
        request.extensions["trace"] = self._trace
        with suppress(socket.gaierror):
            found = socket.getaddrinfo(self._host, None, type=socket.SOCK_STREAM)
            self._check_addresses([str(each[4][0]) for each in found])

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:  # Any: httpcore's own
        if event == "connection.connect_tcp.started":
            self._is_direct = info["host"] == self._host
        elif event == "connection.connect_tcp.complete":
            connected: socket.socket = info["return_value"].get_extra_info("socket")
            self._sockets.append(connected.dup())  # TLS takes over the other one
            if self._is_direct:
                self._check_addresses([connected.getpeername()[0]])
            if self._is_over:
                self._shut_down()

    def _check_addresses(self, addresses: list[str]) -> None:
        if not self._allow_private and not any(map(is_public, addresses)):
            raise VragError(
                f"{self._url}: refused: {self._host} is {addresses[0]}, which is no public"
                " address. If that is a mirror of yours, add --allow-private."
            )

    def _shut_down(self) -> None:
        self._is_over = True
        for each in list(self._sockets):
            with suppress(OSError):  # already closed
                each.shutdown(socket.SHUT_RDWR)


def is_public(address: str) -> bool:
    """Return whether an IP address is public; an IPv6 address that stands for an IPv4 address
    counts as that.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        else:
            ip = ip.ipv4_mapped or ip.sixtofour or ip
    return ip.is_global and not ip.is_multicast
