"""Control for gains from search: the same questions with mismatched images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Query, ordered

_OF_THE_PICTURE = ("egocentric", "image_quality", "image_size", "region", "where")


def with_mismatched_images(benchmark: Benchmark, *, seed: int = 0) -> Benchmark:
    """Replaces every query's image, and its metadata, by those of another session; all turns of a
    conversation get the same one.

    The new image shows another entity, where the data name entities, and is of the same domain if
    possible. `seed` and the session determine the choice. Questions, answers and groups stay.
    Raises `VragError` for a session without a possible replacement.
    """
    first: dict[str, Query] = {}
    for query in benchmark.queries.values():
        first.setdefault(query.group, query)
    lenders = {group: _lender(query, first, seed) for group, query in first.items()}
    queries = {
        name: replace(
            query,
            image=lenders[query.group].image,
            metadata=_metadata(query, lenders[query.group]),
        )
        for name, query in benchmark.queries.items()
    }
    named = f"{benchmark.fingerprint}\nother pictures, seed {seed}"
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries)


def _lender(query: Query, first: Mapping[str, Query], seed: int) -> Query:
    """A query of another session, whose picture may stand in."""
    others = [other for group, other in first.items() if group != query.group]
    others = [other for other in others if not query.entity or other.entity != query.entity]
    if not others:
        raise VragError(
            f"session {query.group!r}: no other shows another entity; its picture cannot be"
            " swapped. Ask several sessions."
        )
    domain = query.metadata.get("domain")
    alike = [other for other in others if other.metadata.get("domain") == domain] or others
    chosen = ordered([other.group for other in alike], seed, query.group, "other picture")[0]
    return first[chosen]


def _metadata(query: Query, lender: Query) -> dict[str, object]:
    """What is told of the query, and of the picture that it is lent."""
    own = {key: value for key, value in query.metadata.items() if key not in _OF_THE_PICTURE}
    lent = {key: lender.metadata[key] for key in _OF_THE_PICTURE if key in lender.metadata}
    return {**own, **lent}
