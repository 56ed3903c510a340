"""An annotator's file: a kill loses nothing that was saved, and two writers keep all votes."""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_data import refused

from vrag_kit.building.annotations import FORMAT, AnnotationFile, Annotations, Vote, read_votes

WORDS = {"species": "s", "folder": "goose", "question": "Which feet?", "feature": "feet"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VOTES = st.builds(
    Vote,
    question_id=TEXT,
    **dict.fromkeys(WORDS, TEXT),
    status=st.sampled_from(["open", "done", "skipped"]),
    images=st.dictionaries(st.sampled_from("abc"), st.integers(0, 1)),
    unreadable=st.lists(st.sampled_from("de"), unique=True),
    answer=TEXT,
    suggestion=TEXT,
)


def vote(question_id: str) -> Vote:
    return Vote.model_validate({"question_id": question_id, **WORDS})


@given(st.lists(VOTES, max_size=4))
@settings(max_examples=40, deadline=None)
def test_the_last_vote_on_each_question_is_read_back_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, votes: list[Vote]
) -> None:
    file = AnnotationFile(tmp_path_factory.mktemp("votes") / "ada.jsonl", "Ada")
    for each in votes:
        file.save(each)
    last = {each.question_id: each for each in votes}
    assert read_votes(file.path) == file.annotations == Annotations("Ada", last)
    assert list(file.annotations.votes) == list(last)


def _save_on_and_on(path: Path, saved: Synchronized[int]) -> None:
    file = AnnotationFile(path, "Ada")
    for number in count(len(file.annotations.votes)):
        file.save(vote(f"q{number}"))
        saved.value = number + 1


def test_a_kill_loses_nothing_that_was_saved(tmp_path: Path) -> None:
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


def _save_many(path: Path, name: str) -> None:
    file = AnnotationFile(path, "Ada")
    for number in range(50):
        with file.lock:
            file.refresh()
            file.save(vote(f"{name}{number}"))


def test_two_processes_that_write_in_turn_keep_every_vote(tmp_path: Path) -> None:
    context, path = multiprocessing.get_context("fork"), tmp_path / "ada.jsonl"
    writers = [context.Process(target=_save_many, args=(path, name)) for name in "pq"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    expected = {f"{name}{number}" for name in "pq" for number in range(50)}
    assert set(read_votes(path).votes) == expected


@pytest.mark.parametrize(
    "content",
    ["Dear diary", '{"annotator": "Ada", "format": "vrag_kit annotation log, version 1"}\n'],
)
def test_a_file_of_another_format_is_refused_and_not_written_to(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "ada.jsonl"
    path.write_text(content, encoding="utf-8")
    refused(partial(AnnotationFile, path, "Ada"), "ada.jsonl", FORMAT)
    assert path.read_text(encoding="utf-8") == content


def test_files_of_another_annotator_and_such_that_cannot_be_read_or_written_are_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "ada.jsonl"
    AnnotationFile(path, "Ada")
    refused(partial(AnnotationFile, path, "Ben"), "ada.jsonl", "'Ada'", "'Ben'")
    refused(partial(AnnotationFile, tmp_path / "x.jsonl", " "), "annotator", "name")
    refused(partial(read_votes, tmp_path / "none.jsonl"), "none.jsonl")
    (tmp_path / "folder").write_text("a file in the way", encoding="utf-8")
    refused(partial(AnnotationFile, tmp_path / "folder" / "ada.jsonl", "Ada"), "ada.jsonl", "writ")


def test_votes_that_cannot_be_saved_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "full")

    file = AnnotationFile(tmp_path / "ada.jsonl", "Ada")
    file.save(vote("q"))
    before = file.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("vrag_kit.files.os.fsync", full)
        with pytest.raises(OSError, match=r"ada\.jsonl"):
            file.save(vote("r"))
    assert list(file.annotations.votes) == ["q"]
    assert file.path.read_bytes() == before
