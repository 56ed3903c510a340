"""What there is to be told about the species of the drawn suite: the Field Guide's and
others, each with its article, its life, and how often it was seen in each month.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from vrag_kit.fieldguide.album import invent_named
from vrag_kit.fieldguide.articles import article
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS as GUIDES
from vrag_kit.fieldguide.suite.facts import (
    BUSIEST,
    COLOR,
    COLORS_OF_TWO,
    FAMILY,
    HOME,
    MONTHS,
    OBSERVERS,
    PATTERN,
    PEAK,
    SEASON,
    Fact,
)
from vrag_kit.fieldguide.traits import Look, Species, stream

SEASONS = {"spring": 3, "early summer": 5, "late summer": 7, "autumn": 9}
"""When a species is seen → the month of most sightings, from 0."""
_HOMES = re.compile(r"It lives in (.+?) and (.+?)\.")
_SEEN = re.compile(r"It is mostly seen in (.+?)\.")


@dataclass(frozen=True, slots=True)
class Life:
    """A species and what is known of it, but for hidden parts."""

    species: Species
    name: str  # of the stream that its article comes from
    title: str
    sections: tuple[tuple[str, str], ...]  # of its article
    homes: tuple[str, str]
    season: str
    season_told: bool  # by its article
    sightings: tuple[int, ...]  # in each month
    observers: int
    busiest: str  # the month in which most observers were out

    @property
    def subject(self) -> str:
        """Scientific name."""
        return self.species.scientific_name

    @property
    def family(self) -> str:
        """Of its kind."""
        return KINDS[self.species.kind].lineage[-1]

    @property
    def peak(self) -> str:
        """The month with most sightings."""
        return MONTHS[int(np.argmax(self.sightings))]

    def fact(self, kind: str, value: str = "") -> Fact:
        """What is true of it: of a home, either one."""
        told = {
            FAMILY: self.family,
            HOME: self.homes[0],
            SEASON: self.season,
            OBSERVERS: str(self.observers),
            BUSIEST: self.busiest,
            PEAK: self.peak,
            **{month: str(n) for month, n in zip(MONTHS, self.sightings, strict=True)},
        }
        return Fact(subject=self.subject, kind=kind, value=value or told[kind])

    def told_by_article(self) -> tuple[Fact, ...]:
        """The facts that its article tells."""
        homes = [self.fact(HOME, home) for home in self.homes]
        season = [self.fact(SEASON)] if self.season_told else []
        return (self.fact(FAMILY), *homes, *season)

    def counted(self) -> tuple[Fact, ...]:
        """What the bars of its sightings show."""
        return (*(self.fact(month) for month in MONTHS), self.fact(PEAK))


def look_facts(subject: str, part: str, look: Look) -> tuple[Fact, ...]:
    """What one knows of a part who sees it."""
    plain = look.pattern == "plain"
    colors = (look.color,) if plain else (look.color, look.second)
    every = [(COLOR, look.color), (PATTERN, look.pattern)]
    every += [(COLORS_OF_TWO, color) for color in colors]
    return tuple(Fact(subject=subject, part=part, kind=kind, value=said) for kind, said in every)


@cache
def lives(guide: str, others: int) -> tuple[Life, ...]:
    """All species of the Field Guide's edition, and so many more of each kind."""
    edition = GUIDES[guide]
    numbers = range(edition.species_per_kind + others)
    found: list[Life] = []
    for number in numbers:
        found += [_life(edition.seed, kind, number) for kind in KINDS]
    return tuple(found)


def names_of(known: tuple[Life, ...]) -> dict[str, str]:
    """Everything that a species is called → its scientific name."""
    names: dict[str, str] = {}
    for life in known:
        species = life.species
        for name in (species.common_name, f"{species.genus} and its allies", life.subject):
            names.setdefault(name, life.subject)
    return names


def species_named(known: tuple[Life, ...]) -> Mapping[str, Species]:
    """Scientific name → species."""
    return {life.subject: life.species for life in known}


def _life(seed: str, kind: str, number: int) -> Life:
    name = f"{seed}/{kind}/{number}"
    species = invent_named(seed, kind, number)
    title, sections = article(species, name)
    text = " ".join(told for _, told in sections)
    homes = _HOMES.search(text)
    seen = _SEEN.search(text)
    if homes is None:
        raise RuntimeError(f"{name}: its article tells no homes")
    rng = stream(name, "sightings")
    season = seen[1] if seen else str(rng.choice(list(SEASONS)))
    return Life(
        species=species,
        name=name,
        title=title,
        sections=sections,
        homes=(homes[1], homes[2]),
        season=season,
        season_told=seen is not None,
        sightings=_sightings(SEASONS[season], rng),
        observers=int(rng.integers(12, 400)),
        busiest=MONTHS[int(rng.integers(12))],
    )


def _sightings(peak: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Counts of the twelve months, all different, most in the month `peak`."""
    away = np.abs((np.arange(12) - peak + 6) % 12 - 6)
    shape = np.exp(-((away / rng.uniform(1.4, 2.6)) ** 2))
    counts = np.round(rng.integers(45, 96) * shape + rng.uniform(0, 6, 12)).astype(int)
    taken: set[int] = set()
    for month in np.argsort(-counts, kind="stable"):
        while counts[month] in taken:
            counts[month] += 1
        taken.add(int(counts[month]))
    counts[peak] = max(taken) + 1
    return tuple(int(count) for count in counts)
