"""Models behind an OpenAI-compatible endpoint: a provider's API, vLLM, `transformers
serve`. What differs between them is data, in `endpoints.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import openai

from vrag_kit.benchmarks.images import shrunk
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import (
    Forecast,
    Reply,
    Size,
    images_before_text,
    images_of,
    text_of,
)
from vrag_kit.generation.remote.data_url import data_url
from vrag_kit.generation.remote.deadline import DeadlineClient
from vrag_kit.generation.remote.endpoints import Endpoint, decoding_of, find_endpoint, image_tokens
from vrag_kit.types import Failure, Prompt, Status

ENDPOINT_OPTIONS = (
    "name",
    "decoding",
    "max_new_tokens",
    "max_image_side",
    "max_images",
    "concurrency",
    "timeout",
    "retries",
    "server",
    "key",
    "body",
    "headroom",
    "prices",
    "max_cost",
    "images_first",
)
MAX_COST = 25.0
"""US dollars that a model with a known price may cost in one store, unless its entry
says otherwise.
"""
EXPECTED = 64
"""Tokens of an answer, as forecasts count them."""
_FIELDS = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "max_tokens",
    "max_completion_tokens",
)
_GIVE_UP = 10
"""Calls that may fail in a row before the run is stopped: the endpoint is gone, and
going on would only mark everything as failed.
"""
_NOT_ANSWERED = (Status.TIMEOUT, Status.RATE_LIMITED, Status.ERROR)


class EndpointGenerator:
    """A model behind an endpoint; implements `Generator`. Made by `load_generator`."""

    batched = False
    deterministic = False  # not even at temperature 0: servers batch

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        name: str,
        decoding: Mapping[str, Any],
        concurrency: int,
        timeout: float,
        retries: int,
        max_cost: float | None,
        max_image_side: int | None,
        images_first: bool,
    ) -> None:
        self.name, self.decoding, self.concurrency, self.max_cost = (
            name,
            dict(decoding),
            concurrency,
            max_cost,
        )
        self._endpoint, self._timeout, self._retries, self._side, self._images_first = (
            endpoint,
            timeout,
            retries,
            max_image_side,
            images_first,
        )
        shaping = {
            "endpoint": endpoint.base_url,
            "model_id": endpoint.model,
            "body": dict(endpoint.body),
            "max_image_side": max_image_side,
            "images_first": images_first,
        }
        self.fingerprint = hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()
        self.sent = {
            **shaping,
            "headroom": endpoint.headroom,
            "part_order": "images first" if images_first else "as written",
        }
        self._client: openai.OpenAI | None = None
        self._secret, self._failed_in_a_row, self._answered, self._lock = (
            "",
            0,
            False,
            threading.Lock(),
        )

    def __repr__(self) -> str:
        return (
            f"EndpointGenerator({self.name} at {self._endpoint.base_url}, {self.concurrency} calls"
            " at once)"
        )

    def cost(self, tokens: Mapping[str, int]) -> float:
        """US dollars for so many tokens of prompt and completion; 0 where no price is
        known.
        """
        prompt, completion = self._endpoint.prices or (0.0, 0.0)
        return (prompt * tokens.get("prompt", 0) + completion * tokens.get("completion", 0)) / 1e6

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> Forecast:
        """Calls, images, tokens (pictures by the endpoint's rule, words at four letters
        a token) and, where prices are known, what this may cost.
        """
        sizes_of = [
            shrunk(sizes[image.where], self._side)
            for prompt in prompts
            for image in images_of(prompt)
        ]
        tokens, rule, prices = (
            sum(len(text_of(prompt)) // 4 + 8 for prompt in prompts),
            self._endpoint.image_tokens,
            self._endpoint.prices,
        )
        notes = []
        if rule:
            tokens += sum(image_tokens(rule, size) for size in sizes_of)
        elif sizes_of:
            notes.append(
                "tokens are those of the words alone: how this endpoint counts pictures is not"
                " known here"
            )
        limit = self.decoding[self._endpoint.limit]
        likely, most = (
            self.cost({"prompt": tokens, "completion": len(prompts) * each})
            for each in (min(limit, EXPECTED + self._endpoint.thinking), limit)
        )
        cost = likely if prices else None
        if prices:
            notes.append(
                f"about {likely:,.2f} US dollars at {prices[0]:g} for a million tokens of prompt"
                f" and {prices[1]:g} of answer; {most:,.2f} if all answers were as long as they may"
                " be; "
                + (
                    f"stops at max_cost {self.max_cost:g}"
                    if self.max_cost is not None
                    else "no max_cost stops it"
                )
            )
        elif self._endpoint.key:
            notes.append(
                "no price is known for this model: nothing is said about money, and no max_cost"
                " stops it. Add `prices` to its entry"
            )
        return Forecast(
            calls=len(prompts), images=len(sizes_of), tokens=tokens, notes=tuple(notes), cost=cost
        )

    def missing(self) -> str:
        """What this machine lacks to ask the model; "" when nothing."""
        key = os.environ.get(self._endpoint.key, "").strip() if self._endpoint.key else "none"
        if not key:
            return (
                f"the key for {self._endpoint.base_url} is not in the environment. Set it with"
                f" `export {self._endpoint.key}=…`"
            )
        return (
            ""
            if key.isascii() and key.isprintable()
            else f"the key in {self._endpoint.key} holds letters that no key has. Copy it again"
        )

    def prepare(self) -> None:
        """Make one short call with all the fields that will be sent.

        Raises `VragError` for a missing or wrong key, model, URL or field.
        """
        if self._client is not None:
            return
        if missing := self.missing():
            raise VragError(f"model {self.name!r}: {missing}.")
        self._secret = os.environ.get(self._endpoint.key, "").strip() if self._endpoint.key else ""
        client = openai.OpenAI(
            base_url=self._endpoint.base_url,
            api_key=self._secret or "none",
            max_retries=self._retries,
            timeout=self._timeout,
            http_client=DeadlineClient(self._timeout),
        )
        try:
            completion = self._ask(
                client, [{"role": "user", "content": "Reply with the word: ready"}], 0
            )
        except openai.OpenAIError as error:
            advice = (
                f" at {self._endpoint.base_url}. Is the server running, and is that its address?"
                if type(error) is openai.APIConnectionError
                else ""
            )
            raise VragError(
                f"model {self.name!r} cannot be asked:"
                f" {self._hopeless(error) or self._refused(error) or self._reason(error)}{advice}"
            ) from None
        except ValueError as error:
            raise VragError(
                f"model {self.name!r}: {self._endpoint.base_url} does not answer as an"
                f" OpenAI-compatible endpoint does ({error}). Check the URL; it often ends in /v1."
            ) from None
        if self.max_cost is not None and not _counts(completion):
            raise VragError(
                f"model {self.name!r}: {self._endpoint.base_url} does not say how many tokens a"
                " call takes, so that max_cost cannot be kept. Set `max_cost: null` in its entry"
                " to ask all the same."
            )
        self._client = client

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """One reply a prompt, in order, asked one after another; called from several
        threads it asks at once.

        Refusals, cut-off answers, time-outs, and errors that outlast the client's own
        retries are replies whose status says so. Raises `VragError` when the endpoint
        no longer takes the key or the model, and when more than ten calls in a row have
        failed.
        """
        self.prepare()
        return [self._reply(prompt, sample) for prompt in prompts]

    def _reply(self, prompt: Prompt, sample: int) -> Reply:
        messages = self._messages(prompt)
        blame = None
        try:
            completion = self._ask(self._client, messages, sample)
            reply = _read(completion, self.decoding[self._endpoint.limit])
        except openai.OpenAIError as error:
            if hopeless := self._hopeless(error):
                raise VragError(
                    f"model {self.name!r}: {hopeless} Answers so far are kept."
                ) from None
            blame = getattr(error, "status_code", None)
            reply = Reply(raw=None, failure=self._reason(error))
        except ValueError as error:
            words = f"the endpoint's reply cannot be read ({str(error)[:120]})"
            reply = Reply(raw=None, failure=Failure(Status.ERROR, words))
        self._count(reply.failure, of_the_prompt=blame in (400, 413))
        return reply

    def _ask(self, client: Any, messages: list[dict[str, Any]], sample: int) -> Any:
        fields = {**self.decoding, **({"seed": sample} if "seed" in self._endpoint.send else {})}
        known = {name: value for name, value in fields.items() if name in _FIELDS}
        more = {
            **{name: value for name, value in fields.items() if name not in _FIELDS},
            **self._endpoint.body,
        }
        completion = client.chat.completions.create(
            model=self._endpoint.model, messages=messages, **known, extra_body=more or None
        )
        if not hasattr(completion, "choices"):
            raise ValueError(f"it sent {' '.join(str(completion).split())[:60]!r}")
        return completion

    def _messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        return [
            {
                "role": message.role,
                "content": (
                    message.parts[0]
                    if len(message.parts) == 1 and isinstance(message.parts[0], str)
                    else [
                        (
                            {"type": "text", "text": part}
                            if isinstance(part, str)
                            else {
                                "type": "image_url",
                                "image_url": {"url": data_url(part, self._side)},
                            }
                        )
                        for part in message.parts
                    ]
                ),
            }
            for message in (images_before_text(prompt) if self._images_first else prompt)
        ]

    def _hopeless(self, error: openai.OpenAIError) -> str:
        """Why no other question would fare better; "" when one might."""
        where = f"{self._endpoint.base_url} says {self._message(error)!r}."
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return (
                f"the key in {self._endpoint.key or 'no environment variable'} is not accepted:"
                f" {where}"
            )
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
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return (
                f"the first call is refused: {self._endpoint.base_url} says"
                f" {self._message(error)!r}. Check the model's name as the server knows it; if it"
                " is about a field, give the model's entry another `decoding`, `body` or `server`."
            )
        return ""

    def _reason(self, error: openai.OpenAIError) -> Failure:
        """Why a call failed."""
        words = self._message(error)
        if isinstance(error, openai.APITimeoutError):
            return Failure(Status.TIMEOUT, f"no whole answer within {self._timeout:g} s")
        if not isinstance(error, openai.APIStatusError):
            if cause := error.__cause__:
                words += f" ({self._hide(f'{type(cause).__name__}: {cause}')[:100]})"
            return Failure(Status.ERROR, words)
        code = f"{getattr(error, 'code', '')} {words}".lower()
        forbidden = "content" in code and ("filter" in code or "policy" in code)
        if error.status_code == 400 and forbidden:
            return Failure(Status.REFUSED, words)
        if error.status_code == 400 and ("context_length" in code or "context length" in code):
            return Failure(Status.TOO_LONG, words)
        kind = Status.RATE_LIMITED if error.status_code == 429 else Status.ERROR
        return Failure(kind, f"HTTP {error.status_code}: {words}")

    def _message(self, error: openai.OpenAIError) -> str:
        """The endpoint's own words, short and without the key."""
        body = getattr(error, "body", None)
        told = body.get("message") or body.get("detail") if isinstance(body, dict) else None
        if told is None and isinstance(
            error, openai.APIStatusError
        ):  # servers that know another form than OpenAI's
            told = error.response.text
        words = " ".join(str(told or getattr(error, "message", "") or error).split())
        return self._hide(words)[:200]

    def _hide(self, words: str) -> str:
        """Words without the key, and such as can be stored."""
        return _storable(words.replace(self._secret, "…") if self._secret else words)

    def _count(self, failure: Failure | None, *, of_the_prompt: bool) -> None:
        """Raise `VragError` when too many calls in a row have failed.

        Once something was answered, what a single prompt may cause (HTTP 400, 413) does
        not count.
        """
        with self._lock:
            failed = failure is not None and failure.kind in _NOT_ANSWERED
            if of_the_prompt and self._answered:
                failed = False
            self._answered = self._answered or failure is None
            self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
            if self._failed_in_a_row > _GIVE_UP:
                raise VragError(
                    f"model {self.name!r}: {self._failed_in_a_row} calls in a row have failed, the"
                    f' last with "{failure}". Stopped; what was answered is kept. When'
                    f" {self._endpoint.base_url} answers again, run with `retry_failures: true`."
                )


