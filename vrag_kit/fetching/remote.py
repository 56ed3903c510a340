"""A seekable file on a web server, which reconnects after a broken connection."""

from __future__ import annotations

import http.client
import io
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from vrag_kit.errors import VragError
from vrag_kit.log import logger

PAUSES: tuple[float, ...] = (1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds to wait before each retry to connect; a received byte resets them, and after the
last retry reading fails.
"""
TIMEOUT = 60.0
"""Seconds of silence after which a connection counts as broken."""
KEPT = 16 << 20
"""Bytes before the current position that stay in memory, which saves a request for a short
backward seek.
"""
LATER = (408, 425, 429, 500, 502, 503, 504)
"""HTTP statuses after which a retry may succeed."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteFileIdentity:
    """Identifies one version of a remote file."""

    size: int
    etag: str = ""  # "" where the server sends none
    modified: str = ""  # as the server words it

    def matches(self, other: RemoteFileIdentity) -> bool:
        """Return whether two identities may be the same file: equal sizes, and equal tags and times
        if both have one.
        """
        same_tag = self.etag == other.etag or not (self.etag and other.etag)
        same_time = self.modified == other.modified or not (self.modified and other.modified)
        return self.size == other.size and same_tag and same_time


class RemoteFile(io.RawIOBase):
    """A read-only, seekable file over HTTP; use it in a `with` block or close it.

    A broken connection is reopened, with growing pauses, from the current position (Range).
    A server without Range support sends the file from the beginning, and the known part is
    skipped. Raises `VragError` if the file is missing, unreachable, of unknown size, or
    replaced by another version, and if several retries in a row bring no byte.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.name = _name(url)
        self._response: http.client.HTTPResponse | None = None
        self._place = 0  # where the next byte is read
        self._kept = bytearray()  # bytes that were read, from `_first` to `_next`
        self._first = 0
        self._next = 0  # where the connection goes on
        self.identity, self.sends_parts = self._look()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True, whether or not the server supports Range."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; no request is sent before the next read."""
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.identity.size}
        self._place = origins[whence] + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end of the file."""
        left = max(0, self.identity.size - self._place)
        if size is not None and size >= 0:
            left = min(size, left)
        pieces = []
        while left > 0:
            pieces.append(self._kept_piece(left) or self._fresh_piece(left))
            self._place += len(pieces[-1])
            left -= len(pieces[-1])
        return b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        self._drop()
        super().close()

    def _kept_piece(self, size: int) -> bytes:
        if not self._first <= self._place < self._next:
            return b""
        start = self._place - self._first
        return bytes(self._kept[start : start + size])

    def _fresh_piece(self, size: int) -> bytes:
        """At least one byte from the server."""
        for pause in (*PAUSES, None):
            try:
                response = self._response
                if response is None or self._place != self._next:
                    response = self._connect()
                if piece := response.read1(min(size, _PIECE)):
                    self._keep(piece)
                    return piece
                reason = "the server ended it early"
            except (OSError, http.client.HTTPException) as error:
                reason = describe_error(error)
            self._drop()
            if pause is None:
                raise VragError(
                    f"{self.name}: gave up at {_megabytes(self._place)} of"
                    f" {_megabytes(self.identity.size)} MB, after {len(PAUSES) + 1} tries without a"
                    f" byte ({reason})."
                )
            logger.info(
                f"{self.name}: the connection broke at {_megabytes(self._place)} MB ({reason});"
                f" trying again in {pause:g} s",
            )
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _connect(self) -> http.client.HTTPResponse:
        """A connection whose next byte is the one at the place of reading."""
        self._drop()
        headers = {}
        if self._place:
            tag = self.identity.etag if not self.identity.etag.startswith("W/") else ""
            headers = {"Range": f"bytes={self._place}-", "If-Range": tag or self.identity.modified}
        response = self._ask(headers)
        found, first = _read_head(response, self.name)
        if not found.matches(self.identity):
            response.close()
            raise VragError(
                f"{self.name}: the archive on the server was replaced while it was read (it had"
                f" {_identity_text(self.identity)}, now {_identity_text(found)})."
            )
        if self._place != self._next:
            self._kept.clear()
            self._first = self._next = self._place
        if first not in (0, self._place):
            raise ConnectionError(
                f"asked for the bytes from {self._place:,} on, the server sent those from"
                f" {first:,} on"
            )
        if first < self._place:
            logger.info(
                f"{self.name}: the server sends no parts; reading the first"
                f" {_megabytes(self._place)} MB again",
            )
            _skip(response, self._place)
        self._response = response
        return response

    def _look(self) -> tuple[RemoteFileIdentity, bool]:
        """The file's identity, and whether the server sends parts of it."""
        for pause in (*PAUSES, None):
            try:
                with self._ask({"Range": "bytes=0-0"}) as response:
                    return _read_head(response, self.name)[0], response.status == 206
            except HTTPError as error:
                if pause is None:
                    tries = f"{len(PAUSES) + 1} tries ({describe_error(error)})"
                    raise VragError(
                        f"{self.name}: gave up after {tries}. Try again later."
                    ) from error
                logger.info(f"{self.name}: {describe_error(error)}; trying again in {pause:g} s")
                time.sleep(pause)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise VragError(
                    f"{self.name}: the server cannot be reached ({describe_error(error)}). Check"
                    " the"
                    " address and the network."
                ) from error
        raise AssertionError("the last try returns or raises")

    def _ask(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        """One request; raises `VragError` for an answer that more tries will not
        change.
        """
        sent = {"User-Agent": "vrag_kit", "Accept-Encoding": "identity"}
        sent |= {name: value for name, value in headers.items() if value}
        try:
            response: http.client.HTTPResponse = urlopen(
                Request(self.url, headers=sent), timeout=TIMEOUT
            )
            return response
        except HTTPError as error:
            error.close()
            if error.code in LATER:
                raise
            hint = {
                404: "There is no such file: check the address.",
                416: "The file is empty, or shorter than before: it was replaced.",
            }
            raise VragError(
                f"{self.name}: the server refuses it ({describe_error(error)})."
                f" {hint.get(error.code, 'Check the address, and whether it is still valid.')}"
            ) from error

    def _keep(self, piece: bytes) -> None:
        self._kept += piece
        self._next += len(piece)
        if len(self._kept) > 2 * KEPT:
            del self._kept[:-KEPT]
            self._first = self._next - KEPT

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def _name(url: str) -> str:
    """An address without what follows a ?, which may be a key; raises `VragError`,
    which repeats nothing of it, for one that cannot be used.
    """
    name = ""
    if re.fullmatch("[!-~]+", url):
        with suppress(ValueError):  # whose words repeat parts of the address
            parts = urlsplit(url)
            if parts.hostname and "@" not in parts.netloc and parts.port != 0:
                name = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if not name:
        raise VragError(
            "the archive's address has no host, a port that is no number, a user and password in"
            " it, or a space or letters that an address cannot hold (a space is written %20);"
            " expected http(s)://host/path. It is not repeated here, for it may hold a key."
        )
    return name


def _read_head(response: http.client.HTTPResponse, name: str) -> tuple[RemoteFileIdentity, int]:
    """The file's identity, and the place of the first byte that is sent."""
    headers = response.headers
    first = "0"
    size = ""
    if response.status == 200:
        size = headers.get("Content-Length", "")
    elif response.status == 206:
        parts = headers.get("Content-Range", "").strip()
        if stated := re.fullmatch(r"bytes (\d+)-\d+/(\d+)", parts):
            first, size = stated.groups()
    if not size.isdigit():
        response.close()
        raise VragError(
            f"{name}: the server does not say how large the archive is (status {response.status})."
            " Download it by other means, and give the file."
        )
    identity = RemoteFileIdentity(
        int(size), headers.get("ETag", ""), headers.get("Last-Modified", "")
    )
    return identity, int(first)


def _skip(response: http.client.HTTPResponse, count: int) -> None:
    while count:
        piece = response.read1(min(count, _PIECE))
        if not piece:
            raise ConnectionError("the server ended it early")
        count -= len(piece)


def describe_error(error: BaseException) -> str:
    """Describe an error without repeating a URL, because the server may redirect to one that
    contains a key.
    """
    if isinstance(error, HTTPError):
        return f"{error.code} {http.client.responses.get(error.code, '')}".strip()
    if isinstance(error, http.client.InvalidURL | ValueError):
        return "an address that cannot be used"
    if isinstance(error, URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _identity_text(identity: RemoteFileIdentity) -> str:
    tag = identity.etag and f"tag {identity.etag}"
    return ", ".join(filter(None, [f"{identity.size:,} bytes", tag, identity.modified]))


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}"
