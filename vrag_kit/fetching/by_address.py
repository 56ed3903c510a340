"""Pictures by their addresses, each fetched once, one after another, into files."""

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
from vrag_kit.fetching.connections import PrivateHostError, TooSlowError, opened
from vrag_kit.fetching.fetching import Fetched
from vrag_kit.fetching.filling import Copy, ImageFolder
from vrag_kit.fetching.inventory import look_around
from vrag_kit.fetching.remote import LATER, in_words
from vrag_kit.files import one_at_a_time
from vrag_kit.progress import track

AGENT = "vrag_kit/0.1 (research on visual question answering; fetches each picture once)"
"""How the kit names itself; Wikimedia refuses requests without such a name."""
PAUSES: tuple[float, ...] = (1, 5, 20)
"""Seconds before each new try of a picture."""
TIMEOUT = 60.0
"""Seconds of silence after which a connection counts as broken."""
LONGEST = 300.0
"""Seconds in which a picture has to be here, however its server sends it."""
LARGEST = 200_000_000
"""Bytes: a larger picture is refused."""
MOST_IN_A_ROW = 10
"""Failures one after another, of those that more tries might mend, after which the others
are not tried.
"""
_LONGEST_WAIT = 120  # seconds that a server may ask us to wait


class _TryLater(VragError):
    """What a server, or the network, does not give now."""


def fetch_by_address(
    addresses: Mapping[str, str],
    to: Path | str,
    *,
    agent: str = AGENT,
    allow_private: bool = False,
) -> Fetched:
    """Fetch pictures, "<folder>/<file>" → http(s) address, to `to`/<folder>/<file>. An
    address on this machine or the local network is refused unless `allow_private`.

    Those that are there are not fetched again; each gets its name once it is complete,
    so that a run that was killed is simply run again. A picture is opened before it is
    written; `to`/manifest.csv lists what is there (image, bytes, sha256), `to`/missing.txt
    with reasons what could not be fetched or opened, which the next run tries again.
    After `MOST_IN_A_ROW` failures of server or network the rest is left for later.

    Raises `VragError` for a folder that cannot be written.
    """
    root = Path(to).expanduser()
    folder = ImageFolder(root)
    names = sorted(addresses)
    with one_at_a_time(root, "fetching pictures"):
        there = look_around(folder, names)
        left = [name for name in names if name not in there.good]
        get = partial(download, agent=agent, allow_private=allow_private)
        new, missing = _fetch(folder, {name: addresses[name] for name in left}, get)
        folder.finish({**there.good, **new}, missing)
    before = Fetched(wanted=len(names), had=len(there.good), by_size=there.by_size)
    return replace(before, fetched=len(new), missing=missing)


def _fetch(
    folder: ImageFolder, addresses: Mapping[str, str], get: Callable[[str], bytes]
) -> tuple[dict[str, Copy], dict[str, str]]:
    """(pictures that were written, those that could not be fetched → why)."""
    new: dict[str, Copy] = {}
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
            new[name] = folder.put(name, iter([data]))
            in_a_row = 0
    return new, missing


def download(address: str, agent: str = AGENT, *, allow_private: bool = False) -> bytes:
    """What lies at an http(s) address, whole.

    Another try follows a broken connection and a server that is busy, after `PAUSES` or
    as long as the server asks. Raises `VragError` when it is refused, too large, not
    complete after `LONGEST` seconds, or not given after the last try; and, unless
    `allow_private`, for a host, also of a redirect, without a public address.
    """
    if not re.match(r"https?://[^/\s]", address):
        raise VragError(f"{address}: no http(s) address, which is all that is fetched.")
    plain = quote(address.strip(), safe="!#$%&'()*+,/:;=?@[]~")
    request = Request(plain, headers={"User-Agent": agent, "Accept-Encoding": "identity"})
    for pause in (*PAUSES, None):
        wait = pause
        try:
            with opened(
                request, seconds=LONGEST, silence=TIMEOUT, allow_private=allow_private
            ) as response:
                return _read(response, address)
        except PrivateHostError as error:
            raise VragError(
                f"{address}: refused: {error}. If that is a mirror of yours, add --allow-private."
            ) from error
        except TooSlowError as error:
            raise _TryLater(f"{address}: {error}. Run it again.") from error
        except HTTPError as error:
            error.close()
            if error.code not in LATER:
                raise VragError(f"{address}: the server refuses it ({in_words(error)}).") from error
            reason = in_words(error)
            wait = _asked_to_wait(error, pause)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = in_words(error)
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
