"""Download images by URL, sequentially and once each, into files."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

from vrag_kit.benchmarks.images import decode
from vrag_kit.errors import VragError
from vrag_kit.fetching.connections import DeadlineExceededError, PrivateHostError, open_url
from vrag_kit.fetching.fetching import FetchReport
from vrag_kit.fetching.filling import FileRecord, ImageFolder
from vrag_kit.fetching.inventory import scan_folder
from vrag_kit.fetching.remote import LATER, describe_error
from vrag_kit.files import lock_folder
from vrag_kit.log import track

AGENT = "vrag_kit/0.1 (research on visual question answering; fetches each picture once)"
"""The kit's User-Agent header; Wikimedia refuses requests without one."""
PAUSES: tuple[float, ...] = (1, 5, 20)
"""Seconds to wait before each retry of a URL."""
TIMEOUT = 60.0
"""Seconds of silence after which a connection counts as broken."""
LONGEST = 300.0
"""Maximum seconds for one attempt to download an image."""
LARGEST = 200_000_000
"""Maximum bytes of an image; a larger one is refused."""
MOST_IN_A_ROW = 10
"""Consecutive failures that a retry might resolve, after which the remaining images are not
tried.
"""
_LONGEST_WAIT = 120  # seconds that a server may ask us to wait


class _TryLater(VragError):
    """What a server, or the network, does not give now."""


def download_images(
    addresses: Mapping[str, str],
    to: Path | str,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> FetchReport:
    """Download images, "<folder>/<file>" → http(s) URL, to `to`/<folder>/<file>.

    A URL on this machine or the local network is refused unless `allow_private`. Existing
    images are not fetched again; each gets its name only when it is complete, and a killed
    run is simply run again. An image is opened before it is written. `to`/manifest.csv lists
    existing images (image, bytes, sha256); `to`/missing.txt lists, with reasons, images that
    could not be fetched or opened, which the next run tries again. After `MOST_IN_A_ROW`
    failures of server or network the rest is left for later.

    Raises `VragError` if the folder cannot be written.
    """
    root = Path(to).expanduser()
    folder = ImageFolder(root)
    names = sorted(addresses)
    with lock_folder(root, "fetching pictures"):
        there = scan_folder(folder, names)
        left = [name for name in names if name not in there.good]
        get = partial(download, agent=agent, allow_private=allow_private)
        new, missing = _fetch(folder, {name: addresses[name] for name in left}, get)
        folder.finish({**there.good, **new}, missing)
    before = FetchReport(wanted=len(names), had=len(there.good), by_size=there.by_size)
    return replace(before, fetched=len(new), missing=missing)


def _fetch(
    folder: ImageFolder, addresses: Mapping[str, str], get: Callable[[str], bytes]
) -> tuple[dict[str, FileRecord], dict[str, str]]:
    """(pictures that were written, those that could not be fetched → why)."""
    new: dict[str, FileRecord] = {}
    missing: dict[str, str] = {}
    in_a_row = 0
    if not addresses:
        return new, missing
    for name, address in track(addresses.items(), "fetching", len(addresses), "pictures"):
        if in_a_row >= MOST_IN_A_ROW:
            missing[name] = f"{address}: not tried, for {in_a_row} before it failed. Run it again."
            continue
        try:
            data = get(address)
            decode(data, address)
        except VragError as error:
            missing[name] = str(error)
            in_a_row = in_a_row + 1 if isinstance(error, _TryLater) else 0
        else:
            new[name] = folder.write_image(name, iter([data]))
            in_a_row = 0
    return new, missing


def download(address: str, agent: str = AGENT, *, allow_private: bool = False) -> bytes:
    """Return the complete content of an http(s) URL.

    A broken connection or a busy server leads to a retry, after `PAUSES` or as long as the
    server asks. Raises `VragError` if the URL is refused, too large, not complete after
    `LONGEST` seconds, or not served after the last retry; and, unless `allow_private`, for a
    host, also of a redirect, without a public address.
    """
    if not re.match(r"https?://[^/\s]", address):
        raise VragError(f"{address}: no http(s) address, which is all that is fetched.")
    plain = quote(address.strip(), safe="!#$%&'()*+,/:;=?@[]~")
    request = Request(plain, headers={"User-Agent": agent, "Accept-Encoding": "identity"})
    for pause in (*PAUSES, None):
        wait = pause
        try:
            with open_url(
                request, seconds=LONGEST, silence=TIMEOUT, allow_private=allow_private
            ) as response:
                return _read(response, address)
        except PrivateHostError as error:
            raise VragError(
                f"{address}: refused: {error}. If that is a mirror of yours, add --allow-private."
            ) from error
        except DeadlineExceededError as error:
            raise _TryLater(f"{address}: {error}. Run it again.") from error
        except HTTPError as error:
            error.close()
            if error.code not in LATER:
                raise VragError(
                    f"{address}: the server refuses it ({describe_error(error)})."
                ) from error
            reason = describe_error(error)
            wait = _asked_to_wait(error, pause)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = describe_error(error)
        if pause is None or wait is None:
            break
        time.sleep(wait)
    raise _TryLater(f"{address}: gave up after {len(PAUSES) + 1} tries ({reason}).")


def _read(response: http.client.HTTPResponse, address: str) -> bytes:
    data = response.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise VragError(f"{address}: more than {LARGEST:,} bytes, which no picture has.")
    if response.length:  # bytes that were promised and did not come
        raise ConnectionError("the server ended it early")
    return data


def _asked_to_wait(error: HTTPError, pause: float | None) -> float | None:
    """Seconds before the next try: what the server asks for, where it does."""
    asked = error.headers.get("Retry-After", "")
    if pause is None or not asked.isdigit():
        return pause
    return min(_LONGEST_WAIT, max(pause, int(asked)))
