"""The annotation panel, by its messages: the screen shows what the disk holds, of which a kill
loses nothing that was saved.
"""

import itertools
import json
import multiprocessing
import os
import time
from functools import partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from retrieval_data import refused

from vrag_kit.building.annotation_panel import AnnotationPanel, annotate, annotation_page
from vrag_kit.building.annotations import FORMAT, AnnotationFile, Vote, read_votes
from vrag_kit.building.decisions import Dispute
from vrag_kit.building.species import read_species_folders

NASTY = "Which <script>alert(1)</script> color?"


@pytest.fixture
def root(tmp_path):
    """Two species: 60 images of a goose, which make three pages, and 5 of a swan."""
    for species, count in (("goose", 60), ("swan", 5)):
        (tmp_path / "images" / species).mkdir(parents=True)
        for number in range(count):
            image = Image.new("L", (60, 40), 4 * number)
            image.save(tmp_path / "images" / species / f"{number}.jpg")
    return tmp_path / "images"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "annotations" / "ada.jsonl"


def asked(*rows: tuple[str, str]) -> pd.DataFrame:
    """Questions by (id, folder)."""
    table = pd.DataFrame(rows, columns=["question_id", "folder"])
    about = {"explanation": "seldom seen", "feature": "feet"}
    texts = [f"{name}? {NASTY}" for name in table["question_id"]]
    return table.assign(species=table["folder"], question=texts, **about)


ASKED = asked(("q1", "goose"), ("q2", "swan"), ("q3", "swan"))


def opened(
    root: Path, path: Path, questions: pd.DataFrame = ASKED, name: str = "Ada", **more: Any
) -> AnnotationPanel:
    return annotate(questions, read_species_folders(root), path, name, **more)


def send(panel: AnnotationPanel, kind: str, **more: Any) -> AnnotationPanel:
    panel.receive({"type": kind, **more})
    return panel


def look(panel: AnnotationPanel, pages: int = 1) -> None:
    """Let `pages` pages be on the screen, beginning with the one that is."""
    for number in range(pages):
        if number:
            send(panel, "page", page=panel.view["page"] + 1)
        send(panel, "seen", page=panel.view["page"])


def tick(panel: AnnotationPanel, *places: int, clue: bool = True) -> None:
    for place in places:
        send(panel, "tick", image=panel.view["tiles"][place]["image"], clue=clue)


def voted(path: Path, question_id: str = "q1") -> Vote:
    return read_votes(path).votes[question_id]


def ticked(panel: AnnotationPanel) -> list[int]:
    return [place for place, tile in enumerate(panel.view["tiles"]) if tile["clue"]]


def test_every_tick_is_on_disk_at_once_and_can_be_taken_back(root, path):
    panel = opened(root, path)
    assert read_votes(path).votes == {}  # there is a file, and nobody has looked yet
    look(panel)
    tick(panel, 0, 5)
    images = [tile["image"] for tile in panel.view["tiles"]]
    assert voted(path).clues == [images[0], images[5]]
    assert ticked(panel) == [0, 5]
    tick(panel, 5, clue=False)
    assert voted(path).images == {name: int(name == images[0]) for name in images}
    before = path.read_bytes()
    look(panel)
    tick(panel, 0)
    send(panel, "text", answer="", suggestion="")
    assert path.read_bytes() == before  # what is said twice is written once


def test_the_order_is_each_annotators_and_stays(root, tmp_path):
    def order(name: str, **more: Any) -> list[str]:
        panel = opened(root, tmp_path / f"{name}.jsonl", ASKED[1:], name, **more)
        return [tile["image"] for tile in panel.view["tiles"]]

    ada, (_, swan) = order("Ada"), read_species_folders(root)
    assert sorted(ada) == list(swan.images) != ada
    assert order("Ada") == ada != order("Ben")
    assert order("Ada", seed=1) != ada
    copyfile(root / "swan" / "0.jpg", root / "swan" / "new.jpg")
    assert [image for image in order("Ada") if image != "swan/new.jpg"] == ada


