"""Client of an OpenAI-compatible endpoint, which also explains the endpoint's errors.

This is the one module that imports the OpenAI client, when a call is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import openai

from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Reply
from vrag_kit.generation.remote.completions import (
    Completion,
    parse_completion,
    utf8_safe,
)
from vrag_kit.generation.remote.deadline import http_client
from vrag_kit.generation.remote.providers import Endpoint
from vrag_kit.generation.remote.secrets import read_secret, resolve_headers
from vrag_kit.types import Failure, Status

RequestFields = Mapping[str, Any]  # Any: what a request's JSON holds
_KNOWN = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "max_tokens",
    "max_completion_tokens",
)
"""Fields that the client has names for; others travel in the body's extra part."""
_FIRST = "Reply with the word: ready"
"""What is asked first, to see whether a model can be asked."""
_SHOWN = 100
"""Letters that are shown of what is no completion."""


def _is_nobody(error: openai.OpenAIError) -> bool:
    """Whether no server answers, or one that does not speak as an endpoint: it refuses
    with a page of its own, where an endpoint sends an object.
    """
    if isinstance(error, openai.APIStatusError):
        return not isinstance(error.body, dict)
    return type(error) is openai.APIConnectionError


class EndpointClient:
    """A client of one endpoint; its calls may run in several threads."""

    def __init__(self, endpoint: Endpoint, owner: str, *, timeout: float, retries: int) -> None:
        """Create a client; `owner` ("model 'x'") begins messages, which never show secrets. Secrets
        are the key, and the values in headers.
        """
        self.timeout = timeout
        self._endpoint = endpoint
        self._owner = owner
        held = filter(None, map(read_secret, endpoint.variables))
        self._secrets = sorted(held, key=len, reverse=True)
        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            api_key=(read_secret(endpoint.key) if endpoint.key else "") or "none",
            default_headers=resolve_headers(endpoint.headers),
            max_retries=retries,
            timeout=timeout,
            http_client=http_client(timeout, endpoint.base_url, endpoint.headers),
        )

    @property
    def url(self) -> str:
        """The endpoint's address."""
        return self._endpoint.base_url

    def probe(self, fields: RequestFields) -> Reply:
        """Make one short call with all the `fields` that will be sent, and return its reply.

        Raises `VragError` for an invalid key, model, URL or field.
        """
        url = self._endpoint.base_url
        try:
            completion = self._ask([{"role": "user", "content": _FIRST}], fields)
            return parse_completion(completion, 0)
        except openai.OpenAIError as error:
            said = self._hopeless(error) or self._refused(error) or str(self._failure(error))
            advice = ""
            if _is_nobody(error):
                advice = f" at {url}. Is the server running, and is that its address?"
            raise VragError(f"{self._owner} cannot be asked: {said}{advice}") from None
        except ValueError as error:
            raise VragError(
                f"{self._owner}: {url} does not answer as an OpenAI-compatible endpoint does"
                f" ({error}). Check the URL; it often ends in /v1."
            ) from None

    def complete(
        self, messages: Sequence[RequestFields], fields: RequestFields, limit: int
    ) -> tuple[Reply, bool]:
        """Return (the reply to one prompt, whether a failure may be due to this prompt alone).

        Raises `VragError` when the endpoint no longer accepts the key or the model.
        """
        try:
            return parse_completion(self._ask(messages, fields), limit), False
        except openai.OpenAIError as error:
            if hopeless := self._hopeless(error):
                raise VragError(f"{self._owner}: {hopeless} Answers so far are kept.") from None
            own_fault = getattr(error, "status_code", None) in (400, 413)
            return Reply(raw=None, failure=self._failure(error)), own_fault
        except ValueError as error:
            words = f"the endpoint's reply cannot be read ({str(error)[:120]})"
            return Reply(raw=None, failure=Failure(Status.ERROR, words)), False

    def _ask(self, messages: Sequence[RequestFields], fields: RequestFields) -> Completion:
        known = {name: value for name, value in fields.items() if name in _KNOWN}
        more = {name: value for name, value in fields.items() if name not in _KNOWN}
        more |= self._endpoint.body
        create: Any = self._client.chat.completions.create  # typed for OpenAI's own fields alone
        completion = create(
            model=self._endpoint.model, messages=messages, **known, extra_body=more or None
        )
        if not hasattr(completion, "choices"):  # a page, or JSON that is called something else
            raise ValueError(f"it sent {self._begins(str(completion))}")
        return completion

    def _hopeless(self, error: openai.OpenAIError) -> str:
        """Why no other question would fare better; "" when one might."""
        where = f"{self._endpoint.base_url} says {self._message(error)!r}."
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            key = " or ".join(self._endpoint.variables) or "no environment variable"
            return f"the key in {key} is not accepted: {where}"
        if isinstance(error, openai.NotFoundError):
            return (
                f"there is no model {self._endpoint.model!r}, or the URL is wrong (it often ends in"
                f" /v1): {where}"
            )
        return ""

    def _refused(self, error: openai.OpenAIError) -> str:
        """Why the first call is refused, as for a field that is not taken; "" for
        another error. Later calls may be refused for what they ask.
        """
        if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return ""
        return (
            f"the first call is refused: {self._endpoint.base_url} says"
            f" {self._message(error)!r}. Check the model's name as the server knows it; if it"
            " is about a field, give the model's entry another `decoding`, `body` or `server`."
        )

    def _failure(self, error: openai.OpenAIError) -> Failure:
        """Why a call failed."""
        words = self._message(error)
        if isinstance(error, openai.APITimeoutError):
            return Failure(Status.TIMEOUT, f"no whole answer within {self.timeout:g} s")
        if not isinstance(error, openai.APIStatusError):
            if cause := error.__cause__:
                words += f" ({self._hide(f'{type(cause).__name__}: {cause}')[:100]})"
            return Failure(Status.ERROR, words)
        code = f"{getattr(error, 'code', '')} {words}".lower()
        if error.status_code == 400:
            if "content" in code and ("filter" in code or "policy" in code):
                return Failure(Status.REFUSED, words)
            if "context_length" in code or "context length" in code:
                return Failure(Status.TOO_LONG, words)
        kind = Status.RATE_LIMITED if error.status_code == 429 else Status.ERROR
        return Failure(kind, f"HTTP {error.status_code}: {words}")

    def _message(self, error: openai.OpenAIError) -> str:
        """The endpoint's own words, short and without the key."""
        body = getattr(error, "body", None)
        told = body.get("message") or body.get("detail") if isinstance(body, dict) else None
        if told is None and isinstance(error, openai.APIStatusError):
            told = error.response.text  # servers that know another form than OpenAI's
        words = " ".join(str(told or getattr(error, "message", "") or error).split())
        return self._hide(words)[:200]

    def _begins(self, words: str) -> str:
        """How words of another kind than an endpoint's begin."""
        return repr(" ".join(self._hide(words).split())[:_SHOWN])

    def _hide(self, words: str) -> str:
        """Words without secrets, and such as can be stored."""
        for secret in self._secrets:
            words = words.replace(secret, "…")
        return utf8_safe(words)
