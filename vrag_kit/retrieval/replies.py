"""Replies of search services on disk: what was asked once is read back.

<folder>/replies.sqlite holds the hits of each reply under a hash of the service's
fingerprint, k, and what was asked: a text, or the pixels of a picture.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.forecast import Forecast, current_forecast
from vrag_kit.retrieval.regions import RegionService
from vrag_kit.retrieval.run import make_run
from vrag_kit.retrieval.services import AroundService, SearchService, check_asked
from vrag_kit.types import Query

PART = 64
"""Replies that an interruption can cost at most."""

Hits = list[tuple[str, float]]  # doc_id, score


def cached(service: SearchService, folder: Path | str) -> SearchService:
    """The same service, which asks for what it has no reply to in `folder`, and once for
    queries that ask the same.

    Of a service with regions, the replies to the single crops are kept. Searching raises
    `VragError` where replies cannot be read or stored.
    """
    if isinstance(service, RegionService):
        return replace(service, service=cached(service.service, folder))
    return CachedService(service, Path(folder).expanduser())


@dataclass(frozen=True)
class CachedService(AroundService):
    """A service whose replies are kept."""

    folder: Path

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """As `SearchService.search` says; the same to the last bit when read back.

        In a forecast nothing is searched: in the place of replies that are not there
        stand as many documents, in any order.
        """
        check_asked(self, queries, k)
        keys = {query.query_id: self._key(query, k) for query in queries}
        asked = {keys[query.query_id]: query for query in queries}
        forecast, place = current_forecast(), self.folder / "replies.sqlite"
        if forecast is not None and not place.exists():
            return self._any_order(queries, k, forecast)
        with _open(place) as stored:
            known = dict(_known(stored, list(asked)))
            new = [key for key in asked if key not in known]
            if forecast is not None and new:
                return self._any_order(queries, k, forecast)
            for start in range(0, len(new), PART):
                replies = self._replies({key: asked[key] for key in new[start : start + PART]}, k)
                rows = [(key, json.dumps(hits)) for key, hits in replies.items()]
                with stored:
                    stored.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
                known |= replies
        if queries:
            read = len(asked) - len(new)
            print(
                f"search by {self.name}: {read:,} replies from disk, {len(new):,} new", flush=True
            )
        found: list[tuple[str, str, float]] = []
        for query_id, key in keys.items():
            found += [(query_id, doc_id, score) for doc_id, score in known[key]]
        return make_run(found)

    def _any_order(self, queries: Sequence[Query], k: int, forecast: Forecast) -> pd.DataFrame:
        """What stands for the replies in a forecast."""
        forecast.any_order.add(self.name)
        first = list(islice(self.corpus, k))
        rows: list[tuple[str, str, float]] = []
        for query in queries:
            rows += [(query.query_id, doc_id, 1.0) for doc_id in first]
        return make_run(rows)

    def _replies(self, asked: Mapping[str, Query], k: int) -> dict[str, Hits]:
        """The service's hits for each query, under its key."""
        replies: dict[str, Hits] = {key: [] for key in asked}
        key_of = {query.query_id: key for key, query in asked.items()}
        run = self.service.search(list(asked.values()), k)
        for query_id, doc_id, _, score in run.itertuples(index=False):
            replies[key_of[query_id]].append((doc_id, score))
        return replies

    def _key(self, query: Query, k: int) -> str:
        told = query.text
        if self.reads == "image" and query.image is not None:
            told = pixel_hash(query.image.open())
        determining = json.dumps([self.fingerprint, k, self.reads, told])
        return hashlib.sha256(determining.encode()).hexdigest()


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=60)) as stored:
            stored.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, hits TEXT)")
            yield stored
    except (OSError, sqlite3.Error) as error:
        raise VragError(
            f"{path}: replies cannot be read or stored ({error}). Free space, or remove the file:"
            " what it held is then asked anew."
        ) from error


def _known(stored: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Hits]]:
    """(key, hits) of the replies that are there."""
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        places = ",".join("?" * len(part))
        rows = stored.execute(f"SELECT key, hits FROM replies WHERE key IN ({places})", part)
        for key, hits in rows:
            yield key, [(doc_id, score) for doc_id, score in json.loads(hits)]
