"""Endpoints and their differences, from `endpoints.json`: names, URLs, fields, defaults, prices."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrag_kit.checkpoints import Options
from vrag_kit.config import GREEDY
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Size
from vrag_kit.generation.remote.prices import Prices
from vrag_kit.generation.remote.secrets import check_secrets, variables_in

JsonObject = dict[str, Any]  # Any: what JSON holds
_DATA = json.loads((Path(__file__).parent / "endpoints.json").read_text(encoding="utf-8"))
ENDPOINTS, SERVERS = _DATA["endpoints"], _DATA["servers"]
_URL = r"https?://[^\s?#]+"
_HUB_ANSWERS_IN = 3.0
"""Seconds until a hub that says nothing is taken as not there."""
_OURS = (
    "model",
    "messages",
    "stream",
    "n",
    "seed",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
)
_GREEDY = {
    "temperature": 0.0,
    "top_p": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint that serves a model, and how it differs from other endpoints."""

    model: str
    name: str
    """Its name in `endpoints.json`; "" for a URL."""
    base_url: str
    key: str | None
    """Name of the environment variable that holds the key; None if none is needed."""
    limit: str
    """The field that limits an answer's length."""
    send: tuple[str, ...]
    """Sampling fields that it accepts."""
    defaults: Options | None
    """Their values when nothing is sent; None if only the server knows them."""
    body: Options
    """Fields sent with every request."""
    headers: Mapping[str, str]
    """Headers sent with every request: `$NAME` stands for an environment variable."""
    headroom: int
    """Tokens for reasoning, on top of an answer's."""
    thinking: int
    """How many of them estimates assume."""
    prices: Prices | None
    """None if they are not known."""
    image_tokens: str | None
    """The rule by which estimates count image tokens."""

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold its key and its headers' values."""
        named = [*([self.key] if self.key else []), *variables_in(self.headers)]
        return list(dict.fromkeys(named))


def find_endpoints(spec: str, options: Options) -> tuple[Endpoint, ...]:
    """Return the endpoints of "<model>@<name or URL>" or "<model>@[<URL>, <URL>]". The entry's
    options override their data.

    Raises `VragError` for an unknown name or server, and for a list that holds anything but URLs,
    or one of them twice.
    """
    several = re.fullmatch(r"(.+?)\s*@\s*\[(.*)\]\s*", spec)
    if not several:
        return (_find(re.sub(r"\s*@\s*", "@", spec.strip()), options),)
    places = [place.strip().rstrip("/") for place in several[2].split(",")]
    wrong = [place for place in places if not re.fullmatch(_URL, place)]
    if wrong or len(set(places)) < len(places):
        what = f"{wrong[0]!r}, which is no URL" if wrong else "one of them twice"
        raise VragError(
            f"model {spec!r}: its list of endpoints holds {what}. Expected different URLs that all"
            " serve this model, as in [http://node1:8000/v1, http://node2:8000/v1]."
        )
    return tuple(_find(f"{several[1]}@{place}", options) for place in places)


def default_endpoint(model: str) -> str | None:
    """Return the provider of a model name, such as "openai" for "gpt-…"; None if there is none."""
    family = model.partition("-")[0]
    for endpoint, about in ENDPOINTS.items():
        if any(name.partition("-")[0] == family for name in about.get("models", {})):
            return str(endpoint)
    return None


def _find(spec: str, options: Options) -> Endpoint:
    check_secrets(spec, options)
    about = _facts(spec, options)
    about |= {name: options[name] for name in ("key", "headroom", "prices") if name in options}
    about["body"] = {**about.get("body", {}), **options.get("body", {})}
    _check(spec, about)
    prices = about.get("prices")
    place = spec.rpartition("@")[2]
    return Endpoint(
        model=spec.rpartition("@")[0],
        name=place if place in ENDPOINTS else "",
        base_url=about["base_url"],
        key=about.get("key"),
        limit=about["limit"],
        send=tuple(about["send"]),
        defaults=about.get("defaults"),
        body=about["body"],
        headers=dict(options.get("headers", {})),
        headroom=about.get("headroom", 0),
        thinking=about.get("thinking", 0),
        prices=Prices.parse(prices) if prices else None,
        image_tokens=about.get("image_tokens"),
    )


def _facts(spec: str, options: Options) -> JsonObject:
    """What `endpoints.json` tells of an endpoint, and of this model there.

    Raises `VragError` for an unknown name or server.
    """
    model = spec.rpartition("@")[0]
    place = spec.rpartition("@")[2]
    if place in ENDPOINTS:
        about = {name: value for name, value in ENDPOINTS[place].items() if name != "models"}
        for name, facts in ENDPOINTS[place].get("models", {}).items():
            if re.fullmatch(re.escape(name) + r"(-\d{4}[\d-]*)?", model):
                return {**about, **facts}
        return about
    if not re.fullmatch(_URL, place):
        raise VragError(
            f"model {spec!r}: unknown endpoint {place!r}; expected one of {', '.join(ENDPOINTS)},"
            " or a URL such as http://localhost:8000/v1."
        )
    server = options.get("server", "openai")
    if server not in SERVERS:
        raise VragError(
            f"model {spec!r}: server is {server!r}; expected one of {', '.join(SERVERS)}."
        )
    return {**SERVERS[server], "base_url": place.rstrip("/")}


