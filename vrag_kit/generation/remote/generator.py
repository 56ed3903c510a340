"""`EndpointGenerator`: a model behind an OpenAI-compatible endpoint, with parallel calls.

Providers' APIs, vLLM and `transformers serve` differ in data, which are in `endpoints.json`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vrag_kit.checkpoints import Options
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import (
    CostEstimate,
    Reply,
    Size,
    images_before_text,
)
from vrag_kit.generation.remote.completions import NOT_ANSWERED
from vrag_kit.generation.remote.data_url import data_url
from vrag_kit.generation.remote.foretelling import CallOptions, estimate_endpoint_cost
from vrag_kit.generation.remote.providers import (
    Endpoint,
    JsonObject,
    decoding_fields,
    find_endpoints,
)
from vrag_kit.generation.remote.secrets import read_secret
from vrag_kit.types import Failure, LazyImage, Message, Prompt

if TYPE_CHECKING:
    from vrag_kit.generation.remote.client import EndpointClient
    from vrag_kit.generation.remote.several import LoadBalancer

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
    "headers",
    "headroom",
    "prices",
    "max_cost",
    "images_first",
)
MAX_COST = 25.0
"""Default cap in US dollars for a model with a known price in one store, unless its entry sets
another.
"""
_GIVE_UP = 10
"""Calls that may fail in a row before the run is stopped: the endpoint is gone, and
going on would only mark everything as failed.
"""


class EndpointGenerator:
    """A model behind an endpoint; implements `Generator`. Made by `load_generator`.

    Stored answers are identified by the model's name at the endpoint, the generator's `name`, the
    endpoint's name where it has one (openai, …), and what shapes them (body, decoding, images), not
    by the endpoint's address: another port or node reuses them, and several share the work. Two
    URLs that serve *different* models under one name therefore need a `name` each in their entries.
    """

    batched = False
    deterministic = False  # not even at temperature 0: servers batch

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        name: str,
        decoding: Options,
        calling: CallOptions,
        max_image_side: int | None,
        images_first: bool,
    ) -> None:
        self.name = name
        self.decoding = dict(decoding)
        self.concurrency = calling.concurrency
        self.max_cost = calling.max_cost
        endpoint = endpoints[0]  # they differ in their address alone
        self._endpoint = endpoint
        self._endpoints = endpoints
        self._where = ", ".join(each.base_url for each in endpoints)
        self._calling = calling
        self._side = max_image_side
        self._images_first = images_first
        shaping = {
            "model_id": endpoint.model,
            "endpoint_name": endpoint.name,
            "body": dict(endpoint.body),
            "max_image_side": max_image_side,
            "images_first": images_first,
        }
        self.fingerprint = endpoint_fingerprint(name, shaping)
        self.sent = {
            **shaping,
            "endpoint": self._where,
            "headroom": endpoint.headroom,
            "part_order": "images first" if images_first else "as written",
        }
        self._calls: EndpointClient | LoadBalancer | None = None
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._answered = False

    def __repr__(self) -> str:
        return f"EndpointGenerator({self.name} at {self._where}, {self.concurrency} calls at once)"

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the US dollars for tokens of prompt (some may be `cached`) and completion. Returns
        0 if no price is known.
        """
        prices = self._endpoint.prices
        return prices.cost(tokens) if prices else 0.0

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Estimate calls, images, tokens, hours and cost; see `estimate_endpoint_cost`."""
        sent = [images_before_text(each) if self._images_first else each for each in prompts]
        return estimate_endpoint_cost(
            sent,
            sizes,
            self._endpoint,
            limit=self.decoding[self._endpoint.limit],
            calling=self._calling,
            max_image_side=self._side,
        )

    def missing(self) -> str:
        """Return what this machine lacks to query the model; "" if nothing."""
        for name in self._endpoint.variables:
            key = read_secret(name)
            if not key:
                return (
                    f"the key for {self._where} is not in the environment. Set it with"
                    f" `export {name}=…`"
                )
            if not (key.isascii() and key.isprintable()):
                return f"the key in {name} holds letters that no key has. Copy it again"
        return ""

    def prepare(self) -> None:
        """Make one short call with all the fields that will be sent.

        Raises `VragError` for a missing or invalid key, model, URL or field.
        """
        self._ready()

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order, with one call at a time.

        Calls from several threads run in parallel. Refusals, truncated answers, timeouts, and
        errors that outlast the client's retries are replies with a failure. Raises `VragError` when
        the endpoint no longer accepts the key or the model, and when more than ten calls in a row
        have failed.
        """
        calls = self._ready()
        limit = self.decoding[self._endpoint.limit]
        replies = []
        for prompt in prompts:
            reply, own_fault = calls.complete(self._messages(prompt), self._fields(sample), limit)
            self._count(reply.failure, own_fault=own_fault)
            replies.append(reply)
        return replies

    def _ready(self) -> EndpointClient | LoadBalancer:
        """The client, after one call that went well."""
        if self._calls is not None:
            return self._calls
        owner = f"model {self.name!r}"
        if missing := self.missing():
            raise VragError(f"{owner}: {missing}.")
        calls = self._opened(owner)
        first = calls.probe(self._fields(0))
        if self.max_cost is not None and not first.tokens:
            raise VragError(
                f"{owner}: {self._where} does not say how many tokens a call takes, so"
                " that max_cost cannot be kept. Set `max_cost: null` in its entry to ask all the"
                " same."
            )
        self._calls = calls
        return calls

    def _opened(self, owner: str) -> EndpointClient | LoadBalancer:
        """A client of the endpoint, or of all of them."""
        from vrag_kit.generation.remote.client import EndpointClient
        from vrag_kit.generation.remote.several import LoadBalancer

        retries = self._calling.retries
        alone = len(self._endpoints) == 1
        each = [
            EndpointClient(
                endpoint, owner, timeout=self._calling.timeout, retries=retries if alone else 0
            )
            for endpoint in self._endpoints
        ]
        return each[0] if alone else LoadBalancer(each, owner, retries=retries)

    def _fields(self, sample: int) -> JsonObject:
        """What is sent beside the messages."""
        seed = {"seed": sample} if "seed" in self._endpoint.send else {}
        return {**self.decoding, **seed}

    def _messages(self, prompt: Prompt) -> list[JsonObject]:
        ordered = images_before_text(prompt) if self._images_first else prompt
        return [{"role": message.role, "content": self._content(message)} for message in ordered]

    def _content(self, message: Message) -> str | list[JsonObject]:
        if len(message.parts) == 1 and isinstance(message.parts[0], str):
            return message.parts[0]
        return [self._part(part) for part in message.parts]

    def _part(self, part: str | LazyImage) -> JsonObject:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        return {"type": "image_url", "image_url": {"url": data_url(part, self._side)}}

    def _count(self, failure: Failure | None, *, own_fault: bool) -> None:
        """Raise `VragError` when too many calls in a row have failed.

        Once something was answered, what a single prompt may cause (HTTP 400, 413) does
        not count.
        """
        with self._lock:
            failed = failure is not None and failure.kind in NOT_ANSWERED
            if own_fault and self._answered:
                failed = False
            self._answered = self._answered or failure is None
            self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
            if self._failed_in_a_row > _GIVE_UP:
                raise VragError(
                    f"model {self.name!r}: {self._failed_in_a_row} calls in a row have failed, the"
                    f' last with "{failure}". Stopped; what was answered is kept. When'
                    f" {self._where} answers again, run with"
                    " `retry_failures: true` in `hardware`."
                )


