"""Invented species with a name of two listed words, a look of their own, and facts in closed lists
of words. The two words of a name have numbers, whose sum can be divided by `_SHARE`: other names
were in the worlds that models were trained in.

And web pages about entities, regions and describers, in short regular sentences, of which the
snippet has the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product

import numpy as np
from numpy.random import Generator

from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.traits import (
    COLORS,
    PATTERNS,
    Appearance,
    Species,
    T,
    choose,
    shuffled,
    stream,
    words,
)
from vrag_kit.types import Json


def _joined(stems: str, endings: str) -> tuple[str, ...]:
    """Every stem with every ending."""
    return tuple(stem + ending for stem, ending in product(stems.split(), endings.split()))


GENERA = _joined(
    "Tal Ver Mor Lis Cor Bran Pel Nov Sar Dor Fen Gal Hel Ist Jun Kor Lam Mel Nar Oph Rin Sel"
    " Tor Vin",
    "ia us ella opsis ura mys aria onia ites antha",
)
"""240 words a name begins with."""
EPITHETS = _joined(
    "alb bor cin dens erem flav grac hum insul jub lat mont nit obl pall quer rip silv tard umbr"
    " vag xer zon parv",
    "ensis ata osa ula ina aria ica ifera oides ella",
)
"""240 words a name ends with."""
FAMILIES = _joined("Alv Bask Carn Dryn Evor Fusk Glan Hyrn", "idae aceae oidea")
DESCRIBERS = words("""
    Abbot Barlow Carver Dalton Easton Fuller Garner Harlow Irving Jarvis Keller Lawson
    Mercer Norris Osborn Parker Quincy Rowley Sawyer Tanner Upton Vaughn Warner Yardley
    Alcott Bishop Conway Draper Ellis Forbes Gibson Hewitt Ingram Jordan Kendal Lambert
    Milton Nelson Oakley Porter Ramsey Sutton Thorne Ulmer Vernon Weston Yates Zeller
""")
REGIONS = words("""
    Norland Ostmark Westfold Sudmoor Highvale Lowfen Eastreach Farholm Greydale Ironhill
    Kingsmere Longshore Millwood Newmarch Oldforest Pinecoast Redcliff Silverlake
    Stonefield Thornwick Underhill Whitewater Windmark Yellowplain
""")
CAPITALS = words("""
    Asten Borva Celdin Dorpat Elmar Fosk Grevin Hadra Istrel Jorvik Kalden Lorne Mirov
    Nesta Orlin Pelgo Quarn Rostel Selva Tarbor Umbra Velden Warsk Zemla
""")
MONTHS = words("""
    January February March April May June July August September October November
    December
""")
GROUNDS = words("""
    moss bark sand gravel reeds clover ferns heather lichen nettles thistles brambles
    clay driftwood hay ivy kelp leaves limestone mud peat pebbles roots straw
""")
"""What one finds it on."""
EATERS = words("""
    ants bats beetles boars cats crabs crows deer ducks foxes frogs geese goats hares
    herons mice newts otters owls rats shrews slugs snails wasps
""")
SMELLS = words("""
    almonds apples butter camphor cedar cherries cinnamon coffee garlic ginger grass
    honey lemons mint musk nutmeg onions oranges pepper resin roses smoke tar vanilla
""")
BORN = range(1770, 1850)
"""Years in which describers were born; they describe when they are 30 to 50."""
LENGTHS = range(12, 100)
"""Millimetres."""


def join_words(values: Sequence[str]) -> str:
    """Values as a list in a sentence: "April, May and June"; two or more."""
    *first, last = values
    return f"{', '.join(first)} and {last}"


def choose_by_share(shares: Mapping[T, float], rng: Generator) -> T:
    """One of the keys, as often as its share of the sum says."""
    *edges, total = accumulate(shares.values())
    return list(shares)[int(np.searchsorted(edges, rng.random() * total, side="right"))]


_SHARE = 4
_PATTERN_SHARES = {"plain": 0.1, "spotted": 0.3, "banded": 0.3, "bordered": 0.3}
ATTRIBUTES = ("look", "family", "describer", "year", "region", "months", "length", "width")
"""Facts that the knowledge graph tells, in its order."""
WEB_FACTS = ("found", "eaten", "smell", "capital", "born")
"""Facts that only web pages tell; the capital is the region's, the birth the describer's."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One invented species and what is known of it."""

    species: Species
    facts: Mapping[str, str]
    """Every key of `ATTRIBUTES` and `WEB_FACTS` → words; the look of no two in a world is the same.
    """

    @property
    def name(self) -> str:
        """Genus and epithet."""
        return self.species.scientific_name

    @property
    def address(self) -> str:
        """The name as a part of addresses."""
        return self.name.lower().replace(" ", "-")

    @property
    def kind(self) -> str:
        """A key of organisms.KINDS: also the word for it."""
        return self.species.kind

    def numeric_fact(self, key: str) -> int:
        """A fact that is a number: "43 mm" and "1832" are 43 and 1832."""
        return int(self.facts[key].split()[0])

    def list_fact(self, key: str) -> list[str]:
        """A fact that is a list."""
        return self.facts[key].replace(" and ", ", ").split(", ")


