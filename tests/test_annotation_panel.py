"""The annotation panel, driven as the browser does: what the screen shows is what the
disk holds, the paper's rules hold, nothing typed is lost, the notebook stays small.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from vrag_kit.building.annotation_panel import AnnotationPanel, annotate, annotation_page
from vrag_kit.building.annotations import Annotations, Vote, read_votes
from vrag_kit.building.decisions import Dispute
from vrag_kit.building.species import SpeciesFolder, read_species_folders
from vrag_kit.errors import VragError

NASTY = "Which <script>alert(1)</script> color?"


def paint(path: Path, value: int, size: tuple[int, int] = (60, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size[1], size[0], 3), value, np.uint8)).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two species: 60 pictures of a goose, which make three pages, and 5 of a swan."""
    for number in range(60):
        paint(tmp_path / "images" / "goose" / f"{number:02}.jpg", 4 * number)
    for number in range(5):
        paint(tmp_path / "images" / "swan" / f"{number}.jpg", 40 * number)
    return tmp_path / "images"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "annotations" / "ada.jsonl"


def asked(*rows: tuple[str, str]) -> pd.DataFrame:
    """Questions by (id, folder)."""
    return pd.DataFrame(
        [
            {
                "question_id": name,
                "species": folder,
                "folder": folder,
                "question": f"{name}? {NASTY}",
                "explanation": "seldom seen",
                "feature": "feet",
                "estimated_clue_rate": 0.003,
            }
            for name, folder in rows or [("q1", "goose"), ("q2", "swan"), ("q3", "swan")]
        ]
    )


def opened(
    root: Path, path: Path, questions: pd.DataFrame | None = None, **more: Any
) -> AnnotationPanel:
    return annotate(
        asked() if questions is None else questions, read_species_folders(root), path, "Ada", **more
    )


def look(panel: AnnotationPanel, pages: int = 1) -> None:
    """Let `pages` pages be on the screen, beginning with the one that is."""
    for number in range(pages):
        if number:
            panel.receive({"type": "page", "page": panel.view["page"] + 1})
        panel.receive({"type": "seen", "page": panel.view["page"]})


def tick(panel: AnnotationPanel, *places: int, clue: bool = True) -> None:
    for place in places:
        panel.receive({"type": "tick", "image": panel.view["tiles"][place]["image"], "clue": clue})


def voted(path: Path, question_id: str) -> Vote:
    return read_votes(path).votes[question_id]


def ticked(panel: AnnotationPanel) -> list[int]:
    return [place for place, tile in enumerate(panel.view["tiles"]) if tile["clue"]]


def test_every_tick_is_on_disk_at_once_and_can_be_taken_back(root: Path, path: Path) -> None:
    panel = opened(root, path)
    assert read_votes(path).votes == {}  # there is a file, and nobody has looked yet
    look(panel)
    tick(panel, 0, 5)
    images = [tile["image"] for tile in panel.view["tiles"]]
    assert read_votes(path).votes["q1"].clues == [images[0], images[5]]
    assert ticked(panel) == [0, 5]
    tick(panel, 5, clue=False)
    assert read_votes(path).votes["q1"].clues == [images[0]]
    assert read_votes(path).votes["q1"].images == {name: int(name == images[0]) for name in images}


def test_the_top_says_the_question_the_rate_and_how_far_one_is(root: Path, path: Path) -> None:
    panel = opened(root, path, asked().assign(estimated_clue_rate=[0.003, float("nan"), 1.0]))
    look(panel, 2)
    tick(panel, 3)
    assert panel.view["rate"] == "estimated clue rate 0.3 % (by the coarse filter)"
    assert (
        panel.view["progress"]
        == f"question 1 of 3, 0 done, 0 skipped; images 28–54 of 60; 1 clue; saved in {path}"
    )
    assert (panel.view["question"], panel.view["explanation"], panel.view["feature"]) == (
        f"q1? {NASTY}",
        "seldom seen",
        "feet",
    )
    panel.receive({"type": "question", "place": 1})
    assert panel.view["rate"] == "estimated clue rate unknown"


