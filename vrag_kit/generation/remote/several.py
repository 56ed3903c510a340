"""Load balancing over several servers of one model. Each prompt goes to the server with the fewest
calls in progress; if that fails, to another one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Reply
from vrag_kit.generation.remote.client import EndpointClient, RequestFields
from vrag_kit.generation.remote.completions import NOT_ANSWERED
from vrag_kit.types import Failure, Status

_REST = 60.0
"""Seconds for which a server that failed is asked only where all others fail, too."""
_PAUSE = 1.0
"""Seconds that all are left alone when all have failed; a second more each time."""


@dataclass(slots=True, eq=False)
class _Server:
    calls: EndpointClient
    under_way: int = 0
    """Questions that it is being asked."""
    rests_until: float = 0.0
    """By the monotonic clock; 0 while all is well."""


class LoadBalancer:
    """Distributes calls over several servers of one model; offers what `EndpointClient` does. Calls
    may run in several threads.
    """

    def __init__(self, servers: Sequence[EndpointClient], owner: str, *, retries: int) -> None:
        """`servers` try once; if all fail, all are tried again, `retries` times."""
        self._servers = [_Server(each) for each in servers]
        self._owner = owner
        self._retries = retries
        self._served = ""
        self._lock = threading.Lock()

    def probe(self, fields: RequestFields) -> Reply:
        """Make one short call to each server, and return the reply of one.

        It has no token counts if a server does not report them. Raises `VragError` if all fail, and
        if two serve different models.
        """
        replies: list[Reply] = []
        problems: list[str] = []
        for server in self._servers:
            try:
                replies.append(server.calls.probe(fields))
            except VragError as error:
                problems.append(str(error))
                self._rest(server, str(error))
        if not replies:
            raise VragError(" ".join(problems))
        served = sorted({each.fields["served"] for each in replies if "served" in each.fields})
        if len(served) > 1:
            raise VragError(
                f"{self._owner}: its servers answer as different models, {' and '.join(served)}."
                " Start them alike, or make an entry for each, with a `name`."
            )
        self._served = "".join(served)
        return min(replies, key=lambda reply: bool(reply.tokens))

    def complete(
        self, messages: Sequence[RequestFields], fields: RequestFields, limit: int
    ) -> tuple[Reply, bool]:
        """Return as `EndpointClient.complete`; if all servers fail, the last one's failure."""
        for attempt in range(self._retries + 1):
            time.sleep(attempt * _PAUSE)
            tried: list[_Server] = []
            while server := self._next(tried):
                tried.append(server)
                reply, own_fault = self._ask(server, messages, fields, limit)
                if own_fault and server.rests_until:  # it may refuse whatever it is asked
                    continue
                if own_fault or not reply.failure or reply.failure.kind not in NOT_ANSWERED:
                    server.rests_until = 0.0
                    return reply, own_fault
                self._rest(server, str(reply.failure))
        return reply, own_fault

    def _next(self, tried: Sequence[_Server]) -> _Server | None:
        """The least busy server that was not tried yet; those that rest come last."""
        now = time.monotonic()
        with self._lock:
            left = [each for each in self._servers if each not in tried]
            if not left:
                return None
            server = min(left, key=lambda each: (each.rests_until > now, each.under_way))
            server.under_way += 1
            if server.rests_until:
                server.rests_until = now + _REST  # others pass it by while it is tried
            return server

    def _ask(
        self, server: _Server, messages: Sequence[RequestFields], fields: RequestFields, limit: int
    ) -> tuple[Reply, bool]:
        """What one server says; another model's words are a failure."""
        url = server.calls.url
        try:
            reply, own_fault = server.calls.complete(messages, fields, limit)
        except VragError as error:
            return Reply(raw=None, failure=Failure(Status.ERROR, str(error))), False
        finally:
            with self._lock:
                server.under_way -= 1
        served = reply.fields.get("served", self._served)
        if self._served not in ("", served):
            words = f"{url} now serves {served!r}, expected {self._served!r}"
            return replace(reply, raw=None, failure=Failure(Status.ERROR, words)), False
        return replace(reply, fields={**reply.fields, "endpoint": url}), own_fault

    def _rest(self, server: _Server, why: str) -> None:
        """Let a server rest that failed."""
        with self._lock:
            if not server.rests_until:
                print(
                    f"note: {self._owner}: {server.calls.url} fails ({why}); it is tried again"
                    f" after {_REST:.0f} s, or where the others fail too",
                    flush=True,
                )
            server.rests_until = time.monotonic() + _REST
