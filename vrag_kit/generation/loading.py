"""Find the model that a parameter names: a checkpoint that runs here, or an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vrag_kit.checkpoints import DTYPES
from vrag_kit.errors import VragError
from vrag_kit.generation.local.checkpoint import LOADING, SAMPLING
from vrag_kit.generation.local.model import LocalGenerator, load_local
from vrag_kit.generation.remote.endpoint import ENDPOINT_OPTIONS, EndpointGenerator, load_endpoint
from vrag_kit.options import Entry, read_entry
from vrag_kit.workspace import path as project_path

_HOW = ("name", "decoding", "max_new_tokens", "max_image_side", "max_images")
LOCAL_OPTIONS = (*_HOW, *LOADING, "revision", "max_image_tokens")


def _number(value: Any, least: float, kind: type = float) -> bool:
    return (
        isinstance(value, int if kind is int else int | float)
        and not isinstance(value, bool)
        and value >= least
    )


_COUNT = (lambda value: _number(value, 1, int), "a whole number of 1 or more")
_FLAG = (lambda value: isinstance(value, bool), "true or false")
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("max_new_tokens", "max_image_side", "max_image_tokens", "max_images", "concurrency"),
        _COUNT,
    ),
    **dict.fromkeys(("trust_remote_code", "images_first"), _FLAG),
    "retries": (lambda value: _number(value, 0, int), "a whole number of 0 or more"),
    "headroom": (lambda value: _number(value, 0, int), "a whole number of 0 or more"),
    "timeout": (lambda value: _number(value, 0.1), "a number of seconds"),
    "max_cost": (lambda value: _number(value, 0), "a sum of US dollars"),
    "prices": (
        lambda value: (
            isinstance(value, list | tuple)
            and len(value) == 2
            and all(_number(each, 0) for each in value)
        ),
        "two prices, as in [2.5, 10]",
    ),
    "body": (lambda value: isinstance(value, Mapping), "a mapping of fields"),
    "dtype": (lambda value: value in DTYPES, f"one of {', '.join(DTYPES)}"),
}
"""Option → (what fits, in words); any other is a text."""


def load_generator(
    entry: Entry,
    *,
    device: str = "cpu",
    decoding: str | Mapping[str, Any] = "checkpoint",
    max_new_tokens: int = 128,
    concurrency: int = 8,
) -> LocalGenerator | EndpointGenerator:
    """The model that `entry` names: "<folder or hub name>", "<model>@<endpoint>", or a
    mapping {"model": either, option: value, …}.

    A checkpoint runs here, through transformers. An endpoint is a name in
    `endpoints.json` ("gpt-4o@openai") or a URL
    ("Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"). `decoding`: "checkpoint"
    decodes as the model's own defaults say (the paper's way), "greedy" takes the most
    probable token, a mapping such as {"temperature": 0.7, "top_p": 0.9} samples so. An
    entry's options come before the arguments here. No weights are read and nothing is
    sent yet.

    Raises `VragError` for an unknown option, a checkpoint that is missing or has no
    chat template, and an unknown endpoint. What is only needed to ask (weights, device,
    key) is checked by the generator's `prepare`, so that stored answers can be read
    without it.
    """
    spec = (
        entry["model"]
        if isinstance(entry, Mapping) and isinstance(entry.get("model"), str)
        else read_entry(entry, (), "model")[0]
    )
    remote = "@" in spec and not project_path(spec).is_dir()
    _, options = read_entry(entry, ENDPOINT_OPTIONS if remote else LOCAL_OPTIONS, "model")
    given = {
        name: value for name, value in options.items() if value is not None or name == "max_cost"
    }  # null: as if it were not there, but max_cost: null lifts the limit
    options = {"decoding": decoding, "max_new_tokens": max_new_tokens, **given}
    _check(spec, options)
    if remote:
        return load_endpoint(spec, {"concurrency": concurrency, **options})
    return load_local(spec, {"device": device, **options})


def _check(spec: str, options: Mapping[str, Any]) -> None:
    """Raise `VragError` for a value of the wrong kind."""
    decoding = options["decoding"]
    if isinstance(decoding, Mapping):
        if unknown := sorted(set(decoding) - set(SAMPLING)):
            raise VragError(
                f"model {spec!r}: decoding knows no {unknown[0]!r}; expected {', '.join(SAMPLING)}."
            )
    elif decoding not in ("checkpoint", "greedy"):
        raise VragError(
            f'decoding is {decoding!r}; expected "checkpoint", "greedy", or fields such as'
            " {temperature: 0.7, top_p: 0.9}."
        )
    for name, value in options.items():
        fits, words = _KINDS.get(name, (lambda value: isinstance(value, str), "a text"))
        if name != "decoding" and value is not None and not fits(value):
            raise VragError(f"model {spec!r}: {name} is {value!r}; expected {words}.")