def test_the_order_is_shuffled_for_each_annotator_and_a_new_file_moves_no_other(
    root: Path, path: Path, tmp_path: Path
) -> None:
    def order(name: str, **more: Any) -> list[str]:
        panel = annotate(
            asked(("q1", "goose")),
            read_species_folders(root),
            tmp_path / f"{name}.jsonl",
            name,
            **more,
        )
        found = []
        for page in range(panel.view["pages"]):
            panel.receive({"type": "page", "page": page})
            found += [tile["image"] for tile in panel.view["tiles"]]
        return found

    ada = order("Ada")
    assert sorted(ada) == list(read_species_folders(root)[0].images) != ada
    assert order("Ada") == ada != order("Ben")
    assert order("Ada", seed=1) != ada
    paint(root / "goose" / "new.jpg", 9)
    assert [image for image in order("Ada") if image != "goose/new.jpg"] == ada


def test_done_needs_every_page_and_an_answer_if_there_are_clues(root: Path, path: Path) -> None:
    panel = opened(root, path)
    assert panel.view["not_done"] == "60 of 60 images were not on the screen yet"
    look(panel, 2)
    panel.receive({"type": "done"})
    assert panel.view["message"] == "not done: 6 of 60 images were not on the screen yet"
    look(panel, 2)
    tick(panel, 0)
    panel.receive({"type": "done", "answer": "  "})
    assert panel.view["message"] == "not done: the clues have no answer yet"
    panel.receive(
        {"type": "done", "answer": " black | blackish "}
    )  # what was typed last comes with it
    vote = read_votes(path).votes["q1"]
    assert (vote.status, vote.answer, len(vote.clues), len(vote.images)) == (
        "done",
        "black | blackish",
        1,
        60,
    )
    assert (panel.view["question_id"], panel.view["message"]) == ("q2", "")


def test_a_question_without_clues_is_done_without_an_answer(root: Path, path: Path) -> None:
    panel = opened(root, path, asked(("q2", "swan")))
    look(panel)
    panel.receive({"type": "done", "answer": ""})
    assert voted(path, "q2").clues == []
    assert panel.view["progress"].startswith("question 1 of 1, 1 done, 0 skipped")


def test_skip_needs_more_than_9_clues_in_the_first_27_images(root: Path, path: Path) -> None:
    panel = opened(root, path)
    look(panel)
    tick(panel, *range(9))
    assert (
        panel.view["not_skipped"]
        == "too common? it may be skipped after more than 9 clues in the first 27 images (9 so far)"
    )
    look(panel, 2)
    tick(panel, *range(5))  # of the second page: they do not count
    panel.receive({"type": "skip"})
    assert panel.view["message"].startswith(
        "not skipped: too common? it may be skipped after more than 9 clues in the first 27 images"
        " (9 so far)"
    )
    panel.receive({"type": "page", "page": 0})
    tick(panel, 20)
    panel.receive({"type": "skip"})
    vote = read_votes(path).votes["q1"]
    assert (vote.status, len(vote.clues), len(vote.images)) == ("skipped", 15, 54)
    assert panel.view["question_id"] == "q2"


@pytest.mark.parametrize(("images", "most"), [(12, 4), (3, 1), (27, 9), (40, 9)])
def test_a_small_folder_is_skipped_after_more_than_a_third(
    tmp_path: Path, images: int, most: int
) -> None:
    for number in range(images):
        paint(tmp_path / "few" / "swan" / f"{number:02}.jpg", 4 * number)
    path = tmp_path / "me.jsonl"
    panel = annotate(asked(("q", "swan")), read_species_folders(tmp_path / "few"), path, "Ada")
    look(panel)
    tick(panel, *range(most))
    first = min(images, 27)
    words = f"after more than {most} clues in the first {first} images ({most} so far)"
    assert panel.view["not_skipped"].endswith(words)
    tick(panel, most)
    panel.receive({"type": "skip"})
    assert read_votes(path).votes["q"].status == "skipped"


