"""How large an edition of the drawn suite is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MragSuiteEdition:
    """How large an edition is."""

    guide: str  # the edition of the Field Guide whose species it is about
    others: int  # more species of each kind, which pages and charts are about
    pages: int  # questions of each page data set
    counts: int  # questions of Chart-MRAG
    seed: str


EDITIONS = {
    "full": MragSuiteEdition(guide="full", others=6, pages=60, counts=60, seed="suite-shown"),
    "small": MragSuiteEdition(guide="small", others=2, pages=12, counts=15, seed="pocket-suite"),
}
