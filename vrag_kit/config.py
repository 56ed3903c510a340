"""Dataclasses of the parameters `decoding` and `hardware`, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TypeVar

from vrag_kit.errors import VragError
from vrag_kit.plain import Json, JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Hardware and batching settings, which are not part of a stored answer's key."""

    device: str = "cpu"
    """Where local models run: "cpu", "cuda", "cuda:1"."""
    batch_size: int = 16
    """Number of prompts per batch of a local model, or of parallel calls to an endpoint."""
    retry_failures: bool = False
    """Whether failed calls are repeated; empty and truncated answers have not failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Decoding settings, which are part of a stored answer's key. Without any sampling field a
    model uses its own defaults (generation_config.json, or the provider's). With `temperature` 0 it
    decodes greedily; otherwise the given fields apply.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    do_sample: bool | None = None
    num_beams: int | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    max_new_tokens: int = 128
    """Maximum length of an answer, in tokens."""
    samples: int = 1
    """Number of answers generated for each prompt."""

    @property
    def sampling(self) -> Json:
        """The sampling fields that are given, by their names in transformers."""
        given = asdict(self)
        return {name: given[name] for name in SAMPLING if given[name] is not None}


SAMPLING = tuple(f.name for f in fields(Decoding) if f.name not in ("max_new_tokens", "samples"))
GREEDY = {"temperature": 0}
"""`Decoding.sampling` for greedy decoding."""
_Of = TypeVar("_Of", Hardware, Decoding)


def hardware_of(given: JsonView | None) -> Hardware:
    """Create `Hardware` from a partial mapping; raises `VragError` for an unknown key."""
    return _read(Hardware, given, "hardware")


def decoding_of(given: JsonView | None) -> Decoding:
    """Create `Decoding` from a partial mapping; raises `VragError` for an unknown key, and for
    fewer than one sample.
    """
    decoding = _read(Decoding, given, "decoding")
    if decoding.samples < 1:
        raise VragError(f"samples is {decoding.samples}; expected 1 or more.")
    return decoding


def _read(cls: type[_Of], given: JsonView | None, name: str) -> _Of:
    known = [field.name for field in fields(cls)]
    if not isinstance(given, Mapping | None):
        raise VragError(f"{name} is {given!r}; expected a mapping with some of {', '.join(known)}.")
    if unknown := sorted(set(given or {}) - set(known)):
        raise VragError(f"{name}: unknown key {unknown[0]!r}; expected some of {', '.join(known)}.")
    return cls(**(given or {}))
