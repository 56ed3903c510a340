"""Captions for the Field Guide's photographs, and a WebQA made of them, in the layout
that `vrag_kit.benchmarks.webqa` reads.

    <guide>/webqa/WebQA_train_val.json    the guide's questions, each with one or two of its clues and 10 to 16 other images
    <guide>/webqa/imgs.tsv, imgs.lineidx  those images
    <guide>/webqa/captions.json           which guide and which code it was written from

A caption tells what people write below such a picture, as on Wikimedia Commons: the two
names, a place, a year, half of the time the view or the part that it shows, and never
what that part looks like. The other images show no part that is asked about: some of
the same species, the rest of others. The same guide gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from vrag_kit.benchmarks.webqa import LINES
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.pages import EDITIONS, Edition, Page, plan_page, slots
from vrag_kit.fieldguide.questions import Question
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import one_at_a_time, write_file
from vrag_kit.progress import track

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
_PLACES = (
    "Alderwick",
    "Brackenhope",
    "Cold Harbor",
    "Dunmere",
    "Eastfold",
    "Farrowdale",
    "Gorsey Bank",
    "Hartsease",
    "Inverlyn",
    "Kestrel Point",
    "Lower Sedgeby",
    "Millstone Edge",
    "Nettlebeck",
    "Oxley Reserve",
    "Pennycross",
    "Quillan Valley",
    "Rushford",
    "Sallow Creek",
    "Thornbury Down",
    "Upper Tarn",
    "Wickham Ponds",
    "Yarrow Island",
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
_KEYS = (
    "Q",
    "A",
    "topic",
    "split",
    "Qcate",
    "Guid",
    "img_posFacts",
    "img_negFacts",
    "txt_posFacts",
    "txt_negFacts",
)

Picture = tuple[int, int]  # page, photograph


@dataclass(frozen=True, slots=True)
class Item:
    """A question and the images that are given with it."""

    page: Page
    question: Question
    positives: tuple[Picture, ...]
    negatives: tuple[Picture, ...]


def write_captions(edition: str, folder: Path | str) -> Path:
    """Write the WebQA of the guide drawn in `folder`, unless it is there already;
    returns the folder "webqa" in it.

    Raises `VragError` for an unknown edition, a guide that is not drawn or is another
    edition, and a folder that cannot be written.
    """
    folder, target = Path(folder), Path(folder) / "webqa"
    if edition not in EDITIONS:
        raise VragError(
            f"unknown edition {edition!r} of the Field Guide; expected one of"
            f" {', '.join(map(repr, EDITIONS))}."
        )
    guide = _read(folder / "guide.json")
    if guide.get("edition") != edition or not guide.get("complete"):
        found = (
            f"the {guide['edition']} Field Guide"
            if guide.get("complete")
            else "no complete Field Guide"
        )
        raise VragError(
            f"{folder}: holds {found}, expected the {edition} one. Draw it first, by"
            f" draw_field_guide({edition!r}, …)."
        )
    wanted = {
        "guide": guide,
        "written_by": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16],
    }
    if _read(target / "captions.json") == wanted:
        return target
    try:
        with one_at_a_time(target, "writing the captions"):
            if _read(target / "captions.json") != wanted:
                (target / "captions.json").unlink(missing_ok=True)
                _write(EDITIONS[edition], folder / "images", target)
                write_file(target / "captions.json", json.dumps(wanted, indent=2))
    except OSError as error:
        raise VragError(
            f"{error.filename or target}: the captions cannot be written"
            f" ({error.strerror or error}). Choose a folder with write access and 20 MB free, with"
            " all images of the guide."
        ) from error
    return target


def plan_items(edition: Edition) -> tuple[list[Page], list[Item]]:
    """The pages of a guide, and every question with its images; draws nothing.

    Negatives are photographs that show no part which is asked about, and serve one
    question each.
    """
    species = slots(edition)
    pages = list(
        track(
            (plan_page(edition, index, *slot) for index, slot in enumerate(species)),
            "choosing images for captions",
            len(species),
            "species",
        )
    )
    plain = [
        _shuffled(
            [i for i, photo in enumerate(page.photos) if not photo.shown & _asked(page)],
            edition.seed,
            "plain",
            number,
        )
        for number, page in enumerate(pages)
    ]
    items = []
    for number, page in enumerate(pages):
        for question in page.questions:
            rng = stream(edition.seed, "captions", number, question.text)
            clues = _shuffled(
                [i for i, photo in enumerate(page.photos) if question.part in photo.shown],
                edition.seed,
                "clues",
                question.text,
            )
            near = [number] * int(rng.integers(4, 8))
            same_kind = [
                other
                for other, candidate in enumerate(pages)
                if candidate.species.kind == page.species.kind and other != number
            ]
            others = [other for other in range(len(pages)) if other != number]
            far = [
                int(rng.choice(same_kind if rng.random() < 0.5 else others))
                for _ in range(int(rng.integers(10, 17)) - len(near))
            ]
            negatives = tuple((other, plain[other].pop()) for other in near + far if plain[other])
            items.append(
                Item(
                    page,
                    question,
                    tuple((number, clue) for clue in clues[: 1 + int(rng.random() < 0.45)]),
                    negatives,
                )
            )
    return pages, items


def caption_of(page: Page, number: int, seed: str) -> tuple[str, str]:
    """(title, caption) of a photograph; as in WebQA, the caption begins with the title."""
    rng = stream(seed, "caption", page.folder, page.files[number])
    photo, tells = page.photos[number], rng.random() < 0.5
    view = (
        ""
        if not tells
        else f" showing the {min(photo.shown)}"
        if photo.shown
        else f" {VIEWS[photo.view.pose]}"
    )
    words = {
        "common": page.species.common_name,
        "scientific": page.species.scientific_name,
        "view": view,
        "place": str(rng.choice(_PLACES)),
        "year": int(rng.integers(2006, 2025)),
        "number": int(rng.integers(1, 90)),
    }
    title = str(rng.choice(_TITLES)).format(**words)
    return title, f"{title} {str(rng.choice(_SENTENCES)).format(**words)}"


def _write(edition: Edition, images: Path, target: Path) -> None:
    pages, items = plan_items(edition)
    pictures = _shuffled(
        sorted({picture for item in items for picture in (*item.positives, *item.negatives)}),
        edition.seed,
        "lines",
    )
    ids = {picture: 3 * LINES + line for line, picture in enumerate(pictures)}
    lines = [
        f"{ids[page, number]}\t".encode()
        + base64.b64encode((images / pages[page].folder / pages[page].files[number]).read_bytes())
        + b"\n"
        for page, number in pictures
    ]
    starts = [0, *accumulate(map(len, lines))][:-1]
    facts = {
        picture: _fact(pages[picture[0]], picture[1], ids[picture], edition.seed)
        for picture in pictures
    }
    rows = [_row(item, facts) for item in items]
    write_file(target / "imgs.tsv", b"".join(lines))
    write_file(target / "imgs.lineidx", "".join(f"{start}\n" for start in starts))
    write_file(
        target / "WebQA_train_val.json", json.dumps({row["Guid"]: row for row in rows}, indent=1)
    )


def _fact(page: Page, number: int, image_id: int, seed: str) -> dict[str, Any]:
    title, caption = caption_of(page, number, seed)
    address = f"https://field-guide.invalid/{title.replace(' ', '_')}"
    return {
        "image_id": image_id,
        "title": title,
        "caption": caption,
        "url": address,
        "imgUrl": f"{address}.jpg",
    }


def _row(item: Item, facts: dict[Picture, dict[str, Any]]) -> dict[str, Any]:
    name = item.page.species.scientific_name
    guid = hashlib.sha256(f"{name} {item.question.text}".encode()).hexdigest()[:32]
    values = (
        f'"{item.question.text}"',
        [f'"{answer}"' for answer in item.question.answers],
        name,
        "val",
        "Others" if item.question.asks == "pattern" else "color",
        guid,
        [facts[picture] for picture in item.positives],
        [facts[picture] for picture in item.negatives],
        [],
        [],
    )
    return dict(zip(_KEYS, values, strict=True))


def _asked(page: Page) -> frozenset[str]:
    return frozenset(question.part for question in page.questions)


def _shuffled(items: list[Any], *names: object) -> list[Any]:
    return [items[i] for i in stream(*names).permutation(len(items))]


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