def test_an_opened_file_is_gone_on_with_where_it_was_left(root: Path, path: Path) -> None:
    panel = opened(root, path)
    panel.receive({"type": "question", "place": 1})
    look(panel)
    panel.receive({"type": "done"})
    panel.receive({"type": "question", "place": 0})
    look(panel)
    tick(panel, 2)
    panel.receive({"type": "text", "answer": "black", "suggestion": "What of the wings?"})
    again = opened(root, path)
    assert (again.view["question_id"], again.view["page"], again.view["clues"]) == ("q1", 1, 1)
    assert (again.view["answer"], again.view["suggestion"]) == ("black", "What of the wings?")
    again.receive({"type": "page", "page": 0})
    assert ticked(again) == [2]
    look(again, 3)
    again.receive({"type": "done"})
    assert again.view["question_id"] == "q3"  # q2 is done already
    look(again)
    again.receive({"type": "done"})
    assert opened(root, path).view["progress"].startswith("question 3 of 3, 3 done, 0 skipped")


def test_a_done_question_changes_only_after_it_is_reopened(root: Path, path: Path) -> None:
    panel = opened(root, path, asked(("q2", "swan"), ("q3", "swan")))
    look(panel)
    panel.receive({"type": "done"})
    panel.receive({"type": "question", "place": 0})
    before = path.read_bytes()
    for message in (
        {"type": "tick", "image": panel.view["tiles"][0]["image"], "clue": True},
        {"type": "text", "answer": "red"},
        {"type": "skip"},
        {"type": "done"},
    ):
        panel.receive(message)
        assert (
            panel.view["message"]
            == "not saved: this question is done already; reopen it to change it"
        )
    look(panel)
    assert path.read_bytes() == before
    panel.receive({"type": "reopen"})
    tick(panel, 0)
    panel.receive({"type": "done", "answer": "red"})
    assert len(voted(path, "q2").clues) == 1


def test_an_image_added_after_a_question_was_done_is_no_negative_until_somebody_looked(
    root: Path, path: Path
) -> None:
    panel = opened(root, path, asked(("q2", "swan")))
    look(panel)
    panel.receive({"type": "done"})
    paint(root / "swan" / "new.jpg", 7)
    panel = opened(root, path, asked(("q2", "swan")))
    look(panel)
    assert "swan/new.jpg" not in voted(path, "q2").images
    panel.receive({"type": "reopen"})
    panel.receive({"type": "done"})
    assert voted(path, "q2").images["swan/new.jpg"] == 0


def test_text_typed_before_turning_to_another_question_belongs_to_the_first(
    root: Path, path: Path
) -> None:
    panel = opened(root, path)
    panel.receive(
        {"type": "question", "place": 1, "question": "q1", "suggestion": "What of the wings?"}
    )
    panel.receive({"type": "text", "question": "q1", "answer": "late"})
    assert panel.view["question_id"] == "q2"
    assert (
        read_votes(path).votes["q1"].suggestion,
        read_votes(path).votes["q1"].answer,
    ) == (
        "What of the wings?",
        "late",
    )
    panel.receive(
        {"type": "tick", "question": "q1", "image": panel.view["tiles"][0]["image"], "clue": True}
    )  # a click that was under way
    assert "q2" not in read_votes(path).votes


def test_what_is_said_twice_is_written_once(root: Path, path: Path) -> None:
    panel = opened(root, path)
    look(panel)
    tick(panel, 1)
    panel.receive({"type": "text", "answer": "red"})
    before = path.read_bytes()
    look(panel)
    tick(panel, 1)
    panel.receive({"type": "text", "answer": "red ", "suggestion": ""})
    assert path.read_bytes() == before


