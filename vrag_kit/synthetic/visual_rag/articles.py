"""An encyclopedia article for every species of the guide: what a naturalist would tell,
and what is hidden only where the caller says so (standing for Wikipedia).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vrag_kit.files import write_file
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesSlot, species_slots
from vrag_kit.synthetic.world.organisms import KINDS, HiddenPart, hidden_parts
from vrag_kit.synthetic.world.photographs import numbered_species
from vrag_kit.synthetic.world.traits import Species, choose, shuffled, stream

HOMES = {
    "foliage": ("gardens", "old hedges", "oak woods", "river banks"),
    "sky": ("tall trees", "reed beds", "forest edges", "parks"),
    "meadow": ("wet meadows", "road sides", "sandy slopes", "hay fields"),
    "forest": ("beech woods", "mossy logs", "spruce forests", "leaf litter"),
    "water": ("slow rivers", "coral gardens", "rock pools", "cold lakes"),
    "rock": ("stone walls", "dry hills", "canyon floors", "sunny ledges"),
}
SEASONS = ("spring", "early summer", "late summer", "autumn")
_OPENINGS = (
    "{latin} is a species of {noun} in the family {family}.",
    "The {common} ({latin}) belongs to the family {family}.",
    "{latin}, known as the {common}, is a {noun} of the family {family}.",
)
_SHY = (
    "The {part} {is_} seldom seen, as photographs rarely show {them}.",
    "Few observers have looked at the {part}.",
    "The {part} {is_} not described in most guides.",
)
_BUILDS = ("small", "of middle size", "rather large", "slender", "stout")


class SpeciesArticle(NamedTuple):
    """The article about a species."""

    title: str
    sections: tuple[tuple[str, str], ...]  # heading, text
    homes: tuple[str, str]
    season: str  # "" where it does not say


def write_article(
    species: Species, name: str, *, facts: Sequence[HiddenPart] = ()
) -> SpeciesArticle:
    """Write the article of a species; the same name gives the same words.

    Its look from outside is told. A hidden part is at most mentioned, unless some are
    `facts`: then colour and pattern of these are said instead, and all else stays.
    """
    rng = stream(name, "article")
    kind = KINDS[species.kind]
    words = {
        "latin": species.scientific_name,
        "common": species.common_name,
        "noun": kind.noun.lower(),
        "family": kind.lineage[-1],
    }
    look = species.outside
    pattern = "" if look.pattern == "plain" else f", {look.pattern_words}"
    shy = choose(kind.hidden, rng)
    size = choose(_BUILDS, rng)
    them = "them" if shy.plural else "it"
    hint = choose(_SHY, rng).format(part=shy.name, is_=shy.be, them=them)  # drawn in any case
    told = [describe_look(species, part) for part in facts] or [hint]
    outward = f"From outside it is {look.color}{pattern}. It is {size} for its kind."
    first, second = map(str, rng.choice(HOMES[kind.scene], size=2, replace=False))
    often = choose(("common", "rare", "local", "widespread"), rng)
    side = choose(("north", "south", "east", "west"), rng)
    where = f"It lives in {first} and {second}. It is {often} in the {side}."
    sections = [
        ("", choose(_OPENINGS, rng).format(**words)),
        ("Description", " ".join([outward, *told])),
        ("Distribution", where),
    ]
    season = choose(SEASONS, rng) if rng.random() < 0.5 else ""
    if season:
        sections.append(("Life cycle", f"It is mostly seen in {season}."))
    sections += [
        ("See also", f"List of species in the family {kind.lineage[-1]}"),
        ("References", "Field notes of the society, volume 12."),
    ]
    titles = (species.scientific_name, species.common_name, f"{species.genus} and its allies")
    title = str(rng.choice(titles, p=(0.6, 0.3, 0.1)))
    return SpeciesArticle(title, tuple(sections), (first, second), season)


def describe_look(species: Species, part: HiddenPart) -> str:
    """The sentence that tells color and pattern of a hidden part."""
    look = species.hidden[part.name]
    return f"The {part.name} {part.be} {look.color}, {look.pattern_words}."


TELLING = 4
"""One of so many questions is answered by its species' article."""


def write_species_texts(edition: str, folder: Path) -> None:
    """Write them into the guide's folder, anew; its questions are there."""
    seed, every = EDITIONS[edition].seed, species_slots(EDITIONS[edition])
    with (folder / "annotations.jsonl").open(encoding="utf-8") as lines:
        asked = [(row["sn"], row["question"]) for row in map(json.loads, lines)]
    chosen = shuffled(range(len(asked)), stream(seed, "articles that tell"))
    told = [asked[number] for number in sorted(chosen[: len(asked) // TELLING])]
    write_file(folder / "articles_tell.json", json.dumps([text for _, text in told], indent=1))
    categories = json.dumps([_category(seed, slot) for slot in every], indent=1)
    write_file(folder / "categories.json", categories + "\n")
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for slot in every:
        species = numbered_species(seed, slot.kind, slot.number)
        mine = [text for name, text in told if name == species.scientific_name]
        parts = [part for part in hidden_parts(species) if any(part.name in text for text in mine)]
        article = write_article(species, f"{seed}/{slot.kind}/{slot.number}", facts=parts)
        text = f"# {article.title}\n"
        for heading, words in article.sections:
            text += f"\n## {heading}\n{words}\n" if heading else f"\n{words}\n"
        write_file(folder / "articles" / f"{slot.place:05d}.md", text)


def _category(seed: str, slot: SpeciesSlot) -> dict[str, object]:
    species = numbered_species(seed, slot.kind, slot.number)
    ranks = ("kingdom", "phylum", "class", "order", "family")
    return {
        "id": slot.place,
        "name": species.scientific_name,
        "common_name": species.common_name,
        **dict(zip(ranks, KINDS[slot.kind].lineage, strict=True)),
        "genus": species.genus,
    }
