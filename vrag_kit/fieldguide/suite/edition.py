"""How large an edition of the drawn suite is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edition:
    """How large an edition is."""

    guide: str  # the edition of the Field Guide whose species it is about
    others: int  # more species of each kind, on pages and in counts
    pages: int  # questions of each page data set
    counts: int  # questions of the charts
    seed: str


EDITIONS = {
    "full": Edition(guide="full", others=4, pages=60, counts=126, seed="suite"),
    "small": Edition(guide="small", others=1, pages=12, counts=21, seed="pocket-suite"),
}
