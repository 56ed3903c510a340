"""What lies beside a guide's images: a second corpus in another style, a list of all
species, and an article for each.

    <folder>/images24/NNNNN_Kingdom_…_Genus_species/<uuid>.jpg    coloured plates, some species missing (standing for iNaturalist 2024)
    <folder>/categories.json                                      scientific and common names, as iNaturalist lists them
    <folder>/articles/<number>.md                                 one a species; none tells what is hidden (standing for Wikipedia)
    <folder>/webqa/…                                              captions in the layout of WebQA
    <folder>/companions.json                                      edition and hashes of the code; complete once all is written

The same edition gives the same bytes. The plates are chosen like the guide's
photographs, but by other streams: they are other pictures of the same species.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from vrag_kit.fieldguide.album import album, invent_named
from vrag_kit.fieldguide.articles import article, as_markdown
from vrag_kit.fieldguide.captions import write_captions
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.pages import EDITIONS, Edition, slots
from vrag_kit.fieldguide.plates import plate
from vrag_kit.fieldguide.questions import hidden_parts
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import write_file
from vrag_kit.progress import track

PLATES = {"full": (100, 140), "small": (26, 34)}
"""Fewest and most plates of a species, by edition."""
MISSING = 1 / 6
"""Share of the species without plates."""

Slot = tuple[int, str, int]  # index in the guide, kind, number of the kind


def draw_companions(edition: str, folder: Path, workers: int) -> None:
    """Draw and write all companions of the guide in `folder` unless they are there;
    what an interrupted run drew stays.
    """
    seed, every = (
        EDITIONS[edition].seed,
        [(index, kind, number) for index, (kind, number) in enumerate(slots(EDITIONS[edition]))],
    )
    if companions_are_there(edition, folder):
        return
    pages, before = folder / "images24", _read(folder)
    if {name: before.get(name) for name in ("edition", "plates")} != {
        name: _note(edition)[name] for name in ("edition", "plates")
    }:
        shutil.rmtree(pages, ignore_errors=True)
    write_file(folder / "companions.json", json.dumps({**_note(edition), "complete": False}))
    pages.mkdir(exist_ok=True)
    chosen = [slot for slot in every if stream(seed, "24", *slot).random() >= MISSING]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        drawn = pool.map(partial(_draw_plates, EDITIONS[edition], PLATES[edition], pages), chosen)
        list(track(drawn, f"drawing the second corpus ({edition})", len(chosen), "species"))
    write_file(
        folder / "categories.json",
        json.dumps([_category(seed, *slot) for slot in every], indent=1) + "\n",
    )
    shutil.rmtree(folder / "articles", ignore_errors=True)
    for index, kind, number in every:
        write_file(
            folder / "articles" / f"{index:05d}.md",
            as_markdown(*article(invent_named(seed, kind, number), f"{seed}/{kind}/{number}")),
        )
    write_captions(edition, folder)
    write_file(folder / "companions.json", json.dumps({**_note(edition), "complete": True}))


def companions_are_there(edition: str, folder: Path) -> bool:
    """Whether all companions were written by this code."""
    return _read(folder) == {**_note(edition), "complete": True}


def _draw_plates(edition: Edition, plates: tuple[int, int], images: Path, slot: Slot) -> None:
    """Draw the plates of one species unless they are there."""
    index, kind, number = slot
    name = f"{edition.seed}/24/{kind}/{number}"
    species, rng = invent_named(edition.seed, kind, number), stream(name, "page")
    target = images / "_".join(
        [f"{index + 5000:05d}", *KINDS[kind].lineage, species.genus, species.epithet]
    )  # numbered otherwise than in the guide, as in iNaturalist 2024
    if target.exists():
        return
    part = images / f".{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for photo in album(
        species,
        tuple(part.name for part in hidden_parts(species)),
        int(rng.integers(plates[0], plates[1] + 1)),
        name,
    ):
        plate(species, photo.view, edition.size).save(
            part / f"{uuid.UUID(bytes=rng.bytes(16), version=4)}.jpg", quality=88, subsampling=0
        )
    part.rename(target)


def _category(seed: str, index: int, kind: str, number: int) -> dict[str, object]:
    species, spec = invent_named(seed, kind, number), KINDS[kind]
    ranks = dict(zip(("kingdom", "phylum", "class", "order", "family"), spec.lineage, strict=True))
    return {
        "id": index,
        "name": species.scientific_name,
        "common_name": species.common_name,
        **ranks,
        "genus": species.genus,
    }


def _note(edition: str) -> dict[str, object]:
    """Edition, and hashes of the modules that decide what the plates are, and what the
    texts are.
    """
    here = Path(__file__).parent
    drawing = [
        *(
            here / f"{name}.py"
            for name in ("shapes", "traits", "views", "album", "plates", "pages", "companions")
        ),
        *sorted((here / "organisms").glob("*.py")),
    ]
    writing = [
        *drawing,
        *(here / f"{name}.py" for name in ("questions", "guide", "articles", "captions")),
    ]
    return {
        "edition": edition,
        **{
            name: hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
            for name, sources in (("plates", drawing), ("texts", writing))
        },
    }


def _read(folder: Path) -> dict[str, object]:
    try:
        return dict(json.loads((folder / "companions.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
