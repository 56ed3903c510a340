"""The Field Guide is the same every time, honest about what its pictures show, and laid
out like the real data.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vrag_kit.benchmarks import read_species
from vrag_kit.benchmarks.articles import read_articles
from vrag_kit.errors import VragError
from vrag_kit.papers.visual_rag.statistics import organism_category, question_kind
from vrag_kit.synthetic import EDITIONS, generate_field_guide
from vrag_kit.synthetic.visual_rag.articles import write_article
from vrag_kit.synthetic.visual_rag.pages import (
    SpeciesPlan,
    annotation_rows,
    plan_species,
    species_slots,
)
from vrag_kit.synthetic.visual_rag.questions import askable_traits, hidden_parts, make_question
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.synthetic.world.photographs import (
    Photo,
    clue_count,
    numbered_species,
    plan_clue_photo,
    plan_plain_photo,
)
from vrag_kit.synthetic.world.traits import COLORS, PATTERNS, Species, stream
from vrag_kit.synthetic.world.views import CLUE_BLUR, draw_photograph
from vrag_kit.types import Benchmark


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return hashlib.sha256(
        b"".join(path.relative_to(folder).as_posix().encode() + path.read_bytes() for path in files)
    ).hexdigest()


@pytest.fixture
def interrupted(guide_folder: Path, tmp_path: Path) -> Path:
    """The small guide, drawn by several workers, killed while its fourth species was drawn."""
    guide = shutil.copytree(guide_folder, tmp_path / "guide")
    note = json.loads((guide / "edition.json").read_text(encoding="utf-8"))
    note["complete"] = False
    (guide / "edition.json").write_text(json.dumps(note), encoding="utf-8")
    killed = sorted((guide / "images").iterdir())[3]
    killed.rename(killed.with_name(f".{killed.name}.part"))
    return guide


@pytest.mark.slow
def test_an_interrupted_guide_goes_on_with_any_number_of_workers_and_ends_the_same(
    interrupted: Path, guide_folder: Path
) -> None:
    whole = sorted((interrupted / "images").iterdir())[-1]
    kept = whole.stat().st_mtime_ns
    assert digest(generate_field_guide("small", interrupted, workers=1)) == digest(guide_folder)
    assert whole.stat().st_mtime_ns == kept


def test_a_finished_guide_is_left_alone(guide_folder: Path) -> None:
    before = (guide_folder / "annotations.jsonl").stat().st_mtime_ns
    generate_field_guide("small", guide_folder)
    assert (guide_folder / "annotations.jsonl").stat().st_mtime_ns == before


def test_a_folder_with_other_images_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_bytes(b"precious")
    with pytest.raises(VragError, match="not drawn by this kit"):
        generate_field_guide("small", tmp_path)
    assert (tmp_path / "images" / "mine.jpg").read_bytes() == b"precious"


def test_an_unknown_edition_and_an_unwritable_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"unknown edition 'huge'.*'full', 'small'"):
        generate_field_guide("huge", tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(VragError, match="cannot be drawn there"):
        generate_field_guide("small", tmp_path / "file" / "guide")


@pytest.mark.slow
def test_the_full_guide_has_the_papers_proportions(full_pages: list[SpeciesPlan]) -> None:
    rows = [row for page in full_pages for row in annotation_rows(page)]
    images = [len(row["images"]) for row in rows]
    clues = np.array([row["y_count"] for row in rows])
    assert len(species_slots(EDITIONS["full"])) == 48
    assert len({page.species.kind for page in full_pages}) >= 6
    assert min(images) >= 200
    assert max(images) <= 300
    assert all(0 < row["y_rate"] <= 0.25 for row in rows)  # the paper keeps clue rates in (0, 0.25]
    assert 0.04 < clues.sum() / sum(images) < 0.08  # 6.12 % in the paper
    assert 0.1 < np.mean(clues < 5) < 0.45
    assert set(Counter(row["sn"] for row in rows).values()) == {1, 2}


@pytest.mark.slow
def test_names_and_files_are_unique_and_folders_have_the_inaturalist_form(
    full_pages: list[SpeciesPlan],
) -> None:
    named = [
        numbered_species(EDITIONS["full"].seed, slot.kind, slot.number)
        for slot in species_slots(EDITIONS["full"])
    ]
    assert len({species.scientific_name for species in named}) == 48
    assert len({species.common_name for species in named}) == 48
    names = [f"{page.folder}/{name}" for page in full_pages for name in page.files]
    assert len(set(names)) == len(names)
    for page in full_pages:
        number, *ranks = page.folder.split("_")
        assert (len(number), len(ranks)) == (5, 7)
        assert organism_category(page.folder) != "other"


@pytest.mark.slow
def test_every_question_names_its_species_and_has_answers_of_its_kind(
    full_pages: list[SpeciesPlan],
) -> None:
    for page in full_pages:
        for question in page.questions:
            assert page.species.scientific_name in question.text
            assert page.species.common_name in question.text
            assert question.answers
            assert question_kind(question.text) == (
                "pattern" if question.asks == "pattern" else "color"
            )


def test_the_annotated_labels_are_what_the_loader_reads(
    guide: Benchmark, guide_folder: Path
) -> None:
    rows = [
        json.loads(line)
        for line in (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [dict(labels) for labels in guide.qrels.values()] == [row["images"] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_clue_shows_the_color_asked_about_and_a_plain_photograph_does_not(kind: str) -> None:
    """Repaint the hidden part in another colour: clues change, other photographs do not
    change enough to tell.
    """
    for part_number in (0, 1):
        species = numbered_species("repaint", kind, 0)
        part = hidden_parts(species)[part_number]
        clues = [
            repainted(
                species, part.name, plan_clue_photo(species, part, f"clue/{kind}/{part_number}/{i}")
            )
            for i in range(6)
        ]
        hiding = frozenset({part.name})
        plain = [
            repainted(
                species,
                part.name,
                plan_plain_photo(species, hiding, f"plain/{kind}/{part_number}/{i}", near_miss=0.0),
            )
            for i in range(6)
        ]
        assert min(clues) > 0.002, (part.name, clues)
        assert max(plain) < 0.008, (part.name, plain)


def repainted(species: Species, part: str, photo: Photo) -> float:
    """How large a share of a photograph changes with the colour of a hidden part."""
    look = species.hidden[part]
    other = replace(look, color="blue" if look.color != "blue" else "red", pattern="plain")
    changed = replace(species, hidden={**species.hidden, part: other})
    before, after = (
        np.asarray(draw_photograph(each, photo.view, 96), dtype=float)
        for each in (species, changed)
    )
    return float((np.abs(before - after).max(axis=2) > 20).mean())


@pytest.mark.slow
def test_a_label_says_whether_the_asked_part_can_be_seen() -> None:
    edition = EDITIONS["small"]
    page = plan_species(edition, species_slots(edition)[3])
    for question, row in zip(page.questions, annotation_rows(page), strict=True):
        shows = [repainted(page.species, question.part, photo) > 0.01 for photo in page.photos]
        assert 0 < sum(shows) < len(shows)
        assert list(row["images"].values()) == shows


def test_a_blurred_photograph_is_never_a_clue() -> None:
    species = numbered_species("blur", "moth", 0)
    photo = plan_clue_photo(species, hidden_parts(species)[0], "sharp")
    assert photo.view.blur <= CLUE_BLUR


@pytest.mark.slow
def test_hidden_traits_do_not_follow_from_visible_ones() -> None:
    many = [numbered_species("independence", "bird", i) for i in range(1500)]
    same = np.mean([s.hidden["inside of the bill"].color == s.outside.color for s in many])
    assert abs(same - 1 / len(COLORS)) < 0.025  # one in eleven by chance


def test_a_plain_part_has_no_second_color_to_ask_for() -> None:
    for i in range(50):
        species = numbered_species("asks", "fish", i)
        for part in hidden_parts(species):
            plain = species.hidden[part.name].pattern == "plain"
            assert ("colors" in askable_traits(species, part)) != plain
            assert (
                make_question(species, part, "color").answers[0] == species.hidden[part.name].color
            )


def test_clue_counts_are_skewed_and_stay_within_the_papers_bounds() -> None:
    rng = stream("counts")
    counts = np.array([clue_count(250, rng) for _ in range(2000)])
    assert counts.min() >= 1
    assert counts.max() <= 62
    assert np.median(counts) < counts.mean()


def test_the_main_color_of_a_patterned_part_fills_more_of_it_than_the_other() -> None:
    """Flat pictures of each pattern on a round part: count the pixels of both colours."""
    from PIL import Image

    from vrag_kit.synthetic.world.shapes import ellipse, paint
    from vrag_kit.synthetic.world.traits import PATTERNS, Appearance, draw_pattern

    for pattern in PATTERNS:
        image = Image.new("RGB", (200, 200))
        paint(
            image,
            draw_pattern(
                ellipse(0, 0, 0.4, 0.3), Appearance("red", pattern, "blue"), "part", (0.0, 0.0)
            ),
        )
        pixels = np.asarray(image).reshape(-1, 3)
        ground, second = ((pixels == COLORS[name]).all(axis=1).sum() for name in ("red", "blue"))
        assert ground > second, pattern
        assert (second > 0) == (pattern != "plain")


@pytest.mark.slow
def test_two_processes_that_want_the_same_guide_draw_it_once(
    interrupted: Path, guide_folder: Path, tmp_path: Path
) -> None:
    script = (
        "from vrag_kit import log\nfrom vrag_kit.synthetic import generate_field_guide\n"
        "log.PAUSE = 0\nif __name__ == '__main__':\n   "
        f" generate_field_guide('small', {str(interrupted)!r}, workers=1)\n"
    )
    (tmp_path / "draw.py").write_text(script, encoding="utf-8")
    both = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "draw.py")], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    printed = "".join(process.communicate(timeout=120)[0] for process in both)
    assert all(process.returncode == 0 for process in both)
    assert printed.count("drawing the Field Guide (small):   0%") == 1
    assert digest(interrupted) == digest(guide_folder)


def test_the_second_corpus_shows_the_same_species_in_other_pictures_and_lacks_some(
    guide_folder: Path,
) -> None:
    first, second = (
        {
            "_".join(folder.name.split("_")[1:]): folder
            for folder in (guide_folder / name).iterdir()
            if folder.is_dir()
        }
        for name in ("images", "images24")
    )
    assert set(second) < set(first)
    assert not {folder.name for folder in second.values()} & {
        folder.name for folder in first.values()
    }  # other numbers, as in iNaturalist 2024
    pictures = [
        {
            hashlib.sha256(file.read_bytes()).hexdigest()
            for folder in each.values()
            for file in folder.glob("*.jpg")
        }
        for each in (first, second)
    ]
    assert not pictures[0] & pictures[1]
    assert all(26 <= len(list(folder.glob("*.jpg"))) <= 34 for folder in second.values())


def test_a_quarter_of_the_questions_is_answered_by_articles_which_are_listed(
    guide_folder: Path,
) -> None:
    species = [
        numbered_species(EDITIONS["small"].seed, kind, number)
        for number in range(2)
        for kind in KINDS
    ]
    assert read_species(guide_folder / "categories.json") == {
        each.scientific_name: each.common_name for each in species
    }
    count, articles = read_articles(guide_folder / "articles")
    assert count == len(species)
    lines = (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    listed = json.loads((guide_folder / "articles_tell.json").read_text(encoding="utf-8"))
    assert len(listed) == len(rows) // 4 == 5
    told = set()
    for each, page in zip(species, articles, strict=True):
        assert each.scientific_name in page.text
        text = page.text.split("\n", 1)[1].lower()  # behind the opening, with the names
        expected = {each.outside.color, each.outside.second, each.outside.pattern}
        assert each.outside.color in text
        for row in (row for row in rows if row["sn"] == each.scientific_name):
            part = next(part for part in each.hidden if part in row["question"])
            said = " ".join(line for line in text.split(".") if f"the {part} " in line)
            if any(all(word in said for word in a.split(" and ")) for a in row["answer"]):
                told.add(row["question"])
                look = each.hidden[part]
                expected |= {look.color, look.second, look.pattern}
        words = set(re.findall(r"[a-z]+", text))
        assert not words & ((set(COLORS) | set(PATTERNS)) - expected)
    assert told == set(listed)


def test_what_an_article_tells_changes_one_sentence_alone() -> None:
    species = numbered_species("test", next(iter(KINDS)), 0)
    part = hidden_parts(species)[0]
    silent, told = (write_article(species, "x", facts=parts) for parts in ([], [part]))
    assert silent[0] == told[0]
    pairs = [pair for pair in zip(silent[1], told[1], strict=True) if pair[0] != pair[1]]
    ((heading, before), (_, after)) = pairs[0]
    assert (len(pairs), heading) == (1, "Description")
    assert before.rsplit(". ", 1)[0] == after.rsplit(". ", 1)[0]
    look = species.hidden[part.name]
    assert all(word in after for word in (part.name, look.color, look.pattern))
