"""Mappings whose values are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

_KEPT = 512
Value = TypeVar("Value", covariant=True)


class Made(Mapping[str, Value]):
    """A value for each name; in memory are the last 512 that were asked for."""

    def __init__(self, names: Collection[str], make: Callable[[str], Value]) -> None:
        """`names`: each once, found at once, as in a dictionary or `Names`; `make` makes
        the same value of a name each time.
        """
        self._names = names
        self._make = make
        self._made = lru_cache(_KEPT)(make)

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        return self._made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __reduce__(self) -> tuple[object, ...]:
        return Made, (self._names, self._make)

    def __repr__(self) -> str:
        return f"Made({len(self):,} values)"