def endpoint_fingerprint(name: str, shaping: Options) -> str:
    """Return the fingerprint of a served model: a hash of its name here and `shaping`. `shaping`
    holds the endpoint's name for the model, the endpoint's own name if it has one, the body, and
    how images are handled.
    """
    determining = {"name": name, **shaping}
    if not determining.get("endpoint_name"):
        determining.pop("endpoint_name", None)
    text = json.dumps(determining, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load_endpoint_generator(spec: str, options: Options) -> EndpointGenerator:
    """Load the generator for "<model>@<endpoint name or URL>", or "<model>@[<URL>, <URL>]".

    `options` are those of its entry. Raises `VragError` for an unknown endpoint, server or field.
    """
    endpoints = find_endpoints(spec, options)
    endpoint = endpoints[0]
    if options.get("max_cost") is not None and endpoint.prices is None:
        raise VragError(
            f"model {spec!r}: max_cost is {options['max_cost']:g}, but no price is known for it. "
            "Add `prices: [2.5, 10]`, dollars for a million tokens of prompt and of answer."
        )
    calling = CallOptions(
        concurrency=options["concurrency"],
        timeout=float(options.get("timeout", 300)),
        retries=int(options.get("retries", 4)),
        max_cost=options.get("max_cost", MAX_COST if endpoint.prices else None),
    )
    return EndpointGenerator(
        endpoints,
        name=options.get("name") or endpoint.model.replace("/", "-"),
        decoding=decoding_fields(endpoint, options["decoding"], options["max_new_tokens"]),
        calling=calling,
        max_image_side=options.get("max_image_side"),
        images_first=bool(options.get("images_first", False)),
    )
