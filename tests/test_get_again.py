"""A damaged or missing file of a drawn edition is drawn again; any other one is fetched."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import chart_rows
import crag_rows
import page_rows
import pytest

from vrag_kit.benchmarks import (
    ImageFile,
    load_chart_mrag,
    load_crag_mm,
    load_page_benchmark,
    load_visual_rag,
)
from vrag_kit.benchmarks.again import Place, also
from vrag_kit.errors import VragError
from vrag_kit.fieldguide.by_name import draw_named
from vrag_kit.fieldguide.drawn import Drawing, draw_once


@pytest.mark.parametrize("drawn", [True, False])
def test_what_to_do_about_a_photograph_depends_on_where_it_came_from(
    drawn: bool, guide_folder: Path, tmp_path: Path
) -> None:
    if drawn:
        shutil.copy(guide_folder / "guide.json", tmp_path)
    advice = rf"remove {tmp_path} and run `vrag draw small {tmp_path}`" if drawn else "[Ff]etch"
    first = next(guide_folder.glob("images/*/*.jpg"))
    species = tmp_path / "images" / first.parent.name
    species.mkdir(parents=True)
    photograph = species / first.name
    photograph.write_bytes(first.read_bytes()[:99])
    with pytest.raises(VragError, match=advice):
        ImageFile(photograph).open()
    for folder in (guide_folder / "images").iterdir():
        (tmp_path / "images" / folder.name).mkdir(exist_ok=True)
    with pytest.raises(VragError, match=f"files there.*{advice}"):
        load_visual_rag(guide_folder / "annotations.jsonl", tmp_path / "images", name="lost")


def bad_talk(folder: Path) -> None:
    talk = crag_rows.session("s", crag_rows.turn("a", " "))
    crag_rows.write_rows(folder / "multi-turn", [talk])
    load_crag_mm(folder / "multi-turn")


def bad_chart(folder: Path) -> None:
    rows, texts = chart_rows.write_charts(folder, [{**chart_rows.ROWS[2], "gt_answer": None}])
    load_chart_mrag(rows, texts, cache_dir=folder / "cache")


def bad_page(folder: Path) -> None:
    page_rows.write_pages(folder, [{**page_rows.PAGES[0], "image": None}])
    load_page_benchmark(folder, cache_dir=folder / "cache")


@pytest.mark.parametrize("bad", [bad_talk, bad_chart, bad_page])
@pytest.mark.parametrize(
    ("by", "edition", "name"),
    [
        ("draw_crag_mm", "small", "worn-drawn-small"),
        ("draw_mrag_bench", "full", "mrag-drawn"),
        ("draw_suite", "small", "suite-drawn-small"),
        ("", "", ""),
    ],
)
def test_a_bad_row_of_a_drawn_edition_is_drawn_again_by_its_name(
    bad: Callable[[Path], None], by: str, edition: str, name: str, tmp_path: Path
) -> None:
    if by:
        note = {"edition": edition, "drawn_by": "x"}
        drawing = Drawing(what="it", by=by, megabytes=1)
        draw_once(tmp_path, note, lambda folder, note: None, drawing)
        with pytest.raises(VragError, match=rf"unknown edition.*'{name}'"):
            draw_named("none", tmp_path)
    drawn = f"remove {tmp_path} and run `vrag draw {name} {tmp_path}`"
    with pytest.raises(VragError, match=drawn if by else "Fetch it again"):
        bad(tmp_path)


def test_a_place_stays_one_with_more_words_in_a_copy_and_in_another_process(
    tmp_path: Path,
) -> None:
    place = also(Place(tmp_path / "a.parquet", "a.parquet row 3"), "(id 7)")
    for same in (place, copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
        assert same == "a.parquet row 3 (id 7)"
        assert isinstance(same, Place)
        assert same.file == tmp_path / "a.parquet"
