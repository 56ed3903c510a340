"""Writes what is told of the guide's species: the list of all, an article for each, and
which questions the articles answer (`ARTICLES.md` is their data card).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from vrag_kit.fieldguide.album import invent_named
from vrag_kit.fieldguide.articles import article, as_markdown
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS
from vrag_kit.fieldguide.plate_drawing import Slot, every_slot
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import write_file

TELLING = 4
"""One of so many questions is answered by its species' article."""


def write_texts(edition: str, folder: Path) -> None:
    """Write them into the guide's folder, anew; its questions are there."""
    seed, every = EDITIONS[edition].seed, every_slot(edition)
    told = _told_questions(seed, folder)
    write_file(folder / "articles_tell.json", json.dumps([text for _, text in told], indent=1))
    categories = json.dumps([_category(seed, slot) for slot in every], indent=1)
    write_file(folder / "categories.json", categories + "\n")
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for slot in every:
        species = invent_named(seed, slot.kind, slot.number)
        mine = [text for name, text in told if name == species.scientific_name]
        parts = [part for part in hidden_parts(species) if any(part.name in text for text in mine)]
        title, sections = article(species, f"{seed}/{slot.kind}/{slot.number}", told=parts)
        write_file(folder / "articles" / f"{slot.place:05d}.md", as_markdown(title, sections))


def _told_questions(seed: str, folder: Path) -> list[tuple[str, str]]:
    """(scientific name, question) of a random quarter of the guide's questions, by a stream
    of its own: those that the articles answer.
    """
    with (folder / "annotations.jsonl").open(encoding="utf-8") as lines:
        asked = [(row["sn"], row["question"]) for row in map(json.loads, lines)]
    chosen = stream(seed, "articles that tell").permutation(len(asked))
    return [asked[number] for number in sorted(chosen[: len(asked) // TELLING])]


def _category(seed: str, slot: Slot) -> dict[str, object]:
    species, lineage = invent_named(seed, slot.kind, slot.number), KINDS[slot.kind].lineage
    ranks = dict(zip(("kingdom", "phylum", "class", "order", "family"), lineage, strict=True))
    return {
        "id": slot.place,
        "name": species.scientific_name,
        "common_name": species.common_name,
        **ranks,
        "genus": species.genus,
    }