def test_a_damaged_or_missing_image_says_why_cannot_be_ticked_and_is_not_counted_as_shown(
    root: Path, path: Path
) -> None:
    folders = read_species_folders(root)
    (root / "swan" / "0.jpg").write_bytes(b"no picture")
    (root / "swan" / "1.jpg").unlink()
    panel = annotate(asked(("q2", "swan")), folders, path, "Ada")
    look(panel)
    problems = {tile["image"]: tile["problem"] for tile in panel.view["tiles"] if tile["problem"]}
    assert "not a readable picture" in problems["swan/0.jpg"]
    assert "No such file" in problems["swan/1.jpg"]
    panel.receive({"type": "tick", "image": "swan/0.jpg", "clue": True})
    assert panel.view["message"] == "not saved: swan/0.jpg cannot be ticked; it cannot be shown"
    panel.receive({"type": "done"})
    vote = read_votes(path).votes["q2"]
    assert set(vote.images) == {"swan/2.jpg", "swan/3.jpg", "swan/4.jpg"}
    assert set(vote.unreadable) == {"swan/0.jpg", "swan/1.jpg"}


def test_a_question_none_of_whose_images_can_be_shown_is_not_done(root: Path, path: Path) -> None:
    for file in (root / "swan").iterdir():
        file.write_bytes(b"no picture")
    panel = opened(root, path, asked(("q2", "swan")))
    look(panel)
    panel.receive({"type": "done"})
    assert panel.view["message"] == "not done: none of the images can be shown"


def test_what_cannot_be_saved_is_told_and_the_screen_shows_the_disk(root: Path, path: Path) -> None:
    panel = opened(root, path)
    look(panel)
    tick(panel, 0)
    kept = path.rename(path.with_name("elsewhere"))
    tick(panel, 1)
    assert panel.view["message"].startswith("not saved: ")
    assert str(path) in panel.view["message"]
    assert ticked(panel) == [0]
    kept.rename(path)
    tick(panel, 1)
    assert (panel.view["message"], ticked(panel)) == ("", [0, 1])


def test_a_full_disk_is_told(root: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = opened(root, path)
    look(panel)
    with monkeypatch.context() as patch:
        patch.setattr(
            "vrag_kit.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full"))
        )
        tick(panel, 0)
    assert panel.view["message"].startswith("not saved: [Errno 28] full")
    assert ticked(panel) == []


def test_two_panels_on_one_file_keep_what_each_of_them_says(root: Path, path: Path) -> None:
    first, second = opened(root, path), opened(root, path)
    look(first)
    tick(first, 0)
    tick(second, 1)
    assert ticked(second) == [0, 1]
    look(second, 3)
    second.receive({"type": "done", "answer": "red"})
    tick(first, 2)
    assert first.view["message"].startswith("not saved: this question is done already")
    assert len(read_votes(path).votes["q1"].clues) == 2


def sent(
    panel: AnnotationPanel, message: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Image.Image]:
    """The pictures that the panel answers with."""
    found: dict[str, Image.Image] = {}
    monkeypatch.setattr(
        panel,
        "send",
        lambda content, buffers: found.update(
            {content["image"]: Image.open(io.BytesIO(buffers[0]))}
        ),
    )
    panel.receive(message)
    return found


