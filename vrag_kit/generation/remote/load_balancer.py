"""Load balancing over several servers of one model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from vrag_kit.errors import VragError
from vrag_kit.generation.generators import Reply
from vrag_kit.generation.remote.client import EndpointClient, RequestFields
from vrag_kit.log import logger

_COOLDOWN = 60.0
"""Seconds for which a server that failed is used only if the others fail too."""
_PAUSE = 1.0
"""Seconds of pause after all servers have failed; a second more each time."""


class LoadBalancer:
    """Sends each prompt to the server with the fewest calls in progress and, if that fails, to the
    others. Offers what `EndpointClient` does; calls may run in several threads.
    """

    def __init__(self, clients: Sequence[EndpointClient], where: str, *, retries: int) -> None:
        """`clients` do not retry; if all fail, all are tried again, `retries` times."""
        self._clients = clients
        self._where = where
        self._retries = retries
        self._calls: list[EndpointClient] = []  # one item for each call in progress
        self._cooling_until: dict[EndpointClient, float] = {}

    def probe(self, fields: RequestFields) -> Reply:
        """Make one short call to each server, and return the reply of one; a server that fails is
        left out. The reply has no token counts if a server does not report them.

        Raises `VragError` if all fail, and if two serve different models.
        """
        replies = {}
        problems = []
        for client in self._clients:
            try:
                replies[client] = client.probe(fields)
            except VragError as error:
                problems.append(str(error))
        if not replies:
            raise VragError(" ".join(problems))
        for problem in problems:
            logger.info(f"note: {problem} It is left out.")
        served = sorted({reply.fields.get("served", "") for reply in replies.values()})
        if len(served) > 1:
            raise VragError(
                f"{self._where}: found servers of {' and '.join(served)}; expected one model, or an"
                " entry for each, with a `name`."
            )
        self._clients = list(replies)
        return min(replies.values(), key=lambda reply: bool(reply.tokens))

    def complete(
        self, messages: Sequence[RequestFields], fields: RequestFields, max_tokens: int
    ) -> tuple[Reply, bool]:
        """Return as `EndpointClient.complete`; if all servers fail, the last one's failure."""
        for attempt in range(self._retries + 1):
            time.sleep(attempt * _PAUSE)
            for client in sorted(self._clients, key=self._load):
                self._calls.append(client)
                try:
                    reply, own_fault = client.complete(messages, fields, max_tokens)
                finally:
                    self._calls.remove(client)
                if own_fault or not reply.failure or not reply.failure.kind.is_transient:
                    self._cooling_until.pop(client, None)
                    recorded = {**reply.fields, "endpoint": client.url}
                    return replace(reply, fields=recorded), own_fault
                is_news = client not in self._cooling_until
                self._cooling_until[client] = time.monotonic() + _COOLDOWN
                if is_news:
                    note = f"{client.url} fails ({reply.failure}); it is tried again later"
                    logger.info(f"note: {self._where}: {note}")
        return reply, own_fault

    def _load(self, client: EndpointClient) -> tuple[bool, int]:
        is_cooling = self._cooling_until.get(client, 0.0) > time.monotonic()
        return is_cooling, self._calls.count(client)