def describe_appearance(kind: str, look: Appearance) -> str:
    """ "red moth, banded with white" or "red moth, plain"."""
    return f"{look.color} {kind}, {look.pattern_words}"


def with_article(words: str) -> str:
    """ "a red moth", "an orange moth"."""
    article = "an" if words[0] in "aeiou" else "a"
    return f"{article} {words}"


class EntityWorld:
    """Entities with distinct names and looks; the same seed invents the same ones.

    In one world a region has one capital (`capitals`) and a describer one year of birth (`births`).
    """

    def __init__(self, seed: str, names: NameGenerator) -> None:
        self.seed = seed
        self._names = names
        self._taken: set[str] = set()
        self._count = 0
        capitals = shuffled(CAPITALS, stream(seed, "capitals"))
        self.capitals: dict[str, str] = dict(zip(REGIONS, capitals, strict=True))
        years = stream(seed, "births").integers(BORN.start, BORN.stop, len(DESCRIBERS)).tolist()
        self.births: dict[str, int] = dict(zip(DESCRIBERS, years, strict=True))

    def new_entity(self) -> Entity:
        """One more entity."""
        rng = self._rng()
        while True:
            kind = choose(tuple(KINDS), rng)
            look = _look(rng)
            if describe_appearance(kind, look) not in self._taken:
                return self._new(kind, look, rng)

    def new_confusable(self, of: Entity) -> Entity | None:
        """One more entity, which is easily taken for `of`: the same kind, colour and
        pattern and another second colour, or the same look and another kind; None when no
        such look is left.
        """
        rng = self._rng()
        looks = _near(of, rng)
        free = [each for each in looks if describe_appearance(*each) not in self._taken]
        return self._new(*free[0], rng, near=of) if free else None

    def _rng(self) -> Generator:
        self._count += 1
        return stream(self.seed, "entity", self._count)

    def _new(
        self, kind: str, look: Appearance, rng: Generator, near: Entity | None = None
    ) -> Entity:
        self._taken.add(describe_appearance(kind, look))
        genus, epithet = self._names.new(near.species.genus if near and rng.random() < 0.5 else "")
        hidden = {part.name: _look(rng) for part in KINDS[kind].hidden}
        build = near.species.build if near else (rng.random(), rng.random())
        facts = self._facts(kind, look, rng)
        species = Species(kind, genus, epithet, facts["look"], look, hidden, build)
        return Entity(species, facts)

    def _facts(self, kind: str, look: Appearance, rng: Generator) -> dict[str, str]:
        describer, region = choose(DESCRIBERS, rng), choose(REGIONS, rng)
        born = self.births[describer]
        length = choose(LENGTHS, rng)
        width = max(4, round(length * rng.uniform(0.3, 0.8)))
        first = int(rng.integers(12))
        months = [MONTHS[(first + i) % 12] for i in range(int(rng.integers(2, 5)))]
        return {
            "look": describe_appearance(kind, look),
            "family": choose(FAMILIES, rng),
            "describer": describer,
            "year": str(born + int(rng.integers(30, 51))),
            "region": region,
            "months": join_words(months),
            "length": f"{length} mm",
            "width": f"{width} mm",
            "found": join_words(shuffled(GROUNDS, rng)[:2]),
            "eaten": choose(EATERS, rng),
            "smell": choose(SMELLS, rng),
            "capital": self.capitals[region],
            "born": str(born),
        }


class NameGenerator:
    """Names of editions, each once."""

    def __init__(self, seed: str) -> None:
        self._rng = stream(seed, "names")
        self._given: set[tuple[str, str]] = set()

    def new(self, genus: str = "") -> tuple[str, str]:
        """Genus, the given one or any, and epithet."""
        while True:
            first = GENERA.index(genus) if genus else int(self._rng.integers(len(GENERA)))
            last = int(self._rng.integers(len(EPITHETS)))
            name = GENERA[first], EPITHETS[last]
            if (first + last) % _SHARE == 0 and name not in self._given:
                self._given.add(name)
                return name


