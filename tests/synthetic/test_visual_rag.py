"""The Field Guide is the same every time, honest about what its pictures show, and laid
out like the real data.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import directory_digest
from PIL import Image

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
    numbered_species,
    plan_clue_photo,
    plan_plain_photo,
)
from vrag_kit.synthetic.world.shapes import ellipse, paint
from vrag_kit.synthetic.world.traits import (
    COLORS,
    PATTERNS,
    Appearance,
    Species,
    draw_pattern,
)
from vrag_kit.synthetic.world.views import CLUE_BLUR, draw_photograph


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


@pytest.mark.slow
def test_two_processes_go_on_with_an_interrupted_guide_and_generate_it_once(
    guide_folder: Path, tmp_path: Path
) -> None:
    guide = shutil.copytree(guide_folder, tmp_path / "guide")
    note = json.loads((guide / "edition.json").read_text(encoding="utf-8"))
    (guide / "edition.json").write_text(json.dumps({**note, "complete": False}), encoding="utf-8")
    *_, killed, whole = sorted((guide / "images").iterdir())
    killed.rename(killed.with_name(f".{killed.name}.part"))
    (guide / "webqa" / "imgs.tsv").write_bytes(b"half a li")
    kept = whole.stat().st_mtime_ns
    script = f"""from vrag_kit import log
from vrag_kit.synthetic import generate_field_guide
log.PAUSE = 0
if __name__ == '__main__':
    generate_field_guide('small', {str(guide)!r}, workers=1)"""
    (tmp_path / "draw.py").write_text(script, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "draw.py")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = "".join(process.communicate(timeout=120)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert printed.count("drawing the Field Guide (small):   0%") == 1
    assert directory_digest(guide) == directory_digest(guide_folder)
    assert whole.stat().st_mtime_ns == kept
    generate_field_guide("small", guide)  # a finished guide is left alone
    assert directory_digest(guide) == directory_digest(guide_folder)


def test_a_folder_with_other_images_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_bytes(b"precious")
    for edition, folder, words in (
        ("small", tmp_path, "not a Field Guide|not drawn"),
        ("huge", tmp_path, "'huge'.*'full', 'small'"),
        ("small", tmp_path / "images" / "mine.jpg" / "guide", "mine.jpg"),
    ):
        with pytest.raises(VragError, match=words):
            generate_field_guide(edition, folder)
    assert (tmp_path / "images" / "mine.jpg").read_bytes() == b"precious"


@pytest.mark.slow
def test_the_full_guide_has_the_papers_proportions_and_names(full_pages: list[SpeciesPlan]) -> None:
    rows = [row for page in full_pages for row in annotation_rows(page)]
    images = [len(row["images"]) for row in rows]
    clues = np.array([row["y_count"] for row in rows])
    assert min(images) >= 200
    assert max(images) <= 300
    assert all(0 < row["y_rate"] <= 0.25 for row in rows)  # the paper keeps clue rates in (0, 0.25]
    assert 0.04 < clues.sum() / sum(images) < 0.08  # 6.12 % in the paper
    assert 0.1 < np.mean(clues < 5) < 0.45
    edition = EDITIONS["full"]
    slots = species_slots(edition)
    named = [numbered_species(edition.seed, slot.kind, slot.number) for slot in slots]
    for names in ([s.scientific_name for s in named], [s.common_name for s in named]):
        assert len(set(names)) == 48
    files = [f"{page.folder}/{name}" for page in full_pages for name in page.files]
    assert len(set(files)) == len(files)
    for page in full_pages:
        assert len(page.folder.split("_")) == 8
        assert organism_category(page.folder) != "other"
        for question in page.questions:
            assert page.species.scientific_name in question.text
            assert page.species.common_name in question.text
            assert question.answers
            kind = "pattern" if question.asks == "pattern" else "color"
            assert question_kind(question.text) == kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_clue_shows_the_color_asked_about_and_a_plain_photograph_does_not(kind: str) -> None:
    """Repaint the hidden part: clues change, other photographs not enough to tell."""
    species = numbered_species("repaint", kind, 0)
    for number, part in enumerate(hidden_parts(species)[:2]):
        hiding, name = frozenset({part.name}), f"{kind}/{number}"
        for i in range(4):
            clue = plan_clue_photo(species, part, f"clue/{name}/{i}")
            plain = plan_plain_photo(species, hiding, f"plain/{name}/{i}", near_miss=0.0)
            assert clue.view.blur <= CLUE_BLUR
            assert repainted(species, part.name, clue) > 0.002
            assert repainted(species, part.name, plain) < 0.008


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_main_color_of_a_patterned_part_fills_more_of_it_than_the_other(pattern: str) -> None:
    image, look = Image.new("RGB", (200, 200)), Appearance("red", pattern, "blue")
    paint(image, draw_pattern(ellipse(0, 0, 0.4, 0.3), look, "part", (0.0, 0.0)))
    pixels = np.asarray(image).reshape(-1, 3)
    ground, second = ((pixels == COLORS[name]).all(axis=1).sum() for name in ("red", "blue"))
    assert ground > second
    assert (second > 0) == (pattern != "plain")
