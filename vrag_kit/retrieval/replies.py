"""Cache of search results on disk: a repeated query is read back.

<folder>/replies.sqlite holds the hits of each query under a hash of the service's fingerprint, k,
and the query's text or the pixels of its image.
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
from vrag_kit.dry_run import DryRun, current_dry_run
from vrag_kit.errors import VragError
from vrag_kit.log import logger
from vrag_kit.retrieval.regions import RegionService
from vrag_kit.retrieval.runs import make_run
from vrag_kit.retrieval.services import SearchService, ServiceWrapper, check_queries
from vrag_kit.types import Query

PART = 64
"""Queries per batch, which is the most that an interruption can lose."""

Hits = list[tuple[str, float]]  # doc_id, score


def cached_service(service: SearchService, folder: Path | str) -> SearchService:
    """Returns a service that caches search results in `folder`. Queries with the same text or image
    are searched once.

    For a service with regions, the results of the single crops are cached. Searching raises
    `VragError` where results cannot be read or stored.
    """
    if isinstance(service, RegionService):
        return replace(service, service=cached_service(service.service, folder))
    return CachedService(service, Path(folder).expanduser())


@dataclass(frozen=True)
class CachedService(ServiceWrapper):
    """A search service whose results are cached."""

    folder: Path

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Implements `SearchService.search`; cached results are read back bit for bit.

        A dry run searches nothing: if results are missing, it returns arbitrary documents, k per
        query.
        """
        check_queries(self, queries, k)
        keys = {query.query_id: self._key(query, k) for query in queries}
        asked = {keys[query.query_id]: query for query in queries}
        dry_run, place = current_dry_run(), self.folder / "replies.sqlite"
        if dry_run is not None and not place.exists():
            return self._any_order(queries, k, dry_run)
        with _open(place) as stored:
            known = dict(_known(stored, list(asked)))
            new = [key for key in asked if key not in known]
            if dry_run is not None and new:
                return self._any_order(queries, k, dry_run)
            for start in range(0, len(new), PART):
                replies = self._replies({key: asked[key] for key in new[start : start + PART]}, k)
                rows = [(key, json.dumps(hits)) for key, hits in replies.items()]
                with stored:
                    stored.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
                known |= replies
        if queries:
            read = len(asked) - len(new)
            logger.info(f"search by {self.name}: {read:,} replies from disk, {len(new):,} new")
        found: list[tuple[str, str, float]] = []
        for query_id, key in keys.items():
            found += [(query_id, doc_id, score) for doc_id, score in known[key]]
        return make_run(found)

    def _any_order(self, queries: Sequence[Query], k: int, dry_run: DryRun) -> pd.DataFrame:
        """Returns the arbitrary documents that replace results in a dry run."""
        dry_run.any_order.add(self.name)
        first = list(islice(self.corpus, k))
        rows: list[tuple[str, str, float]] = []
        for query in queries:
            rows += [(query.query_id, doc_id, 1.0) for doc_id in first]
        return make_run(rows)

    def _replies(self, asked: Mapping[str, Query], k: int) -> dict[str, Hits]:
        """Returns the service's hits for each query, under its key."""
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
    """Yields (key, hits) of the cached results."""
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        places = ",".join("?" * len(part))
        rows = stored.execute(f"SELECT key, hits FROM replies WHERE key IN ({places})", part)
        for key, hits in rows:
            yield key, [(doc_id, score) for doc_id, score in json.loads(hits)]
