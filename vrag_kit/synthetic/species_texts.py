"""Writes what is told of the guide's species: the list of all, an article for each, and
which questions the articles answer (`ARTICLES.md` is their data card).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from vrag_kit.files import write_file
from vrag_kit.synthetic.articles import article_markdown, write_article
from vrag_kit.synthetic.organisms import KINDS
from vrag_kit.synthetic.pages import EDITIONS
from vrag_kit.synthetic.photographs import numbered_species
from vrag_kit.synthetic.plate_drawing import SpeciesSlot, guide_slots
from vrag_kit.synthetic.questions import hidden_parts
from vrag_kit.synthetic.traits import stream

TELLING = 4
"""One of so many questions is answered by its species' article."""


def write_species_texts(edition: str, folder: Path) -> None:
    """Write them into the guide's folder, anew; its questions are there."""
    seed, every = EDITIONS[edition].seed, guide_slots(edition)
    told = _trained_questions(seed, folder)
    write_file(folder / "articles_tell.json", json.dumps([text for _, text in told], indent=1))
    categories = json.dumps([_category(seed, slot) for slot in every], indent=1)
    write_file(folder / "categories.json", categories + "\n")
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for slot in every:
        species = numbered_species(seed, slot.kind, slot.number)
        mine = [text for name, text in told if name == species.scientific_name]
        parts = [part for part in hidden_parts(species) if any(part.name in text for text in mine)]
        title, sections = write_article(species, f"{seed}/{slot.kind}/{slot.number}", facts=parts)
        write_file(folder / "articles" / f"{slot.place:05d}.md", article_markdown(title, sections))


def _trained_questions(seed: str, folder: Path) -> list[tuple[str, str]]:
    """(scientific name, question) of a random quarter of the guide's questions, by a stream
    of its own: those that the articles answer.
    """
    with (folder / "annotations.jsonl").open(encoding="utf-8") as lines:
        asked = [(row["sn"], row["question"]) for row in map(json.loads, lines)]
    chosen = stream(seed, "articles that tell").permutation(len(asked))
    return [asked[number] for number in sorted(chosen[: len(asked) // TELLING])]


def _category(seed: str, slot: SpeciesSlot) -> dict[str, object]:
    species, lineage = numbered_species(seed, slot.kind, slot.number), KINDS[slot.kind].lineage
    ranks = dict(zip(("kingdom", "phylum", "class", "order", "family"), lineage, strict=True))
    return {
        "id": slot.place,
        "name": species.scientific_name,
        "common_name": species.common_name,
        **ranks,
        "genus": species.genus,
    }
