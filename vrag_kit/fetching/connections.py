"""Open URLs that come from data: only on public hosts, and with a time limit."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import (
    AbstractHTTPHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # addresses that stand for an IPv4 address
Connections = Callable[..., http.client.HTTPConnection]


class PrivateHostError(OSError):
    """Raised for a host without a public address: this machine or the local network."""


class DeadlineExceededError(OSError):
    """Raised if a response is not complete in time."""


@contextmanager
def open_url(
    request: Request, *, seconds: float, silence: float, allow_private: bool = False
) -> Iterator[http.client.HTTPResponse]:
    """Open a request, following redirects, and yield the response.

    It must be read within `seconds`, with at most `silence` seconds between two bytes. Raises
    `DeadlineExceededError`; `PrivateHostError` for a host, also of a redirect, without a public
    address, unless `allow_private`; and what `urllib.request.urlopen` raises.
    """
    fetch = _Fetch(seconds, allow_private)
    opener = OpenerDirector()  # without urllib's handlers of ftp, files and data
    for kind in (HTTPDefaultErrorHandler, HTTPErrorProcessor, HTTPRedirectHandler, ProxyHandler):
        opener.add_handler(kind())
    opener.add_handler(UnknownHandler())
    opener.add_handler(_Handler(fetch))
    try:
        with opener.open(request, timeout=silence) as response:
            yield response
            fetch.check()  # a response without a length looks complete where it was cut
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None)  # urllib wraps what a connection raises
        if isinstance(reason, PrivateHostError):
            raise reason from None
        fetch.check()
        raise
    finally:
        fetch.end()


class _Fetch:
    """One fetch with its connections, which are cut when its time is over: the timeout of a
    socket is for one read, and a server may send a byte now and then.
    """

    def __init__(self, seconds: float, allow_private: bool) -> None:
        self._seconds = seconds
        self._allow_private = allow_private
        self._end = time.monotonic() + seconds
        self._is_over = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def check(self) -> None:
        """Raise `DeadlineExceededError` if time is over."""
        if self._is_over:
            raise DeadlineExceededError(f"not complete after {self._seconds:g} s")

    def end(self) -> None:
        """Close the connections."""
        self._timer.cancel()
        for each in self._sockets:
            each.close()

    def connections(self, kind: Connections, request: Request) -> Connections:
        """Return a factory of connections for a request, limited to checked addresses."""
        target = urlsplit(request.full_url)
        is_proxied = request.host != target.netloc
        if is_proxied:
            # What remains: the proxy resolves the name itself, and may find another address.
            with suppress(socket.gaierror):
                self._addresses(str(target.hostname), 0)

        def connect(place: tuple[str, int], timeout: float, _: object) -> socket.socket:
            return self._connect(self._addresses(*place, is_proxied=is_proxied), timeout)

        def make(host: str, **options: Any) -> http.client.HTTPConnection:  # Any: urllib's own
            connection = kind(host, **options)
            connection._create_connection = connect  # type: ignore[attr-defined]  # no other hook
            return connection

        return make

    def _addresses(
        self, host: str, port: int, *, is_proxied: bool = False
    ) -> list[tuple[str, int]]:
        """The addresses of a host that may be connected to."""
        found = [
            str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        ]
        if not (is_proxied or self._allow_private):
            public = [each for each in found if _is_public(each)]
            if not public:
                raise PrivateHostError(f"{host} is {found[0]}, which is no public address")
            found = public
        return [(each, port) for each in found]

    def _connect(self, places: list[tuple[str, int]], timeout: float) -> socket.socket:
        for number, place in enumerate(places, start=1):
            try:
                left = self._end - time.monotonic()
                made = socket.create_connection(place, max(0.01, min(timeout, left)))
            except OSError:
                if number == len(places):
                    raise
                continue
            made.settimeout(timeout)
            self._sockets.append(made.dup())  # of its own, for TLS takes the socket over
            self.check()
            return made
        raise AssertionError("the last address returns or raises")

    def _cut(self) -> None:
        self._is_over = True
        for each in list(self._sockets):
            with suppress(OSError):  # it ended by itself
                each.shutdown(socket.SHUT_RDWR)


class _Handler(AbstractHTTPHandler):
    """Opens http and https as urllib does, by the connections of a fetch."""

    http_request = https_request = AbstractHTTPHandler.do_request_

    def __init__(self, fetch: _Fetch) -> None:
        super().__init__()
        self._fetch = fetch

    def http_open(self, request: Request) -> http.client.HTTPResponse:
        return self.do_open(self._fetch.connections(http.client.HTTPConnection, request), request)

    def https_open(self, request: Request) -> http.client.HTTPResponse:
        return self.do_open(self._fetch.connections(http.client.HTTPSConnection, request), request)


def _is_public(address: str) -> bool:
    """Whether an IP address is one of the internet; an IPv6 address that stands for an IPv4
    address as that is.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        else:
            ip = ip.ipv4_mapped or ip.sixtofour or ip
    return ip.is_global and not ip.is_multicast
