"""An HTTP client with a deadline for whole answers. A server that sends a byte now and then cannot
keep a call open for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx2
from openai import DefaultHttpxClient


class _Watched(httpx2.SyncByteStream):
    """A response's bytes, until time is up."""

    def __init__(
        self,
        stream: Any,  # Any: httpx says it may be asynchronous too; a client such as this has none
        request: httpx2.Request,
        end: float,
    ) -> None:
        self._stream = stream
        self._request = request
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._end:
                raise httpx2.ReadTimeout(
                    "the answer is not complete in time", request=self._request
                )
            yield part

    def close(self) -> None:
        self._stream.close()


def http_client(seconds: float, home: str, own: Iterable[str]) -> DefaultHttpxClient:
    """Return a client for `openai.OpenAI(http_client=…)` with a deadline for whole answers. They
    begin within `seconds`, and are complete within as many more; httpx's own timeouts are for
    single reads. If `home` redirects a call elsewhere, the headers in `own` are dropped.
    """
    address = httpx2.URL(home)

    def leave_behind(request: httpx2.Request) -> None:
        """Each request passes here, those after a redirection too."""
        there = request.url
        if there.host != address.host or there.scheme not in (address.scheme, "https"):
            for name in own:
                request.headers.pop(name, None)

    def watch(response: httpx2.Response) -> None:
        end = time.monotonic() + seconds
        response.stream = _Watched(response.stream, response.request, end)

    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [leave_behind],
        "response": [watch],
    }
    return DefaultHttpxClient(timeout=seconds, event_hooks=hooks)