def test_pictures_of_the_page_go_by_messages_and_the_saved_state_stays_small(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = opened(root, path)
    paint(root / panel.view["tiles"][0]["image"], 90, size=(900, 600))
    panel.receive({"type": "page", "page": 0})
    thumbnails = sent(panel, {"type": "thumbnails"}, monkeypatch)
    assert set(thumbnails) == {tile["image"] for tile in panel.view["tiles"]}
    assert {picture.format for picture in thumbnails.values()} == {"JPEG"}
    large = panel.view["tiles"][0]["image"]
    assert thumbnails[large].size == (256, 171)
    assert sent(panel, {"type": "picture", "image": large}, monkeypatch)[large].size == (900, 600)
    assert sent(panel, {"type": "picture", "image": "../secret.jpg"}, monkeypatch) == {}
    whole = panel.widget.get_state()
    state = {name: value for name, value in whole.items() if not name.startswith("_")}
    assert len(json.dumps(state)) < 8_000
    assert len(json.dumps(whole)) < 30_000  # with the panel's own code


def disputed(images: dict[str, list[str]], *agreed: str) -> dict[str, Dispute]:
    remark = "clue for Ada; not for Ben"
    return {
        name: Dispute(
            tuple(ids), frozenset(agreed) & set(ids), dict.fromkeys(ids, remark), "black | red"
        )
        for name, ids in images.items()
    }


def test_a_dispute_is_settled_among_its_images_with_remarks_and_a_proposed_answer(
    root: Path, path: Path
) -> None:
    panel = opened(
        root,
        path,
        asked(("q1", "goose"), ("q2", "swan")),
        disputes=disputed(
            {"q1": ["goose/03.jpg", "goose/07.jpg"], "q2": ["swan/1.jpg"]}, "goose/07.jpg"
        ),
    )
    assert {tile["image"]: tile["remark"] for tile in panel.view["tiles"]} == {
        "goose/03.jpg": "clue for Ada; not for Ben",
        "goose/07.jpg": "clue for Ada; not for Ben",
    }
    assert panel.view["answer"] == "black | red"
    look(panel)
    assert panel.view["answer"] == read_votes(path).votes["q1"].answer == "black | red"
    panel.receive({"type": "done", "answer": "black"})
    vote = voted(path, "q1")  # what both ticked stays ticked
    assert (vote.images, vote.answer) == ({"goose/03.jpg": 0, "goose/07.jpg": 1}, "black")


@pytest.mark.parametrize(
    ("questions", "more", "message"),
    [
        (
            asked().drop(columns="estimated_clue_rate"),
            {},
            "no column 'estimated_clue_rate'; .* expected question_id",
        ),
        (asked().iloc[:0], {}, "no question to annotate"),
        (asked(("q1", "goose"), ("q1", "swan")), {}, "'q1': found it twice"),
        (
            asked(("q1", "duck")),
            {},
            "question 'q1': found the folder 'duck'; expected one of 2 species folders",
        ),
        (
            asked().assign(estimated_clue_rate=1.5),
            {},
            "question 'q1': found the estimated_clue_rate 1.5; expected 0 to 1",
        ),
        (
            asked(),
            {"disputes": disputed({"q1": ["swan/0.jpg"]})},
            "question 'q1': found the image .*'swan/0.jpg'.* goose",
        ),
        (
            asked(),
            {"disputes": disputed({"q1": []})},
            "question 'q1': found no image",
        ),
    ],
)
def test_a_bad_assignment_is_refused(
    root: Path, path: Path, questions: pd.DataFrame, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(VragError, match=message):
        opened(root, path, questions, **more)
    assert not path.exists()


def test_a_file_of_another_annotator_is_refused(root: Path, path: Path) -> None:
    opened(root, path)
    with pytest.raises(VragError, match="found annotations of 'Ada', expected those of 'Ben'"):
        annotate(asked(), read_species_folders(root), path, "Ben")


def test_the_page_to_read_without_a_kernel_is_escaped_and_shows_the_first_clues(
    root: Path, path: Path
) -> None:
    panel = opened(root, path)
    look(panel)
    tick(panel, 1, 2, 3)
    panel.receive({"type": "text", "answer": "<b>red</b>"})
    html = annotation_page([read_votes(path)], root, clues=2).data
    assert html.count("<figure") == 2
    assert "and 1 more<" in html
    assert "3 of 27 images shown" in html
    assert "&lt;b&gt;red" in html
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "no question was opened yet" in annotation_page([], root).data
    lost = voted(path, "q1").model_copy(update={"images": {"swan/9.jpg": 1}})
    assert "no picture: " in annotation_page([Annotations("Ada", {"q": lost})], root).data


def test_folders_may_be_given_by_hand(root: Path, path: Path) -> None:
    goose = SpeciesFolder(
        root=root,
        name="goose",
        scientific="Branta leucopsis",
        common="barnacle goose",
        lineage=(),
        images=("goose/01.jpg",),
    )
    assert (
        annotate(asked(("q1", "goose")), [goose], path, "Ada").view["called"]
        == "barnacle goose (scientific name: Branta leucopsis)"
    )