def load_endpoint(spec: str, options: Mapping[str, Any]) -> EndpointGenerator:
    """The generator for "<model>@<endpoint name or URL>" with the options of its entry.

    Raises `VragError` for an unknown endpoint, server or field.
    """
    endpoint = find_endpoint(spec, options)
    if options.get("max_cost") is not None and endpoint.prices is None:
        raise VragError(
            f"model {spec!r}: max_cost is {options['max_cost']:g}, but no price is known for it. "
            "Add `prices: [2.5, 10]`, dollars for a million tokens of prompt and of answer."
        )
    return EndpointGenerator(
        endpoint,
        name=options.get("name") or endpoint.model.replace("/", "-"),
        decoding=decoding_of(endpoint, options["decoding"], options["max_new_tokens"]),
        concurrency=options["concurrency"],
        timeout=float(options.get("timeout", 300)),
        retries=int(options.get("retries", 4)),
        max_cost=options.get("max_cost", MAX_COST if endpoint.prices else None),
        max_image_side=options.get("max_image_side"),
        images_first=bool(options.get("images_first", False)),
    )


def _read(completion: Any, limit: int) -> Reply:
    """A chat completion as a reply.

    Raises ValueError for one whose words are of no known form.
    """
    tokens = _counts(completion)
    if not completion.choices:
        failure = Failure(Status.ERROR, "the endpoint's reply holds no choice")
        return Reply(raw=None, failure=failure, tokens=tokens)
    choice = completion.choices[0]
    raw = _words(getattr(choice.message, "content", None))
    served = getattr(completion, "model", None)
    return Reply(
        raw=raw,
        failure=_failure(choice, raw, limit),
        fields={"served": served} if served else {},
        tokens=tokens,
    )


