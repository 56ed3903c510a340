"""The Field Guide is the same every time, honest about what its pictures show, and laid
out like the real data.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from functools import cache
from itertools import chain

import numpy as np
import pytest
from factories import directory_digest
from PIL import Image

from vrag_kit.benchmarks import read_species
from vrag_kit.benchmarks.articles import read_articles
from vrag_kit.errors import VragError
from vrag_kit.synthetic import generate_field_guide
from vrag_kit.synthetic.crag_mm import generate_crag_mm
from vrag_kit.synthetic.mrag_bench import generate_mrag_bench
from vrag_kit.synthetic.mrag_suite.opening import generate_suite
from vrag_kit.synthetic.visual_rag.guide import WebQAItem, photo_caption, plan_webqa
from vrag_kit.synthetic.visual_rag.pages import EDITIONS, SpeciesPlan, annotation_rows
from vrag_kit.synthetic.world.photographs import Photo, draw_photograph, numbered_species
from vrag_kit.synthetic.world.shapes import ellipse, paint
from vrag_kit.synthetic.world.traits import (
    COLORS,
    PATTERNS,
    Appearance,
    Species,
    accepted_spellings,
    draw_part,
)


@cache
def planned() -> tuple[list[SpeciesPlan], list[WebQAItem]]:
    return plan_webqa(EDITIONS["small"])


def repainted(species: Species, part: str, photo: Photo) -> float:
    """How large a share of a photograph changes with the colour of a hidden part."""
    look = species.hidden[part]
    other = replace(look, color="blue" if look.color != "blue" else "red", pattern="plain")
    both = (species, replace(species, hidden={**species.hidden, part: other}))
    before, after = (np.asarray(draw_photograph(each, photo.view, 96), float) for each in both)
    return float((np.abs(before - after).max(axis=2) > 20).mean())


@pytest.mark.slow
def test_a_label_says_whether_the_asked_part_can_be_seen():
    page = planned()[0][3]
    for question, row in zip(page.questions, annotation_rows(page), strict=True):
        shows = [repainted(page.species, question.part, photo) > 0.01 for photo in page.photos]
        assert 0 < sum(shows) < len(shows)
        assert list(row["images"].values()) == shows


def test_a_quarter_of_the_questions_is_answered_by_articles_which_are_listed(guide_folder):
    species = [page.species for page in planned()[0]]
    names = {each.scientific_name: each.common_name for each in species}
    assert read_species(guide_folder / "categories.json") == names
    _, articles = read_articles(guide_folder / "articles")
    lines = (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    listed = json.loads((guide_folder / "articles_tell.json").read_text(encoding="utf-8"))
    assert len(listed) == len(rows) // 4 == 5
    for each, page in zip(species, articles, strict=True):
        assert each.scientific_name in page.text
        text = page.text.split("\n", 1)[1].lower()  # behind the opening, with the names
        told = {each.outside.color, each.outside.second, each.outside.pattern}
        for row in rows:
            if row["sn"] == each.scientific_name and row["question"] in listed:
                part = next(part for part in each.hidden if part in row["question"])
                sentence = next(line for line in text.split(".") if f"the {part} " in line)
                assert set(row["answer"][0].split(" and ")) <= set(re.findall(r"\w+", sentence))
                told |= {*asdict(each.hidden[part]).values()}
        assert not set(re.findall(r"\w+", text)) & ({*COLORS, *PATTERNS} - told)


@pytest.mark.slow
def test_two_processes_go_on_with_an_interrupted_guide_and_generate_it_once(guide_folder, tmp_path):
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
    generate_field_guide('small', {str(guide)!r})"""
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


@pytest.mark.parametrize(
    ("generate", "output"),
    [
        (generate_field_guide, "images"),
        (generate_mrag_bench, "image_corpus"),
        (generate_crag_mm, "single-turn"),
        (generate_suite, "webqa"),
    ],
)
def test_a_folder_with_other_images_is_not_touched(generate, output, guide_folder, tmp_path):
    mine = tmp_path / output / "mine.jpg"
    mine.parent.mkdir()
    mine.write_bytes(b"precious")
    for edition, folder, words in (
        ("small", tmp_path, f"'{output}'.*not drawn"),
        ("huge", tmp_path, "'huge'.*'full', 'small'"),
        ("small", mine / "guide", "mine.jpg"),
    ):
        with pytest.raises(VragError, match=words):
            generate(edition, folder)
    assert mine.read_bytes() == b"precious"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_main_color_of_a_patterned_part_fills_more_of_it_than_the_other(pattern):
    image = Image.new("RGB", (200, 200))
    species = replace(numbered_species(0, "moth", 0), outside=Appearance("red", pattern, "blue"))
    paint(image, draw_part(species, "", ellipse(0, 0, 0.4, 0.3), (0.0, 0.0)))
    pixels = np.asarray(image).reshape(-1, 3)
    ground, second = ((pixels == COLORS[name]).all(axis=1).sum() for name in ("red", "blue"))
    assert ground > second
    assert (second > 0) == (pattern != "plain")


# captions


def test_positives_show_the_part_that_is_asked_about_and_nothing_else_in_the_corpus_does():
    pages, items = planned()
    corpus = {*chain.from_iterable((*item.positives, *item.negatives) for item in items)}
    for item in items:
        own = [each for each in corpus if pages[each[0]] is item.page]
        shown = [each for each in own if item.question.part in item.page.photos[each[1]].shown]
        assert sorted(shown) == sorted(item.positives)


def test_a_caption_has_both_names_and_no_word_for_a_colour_or_pattern():
    forbidden = "|".join(chain.from_iterable(map(accepted_spellings, [*COLORS, *PATTERNS])))
    told = 0
    for page in planned()[0]:
        for number, photo in enumerate(page.photos):
            title, caption = photo_caption(page, number, "any")
            assert caption.startswith(title)
            assert page.species.common_name in caption
            assert page.species.scientific_name in caption
            assert not re.search(rf"\b({forbidden})\b", caption, re.IGNORECASE), caption
            says = "showing the" in caption
            assert any(f"showing the {part}" in caption for part in photo.shown) == says
            told += says
    assert told > 20
