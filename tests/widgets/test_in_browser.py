"""Each panel and browser once as a person meets it: in JupyterLab, by mouse and by keyboard."""

import pytest
from browser import Lab
from PIL import Image

from vrag_kit.building.annotations import Vote, read_votes
from vrag_kit.judging import read_human_labels

pytestmark = pytest.mark.slow
MARKUP = "<script>window.ran = 1</script><img src=nowhere onerror='window.ran = 1'>"
LABELS = f"""
import pandas as pd
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.widgets import label_answers
guide = load_visual_rag(folder + "/annotations.jsonl", folder + "/images", name="guide")
answers = pd.DataFrame(
    dict(query_id=list(guide.queries)[:3], answer=["pink {MARKUP}", "blue", "green"], model="m",
         status="ok", score=0.0, verdict="Score: 0", doc_ids=[()] * 3)
)
label_answers(guide, answers, "mine.csv", "Ada")
"""
PANEL = f"""
import pandas as pd
from vrag_kit.building.species import read_species_folders
from vrag_kit.building.annotation_panel import annotate
markup = {MARKUP!r}
asked = dict(estimated_clue_rate=0.003, feature="color of the feet " + markup,
             explanation="they are hidden in the grass " + markup)
questions = pd.DataFrame(
    [dict(question_id=name, species=name, folder=name, **asked,
          question=f"What color are the feet of the {{name}}? " + markup)
     for name in ("goose", "swan")])
annotate(questions, read_species_folders("images"), "votes/ada.jsonl", "Ada")
"""


def show(lab: Lab, cell: str) -> None:
    lab.open_notebook(cell)
    lab.run_all()


def button(lab: Lab, name: str):
    return lab.page.locator(".jp-OutputArea").get_by_role("button", name=name, exact=True)


def test_labels_are_on_disk_and_go_on_after_a_reload(lab, guide_folder):
    def labels(*expected: str) -> None:
        file = lab.folder / "mine.csv"
        lab.until(lambda: list(read_human_labels(file)["label"]) == list(expected), "on disk")

    show(lab, f"folder = {str(guide_folder)!r}{LABELS}")
    lab.page.get_by_text("1 of 3, 0 labelled").wait_for()
    widths = "all => all.map(picture => picture.naturalWidth)"
    pictures = lab.page.locator(".jp-OutputArea img")
    lab.until(lambda: min(pictures.evaluate_all(widths), default=0) > 0, "the images are shown")
    assert MARKUP in lab.page.locator(".jp-NotebookPanel").inner_text()
    assert lab.page.locator("[onerror]").count() == 0
    assert lab.page.evaluate("() => window.ran") is None
    button(lab, "true").click()
    labels("true")
    assert lab.save().stat().st_size < 10_000  # a notebook holds a panel's name alone
    lab.reload()
    lab.page.get_by_text("2 of 3, 1 labelled").wait_for()  # the same panel, from the kernel
    button(lab, "false").focus()
    lab.page.keyboard.press("Enter")
    labels("true", "false")
    lab.focus_is("false")  # ready for the next answer
    lab.run_all()  # a new panel, from the file
    lab.page.get_by_text("3 of 3, 2 labelled").wait_for()
    assert lab.complaints() == []


@pytest.fixture
def desk(lab, tmp_path):
    """The annotation panel over 40 images of a goose, which make two pages, and 3 of a swan,
    one of them damaged; the first page is on the screen.
    """
    for name, count in (("goose", 40), ("swan", 3)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(count):
            size, color = (300, 200) if number % 3 else (200, 300), (60 + number, 90, 120)
            Image.new("RGB", size, color).save(tmp_path / "images" / name / f"{number:02}.jpg")
    (tmp_path / "images" / "swan" / "01.jpg").write_bytes(b"no picture")
    show(lab, PANEL)
    seen(lab, 27)
    return lab


def vote(lab: Lab, name: str = "goose") -> Vote:
    nothing = Vote(question_id=name, species="", folder="", question="", feature="")
    return read_votes(lab.folder / "votes" / "ada.jsonl").votes.get(name, nothing)


def seen(lab: Lab, count: int) -> None:
    lab.until(lambda: len(vote(lab).images) == count, f"{count} images were on the screen")


def clues_on_disk(lab: Lab, *places: int) -> None:
    """The goose's clues on disk are these, by their place on the screen, which shows as many."""
    lab.until(
        lambda: vote(lab).clues == [list(vote(lab).images)[place] for place in places],
        f"the clues on disk are {places}",
    )
    lab.page.get_by_text(f"; {len(places)} clue").first.wait_for()


def test_images_are_annotated_and_no_key_reaches_jupyterlab(desk):
    page = desk.page
    strips, full = page.locator(".strip"), page.locator("dialog.vrag-annotation-full")

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    assert MARKUP in page.locator(".vrag-annotation .question").inner_text()
    assert page.evaluate("() => window.ran") is None
    strips.nth(2).click()
    strips.nth(4).click()
    clues_on_disk(desk, 2, 4)
    strips.nth(2).click()
    clues_on_disk(desk, 4)
    page.locator(".frame").nth(1).click()
    full.locator("img").wait_for()
    full.click()
    page.locator(".vrag-annotation .tile").first.focus()
    press("ArrowRight", "ArrowRight", "Space")
    clues_on_disk(desk, 2, 4)
    desk.focus_is("image 3, clue")
    press("ArrowDown", "Home", "Enter")  # full size of the first one
    full.wait_for()
    press("ArrowRight", "Space")
    clues_on_disk(desk, 1, 2, 4)
    press("Escape")
    full.wait_for(state="hidden")
    press("d", "d", "x", "a", "b", "Shift+Enter", "Control+Enter", "Escape", "Enter", "Escape", "n")
    seen(desk, 40)
    press("Space")
    clues_on_disk(desk, 1, 2, 4, 27)
    press("p")
    page.get_by_role("button", name="page ›").click()
    page.get_by_text("not done: the clues have no answer yet").wait_for()
    page.get_by_label("Answer, as the clues show it").focus()
    page.keyboard.type("dd n p x")
    desk.until(lambda: vote(desk).answer == "dd n p x", "what was typed is on disk")
    assert len(desk.outputs()) == 1  # nothing was run again
    assert desk.save().stat().st_size < 10_000
    desk.reload()
    page.get_by_text("images 28–40 of 40; 4 clue").wait_for()  # the same panel, from the kernel
    page.get_by_label("Answer, as the clues show it").fill("white")
    done = page.get_by_role("button", name="done")
    done.dblclick()  # at once: what was typed goes with it
    page.get_by_text("question 2 of 2, 1 done").wait_for()
    assert (vote(desk).status, vote(desk).answer, len(vote(desk).clues)) == ("done", "white", 4)
    page.get_by_text("cannot be shown: ").wait_for()
    desk.until(lambda: len(vote(desk, "swan").images) == 2, "the swan's images were seen")
    done.click()  # once more, as one does who saw nothing happen
    page.get_by_text("no picture shows it: done").wait_for()
    assert vote(desk, "swan").status == "open"
    assert desk.complaints() == []
    desk.shut_down()
    strips.nth(0).click()
    page.get_by_text("nothing is saved until it answers").first.wait_for()
