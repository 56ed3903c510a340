"""Mappings whose values are computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

_KEPT = 512
Value = TypeVar("Value", covariant=True)


class LazyMapping(Mapping[str, Value]):
    """A mapping that computes values on demand and caches the 512 used last."""

    def __init__(self, names: Collection[str], make: Callable[[str], Value]) -> None:
        """`names` are unique and have fast lookup, as in a dictionary or `StringIndex`; `make`
        always returns the same value for a name.
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
        return LazyMapping, (self._names, self._make)

    def __repr__(self) -> str:
        return f"LazyMapping({len(self):,} values)"
