"""Compact indexes of millions of strings, by position and by value."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

_BLOCK = 4096
_ANY = "surrogatepass"  # names of files may hold what is no text


class StringIndex(Collection[str]):
    """An immutable, ordered collection of strings.

    In memory are the bytes after the last "/" of each string, and 24 more; prefixes are stored
    once. Lookup uses 64-bit hashes: two of 5 million strings collide once in a million processes.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """`names` may contain duplicates."""
        folders: dict[str, int] = {}
        folder, hashes = array("i"), array("q")
        ends, text = array("q", [0]), bytearray()
        for name in names:
            own = name.rfind("/") + 1
            folder.append(folders.setdefault(name[:own], len(folders)))
            text += name[own:].encode(errors=_ANY)
            ends.append(len(text))
            hashes.append(hash(name))
        self._folders = list(folders)
        self._folder = np.array(folder, np.int32)
        self._ends = np.array(ends, np.int64)
        self._text = bytes(text)
        order = np.argsort(hashes, kind="stable")
        self._hashes = np.array(hashes, np.int64)[order]
        self._order = order.astype(np.int32)

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        return self._some(np.arange(len(self)))

    def __contains__(self, name: object) -> bool:
        wanted = hash(name)
        place = int(self._hashes.searchsorted(wanted))
        return place < len(self) and int(self._hashes[place]) == wanted

    def __reduce__(self) -> tuple[type[StringIndex], tuple[list[str]]]:
        return StringIndex, (list(self),)  # in another process the same name has another hash

    def take(self, numbers: np.ndarray) -> list[str]:
        """Return the strings at some positions, from 0."""
        columns = (self._folder[numbers], self._ends[numbers], self._ends[numbers + 1])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        folders, text = self._folders, self._text
        return [folders[at] + text[start:end].decode(errors=_ANY) for at, start, end in rows]

    def get_indexer(self, names: Sequence[str]) -> np.ndarray:
        """Return the first position of each given string, int64, shape (m,); −1 if it is absent."""
        wanted = np.fromiter(map(hash, names), np.int64, len(names))
        if not len(self):
            return np.full(len(names), -1)
        places = np.minimum(np.searchsorted(self._hashes, wanted), len(self) - 1)
        found = self._order[places].astype(np.int64)
        return np.where(self._hashes[places] == wanted, found, -1)

    def first_positions(self) -> np.ndarray:
        """Return the first position of each string, int32, shape (n,)."""
        new = np.ones(len(self), bool)
        new[1:] = self._hashes[1:] != self._hashes[:-1]
        found = np.empty(len(self), np.int32)
        found[self._order] = self._order[new][np.cumsum(new) - 1]
        return found

    def unique(self) -> tuple[StringIndex, np.ndarray]:
        """Return (index of the unique strings, position in it of every string here, int64, shape
        (n,)). Unique strings are in order of first occurrence.
        """
        firsts = self.first_positions()
        kept = np.unique(firsts)
        if len(kept) == len(self):
            return self, kept
        return StringIndex(self._some(kept)), np.searchsorted(kept, firsts)

    def _some(self, numbers: np.ndarray) -> Iterator[str]:
        for start in range(0, len(numbers), _BLOCK):
            yield from self.take(numbers[start : start + _BLOCK])