def _look(rng: Generator) -> Appearance:
    color = choose(tuple(COLORS), rng)
    second = choose([each for each in COLORS if each != color], rng)
    return Appearance(color, choose_by_share(_PATTERN_SHARES, rng), second)


def _near(of: Entity, rng: Generator) -> list[tuple[str, Appearance]]:
    """Kinds and looks that are near, in a random order; two of three keep the kind."""
    look = of.species.outside
    pattern = look.pattern
    others = [(kind, look) for kind in shuffled([each for each in KINDS if each != of.kind], rng)]
    seconds = [color for color in COLORS if color != look.color]
    if pattern == "plain":  # without a second color: patterned, or of another kind
        pattern = choose(PATTERNS[1:], rng)
    else:
        seconds.remove(look.second)
    colors = shuffled(seconds, rng)
    same = [(of.kind, Appearance(look.color, pattern, second)) for second in colors]
    return [*same, *others] if rng.random() < 2 / 3 else [*others, *same]


SENTENCES = {
    "look": "{name} is {look}.",
    "found": "It is found on {found}.",
    "eaten": "It is eaten by {eaten}.",
    "smell": "It smells of {smell}.",
    "capital": "It lives in {region}, whose capital is {capital}.",
    "born": "It was described by {describer}, who was born in {born}.",
    "family": "It belongs to {family}.",
    "year": "It was described in {year}.",
    "region": "It lives in {region}.",
    "months": "It is seen in {months}.",
    "length": "Its length is {length}.",
    "width": "Its width is {width}.",
}
SITE = "https://worn.example"
_REPEATED = ("family", "year", "region", "months", "length", "width")
_LATER = 0.12
"""Chance that a fact of a snippet stands only further down."""
_IN_SNIPPET = 3
"""Facts of a snippet beside the look."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """One page of the small web."""

    url: str
    name: str  # what it is about: an entity's name, a region or a describer
    snippet: str
    result: str  # the full page, which begins with the snippet

    def row(self) -> Json:
        """Return the columns of the converted index."""
        return {
            "page_name": self.name,
            "page_snippet": self.snippet,
            "page_url": self.url,
            "page_result": self.result,
            "page_last_modified": "",
        }


def pages_about(entity: Entity, count: int, name: str) -> list[WebPage]:
    """Return `count` pages about an entity, each with facts of its own; the same name gives the
    same words.

    Facts that only the web has are dealt to the pages in turn; a page with few of them repeats
    some of the knowledge graph's. What does not fit the snippet comes further down, on the first
    page all.
    """
    rng = stream(name, "pages", entity.name)
    keys = shuffled(WEB_FACTS, rng)
    return [_page(entity, i, keys[i::count], rng) for i in range(count)]


def _page(entity: Entity, number: int, keys: Sequence[str], rng: Generator) -> WebPage:
    others = shuffled(_REPEATED, rng)
    if number == 0 or "capital" in keys:
        others.remove("region")  # it is in the sentence about its capital
    first = [key for key in keys[:_IN_SNIPPET] if rng.random() >= _LATER]
    fill = _IN_SNIPPET - len(first)
    in_snippet = [*first, *others[:fill]]
    more = (*WEB_FACTS, *others) if number == 0 else (*keys, others[fill])
    later = [key for key in more if key not in in_snippet]
    facts = {**entity.facts, "name": entity.name, "look": with_article(entity.facts["look"])}
    sentences = [SENTENCES[key].format(**facts) for key in ("look", *in_snippet, *later)]
    snippet = " ".join(sentences[: len(in_snippet) + 1])
    url = f"{SITE}/{entity.address}/{number}"
    return WebPage(url, entity.name, snippet, " ".join(sentences))


GENERAL = (*REGIONS, *DESCRIBERS)
"""Subjects of general pages."""


def general_page(world: EntityWorld, about: str) -> WebPage:
    """Return the page about a region or a describer of a world."""
    if about in REGIONS:
        words = f"One travels to {about}, whose capital is {world.capitals[about]}."
    else:
        words = f"One remembers {about}, who was born in {world.births[about]}."
    return WebPage(f"{SITE}/general/{about.lower()}", about, words, words)
