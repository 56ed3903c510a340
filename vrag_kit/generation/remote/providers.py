"""Endpoints and their differences, from `endpoints.json`: names, URLs, fields, defaults, prices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from vrag_kit.checkpoints import Options
from vrag_kit.config import GREEDY, Count, Dollars, EntryOptions, Natural
from vrag_kit.errors import VragError
from vrag_kit.generation.remote.secrets import check_secrets

JsonObject = dict[str, Any]  # Any: what JSON holds
_DATA = json.loads((Path(__file__).parent / "endpoints.json").read_text(encoding="utf-8"))
ENDPOINTS, SERVERS = _DATA["endpoints"], _DATA["servers"]
MAX_COST = 25.0
"""Default cap in US dollars for a model with a known price in one store."""
_URL = r"https?://[^\s?#]+"
_HUB_TIMEOUT = 3.0
"""Seconds after which the hub counts as unreachable: only a model's defaults are wanted of it."""
_RESERVED = (
    *("model", "messages", "stream", "n", "seed"),
    *("temperature", "top_p", "max_tokens", "max_completion_tokens"),
)
"""Fields of a request that the kit sends and records itself, whatever the endpoint."""
_GREEDY = {
    "temperature": 0.0,
    "top_p": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}


class EndpointOptions(EntryOptions):
    """Options of an entry whose model is behind an endpoint. Answers do not depend on
    `concurrency`, `timeout`, `retries`, `key`, `prices` and `max_cost`.
    """

    concurrency: Count | None = None
    """Parallel calls; replaces the batch size in `hardware`."""
    timeout: float = Field(300.0, ge=0.1, description="a number of seconds, 0.1 or more")
    """Seconds within which a whole answer must arrive."""
    retries: Natural = 4
    """Retries after the first attempt."""
    server: Literal["openai", "vllm", "transformers"] = "openai"
    """What serves the model at a URL."""
    key: str | None = Field(
        None,
        repr=False,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="the name of an environment variable that holds the key",
    )
    body: JsonObject = Field({}, repr=False, description="a mapping of fields")
    """Fields sent with every request."""
    headroom: Natural | None = None
    """Tokens for reasoning, on top of an answer's."""
    prices: Annotated[tuple[Dollars, ...], Field(strict=False)] | None = Field(
        None,
        min_length=2,
        max_length=3,
        description="two prices, as in [2.5, 10], or a third for tokens in the cache",
    )
    """US dollars per million tokens of prompt, of answer and of prompt in the endpoint's cache."""
    max_cost: Dollars | None = None
    """US dollars; None for no cap."""
    images_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint that serves a model, and how it differs from other endpoints."""

    model: str
    name: str
    """Its name in `endpoints.json`; "" for a URL."""
    base_url: str
    max_tokens_field: str
    """The field that limits an answer's length."""
    sampling_fields: Sequence[str]
    """Sampling fields that it accepts."""
    key: str | None = None
    """Name of the environment variable that holds the key; None if none is needed."""
    defaults: Options | None = None
    """Sampling fields when nothing is sent; None if only the server knows them."""
    body: Options = field(default_factory=dict)
    """Fields sent with every request."""
    reasoning_tokens: int = 0
    """Tokens for reasoning, on top of an answer's."""
    expected_reasoning_tokens: int = 0
    """How many of them estimates assume."""
    prices: Sequence[float] | None = None
    """See `EndpointOptions.prices`; None if they are not known."""
    image_tokens: str | None = None
    """The rule by which estimates count image tokens."""


def find_endpoints(spec: str, options: EndpointOptions) -> tuple[Endpoint, ...]:
    """Return the endpoints of "<model>@<name or URL>" or "<model>@[<URL>, <URL>]". The entry's
    options override their data.

    Raises `VragError` for an unknown endpoint, for a list that holds anything but different URLs,
    for a secret in the entry, for a field in `body` that the kit sends itself, and for a cap where
    no price is known.
    """
    where = f"model {spec!r}"
    check_secrets(where, options.body)
    model, place = (part.strip() for part in spec.rsplit("@", 1))
    places = [place]
    if place.startswith("["):
        places = [each.strip().rstrip("/") for each in place[1:].removesuffix("]").split(",")]
        if len(set(places)) < len(places) or not all(re.fullmatch(_URL, each) for each in places):
            expected = "different URLs that serve one model: [http://node1:8000/v1, …]"
            raise VragError(f"{where}: found the list {place}; expected {expected}.")
    return tuple(_endpoint(model, each, options, where) for each in places)


