"""The Field Guide in the layout of Visual-RAG over iNaturalist 2021, and what goes with it.

    <folder>/annotations.jsonl      v2 rows, one query each
    <folder>/images/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    the photographs
    <folder>/images24/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg
                                    coloured plates, some species missing (standing for
                                    iNaturalist 2024)
    <folder>/categories.json        scientific and common names, as iNaturalist lists them
    <folder>/articles/<number>.md   one a species; a quarter of the questions are answered
                                    there (standing for Wikipedia)
    <folder>/articles_tell.json     these questions
    <folder>/webqa/…                captions in the layout of WebQA
    <folder>/edition.json           edition and version; complete once all is written

The same edition gives the same bytes. The plates are chosen like the photographs, but by other
streams. Drawing goes species by species: an interrupted guide goes on where it stopped.

Captions: what people write below such an image, as on Wikimedia Commons: the two names, a place, a
year, half of the time the view or the part that it shows, and never what that part looks like. The
WebQA has the guide's questions, each with one or two of its clues and 10 to 16 other images, which
show no part that is asked about: some of the same species, the rest of others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from pathlib import Path

from numpy.random import Generator

from vrag_kit.benchmarks.datasets.webqa import LINES
from vrag_kit.files import write_file
from vrag_kit.log import progress
from vrag_kit.synthetic.editions import generate_once, worker_pool
from vrag_kit.synthetic.rows import write_json_lines
from vrag_kit.synthetic.visual_rag.articles import write_species_texts
from vrag_kit.synthetic.visual_rag.pages import (
    EDITIONS,
    FieldGuideEdition,
    SpeciesPlan,
    draw_plates,
    generate_species,
    plan_species,
    slots_with_plates,
    species_slots,
)
from vrag_kit.synthetic.visual_rag.questions import Question
from vrag_kit.synthetic.world.traits import choose, shuffled, stream
from vrag_kit.types import Json

VIEWS = {  # pose → what a caption says of it
    "rest": "at rest",
    "spread": "with wings spread",
    "upright": "with wings closed",
    "perched": "perched",
    "gaping": "with bill open",
    "wings raised": "with wings raised",
    "side": "in side view",
    "facing": "seen from the front",
    "windblown": "in the wind",
    "from below": "seen from below",
    "cut": "cut in half",
    "fin raised": "with fin raised",
    "mouth open": "with mouth open",
    "above": "seen from above",
    "display": "displaying",
    "below": "seen from below",
}
_PLACES = re.split(
    ", ",
    "Alderwick, Brackenhope, Cold Harbor, Dunmere, Eastfold, Farrowdale, Gorsey Bank, "
    "Hartsease, Inverlyn, Kestrel Point, Lower Sedgeby, Millstone Edge, Nettlebeck, Oxley "
    "Reserve, Pennycross, Quillan Valley, Rushford, Sallow Creek, Thornbury Down, Upper Tarn, "
    "Wickham Ponds, Yarrow Island",
)
_TITLES = (
    "{common} {number}",
    "{scientific} {number}",
    "{common} - {place}",
    "{scientific} {place} {year}",
)
_SENTENCES = (
    "{common} ({scientific}){view} at {place}, {year}.",
    "{scientific}, the {common},{view} near {place} in {year}.",
    "{common}{view}, photographed at {place} in {year}; {scientific}.",
    "{place}, {year}: {common}{view} ({scientific}).",
)

Picture = tuple[int, int]  # page, photograph


@dataclass(frozen=True, slots=True)
class WebQAItem:
    """A question and the images that are given with it."""

    page: SpeciesPlan
    question: Question
    positives: list[Picture]
    negatives: list[Picture]


def plan_webqa(edition: FieldGuideEdition) -> tuple[list[SpeciesPlan], list[WebQAItem]]:
    """The pages of a guide, and every question with its images; draws nothing.

    Negatives are photographs that show no part which is asked about, and serve one
    question each.
    """
    species = species_slots(edition)
    planned = (plan_species(edition, slot) for slot in species)
    pages = list(progress(planned, "choosing images for captions", len(species), "species"))
    plain = []  # of each page, the photographs that show no part which is asked about
    for number, page in enumerate(pages):
        asked = frozenset(question.part for question in page.questions)
        free = [i for i, photo in enumerate(page.photos) if not photo.shown & asked]
        plain.append(shuffled(free, stream(edition.seed, "plain", number)))
    items = []
    for number, page in enumerate(pages):
        for question in page.questions:
            rng = stream(edition.seed, "captions", number, question.text)
            clues = [i for i, photo in enumerate(page.photos) if question.part in photo.shown]
            clues = shuffled(clues, stream(edition.seed, "clues", question.text))
            sources = _sources_of_negatives(pages, number, rng)
            negatives = [(other, plain[other].pop()) for other in sources if plain[other]]
            n_clues = 2 if rng.random() < 0.45 else 1
            positives = [(number, clue) for clue in clues[:n_clues]]
            items.append(WebQAItem(page, question, positives, negatives))
    return pages, items


def _sources_of_negatives(pages: list[SpeciesPlan], number: int, rng: Generator) -> list[int]:
    """The page of each negative of a question: 4 to 7 from its own, the rest (10 to 16
    in all) from others, every second of them of the same kind of organism.
    """
    others = [other for other in range(len(pages)) if other != number]
    kind = pages[number].species.kind
    same_kind = [other for other in others if pages[other].species.kind == kind]
    own = [number] * rng.integers(4, 8)
    more = range(rng.integers(10, 17) - len(own))
    return own + [choose(same_kind if rng.random() < 0.5 else others, rng) for _ in more]


def photo_caption(page: SpeciesPlan, number: int, seed: str) -> tuple[str, str]:
    """(title, caption) of a photograph; as in WebQA, the caption begins with the title."""
    rng = stream(seed, "caption", page.folder, page.files[number])
    photo = page.photos[number]
    view = ""
    if rng.random() < 0.5:
        view = f" showing the {min(photo.shown)}" if photo.shown else f" {VIEWS[photo.view.pose]}"
    words = {
        "common": page.species.common_name,
        "scientific": page.species.scientific_name,
        "view": view,
        "place": choose(_PLACES, rng),
        "year": int(rng.integers(2006, 2025)),
        "number": int(rng.integers(1, 90)),
    }
    title = choose(_TITLES, rng).format(**words)
    return title, f"{title} {choose(_SENTENCES, rng).format(**words)}"


def write_webqa(edition: FieldGuideEdition, images: Path, target: Path) -> None:
    """Write the questions and the images of an edition, whose photographs are in `images`,
    into `target`.
    """
    pages, items = plan_webqa(edition)
    used = {*chain.from_iterable((*item.positives, *item.negatives) for item in items)}
    pictures = shuffled(sorted(used), stream(edition.seed, "lines"))
    lines: list[bytes] = []
    facts: dict[Picture, Json] = {}
    for image_id, (number, photo) in enumerate(pictures, start=3 * LINES):
        page = pages[number]
        jpeg = (images / page.folder / page.files[photo]).read_bytes()
        lines.append(f"{image_id}\t".encode() + base64.b64encode(jpeg) + b"\n")
        title, caption = photo_caption(page, photo, edition.seed)
        address = f"https://field-guide.invalid/{title.replace(' ', '_')}"
        words = {"title": title, "caption": caption, "url": address, "imgUrl": f"{address}.jpg"}
        facts[number, photo] = {"image_id": image_id, **words}
    starts = accumulate(map(len, lines[:-1]), initial=0)
    write_file(target / "imgs.tsv", b"".join(lines))
    write_file(target / "imgs.lineidx", "".join(f"{start}\n" for start in starts))
    rows = [_row(item, facts) for item in items]
    by_guid = {row["Guid"]: row for row in rows}
    write_file(target / "WebQA_train_val.json", json.dumps(by_guid, indent=1))


def _row(item: WebQAItem, facts: dict[Picture, Json]) -> Json:
    name = item.page.species.scientific_name
    guid = hashlib.sha256(f"{name} {item.question.text}".encode()).hexdigest()[:32]
    return {
        "Q": f'"{item.question.text}"',
        "A": [f'"{answer}"' for answer in item.question.answers],
        "topic": name,
        "split": "val",
        "Qcate": "Others" if item.question.asks == "pattern" else "color",
        "Guid": guid,
        "img_posFacts": [facts[picture] for picture in item.positives],
        "img_negFacts": [facts[picture] for picture in item.negatives],
        "txt_posFacts": [],
        "txt_negFacts": [],
    }


def generate_field_guide(edition: str, folder: Path | str) -> Path:
    """Generate an edition ("full" or "small") in `folder` unless it exists; returns the folder.
    Raises as `generate_once` does.
    """
    return generate_once("field-guide", edition, EDITIONS, folder, _draw, ("images", "images24"))


def _draw(edition: str, folder: Path) -> None:
    size, with_plates = EDITIONS[edition], slots_with_plates(edition)
    slots = species_slots(size)
    images, plates = folder / "images", folder / "images24"
    images.mkdir(exist_ok=True)
    plates.mkdir(exist_ok=True)
    with worker_pool() as pool:
        drawn = pool.map(partial(generate_species, size, images), slots)
        rows = list(progress(drawn, f"drawing the Field Guide ({edition})", len(slots), "species"))
        plated = pool.map(partial(draw_plates, edition, plates), with_plates)
        list(progress(plated, f"drawing the plates ({edition})", len(with_plates), "species"))
    write_json_lines(folder / "annotations.jsonl", chain.from_iterable(rows))
    write_species_texts(edition, folder)
    write_webqa(size, images, folder / "webqa")