def test_done_needs_every_page_and_an_answer_if_there_are_clues(root, path):
    panel = opened(root, path)
    assert panel.view["not_done"] == "60 of 60 images were not on the screen yet"
    look(panel, 2)
    message = send(panel, "done").view["message"]
    assert message == "not done: 6 of 60 images were not on the screen yet"
    look(panel, 2)
    tick(panel, 0)
    message = send(panel, "done", answer="  ").view["message"]
    assert message == "not done: the clues have no answer yet"
    send(panel, "done", answer=" black | blackish ")  # what was typed last comes with it
    vote = voted(path)
    assert (vote.status, vote.answer) == ("done", "black | blackish")
    assert (len(vote.clues), len(vote.images)) == (1, 60)
    assert (panel.view["question_id"], panel.view["message"]) == ("q2", "")
    look(panel)
    send(panel, "done", answer="")  # without a clue there is no answer
    assert voted(path, "q2").clues == []
    assert panel.view["progress"].startswith("question 3 of 3, 2 done, 0 skipped")


def test_an_opened_file_goes_on_where_it_was_left(root, path):
    panel = send(opened(root, path), "question", place=1)
    look(panel)
    send(panel, "done")
    send(panel, "question", place=0)
    look(panel)
    tick(panel, 2)
    send(panel, "text", answer="black", suggestion="What of the wings?")
    again = opened(root, path)
    left = {"question_id": "q1", "page": 1, "clues": 1, "answer": "black"}
    assert {**left, "suggestion": "What of the wings?"}.items() <= again.view.items()
    assert ticked(send(again, "page", page=0)) == [2]
    look(again, 3)
    assert send(again, "done").view["question_id"] == "q3"  # q2 is done already


def test_a_done_question_changes_only_after_it_is_reopened(root, path):
    panel = opened(root, path, ASKED[1:])
    look(panel)
    send(panel, "done")
    send(panel, "question", place=0)
    before, image = path.read_bytes(), panel.view["tiles"][0]["image"]
    changes = {"tick": {"image": image, "clue": True}, "text": {"answer": "red"}}
    for kind in ("tick", "text", "skip", "done"):
        message = send(panel, kind, **changes.get(kind, {})).view["message"]
        assert "not saved: this question is done already" in message
    look(panel)
    assert path.read_bytes() == before
    send(panel, "reopen")
    tick(panel, 0)
    send(panel, "done", answer="red")
    assert len(voted(path, "q2").clues) == 1


def test_the_screen_shows_the_disk(root, path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "full")

    panel = opened(root, path)
    look(panel)
    tick(panel, 0)
    kept = path.rename(path.with_name("elsewhere"))
    tick(panel, 1)
    assert panel.view["message"].startswith("not saved: ")
    assert str(path) in panel.view["message"]
    assert ticked(panel) == [0]
    kept.rename(path)
    monkeypatch.setattr("vrag_kit.files.os.fsync", full)
    tick(panel, 2)
    assert panel.view["message"].startswith("not saved: [Errno 28] full")
    monkeypatch.undo()
    tick(panel, 1)
    assert (panel.view["message"], ticked(panel)) == ("", [0, 1])


def test_a_dispute_is_settled_among_its_images(root, path):
    images = ("goose/3.jpg", "goose/7.jpg")
    disputes = {"q1": Dispute(images, frozenset(images[1:]), "black | red")}
    panel = opened(root, path, asked(("q1", "goose")), disputes=disputes)
    assert {tile["image"] for tile in panel.view["tiles"]} == set(images)
    look(panel)
    assert panel.view["answer"] == voted(path).answer == "black | red"
    send(panel, "done", answer="black")
    assert voted(path).images == {images[0]: 0, images[1]: 1}  # what both ticked stays ticked


def test_a_bad_assignment_is_refused(root, path):
    lacking, none = ASKED.drop(columns="explanation"), ASKED[:0]
    refused(partial(opened, root, path, lacking), "'explanation'", "question_id")
    refused(partial(opened, root, path, none), "no question to annotate")
    duck = partial(opened, root, path, asked(("q1", "duck")))
    refused(duck, "'q1'", "folder 'duck'", "2 species folders")
    assert not path.exists()


