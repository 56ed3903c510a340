"""The annotation panel as a person meets it: in JupyterLab, in a browser, by mouse and
by keyboard, and what is on disk after that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import Lab
from PIL import Image, ImageDraw

from vrag_kit.building.annotations import Vote, read_votes

MARKUP = "<script>window.ran = 1</script><img src=nowhere onerror='window.ran = 1'>"
CELL = f"""
import pandas as pd
from vrag_kit.building.species import read_species_folders
from vrag_kit.building.annotation_panel import annotate, annotation_page
markup = {MARKUP!r}
asked = dict(estimated_clue_rate=0.003, feature="color of the feet " + markup,
             explanation="they are hidden in the grass " + markup)
questions = pd.DataFrame(
    [dict(question_id=name, species=name, folder=name, **asked,
          question=f"What color are the feet of the {{name}}? " + markup)
     for name in ("goose", "swan")])
annotate(questions, read_species_folders("images"), "votes/ada.jsonl", "Ada")
"""


@pytest.fixture
def desk(lab: Lab, tmp_path: Path) -> Lab:
    """A notebook with the panel over 40 pictures of a goose, which make two pages, and
    3 of a swan, one of them damaged; the first page is on the screen.
    """
    rng = np.random.default_rng(0)
    for name, count in (("goose", 40), ("swan", 3)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(count):
            picture = Image.new(
                "RGB",
                (300, 200) if number % 3 else (200, 300),
                tuple(int(value) for value in rng.integers(60, 200, 3)),
            )
            ImageDraw.Draw(picture).ellipse(
                [40, 60, 160, 140], fill="white" if number % 5 else "black"
            )
            picture.save(tmp_path / "images" / name / f"{number:02}.jpg")
    (tmp_path / "images" / "swan" / "01.jpg").write_bytes(b"no picture")
    lab.open_notebook([CELL, "markdown: The end."])
    lab.run_all()
    seen(lab, 27)
    return lab


def vote(lab: Lab, name: str = "goose") -> Vote:
    return read_votes(lab.folder / "votes" / "ada.jsonl").votes.get(
        name, Vote(question_id=name, species="", folder="", question="", feature="")
    )


def seen(lab: Lab, count: int) -> None:
    lab.until(lambda: len(vote(lab).images) == count, f"{count} images were on the screen")


def on_disk(lab: Lab, *places: int) -> None:
    """The goose's clues on disk are these, by their place in the order of the screen,
    and the screen shows as many.
    """
    lab.until(
        lambda: vote(lab).clues == [list(vote(lab).images)[place] for place in sorted(places)],
        f"the clues on disk are {places}",
    )
    lab.page.get_by_text(f"; {len(places)} clue").first.wait_for()


def tiles(lab: Lab) -> list[int]:
    """The places on the page that the screen shows as ticked."""
    return lab.page.locator(".vrag-annotation .tile").evaluate_all(
        "tiles => tiles.flatMap((tile, place) => tile.ariaChecked === 'true' ? [place] : [])"
    )


def cells(lab: Lab) -> int:
    return lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length")


def press(lab: Lab, *keys: str) -> None:
    for key in keys:
        lab.page.keyboard.press(key)


@pytest.mark.slow
def test_a_question_is_answered_with_the_mouse(desk: Lab) -> None:
    page = desk.page
    strips, pictures, full = (
        page.locator(".vrag-annotation .strip"),
        page.locator(".vrag-annotation .frame"),
        page.locator("dialog.vrag-annotation-full"),
    )
    assert MARKUP in page.locator(".vrag-annotation .question").inner_text()
    assert page.locator("[onerror]").count() == 0
    assert page.evaluate("() => window.ran") is None
    answer = page.get_by_label("Answer, as the clues show it")
    assert not answer.is_visible()
    strips.nth(2).click()
    on_disk(desk, 2)
    strips.nth(4).click()
    on_disk(desk, 2, 4)
    strips.nth(2).click()
    on_disk(desk, 4)
    assert tiles(desk) == [4]
    pictures.nth(1).click()
    desk.until(
        lambda: (
            full.locator("img").evaluate(
                "picture => Math.max(picture.naturalWidth, picture.naturalHeight)"
            )
            == 300
        ),
        "the whole picture is there",
    )
    desk.screenshot("annotation_full")
    full.click()
    assert not full.is_visible()
    answer.fill("white |  black")
    page.get_by_label("Suggest a new question").fill(MARKUP)
    page.get_by_label("Suggest a new question").blur()
    desk.until(
        lambda: (vote(desk).answer, vote(desk).suggestion) == ("white |  black", MARKUP),
        "the texts are on disk",
    )
    assert page.get_by_text("not done: 13 of 40 images were not on the screen yet").is_visible()
    page.get_by_role("button", name="page ›").click()
    seen(desk, 40)
    answer.fill("")
    answer.blur()
    page.get_by_text("not done: the clues have no answer yet").wait_for()
    answer.fill("white")
    page.get_by_role("button", name="done").click()  # at once: what was typed goes with it
    desk.until(
        lambda: (vote(desk).status, vote(desk).answer) == ("done", "white"), "the question is done"
    )
    assert (len(vote(desk).clues), len(vote(desk).images)) == (1, 40)
    page.get_by_text("question 2 of 2, 1 done").wait_for()
    page.get_by_text("cannot be shown: ").wait_for()
    desk.screenshot("annotation_damaged")
    page.get_by_role("button", name="‹ question").click()
    page.get_by_text("this question is done; reopen it to change it").wait_for()
    page.get_by_role("button", name="reopen").click()
    desk.until(lambda: vote(desk).status == "open", "the question is open again")
    assert desk.complaints() == []


@pytest.mark.slow
def test_the_keyboard_does_it_all_no_key_reaches_jupyterlab_and_nothing_is_cut_off(
    desk: Lab,
) -> None:
    page, full = desk.page, desk.page.locator("dialog.vrag-annotation-full")
    page.locator(".vrag-annotation .tile").first.focus()
    press(desk, "ArrowRight", "ArrowRight", "Space")
    on_disk(desk, 2)
    desk.focus_is("image 3, clue")
    press(desk, "ArrowDown", "Home", "Enter")  # full size of the first one
    full.wait_for()
    press(desk, "ArrowRight", "Space")
    on_disk(desk, 1, 2)
    press(desk, "Escape")
    full.wait_for(state="hidden")
    desk.focus_is("image 2, clue")
    press(
        desk,
        "d",
        "d",
        "x",
        "a",
        "b",
        "y",
        "m",
        "Shift+Enter",
        "Control+Enter",
        "0",
        "0",
        "Escape",
        "Enter",
        "Escape",
    )
    press(desk, "n")
    seen(desk, 40)
    press(desk, "Space")
    on_disk(desk, 1, 2, 27)
    press(desk, "PageUp")
    page.get_by_text("page 1 of 2").wait_for()
    desk.until(lambda: tiles(desk) == [1, 2], "the ticks of the first page are shown again")
    page.get_by_label("Answer, as the clues show it").focus()
    page.keyboard.type("dd n p x")
    desk.until(
        lambda: vote(desk).answer == "dd n p x",
        "what was typed is on disk, without leaving the field",
    )
    press(desk, "Shift+Enter", "Control+Enter", "Escape", "PageDown")
    assert page.get_by_text("page 1 of 2").is_visible()
    assert cells(desk) == 2
    assert [len(desk.outputs()), desk.outputs()[0]["metadata"]] == [1, {}]  # nothing was run again
    assert desk.complaints() == []
    nothing_is_cut_off(desk)


@pytest.mark.slow
def test_annotation_goes_on_where_it_stopped_and_a_reader_without_a_kernel_sees_the_votes(
    desk: Lab,
) -> None:
    page = desk.page
    page.locator(".vrag-annotation .strip").nth(3).click()
    on_disk(desk, 3)
    page.get_by_label("Answer, as the clues show it").fill("white")
    desk.until(lambda: vote(desk).answer == "white", "the answer is on disk")
    assert desk.save().stat().st_size < 10_000  # JupyterLab saves a panel's name, not what it shows
    desk.reload()
    desk.until(lambda: tiles(desk) == [3], "the same panel is there, from the kernel")
    desk.until(
        lambda: (
            page.locator(".vrag-annotation .tile img").evaluate_all(
                "all => all.filter(one => one.naturalWidth > 0).length"
            )
            == 27
        ),
        "its pictures too",
    )
    desk.run_all()  # a new panel, from the file
    page.get_by_text("images 28–40 of 40; 1 clue").wait_for()
    seen(desk, 40)
    assert page.get_by_label("Answer, as the clues show it").input_value() == "white"
    page.get_by_role("button", name="‹ page").click()
    desk.until(lambda: tiles(desk) == [3], "the tick is there")
    desk.open_notebook(
        [
            "from vrag_kit.building.annotations import read_votes\n"
            "from vrag_kit.building.annotation_panel import annotation_page\n"
            "annotation_page([read_votes('votes/ada.jsonl')], 'images')"
        ]
    )
    desk.run_all()
    desk.save()
    desk.open_without_kernel()
    page.get_by_text("1 of 40 images shown").wait_for()
    desk.until(
        lambda: (
            page.locator(".jp-OutputArea figure img").evaluate_all(
                "all => all.map(one => one.naturalWidth > 0)"
            )
            == [True]
        ),
        "the clue is shown",
    )
    assert MARKUP in page.locator(".jp-OutputArea").inner_text()
    assert page.evaluate("() => window.ran") is None
    desk.screenshot("annotation_twin")


@pytest.mark.slow
def test_what_is_not_saved_is_told_and_what_was_typed_stays(desk: Lab) -> None:
    page, log = desk.page, desk.folder / "votes" / "ada.jsonl"
    page.locator(".vrag-annotation .strip").nth(0).click()
    on_disk(desk, 0)
    kept = log.rename(log.with_name("elsewhere"))
    page.locator(".vrag-annotation .strip").nth(1).click()
    page.get_by_text("not saved: ").first.wait_for()
    assert tiles(desk) == [0]
    answer = page.get_by_label("Answer, as the clues show it")
    answer.fill("white")
    answer.blur()
    page.get_by_role("button", name="question ›").click()
    page.wait_for_timeout(1000)
    assert (answer.input_value(), page.get_by_text("question 1 of 2").is_visible()) == (
        "white",
        True,
    )
    desk.screenshot("annotation_not_saved")
    kept.rename(log)
    page.get_by_role("button", name="question ›").click()
    page.get_by_text("question 2 of 2").wait_for()
    assert vote(desk).answer == "white"
    desk.shut_down()
    page.locator(".vrag-annotation .strip").nth(0).click()
    page.get_by_text(
        "no answer from the kernel yet: nothing is saved until it answers"
    ).first.wait_for()


def nothing_is_cut_off(desk: Lab) -> None:
    """In a narrow window either, in both themes."""
    for theme in ("Light", "Dark"):
        desk.theme(theme)
        for width in (1500, 1000):
            desk.page.set_viewport_size({"width": width, "height": 1300})
            desk.until(
                lambda: desk.page.locator(".vrag-annotation, .vrag-annotation *").evaluate_all(
                    "all => all.every(one => one.scrollWidth <= one.clientWidth + 1 || "
                    "getComputedStyle(one).display === 'inline' || one.tagName === 'INPUT')"
                ),
                "nothing is wider than its place",
            )
            desk.screenshot(f"annotation_{theme}_{width}")


@pytest.mark.slow
def test_done_again_decides_no_question_that_nobody_has_looked_at(desk: Lab) -> None:
    page = desk.page
    page.locator(".vrag-annotation .strip").nth(3).click()
    on_disk(desk, 3)
    page.get_by_role("button", name="page ›").click()
    seen(desk, 40)
    page.get_by_label("Answer, as the clues show it").fill("white")
    done = page.get_by_role("button", name="done")
    done.dblclick()  # the goose's pictures are two pages; all of the swan's are in sight at once
    page.get_by_text("question 2 of 2, 1 done").wait_for()
    desk.until(lambda: len(vote(desk, "swan").images) == 2, "the swan's pictures were seen")
    done.click()  # once more, as one does who saw nothing happen
    page.get_by_text("no picture shows it: done").wait_for()
    assert vote(desk, "swan").status == "open"
    done.click()
    desk.until(lambda: vote(desk, "swan").status == "done", "said twice, it is done")
    assert vote(desk, "swan").clues == []
    page.get_by_role("button", name="reopen").click()
    page.locator(".vrag-annotation .strip").nth(0).click()
    desk.until(lambda: len(vote(desk, "swan").clues) == 1, "the clue is on disk")
    assert done.inner_text() == "done"
    assert desk.complaints() == []