def _check(spec: str, about: Options) -> None:
    """Raise `VragError` for a body with a field that is the kit's own, and for a key
    where the name of a variable should be.
    """
    if taken := sorted({*about["send"], about["limit"], *_OURS} & set(about["body"])):
        raise VragError(
            f"model {spec!r}: body holds {taken[0]!r}, which the kit sends and records itself. Use"
            " `decoding`, `max_new_tokens` or another model's entry for it."
        )
    if about.get("key") and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", about["key"]):
        raise VragError(
            f"model {spec!r}: `key` must be the name of an environment variable that holds the key,"
            " such as OPENAI_API_KEY, never the key itself."
        )


def decoding_fields(endpoint: Endpoint, sampling: Options, max_new_tokens: int) -> JsonObject:
    """Return the decoding fields to send, including the maximum length; each sample has a seed.

    Raises `VragError` if the model's defaults are not known here, and for a field that the endpoint
    does not accept.
    """
    owner = f"model {endpoint.model!r} at {endpoint.base_url}"
    length = {endpoint.limit: max_new_tokens + endpoint.headroom}
    send = [name for name in endpoint.send if name != "seed"]
    if sampling == GREEDY:
        if "temperature" not in send:
            raise VragError(
                f"{owner}: it takes no temperature, so it cannot decode greedily. Set `decoding:"
                " {temperature: null}` in its entry."
            )
        return {**{name: _GREEDY[name] for name in send}, **length}
    if sampling:
        values = _stated(endpoint, sampling, send, owner)
    elif endpoint.defaults is not None:
        values = dict(endpoint.defaults)
    else:
        values = {**_GREEDY, **_checkpoint_defaults(owner, endpoint.model)}
    return {**{name: values[name] for name in values if name in send}, **length}


def _stated(endpoint: Endpoint, decoding: Options, send: list[str], owner: str) -> JsonObject:
    """Fields that an entry gives, on top of the endpoint's defaults.

    Raises `VragError` for one that is not in `send`.
    """
    given = {
        name: value if name == "top_k" else float(value)
        for name, value in decoding.items()
        if name != "do_sample"
    }
    if refused := sorted(set(given) - set(send)):
        taken = ", ".join(send) or "no sampling fields"
        raise VragError(f"{owner}: it takes no {refused[0]!r}; it takes {taken}.")
    return {**_GREEDY, "temperature": 1.0, **(endpoint.defaults or {}), **given}


def _checkpoint_defaults(owner: str, model: str) -> JsonObject:
    """The sampling fields in the generation config of the checkpoint that a server
    serves: a folder, or a name on the hub.
    """
    try:
        stated = _generation_config(model)
    except (OSError, ValueError) as error:
        raise VragError(
            f"{owner}: its defaults are not known here, as no generation config is found under"
            f" {model!r}. Set `decoding` in its entry, such as"
            " {temperature: 0.7, top_p: 0.9}."
        ) from error
    names = ["repetition_penalty"]
    if stated.get("do_sample"):
        names = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"]
    values = {name: stated[name] for name in names if stated.get(name) is not None}
    return {"temperature": 1.0, **values} if stated.get("do_sample") else values


def _generation_config(model: str) -> JsonObject:
    """A checkpoint's generation_config.json; raises OSError or ValueError without one."""
    name = "generation_config.json"
    path = Path(model) / name if Path(model).is_dir() else _fetched(model, name)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _fetched(model: str, name: str) -> Path:
    """A small file of a model on the hub. What was fetched before is not asked for again,
    and a hub that does not answer is asked once: the client alone would try for half a
    minute, and only a served model's defaults are wanted. Raises OSError or ValueError.
    """
    if model.count("/") != 1:
        raise ValueError("no name on the hub, which is <owner>/<name>")
    import httpx2
    from huggingface_hub import (
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
        try_to_load_from_cache,
    )

    if (there := try_to_load_from_cache(model, name)) is not None:
        return Path(str(there))  # also where it is known that there is none: no such file
    try:
        get_hf_file_metadata(hf_hub_url(model, name), timeout=_HUB_ANSWERS_IN)
    except httpx2.HTTPError as error:
        raise OSError(f"the hub does not give it ({error})") from error
    return Path(hf_hub_download(model, name))


def image_tokens(rule: str, size: Size) -> int:
    """Return the tokens that an endpoint counts for an image, by its published rule. For estimates
    only.
    """
    if rule == "tiles of 512":
        return _tiles_of_512(*size)
    if rule == "tiles of 768":
        return _tiles_of_768(*size)
    return _pixels_by_750(*size)


def _tiles_of_512(width: int, height: int) -> int:
    """85, and 170 for each tile, once the picture is fitted into 2048 × 2048 and its
    short side into 768.
    """
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    columns = math.ceil(round(width * scale) / 512)
    rows = math.ceil(round(height * scale) / 512)
    return 85 + 170 * columns * rows


def _tiles_of_768(width: int, height: int) -> int:
    """258 for a picture within 384 × 384, else for each tile, whose side is two thirds
    of the picture's short side, within 256 and 768.
    """
    if max(width, height) <= 384:
        return 258
    side = min(768, max(256, int(min(width, height) / 1.5)))
    return 258 * math.ceil(width / side) * math.ceil(height / side)


def _pixels_by_750(width: int, height: int) -> int:
    """One for 750 pixels, once the picture is fitted into a side of 1568 and 1.2
    million pixels.
    """
    area = width * height
    scale = min(1.0, 1568 / max(width, height), math.sqrt(1_200_000 / area))
    return int(area * scale * scale) // 750 + 1
