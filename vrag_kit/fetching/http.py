"""Read a file over HTTP as a seekable file that reconnects, and retry what fails for a while."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import httpx2

from vrag_kit.errors import VragError
from vrag_kit.log import logger

AGENT = "vrag_kit/0.1 (research on visual question answering; fetches each picture once)"
"""The kit's User-Agent header; Wikimedia refuses requests without one."""
PAUSES: tuple[float, ...] = (1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds before each retry of an archive; a received byte resets them."""
TIMEOUT = 60.0
"""Seconds of silence after which a connection counts as broken."""
LONGEST_WAIT = 300.0
"""Maximum seconds that a server's Retry-After header can prolong a pause to."""
WINDOW_BYTES = 16 << 20
"""Received bytes before the end of the window that stay in memory, for short backward seeks."""
RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses after which a retry may succeed."""
T = TypeVar("T")
for _library in ("httpx2", "httpcore2"):
    logging.getLogger(_library).setLevel(logging.WARNING)  # they log URLs, which may hold keys


class TemporaryError(VragError):
    """Raised if a server or the network still fails after the last retry."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """Identifies one version of a remote file."""

    size: int
    etag: str  # "" if the server sends none
    modified: str  # the Last-Modified header, likewise


class RangeReader(io.RawIOBase):
    """A read-only, seekable file over HTTP; use it in a `with` block or close it.

    A broken connection is reopened at the current position (Range). Raises `VragError` if the file
    is missing, unreachable, of unknown size, or replaced by another version, if the server does not
    support Range, and if `PAUSES` retries in a row bring no byte. No message contains what follows
    a "?" in the URL, which may be a key.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.name = _name_without_secrets(url)
        self._client = new_client(AGENT)
        self._url = url
        self._response: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._position = 0
        self._window = bytearray()  # the bytes that were received last, before `_end`
        self._end = 0
        head = retry(partial(self._request, "bytes=0-0"), self.name, PAUSES)
        head.close()
        self.version = _version(head, self.name)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; no request is sent before the next read."""
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.version.size}
        self._position = origins[whence] + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        """Read at least one byte into `buffer`; returns the number of bytes, 0 at the end."""
        size = min(len(buffer), self.version.size - self._position)
        if size <= 0:
            return 0
        if not self._end - len(self._window) <= self._position < self._end:
            megabytes = f"{self._position / 1e6:,.1f} of {self.version.size / 1e6:,.1f} MB"
            retry(self._receive, f"{self.name} at {megabytes}", PAUSES)
        start = self._position - self._end + len(self._window)
        piece = self._window[start : start + size]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()
        self._client.close()
        super().close()

    def _receive(self) -> None:
        """Append bytes to the window, beginning with the one at the position."""
        try:
            if self._response is None or self._position != self._end:
                self._connect()
            chunk = next(self._chunks, b"")
            if not chunk:
                raise httpx2.ReadError("the server ended it early")
        except httpx2.HTTPError:
            self._disconnect()
            raise
        if len(self._window) > 2 * WINDOW_BYTES:
            del self._window[:-WINDOW_BYTES]
        self._window += chunk
        self._end += len(chunk)

    def _connect(self) -> None:
        """Open a connection whose next byte is the one at the position."""
        self._disconnect()
        self._response = self._request(f"bytes={self._position}-")
        version = _version(self._response, self.name)
        if version != self.version:
            raise VragError(
                f"{self.name}: the archive on the server was replaced while it was read (it had"
                f" {self.version}, now {version})."
            )
        if self._position and self._response.status_code != httpx2.codes.PARTIAL_CONTENT:
            raise VragError(
                f"{self.name}: the server sends the whole archive only (no Range support)."
                " Download it by other means, and give the file."
            )
        self._chunks = self._response.iter_raw()
        if self._position != self._end:
            self._window.clear()
            self._end = self._position

    def _request(self, byte_range: str) -> httpx2.Response:
        request = self._client.build_request("GET", self._url, headers={"Range": byte_range})
        response = self._client.send(request, stream=True)
        if not response.is_success:
            response.close()
        return response.raise_for_status()

    def _disconnect(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def retry(call: Callable[[], T], where: str, pauses: Sequence[float]) -> T:
    """Return the result of `call`, which is repeated after broken connections and
    `RETRY_STATUSES`.

    The pauses are `pauses` seconds, or longer if the server asks for it (Retry-After).
    Messages begin with `where`. Raises `TemporaryError` after the last retry, and `VragError`
    if the server refuses the request.
    """
    for pause in (*pauses, None):
        try:
            return call()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = _describe(error)
            if not _is_temporary(error):
                raise VragError(
                    f"{where}: the server refuses it ({reason}). Check the address, and whether it"
                    " is still valid."
                ) from None
            if pause is None:
                tries = len(pauses) + 1
                raise TemporaryError(f"{where}: gave up after {tries} tries ({reason}).") from None
            seconds = max(pause, min(_retry_after(error), LONGEST_WAIT))
        logger.info(f"{where}: {reason}; trying again in {seconds:g} s")
        time.sleep(seconds)
    raise AssertionError("the last try returns or raises")


def new_client(agent: str, check: Callable[[httpx2.Request], None] | None = None) -> httpx2.Client:
    """Return a client that receives bytes as they are stored and follows redirects.

    `check` is called with each request, also after a redirect.
    """
    return httpx2.Client(
        timeout=TIMEOUT,
        follow_redirects=True,
        headers={"User-Agent": agent, "Accept-Encoding": "identity"},
        event_hooks={"request": [check] if check else []},
    )


def _describe(error: Exception) -> str:
    """Describe an error without a URL, because the server may redirect to one that contains a
    key.
    """
    if isinstance(error, httpx2.HTTPStatusError):
        return f"{error.response.status_code} {error.response.reason_phrase}".strip()
    if isinstance(error, httpx2.RemoteProtocolError):
        return "the server ended it early, or sent no valid HTTP"
    return str(error) or type(error).__name__


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, httpx2.HTTPStatusError):
        return error.response.status_code in RETRY_STATUSES
    if isinstance(error, httpx2.UnsupportedProtocol):  # a redirect to a file, say
        return False
    return isinstance(error, httpx2.TransportError)


def _retry_after(error: Exception) -> float:
    """The seconds that the server asks to wait; 0 if it does not."""
    asked = ""
    if isinstance(error, httpx2.HTTPStatusError):
        asked = error.response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else 0.0


def _name_without_secrets(url: str) -> str:
    """A URL up to the "?"; raises `VragError`, which repeats nothing of it, if it is invalid."""
    with suppress(httpx2.InvalidURL):  # its message repeats parts of the URL
        parsed = httpx2.URL(url)
        if parsed.scheme in ("http", "https") and parsed.host and not parsed.userinfo:
            return str(parsed.copy_with(query=None, fragment=None))
    raise VragError(
        "the archive's address is invalid, or has a user and password in it; expected a file, or"
        " a URL that begins with http:// or https://host/path. It is not repeated here, because it"
        " may contain a key."
    )


def _version(response: httpx2.Response, name: str) -> FileVersion:
    headers = response.headers
    size = headers.get("Content-Range", "").rpartition("/")[2] or headers.get("Content-Length", "")
    if not size.isdecimal():
        raise VragError(
            f"{name}: the server does not say how large the archive is. Download it by other"
            " means, and give the file."
        )
    return FileVersion(int(size), headers.get("ETag", ""), headers.get("Last-Modified", ""))
