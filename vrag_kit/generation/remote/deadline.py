"""An HTTP client whose answers must be complete within a time, and be an endpoint's: a
server that drips a byte now and then cannot hold a call for ever, and what no endpoint
sends is asked for again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
from openai import DefaultHttpxClient

_CALLS = "/chat/completions"
"""How the address of a question ends."""


class ForeignReplyError(httpx2.TransportError):
    """What came, as if all were well, is no endpoint's: a page, or an object without a
    choice, as a proxy sends it that starts up. It is the message. The client tries such a
    call again.
    """


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
    httpx's own time-outs are for single reads, and in a `ForeignReplyError` where what
    answers a question is no completion. Where `home` sends it elsewhere, the headers that
    are named in `own` stay behind. The rest is the default client's.
    """

    def __init__(self, seconds: float, home: str, own: Iterable[str]) -> None:
        super().__init__(timeout=seconds, event_hooks={"request": [self._leave_behind]})
        self._seconds = seconds
        self._home = httpx2.URL(home)
        self._own = tuple(own)

    def _leave_behind(self, request: httpx2.Request) -> None:
        """Each request passes here, those after a redirection too."""
        there, home = request.url, self._home
        if there.host != home.host or there.scheme not in (home.scheme, "https"):
            for name in self._own:
                request.headers.pop(name, None)

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
            _check_form(request, response)
        return response


def _check_form(request: httpx2.Request, response: httpx2.Response) -> None:
    """Raise `ForeignReplyError` for an answer to a question that is no completion. One
    without a choice that counts its tokens is a model's, and may be paid: it stands.
    """
    if not response.is_success or not request.url.path.endswith(_CALLS):
        return
    try:
        told = json.loads(response.content)
    except ValueError:
        told = None
    if isinstance(told, dict):
        choices = told.get("choices")
        if _is_choice(choices) or (not choices and told.get("usage")):
            return
    raise ForeignReplyError(response.text, request=request)


def _is_choice(choices: object) -> bool:
    """Whether there is a message in the first of a completion's choices."""
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and isinstance(first.get("message"), dict)
