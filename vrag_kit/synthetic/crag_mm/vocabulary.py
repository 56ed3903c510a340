"""The words of the worn Field Guide: closed lists, each value one word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from typing import TypeVar

import numpy as np

from vrag_kit.synthetic.world.traits import words

T = TypeVar("T")


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
    """Values as a list in a sentence: "April, May and June"; one or more."""
    *first, last = values
    return f"{', '.join(first)} and {last}" if first else last


def choose(options: Sequence[T], rng: np.random.Generator) -> T:
    """One of the options, each equally likely."""
    return options[int(rng.integers(len(options)))]


def choose_by_share(shares: Mapping[T, float], rng: np.random.Generator) -> T:
    """One of the keys, as often as its share of the sum says."""
    *edges, total = accumulate(shares.values())
    return list(shares)[int(np.searchsorted(edges, rng.random() * total, side="right"))]