def default_endpoint(model: str) -> str | None:
    """Return the provider of a model name, such as "openai" for "gpt-…"; None if there is none."""
    family = model.partition("-")[0]
    for endpoint, about in ENDPOINTS.items():
        if any(name.partition("-")[0] == family for name in about.get("models", {})):
            return str(endpoint)
    return None


def _endpoint(model: str, place: str, options: EndpointOptions, where: str) -> Endpoint:
    """Return a model's endpoint, with the data of `endpoints.json`."""
    if re.fullmatch(_URL, place):
        facts = {**SERVERS[options.server], "name": "", "base_url": place.rstrip("/")}
    elif place in ENDPOINTS:
        facts = {**ENDPOINTS[place], "name": place}
        versions = r"(-\d{4}[\d-]*)?"
        for name, differences in facts.pop("models", {}).items():
            if re.fullmatch(re.escape(name) + versions, model):
                facts |= differences
                break
    else:
        raise VragError(
            f"{where}: found the endpoint {place!r}; expected {', '.join(ENDPOINTS)}, or a URL"
            " such as http://localhost:8000/v1."
        )
    given = {"key": options.key, "prices": options.prices, "reasoning_tokens": options.headroom}
    facts |= {name: value for name, value in given.items() if value is not None}
    facts["body"] = {**facts.get("body", {}), **options.body}
    endpoint = Endpoint(model=model, **facts)
    ours = {*endpoint.sampling_fields, endpoint.max_tokens_field, *_RESERVED}
    if taken := sorted(ours & endpoint.body.keys()):
        raise VragError(
            f"{where}, body: found {taken[0]!r}, which the kit sends itself; expected it as"
            " `decoding` or `max_new_tokens`."
        )
    if options.max_cost is not None and endpoint.prices is None:
        raise VragError(
            f"{where}, max_cost: found {options.max_cost:g} for a model without a known price;"
            " expected `prices: [2.5, 10]` too, dollars per million tokens of prompt and answer."
        )
    return endpoint


def decoding_fields(endpoint: Endpoint, sampling: Options, max_new_tokens: int) -> JsonObject:
    """Return the decoding fields to send, including the maximum length; each sample has a seed.

    Raises `VragError` if the model's defaults are not known here, and for a field that the endpoint
    does not accept.
    """
    where = f"model {endpoint.model!r} at {endpoint.base_url}"
    accepted = [name for name in endpoint.sampling_fields if name != "seed"]
    given = {name: value for name, value in sampling.items() if name != "do_sample"}
    if refused := sorted(given.keys() - set(accepted)):
        known = ", ".join(accepted) or "no sampling fields"
        raise VragError(
            f"{where}, decoding: found {refused[0]!r}; expected {known}. Set `decoding` in its"
            " entry; {temperature: null} stands for the model's defaults."
        )
    if sampling == GREEDY:
        values: Options = _GREEDY
    elif sampling:
        stated = {name: value if name == "top_k" else float(value) for name, value in given.items()}
        values = {**_GREEDY, "temperature": 1.0, **(endpoint.defaults or {}), **stated}
    elif endpoint.defaults is not None:
        values = endpoint.defaults
    else:
        values = {**_GREEDY, **_checkpoint_defaults(endpoint.model, where)}
    length = {endpoint.max_tokens_field: max_new_tokens + endpoint.reasoning_tokens}
    return {**{name: values[name] for name in values if name in accepted}, **length}


def _checkpoint_defaults(model: str, where: str) -> JsonObject:
    """The sampling fields in the generation config of the checkpoint that a server serves."""
    try:
        stated = _generation_config(model)
    except (OSError, ValueError) as error:
        found = f"its defaults are not known here, with no generation config under {model!r}"
        hint = "Set `decoding` in its entry, such as {temperature: 0.7, top_p: 0.9}."
        raise VragError(f"{where}: {found}. {hint}") from error
    names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    if not stated.get("do_sample"):
        return {name: stated[name] for name in names[-1:] if name in stated}
    return {"temperature": 1.0, **{name: stated[name] for name in names if name in stated}}


def _generation_config(model: str) -> JsonObject:
    """The generation_config.json of a folder, or of a name on the hub. Raises OSError or ValueError
    without one.
    """
    name = "generation_config.json"
    path = Path(model) / name
    if not Path(model).is_dir():
        from huggingface_hub import hf_hub_download

        path = Path(hf_hub_download(model, name, etag_timeout=_HUB_TIMEOUT))
    stated = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in stated.items() if value is not None}
