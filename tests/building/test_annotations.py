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
from retrieval_data import refused

from vrag_kit.building.annotations import FORMAT, AnnotationFile, Vote, read_votes

WORDS = {"species": "s", "folder": "goose", "question": "Which feet?", "feature": "feet"}


def vote(question_id: str) -> Vote:
    return Vote.model_validate({"question_id": question_id, **WORDS})


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


def test_a_file_that_is_another_annotators_or_bad_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ada.jsonl"
    AnnotationFile(path, "Ada")
    refused(partial(AnnotationFile, path, "Ben"), "ada.jsonl", "'Ada'", "'Ben'")
    refused(partial(AnnotationFile, tmp_path / "x.jsonl", " "), "annotator", "name")
    refused(partial(read_votes, tmp_path / "none.jsonl"), "none.jsonl")
    path.write_text("Dear diary", encoding="utf-8")
    refused(partial(AnnotationFile, path, "Ada"), "ada.jsonl", FORMAT)
    assert path.read_text(encoding="utf-8") == "Dear diary"  # nothing is written over


def test_a_failed_save_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "full")

    file = AnnotationFile(tmp_path / "ada.jsonl", "Ada")
    file.save(vote("q"))
    before = file.path.read_bytes()
    monkeypatch.setattr("vrag_kit.files.os.fsync", full)
    with pytest.raises(OSError, match=r"ada\.jsonl"):
        file.save(vote("r"))
    assert list(file.annotations.votes) == ["q"]
    assert file.path.read_bytes() == before
