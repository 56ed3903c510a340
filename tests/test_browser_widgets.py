"""The panels for labels and options and the browsers of cases and of conversations as a
person meets them: in JupyterLab, in a browser, by mouse and by keyboard.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
import told_talks
from browser import Lab

from vrag_kit.judging import read_human_labels
from vrag_kit.widgets.multiple_choice import read_choices

if TYPE_CHECKING:
    from playwright.sync_api import Locator

MARKUP = told_talks.MARKUP
DATA = """
from dataclasses import replace

import pandas as pd

from vrag_kit.papers.visual_rag.error_budget import error_cases
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import gt_clue
from vrag_kit.papers.mrag_bench.people import load_human_answers
from vrag_kit.widgets import (
    browse_answers, answers_page, choices_page, multiple_choice_panel, label_answers, labels_table
)

guide = load_visual_rag({folder!r} + "/annotations.jsonl", {folder!r} + "/images", name="guide")
ids = list(guide.queries)[:3]
first = replace(guide.queries[ids[0]], text="Which {markup} color?", answers=("{markup}", "red"))
guide = replace(guide, queries={{**guide.queries, ids[0]: first}})
answers = pd.DataFrame(
    {{
        "model": ["{markup}", "plain", "plain"],
        "query_id": ids,
        "answer": ["pink {markup}", "blue", "green"],
        "score": [0.0, 0.5, 0.0],
    }}
).assign(
    setting="gt_clue", k=1, draw=0, sample=0, abstained=0.0, verdict="Score: {markup}", status="ok",
    group="g", doc_ids=[context.doc_ids for context in gt_clue(guide, draws=1)][:3],
)
cases = error_cases(answers, guide)
three = guide.subset(ids)
three = replace(three, queries={{
    name: replace(query, image=three.corpus[three.relevant(name)[0]].image,
                  choices=(*query.answers[:1], "pink", "blue"))
    for name, query in three.queries.items()
}})
contexts = gt_clue(three, draws=1)
labels = answers[["query_id", "answer"]].assign(label="true", annotator="{markup}")
"""
TALKS = """
import sys
from pathlib import Path

sys.path.append({tests!r})
from told_talks import told_found, told_talks, told_turns
from vrag_kit.widgets import browse_conversations, conversations_page

