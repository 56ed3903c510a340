"""As `test_talk_killed`, with a checkpoint that each process loads itself: the shipped one."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from conftest import WEIGHTS
from talking_process import LENGTHS, hold_here, start
from talks import make_talks

MODEL = str(WEIGHTS / "field-guide-vlm-conversation")


def answered(store: Path) -> Iterator[tuple[str, float]]:
    """The words of each prompt in the store, and when it was answered."""
    if not store.exists():
        return
    with sqlite3.connect(store, timeout=60) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
            return  # it is being made
        both = "SELECT prompt, stored FROM answers JOIN prompts USING (prompt_id)"
        for prompt, stored in db.execute(both):
            parts = [part for message in json.loads(prompt) for part in message["parts"]]
            yield "\n".join(part for part in parts if isinstance(part, str)), stored


@pytest.mark.slow
def test_a_checkpoint_that_is_killed_at_any_turn_answers_nothing_twice(tmp_path: Path) -> None:
    calm, stormy = tmp_path / "calm" / "answers.sqlite", tmp_path / "stormy" / "answers.sqlite"
    calm.parent.mkdir()
    stormy.parent.mkdir()
    make_talks(tmp_path, LENGTHS)
    kills = 0
    for turn in (1, 3):
        pair = [start(stormy, tmp_path, MODEL) for _ in range(2)]
        for _, pipe in pair:
            assert pipe.recv() == "ready"
            pipe.send("go")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if any(f": turn {turn} of" in words for words, _ in answered(stormy)):
                break
            time.sleep(0.01)
        for process, _ in pair:
            kills += process.is_alive()
            process.kill()
            process.join()
    assert kills >= 2
    final = hold_here(stormy, tmp_path, MODEL)
    lines = (stormy.parent / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    known = dict(answered(stormy))
    again = [words for at, words in map(json.loads, lines) if at > known[words]]
    assert again == []  # what was answered was not asked afterwards
    assert len(known) == len(set(known)) <= len(lines) <= len(known) + 3 * kills
    pd.testing.assert_frame_equal(hold_here(stormy, tmp_path, MODEL), final)
    after = (stormy.parent / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    assert after == lines  # a finished experiment asks nothing
    pd.testing.assert_frame_equal(hold_here(calm, tmp_path, MODEL), final)
    assert set(final["status"]) <= {"ok", "truncated"}
