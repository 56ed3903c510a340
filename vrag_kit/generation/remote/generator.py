"""`EndpointGenerator`: a model behind an OpenAI-compatible endpoint, with parallel calls.

Providers' APIs, vLLM and `transformers serve` differ in data, which are in `endpoints.json`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vrag_kit.benchmarks.images import decode, open_image, shrink, shrunk_size
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import CostEstimate, Generator, Reply, Size, images_before_text
from vrag_kit.generation.remote.cost import Prices, estimate_endpoint_cost
from vrag_kit.generation.remote.providers import (
    MAX_COST,
    Endpoint,
    EndpointOptions,
    JsonObject,
    decoding_fields,
)
from vrag_kit.generation.remote.secrets import read_secret
from vrag_kit.types import Failure, LazyImage, Message, Prompt

if TYPE_CHECKING:
    from vrag_kit.generation.remote.client import EndpointClient, LoadBalancer

_MAX_FAILURES = 10
"""Calls in a row that may fail before the run is stopped, as the endpoint is gone."""
_EXIF_ORIENTATION = 0x0112


class EndpointGenerator(Generator):
    """A model behind an endpoint, made by `load_generator`.

    Stored answers are identified by the model's name at the endpoint, the generator's `name`, the
    endpoint's name where it has one (openai, …), and what shapes them (body, decoding, images), not
    by the endpoint's address: another port or node reuses them, and several share the work. Two
    URLs that serve *different* models under one name therefore need a `name` each in their entries.
    """

    batched = False
    deterministic = False  # not even at temperature 0: servers batch

    def __init__(
        self, endpoints: Sequence[Endpoint], options: EndpointOptions, *, concurrency: int
    ) -> None:
        """`endpoints` differ in their address alone. `concurrency` applies where the entry has
        none. Raises `VragError` as `decoding_fields`.
        """
        endpoint = endpoints[0]
        self.name = options.name or endpoint.model.replace("/", "-")
        self.decoding = decoding_fields(endpoint, options.decoding, options.max_new_tokens)
        self._max_tokens = self.decoding[endpoint.max_tokens_field]
        self.concurrency = options.concurrency or concurrency
        has_default_cap = endpoint.prices is not None and "max_cost" not in options.model_fields_set
        self.max_cost = MAX_COST if has_default_cap else options.max_cost
        self._endpoint = endpoint
        self._endpoints = endpoints
        self._options = options
        self._urls = ", ".join(each.base_url for each in endpoints)
        shaping = {
            "model_id": endpoint.model,
            "endpoint_name": endpoint.name,
            "body": dict(endpoint.body),
            "max_image_side": options.max_image_side,
            "images_first": options.images_first,
        }
        determining = {"name": self.name, **shaping}
        if not endpoint.name:
            del determining["endpoint_name"]
        text = json.dumps(determining, sort_keys=True)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()
        self.sent = {
            **shaping,
            "endpoint": self._urls,
            "headroom": endpoint.reasoning_tokens,
            "part_order": "images first" if options.images_first else "as written",
        }
        self._client: EndpointClient | LoadBalancer | None = None
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._answered = False

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the US dollars for tokens of prompt (some may be `cached`) and completion. Returns
        0 if no price is known.
        """
        prices = self._endpoint.prices
        return Prices(*prices).cost(tokens) if prices else 0.0

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Estimate calls, images, tokens, hours and cost; see `estimate_endpoint_cost`."""
        side = self._options.max_image_side
        return estimate_endpoint_cost(
            [self._ordered(prompt) for prompt in prompts],
            {where: shrunk_size(size, side) for where, size in sizes.items()},
            self._endpoint,
            max_tokens=self._max_tokens,
            concurrency=self.concurrency,
            max_cost=self.max_cost,
        )

    def missing(self) -> str:
        """Return what this machine lacks to query the model; "" if nothing."""
        name, key = self._endpoint.key, read_secret(self._endpoint.key)
        if name and not key:
            where = f"the key for {self._urls} is not in the environment"
            return f"{where}. Set it with `export {name}=…`"
        if not (key.isascii() and key.isprintable()):
            return f"the key in {name} contains invalid characters. Copy it again"
        return ""

    def prepare(self) -> None:
        """Make one short call with all the fields that will be sent.

        Raises `VragError` for a missing or invalid key, model, URL or field, and for a cap on the
        cost where the endpoint does not count tokens.
        """
        self._ready()

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order, with one call at a time.

        Calls from several threads run in parallel. Refusals, truncated answers, timeouts, and
        errors that outlast the client's retries are replies with a failure. Raises `VragError` when
        the endpoint no longer accepts the key or the model, and when more than ten calls in a row
        have failed.
        """
        client = self._ready()
        fields = self._fields(sample)
        replies = []
        for prompt in prompts:
            messages = [
                {"role": message.role, "content": self._content(message)}
                for message in self._ordered(prompt)
            ]
            reply, own_fault = client.complete(messages, fields, self._max_tokens)
            self._check_failures(reply.failure, own_fault=own_fault)
            replies.append(reply)
        return replies

    def _ready(self) -> EndpointClient | LoadBalancer:
        """The client, after one successful call."""
        if self._client is not None:
            return self._client
        from vrag_kit.generation.remote.client import EndpointClient, LoadBalancer

        where = f"model {self.name!r}"
        if missing := self.missing():
            raise VragError(f"{where}: {missing}.")
        retries, timeout = self._options.retries, self._options.timeout
        if len(self._endpoints) > 1:
            clients = [
                EndpointClient(each, where, timeout=timeout, retries=0) for each in self._endpoints
            ]
            client: EndpointClient | LoadBalancer = LoadBalancer(clients, where, retries=retries)
        else:
            client = EndpointClient(self._endpoint, where, timeout=timeout, retries=retries)
        first = client.probe(self._fields(0))
        if self.max_cost is not None and not first.tokens:
            raise VragError(
                f"{where}: {self._urls} does not count tokens, so max_cost cannot be kept. Set"
                " `max_cost: null` in its entry to ask all the same."
            )
        self._client = client
        return client

    def _fields(self, sample: int) -> JsonObject:
        """The fields of a request beside model, messages and body."""
        seed = {"seed": sample} if "seed" in self._endpoint.sampling_fields else {}
        return {**self.decoding, **seed}

    def _ordered(self, prompt: Prompt) -> Prompt:
        return images_before_text(prompt) if self._options.images_first else prompt

    def _content(self, message: Message) -> str | list[JsonObject]:
        if len(message.parts) == 1 and isinstance(message.parts[0], str):
            return message.parts[0]
        content: list[JsonObject] = []
        for part in message.parts:
            if isinstance(part, str):
                content.append({"type": "text", "text": part})
            else:
                url = data_url(part, self._options.max_image_side)
                content.append({"type": "image_url", "image_url": {"url": url}})
        return content

    def _check_failures(self, failure: Failure | None, *, own_fault: bool) -> None:
        """Raise `VragError` when too many calls in a row have failed.

        Once something was answered, what a single prompt may cause (HTTP 400, 413) does
        not count.
        """
        with self._lock:
            is_excused = own_fault and self._answered
            failed = failure is not None and failure.kind.is_transient and not is_excused
            self._answered = self._answered or failure is None
            self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
            if self._failed_in_a_row > _MAX_FAILURES:
                raise VragError(
                    f"model {self.name!r}: {self._failed_in_a_row} calls in a row have failed"
                    f" ({failure}). When {self._urls} answers again, run with `retry_failures:"
                    " true` in `hardware`; answers so far are kept."
                )


def data_url(image: LazyImage, side: int | None = None) -> str:
    """Return an image as a data URL with the pixels of `image.open()`, shrunk to at most `side`.
    The file itself is used if it is an upright RGB JPEG or PNG, otherwise a new PNG.
    """
    data = image.data()
    kind = _portable_format(data, image.where, side)
    if kind is None:
        buffer = io.BytesIO()
        shrink(decode(data, image.where), side).save(buffer, "PNG")
        data, kind = buffer.getvalue(), "png"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _portable_format(data: bytes, where: str, side: int | None) -> str | None:
    """Return "jpeg" or "png" for an image of at most `side` that every server decodes to the same
    upright RGB pixels; None for any other.
    """
    try:
        with open_image(data, where) as opened:
            is_small = side is None or max(opened.size) <= side
            is_upright = opened.getexif().get(_EXIF_ORIENTATION, 1) == 1
            is_opaque = opened.mode == "RGB" and "transparency" not in opened.info
            kind = {"JPEG": "jpeg", "PNG": "png"}.get(opened.format or "")
            return kind if is_small and is_upright and is_opaque else None
    except OSError:
        return None  # `decode` raises the error