talks = told_talks(Path("."))
turns, found = told_turns(talks), told_found(talks)
"""


@pytest.fixture
def desk(lab: Lab, tmp_path: Path, guide_folder: Path) -> Lab:
    """A page whose notebooks find a module `data` beside them, made of the small Field
    Guide, and `talks`, of conversations, both with markup in every text.
    """
    tests = str(Path(told_talks.__file__).parent)
    (tmp_path / "talks.py").write_text(TALKS.format(tests=tests), encoding="utf-8")
    (tmp_path / "data.py").write_text(
        DATA.format(folder=str(guide_folder), markup=MARKUP), encoding="utf-8"
    )
    return lab


def show(lab: Lab, *cells: str) -> None:
    lab.open_notebook(["from data import *", *cells])
    lab.run_all()


def label(lab: Lab) -> None:
    show(lab, "label_answers(guide, answers, 'mine.csv', 'Ada')")
    lab.page.get_by_text("1 of 3, 0 labelled").wait_for()


def button(lab: Lab, name: str) -> Locator:
    return lab.page.locator(".jp-OutputArea").get_by_role("button", name=name, exact=True)


def labels_on_disk(lab: Lab, *expected: str) -> None:
    lab.until(
        lambda: read_human_labels(lab.folder / "mine.csv")["label"].tolist() == list(expected),
        f"the labels on disk are {expected}",
    )


def pictures_are_shown(lab: Lab, at_least: int) -> None:
    widths = (
        "() => Array.from(document.querySelectorAll('.jp-OutputArea img'), picture =>"
        " picture.naturalWidth)"
    )
    lab.until(
        lambda: (
            len(found := lab.page.evaluate(widths)) >= at_least
            and all(width > 0 for width in found)
        ),
        f"{at_least} pictures or more are shown, none of them broken",
    )


def markup_is_but_text(lab: Lab) -> None:
    assert MARKUP in lab.page.locator(".jp-NotebookPanel").inner_text()
    assert lab.page.locator("[onerror]").count() == 0
    assert lab.page.evaluate("() => window.ran") is None


@pytest.mark.slow
def test_labels_by_mouse_and_keyboard_are_on_disk_and_go_on_where_they_stopped(desk: Lab) -> None:
    label(desk)
    pictures_are_shown(desk, at_least=1)
    markup_is_but_text(desk)
    desk.screenshot("labelling")
    button(desk, "true").click()
    labels_on_disk(desk, "true")
    size = desk.save().stat().st_size
    desk.reload()
    desk.page.get_by_text("2 of 3, 1 labelled").wait_for()  # the same panel, from the kernel
    button(desk, "false").focus()
    desk.page.keyboard.press("Enter")
    labels_on_disk(desk, "true", "false")
    desk.focus_is("false")  # ready for the next answer
    desk.run_all()  # a new panel, from the file
    desk.page.get_by_text("3 of 3, 2 labelled").wait_for()
    button(desk, "skip").click()
    desk.page.get_by_text("the end: 2 labelled, 1 not").wait_for()
    labels_on_disk(desk, "true", "false")
    assert desk.complaints() == []
    assert size < 10_000  # JupyterLab saves a panel's name, not what it shows


def letters_on_disk(lab: Lab, *expected: str) -> None:
    path = lab.folder / "choices.csv"
    lab.until(
        lambda: path.exists() and read_choices(path)["option"].tolist() == list(expected),
        f"the letters on disk are {expected}",
    )


@pytest.mark.slow
def test_options_are_chosen_with_mouse_and_keyboard_and_the_twin_tells_them(desk: Lab) -> None:
    panel = "multiple_choice_panel(three, contexts, 'choices.csv', 'Ada')"
    show(desk, panel)
    desk.page.get_by_text("1 of 3, 0 answered").wait_for()
    assert button(desk, "A").is_disabled()
    button(desk, "begin").click()
    pictures_are_shown(desk, at_least=2)  # the one that is asked about, and a clue
    markup_is_but_text(desk)
    desk.screenshot("choosing")
    button(desk, "B").click()
    letters_on_disk(desk, "B")
    desk.page.keyboard.press("Tab")
    desk.focus_is("C")
    desk.page.keyboard.press("Enter")
    letters_on_disk(desk, "B", "C")
    desk.run_all()  # a new panel, from the file, at rest
    desk.page.get_by_text("3 of 3, 2 answered").wait_for()
    button(desk, "begin").click()
    button(desk, "A").click()
    letters_on_disk(desk, "B", "C", "A")
    assert (read_choices(desk.folder / "choices.csv")["seconds"] < 100).all()
    assert desk.complaints() == []
    show(desk, "choices_page(three, load_human_answers(three, contexts, ['choices.csv']))")
    size = desk.save().stat().st_size
    desk.open_without_kernel()
    pictures_are_shown(desk, at_least=6)
    for words in ("C in ", "(right)"):
        assert desk.page.locator(".jp-OutputArea").get_by_text(words).first.is_visible()
    desk.screenshot("choosing_twin")
    assert size < 200_000


@pytest.mark.slow
def test_cases_are_turned_over_with_mouse_and_keyboard(desk: Lab) -> None:
    show(desk, "browse_answers(guide, cases)")
    desk.page.get_by_text("1 of 3").wait_for()
    pictures_are_shown(desk, at_least=1)
    markup_is_but_text(desk)
    desk.screenshot("cases")
    button(desk, "forward").click()
    desk.page.get_by_text("2 of 3").wait_for()
    desk.focus_is("forward")
    desk.page.keyboard.press("Enter")
    desk.page.get_by_text("3 of 3").wait_for()
    desk.page.keyboard.press("Shift+Tab")  # there is no way forward
    desk.focus_is("back")
    desk.page.keyboard.press("Space")
    desk.page.get_by_text("2 of 3").wait_for()
    desk.page.get_by_label("model").select_option("plain")
    desk.page.get_by_text("1 of 2").wait_for()
    desk.page.get_by_label("outcome").focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "Enter"):
        desk.page.keyboard.press(key)
    desk.page.get_by_text("1 of 1").wait_for()
    desk.theme("Dark")
    desk.screenshot("cases_dark")
    assert desk.complaints() == []
    assert desk.save().stat().st_size < 10_000


@pytest.mark.slow
def test_a_reader_without_a_kernel_sees_the_twins(desk: Lab) -> None:
    show(
        desk,
        "answers_page(guide, cases)",
        "labels_table(guide, labels)",
        "from talks import *; conversations_page(talks, turns, found, most=1)",
    )
    size = desk.save().stat().st_size
    book = nbformat.read(desk.path, as_version=4)
    book.cells.append(
        nbformat.v4.new_markdown_cell("From elsewhere: JupyterLab does not trust this file.")
    )
    nbformat.write(book, desk.path)
    desk.open_without_kernel()
    desk.page.get_by_text("No Kernel", exact=True).wait_for()
    pictures_are_shown(desk, at_least=4)
    markup_is_but_text(desk)
    for words in ("accepted", "partially correct", "annotator", "stopped at turn 3"):
        assert desk.page.locator(".jp-OutputArea").get_by_text(words).first.is_visible()
    desk.screenshot("twins")
    desk.page.locator("summary").first.click()
    desk.page.get_by_text("passed over").first.wait_for()
    desk.screenshot("twins_conversation")
    assert size < 100_000  # four thumbnails, of some kB each


@pytest.mark.slow
def test_conversations_are_turned_over_with_mouse_and_keyboard(desk: Lab) -> None:
    desk.open_notebook(["from talks import *; browse_conversations(talks, turns, found)"])
    desk.run_all()
    desk.page.get_by_text("1 of 9", exact=True).wait_for()
    desk.page.get_by_text("stopped at turn 3: what is below counts as missing").wait_for()
    fold = desk.page.locator("summary").first
    fold.click()
    pictures_are_shown(desk, at_least=5)  # the one that is asked about, and what was found
    markup_is_but_text(desk)
    desk.screenshot("conversations")
    passed_over = desk.page.get_by_text("passed over").first
    fold.press("Enter")
    passed_over.wait_for(state="hidden")
    fold.press("Space")
    passed_over.wait_for()
    button(desk, "forward").click()
    desk.page.get_by_text("2 of 9", exact=True).wait_for()
    desk.focus_is("forward")
    desk.page.keyboard.press("Enter")
    desk.page.get_by_text("3 of 9", exact=True).wait_for()
    desk.page.get_by_label("score").select_option("after the stop")
    desk.page.get_by_text("1 of 1", exact=True).wait_for()
    desk.page.get_by_label("quality").focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "Enter"):
        desk.page.keyboard.press(key)
    desk.page.get_by_text("no such conversation").wait_for()
    assert desk.complaints() == []
    assert desk.save().stat().st_size < 10_000
