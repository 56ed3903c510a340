"""An HTTP client whose answers must be complete within a time: a server that drips a
byte now and then cannot hold a call for ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
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


class DeadlineClient(DefaultHttpxClient):
    """For `openai.OpenAI(http_client=…)`: each attempt ends within about `seconds`, as
    httpx's own time-outs are for single reads. The rest is the default client's.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(timeout=seconds)
        self._seconds = seconds

    def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        **options: Any,  # Any: what else httpx takes, handed on; it keeps those types private
    ) -> httpx2.Response:
        """As httpx does it, with the answer read under the deadline."""
        end = time.monotonic() + self._seconds
        response = super().send(request, stream=True, **options)
        response.stream = _Watched(response.stream, request, end)
        if not stream:
            try:
                response.read()
            finally:
                response.close()
        return response