def _failure(choice: Any, raw: str | None, limit: int) -> Failure | None:
    """Why a choice is no usable answer; None when it is one."""
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        return Failure(Status.REFUSED, _storable(str(refusal)))
    if choice.finish_reason == "content_filter":
        return Failure(Status.REFUSED, "content filter")
    if choice.finish_reason == "length":
        return Failure(Status.TRUNCATED, f"cut off at {limit} tokens")
    return None if raw else Failure(Status.EMPTY, "the model ended without a word")


def _counts(completion: Any) -> dict[str, int]:
    """Tokens as the endpoint counts them; those of thinking are part of the completion,
    also where it forgets them there.
    """
    usage = getattr(completion, "usage", None)
    prompt, answer, total = (
        getattr(usage, f"{name}_tokens", None) for name in ("prompt", "completion", "total")
    )
    if not isinstance(prompt, int) or not isinstance(answer, int):
        return {}
    thinking = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    return {
        "prompt": prompt,
        "completion": max(answer, total - prompt) if isinstance(total, int) else answer,
        **({"reasoning": thinking} if isinstance(thinking, int) else {}),
    }


def _words(content: Any) -> str | None:
    """The words of a message: a text, or the texts among its parts."""
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if content is not None and not isinstance(content, str):
        raise ValueError(f"its words are {str(content)[:40]!r}")
    return _storable((content or "").strip()) or None


def _storable(words: str) -> str:
    """Words that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return words.encode("utf-8", "replace").decode("utf-8")