def test_the_page_without_a_kernel_is_escaped(root, path):
    panel = opened(root, path)
    look(panel)
    tick(panel, 1, 2, 3)
    send(panel, "text", answer="<b>red</b>")
    html = annotation_page([read_votes(path)], root, clues=2).data
    assert html.count("<figure") == 2
    assert "3 of 27 images shown" in html
    assert "&lt;b&gt;red" in html
    assert "<script" not in html


def test_skip_needs_more_than_9_clues_in_the_first_27_images(root, path):
    panel = opened(root, path)
    look(panel)
    tick(panel, *range(9))
    look(panel, 2)
    tick(panel, *range(5))  # of the second page: they do not count
    assert "not skipped: " in send(panel, "skip").view["message"]
    send(panel, "page", page=0)
    tick(panel, 20)
    send(panel, "skip")
    assert (voted(path).status, len(voted(path).clues)) == ("skipped", 15)


def test_a_damaged_image_can_be_neither_ticked_nor_seen(root, path):
    (root / "swan" / "0.jpg").write_bytes(b"no picture")
    panel = opened(root, path, ASKED[1:2])
    look(panel)
    problems = {tile["image"]: tile["problem"] for tile in panel.view["tiles"] if tile["problem"]}
    assert list(problems) == ["swan/0.jpg"]
    message = send(panel, "tick", image="swan/0.jpg", clue=True).view["message"]
    assert message.startswith("not saved: swan/0.jpg")
    send(panel, "done")
    vote = voted(path, "q2")
    assert (len(vote.images), vote.unreadable) == (4, ["swan/0.jpg"])


def test_no_other_file_is_sent(root, path, monkeypatch):
    panel, sent = opened(root, path), list[str]()
    monkeypatch.setattr(panel, "send", lambda content, buffers: sent.append(content["image"]))
    send(panel, "thumbnails")
    assert sent == [tile["image"] for tile in panel.view["tiles"]]
    send(panel, "picture", image=sent[0])
    send(panel, "picture", image="../secret.jpg")
    assert sent[27:] == [sent[0]]
    assert len(json.dumps(panel.widget.get_state())) < 30_000  # with the panel's own code


def test_two_panels_on_one_file_keep_what_each_of_them_says(root, path):
    first, second = opened(root, path), opened(root, path)
    look(first)
    tick(first, 0)
    tick(second, 1)
    assert ticked(second) == [0, 1]


WORDS = {"species": "s", "folder": "goose", "question": "Which feet?", "feature": "feet"}


def vote(question_id: str) -> Vote:
    return Vote.model_validate({"question_id": question_id, **WORDS})


def _save_on_and_on(path, saved):
    file = AnnotationFile(path, "Ada")
    for number in itertools.count(len(file.annotations.votes)):
        file.save(vote(f"q{number}"))
        saved.value = number + 1


def test_a_kill_loses_nothing_that_was_saved(tmp_path):
    path, context = tmp_path / "ada.jsonl", multiprocessing.get_context("fork")
    for kill in range(int(os.environ.get("VRAG_KILLS", "10"))):
        saved = context.Value("i", 0)
        writer = context.Process(target=_save_on_and_on, args=(path, saved))
        writer.start()
        while not saved.value:
            time.sleep(0.001)
        time.sleep(kill % 7 / 500)
        writer.kill()
        writer.join()
        assert len(read_votes(path).votes) - saved.value in (0, 1)


def test_a_file_that_is_another_annotators_or_bad_is_refused(tmp_path):
    path = tmp_path / "new" / "ada.jsonl"
    AnnotationFile(path, "Ada")
    refused(partial(AnnotationFile, path, "Ben"), "ada.jsonl", "'Ada'", "'Ben'")
    refused(partial(AnnotationFile, tmp_path / "x.jsonl", " "), "annotator", "name")
    refused(partial(read_votes, tmp_path / "none.jsonl"), "none.jsonl")
    path.write_text("Dear diary", encoding="utf-8")
    refused(partial(AnnotationFile, path, "Ada"), "ada.jsonl", FORMAT)
    assert path.read_text(encoding="utf-8") == "Dear diary"  # nothing is written over
