"""Clients of OpenAI-compatible endpoints: calls, replies, errors as statuses, load balancing.

This is the one module that imports the OpenAI client; it is imported when a call is made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import openai

from vrag_kit.errors import VragError
from vrag_kit.generation.generators import Reply
from vrag_kit.generation.remote.providers import Endpoint, JsonObject
from vrag_kit.generation.remote.secrets import read_secret
from vrag_kit.log import logger
from vrag_kit.types import Failure, Status

RequestFields = Mapping[str, Any]  # Any: what a request's JSON holds
_WRONG_KEY = (openai.AuthenticationError, openai.PermissionDeniedError)
_PROBE = [{"role": "user", "content": "Reply with the word: ready"}]

_COOLDOWN = 60.0
"""Seconds for which a server that failed is used only if the others fail too."""
_PAUSE = 1.0
"""Seconds of pause after all servers have failed; a second more each time."""


class _DeadlineStream(httpx2.SyncByteStream):
    """A response's bytes until a deadline; httpx's own timeouts are for single reads."""

    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        self._stream: Any = response.stream  # Any: httpx says that it may be asynchronous
        self._request = response.request
        self._end = time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._end:
                raise httpx2.ReadTimeout("the answer is not complete", request=self._request)
            yield part

    def close(self) -> None:
        self._stream.close()


class EndpointClient:
    """A client of one endpoint; its calls may run in several threads."""

    def __init__(self, endpoint: Endpoint, where: str, *, timeout: float, retries: int) -> None:
        """Create a client; `where` ("model 'x'") begins messages, which never show the key. No
        redirection is followed, which might take it elsewhere. An answer begins within `timeout`
        seconds, and is complete within as many more.
        """
        self.url = endpoint.base_url
        self._endpoint = endpoint
        self._where = where
        self._timeout = timeout
        self._key = read_secret(endpoint.key)

        def limit(response: httpx2.Response) -> None:
            response.stream = _DeadlineStream(response, timeout)

        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            api_key=self._key or "none",
            max_retries=retries,
            timeout=timeout,
            http_client=openai.DefaultHttpxClient(
                timeout=timeout, follow_redirects=False, event_hooks={"response": [limit]}
            ),
        )

    def probe(self, fields: RequestFields) -> Reply:
        """Make one short call with all the `fields` that will be sent, and return its reply.

        Raises `VragError` for an invalid key, model, URL or field.
        """
        try:
            return parse_completion(self._create(_PROBE, fields), 0)
        except openai.OpenAIError as error:
            reason = self._hopeless(error) or f"{self._failure(error)} at {self.url}."
        except ValueError as error:
            reason = f"{self.url} does not answer as an OpenAI-compatible endpoint does ({error})."
        raise VragError(
            f"{self._where} cannot be asked: {reason} Check that the server runs at that URL, which"
            " often ends in /v1, and the model's name there; if it is about a field, give the entry"
            " another `decoding`, `body` or `server`."
        )

    def complete(
        self, messages: Sequence[RequestFields], fields: RequestFields, max_tokens: int
    ) -> tuple[Reply, bool]:
        """Return (the reply to one prompt, whether a failure may be due to this prompt alone).

        Raises `VragError` when the endpoint no longer accepts the key or the model.
        """
        try:
            return parse_completion(self._create(messages, fields), max_tokens), False
        except openai.OpenAIError as error:
            if hopeless := self._hopeless(error):
                raise VragError(f"{self._where}: {hopeless} Answers so far are kept.") from None
            own_fault = getattr(error, "status_code", None) in (400, 413)
            return Reply(raw=None, failure=self._failure(error)), own_fault
        except ValueError as error:
            words = f"the endpoint's reply cannot be read ({str(error)[:120]})"
            return Reply.failed(Status.ERROR, words), False

    def _create(self, messages: Sequence[RequestFields], fields: RequestFields) -> JsonObject:
        """The chat completion that the server sends; raises ValueError if it is none."""
        request = {"model": self._endpoint.model, "messages": messages, **fields}
        body = {**request, **self._endpoint.body}
        response = self._client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        try:
            completion = json.loads(response.text)
            if isinstance(completion["choices"][0]["message"], dict):
                return dict(completion)
        except (ValueError, LookupError, TypeError):
            pass
        beginning = " ".join(self._hide(response.text).split())[:100]
        raise ValueError(f"it sent {beginning!r}")

    def _hopeless(self, error: openai.OpenAIError) -> str:
        """Why every other call would fail too; "" if one might not."""
        message = f"{self.url} says {self._message(error)!r}."
        if isinstance(error, _WRONG_KEY):
            key = self._endpoint.key or "no environment variable"
            return f"the key in {key} is not accepted: {message}"
        if isinstance(error, openai.NotFoundError):
            model = self._endpoint.model
            words = f"there is no model {model!r}, or the URL is wrong (it often ends in /v1)"
            return f"{words}: {message}"
        return ""

    def _failure(self, error: openai.OpenAIError) -> Failure:
        words = self._message(error)
        if isinstance(error, openai.APITimeoutError):
            return Failure(Status.TIMEOUT, f"no whole answer within {self._timeout:g} s")
        if not isinstance(error, openai.APIStatusError):
            cause = self._hide(f"{type(error.__cause__).__name__}: {error.__cause__}")[:100]
            return Failure(Status.ERROR, f"{words} ({cause})" if error.__cause__ else words)
        if isinstance(error, openai.BadRequestError):
            reason = f"{error.code} {words}".lower()
            if "content" in reason and ("filter" in reason or "policy" in reason):
                return Failure(Status.REFUSED, words)
            if "context_length" in reason or "context length" in reason:
                return Failure(Status.TOO_LONG, words)
        kind = Status.RATE_LIMITED if error.status_code == 429 else Status.ERROR
        return Failure(kind, f"HTTP {error.status_code}: {words}")

    def _message(self, error: openai.OpenAIError) -> str:
        """The endpoint's own words, short and without secrets."""
        body = getattr(error, "body", None)
        words = body.get("message") or body.get("detail") if isinstance(body, dict) else None
        if words is None and isinstance(error, openai.APIStatusError):
            words = error.response.text
        return self._hide(" ".join(str(words or error).split()))[:200]

    def _hide(self, words: str) -> str:
        """Return text without the key that can be stored."""
        return _utf8(words.replace(self._key, "…") if self._key else words)


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
        """Make one short call to each server, and return the reply of one; it has no token counts
        if a server does not report them.

        Raises `VragError` if one fails, and if two serve different models.
        """
        replies = [client.probe(fields) for client in self._clients]
        served = sorted({reply.fields.get("served", "") for reply in replies})
        if len(served) > 1:
            found, expected = " and ".join(served), "one model, or entries with a `name`"
            raise VragError(f"{self._where}: found servers of {found}; expected {expected}.")
        return min(replies, key=lambda reply: bool(reply.tokens))

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
                if client not in self._cooling_until:
                    logger.info(f"note: {self._where}: {client.url} fails ({reply.failure})")
                self._cooling_until[client] = time.monotonic() + _COOLDOWN
        return reply, own_fault

    def _load(self, client: EndpointClient) -> tuple[bool, int]:
        is_cooling = self._cooling_until.get(client, 0.0) > time.monotonic()
        return is_cooling, self._calls.count(client)


