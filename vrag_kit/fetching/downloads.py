"""Download images from URLs that come from data: public hosts only, within a time limit."""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx2

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.fetching.http import AGENT, TemporaryError, new_client, retry
from vrag_kit.fetching.image_folder import (
    LARGEST_IMAGE,
    FetchReport,
    good_images,
    image_folder,
    write_atomically,
    write_missing,
)
from vrag_kit.log import progress

PAUSES: tuple[float, ...] = (1, 5, 20)
"""Seconds before each retry of a URL."""
DEADLINE = 300.0
"""Maximum seconds for one attempt to receive a file."""
MAX_FAILURES = 10
"""Consecutive temporary failures after which the remaining images are not tried."""


def download_images(
    urls: Mapping[str, str],
    to: Path | str,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> FetchReport:
    """Download images, "<folder>/<file>" → http(s) URL, to `to`/<folder>/<file>.

    A URL on this machine or the local network, also of a redirect, is refused unless
    `allow_private`. Existing images are opened, and not downloaded again unless they are damaged;
    a killed run is simply run again. `to`/missing.txt lists, with reasons, those that could not be
    downloaded; the next run tries them again. After `MAX_FAILURES` failures of servers or
    network in a row the rest is not tried.

    Raises `VragError` if the folder cannot be written.
    """
    missing: dict[str, str] = {}
    failures = 0
    check = None if allow_private else _refuse_private
    with image_folder(to) as root, new_client(agent, check) as client:
        good = good_images(root, urls.keys())
        names = sorted(urls.keys() - good)
        for name in progress(names, "fetching", len(names), "images"):
            url = urls[name]
            if failures >= MAX_FAILURES:
                missing[name] = f"{url}: not tried, as {failures} before it failed. Run it again."
                continue
            try:
                data = download(url, client)
                decode(data, url)
            except VragError as error:
                missing[name] = str(error)
                failures = failures + 1 if isinstance(error, TemporaryError) else 0
            else:
                write_atomically(root / name, [data])
                failures = 0
        write_missing(root, missing)
    return FetchReport(wanted=len(urls), had=len(good), missing=missing)


def download(url: str, client: httpx2.Client) -> bytes:
    """Return the complete content of an http(s) URL.

    Raises `VragError` if the URL is refused or the content larger than `LARGEST_IMAGE`, and
    `TemporaryError` if it is not complete after `DEADLINE` seconds or not served after the last
    retry.
    """
    if not re.match(r"https?://[^/\s]", url):
        raise VragError(f"{url}: no http(s) address, which is all that is fetched.")
    return retry(partial(_receive, url, client), url, PAUSES)


def _receive(url: str, client: httpx2.Client) -> bytes:
    end = time.monotonic() + DEADLINE  # a server may send a byte now and then
    data = bytearray()
    with client.stream("GET", url.strip()) as response:
        response.raise_for_status()
        for chunk in response.iter_raw():
            data += chunk
            if len(data) > LARGEST_IMAGE:
                raise VragError(f"{url}: more than {LARGEST_IMAGE:,} bytes; too large.")
            if time.monotonic() > end:
                raise TemporaryError(f"{url}: not complete after {DEADLINE:g} s. Run it again.")
    return bytes(data)


def _refuse_private(request: httpx2.Request) -> None:
    """Raise `VragError` if the request's host has no public address."""
    host = request.url.raw_host.decode("ascii")
    with suppress(socket.gaierror):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = [str(each[4][0]) for each in found]
        if not any(map(is_public, addresses)):
            raise VragError(
                f"{request.url}: refused: {host} is {addresses[0]}, which is no public address. If"
                " that is a mirror of yours, add --allow-private."
            )


def is_public(address: str) -> bool:
    """Return whether an IP address is public; an IPv6 address that stands for an IPv4 address
    counts as that.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_global and not ip.is_multicast