def parse_completion(completion: JsonObject, max_tokens: int) -> Reply:
    """Parse a chat completion with a message into a reply; `max_tokens` is the longest answer.

    Raises ValueError for a text of no known form.
    """
    choice = completion["choices"][0]
    raw = _text(choice["message"].get("content"))
    refusal = choice["message"].get("refusal")
    reason = choice.get("finish_reason")
    failure = None
    if refusal or reason == "content_filter":
        failure = Failure(Status.REFUSED, _utf8(str(refusal or "content filter")))
    elif reason == "length":
        failure = Failure(Status.TRUNCATED, f"cut off at {max_tokens} tokens")
    served = completion.get("model")
    fields = {"served": served} if served else {}
    tokens = _count_tokens(completion.get("usage"))
    return Reply(raw=raw, failure=failure, fields=fields, tokens=tokens)


def _count_tokens(usage: object) -> dict[str, int]:
    """The token counts that the endpoint reports. Reasoning tokens are part of the completion, even
    where the endpoint omits them there, and cached tokens are part of the prompt.
    """
    if not isinstance(usage, dict):
        return {}
    counts = {
        "prompt": usage.get("prompt_tokens"),
        "completion": usage.get("completion_tokens"),
        "reasoning": (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"),
        "cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
    }
    found = {name: count for name, count in counts.items() if isinstance(count, int)}
    if not {"prompt", "completion"} <= found.keys():
        return {}
    rest = (usage.get("total_tokens") or 0) - found["prompt"]
    return {**found, "completion": max(found["completion"], rest)}


def _text(content: object) -> str | None:
    """The text of a message: a string, or the strings among its parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    if content is not None and not isinstance(content, str):
        raise ValueError(f"its text is {str(content)[:40]!r}")
    return _utf8((content or "").strip()) or None


def _utf8(text: str) -> str:
    """Return text that UTF-8 can encode: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
