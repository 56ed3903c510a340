"""Two processes hold the same conversations over one store and are killed at every turn:
the table is as if nothing had happened, and what was answered is never asked again.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conversation_data import make_conversations
from conversation_process import LENGTHS, hold, start
from strange_server import StrangeServer, good_words, text_in


class Watchful(StrangeServer):
    """Notes at which turn it was asked, and what of it was already in the store."""

    def __init__(self, store: Path) -> None:
        super().__init__(seconds=0.1)
        self.store = store
        self.asked: list[tuple[int, str]] = []
        self.needless: list[str] = []

    def begin(self, body: dict[str, Any]) -> str:
        words = text_in(body)
        if "Reply with the word" not in words:
            told = good_words(body)
            with sqlite3.connect(self.store, timeout=60) as db:
                found = db.execute("SELECT answer_id FROM answers WHERE raw = ?", (told,))
                self.needless += [row[0] for row in found]
            turn = int(re.findall(r"(?:Query|Question): turn (\d)", words)[-1])
            with self.lock:
                self.asked.append((turn, told))
        return super().begin(body)

    def reached(self, turn: int) -> bool:
        with self.lock:
            return any(at >= turn for at, _ in self.asked)


@pytest.mark.slow
def test_killed_at_any_turn_two_processes_lose_and_double_nothing(tmp_path):
    make_conversations(tmp_path, LENGTHS)
    store = tmp_path / "stormy" / "answers.sqlite"
    store.parent.mkdir()
    with Watchful(store) as server:
        kills = 0
        for turn in (1, 2):
            pair = [start(store, tmp_path, server.url) for _ in range(2)]
            for _, pipe in pair:
                assert pipe.recv() == "ready"
            for _, pipe in pair:
                pipe.send("go")
            deadline = time.monotonic() + 120
            while not server.reached(turn) and time.monotonic() < deadline:
                time.sleep(0.02)
            for process, _ in pair:
                if process.is_alive():
                    process.kill()
                    kills += 1
                process.join()
        server.seconds = 0.0  # nobody is killed any more
        final = hold(store, tmp_path, server.url)
        asked = list(server.asked)
        pd.testing.assert_frame_equal(hold(store, tmp_path, server.url), final)
        assert server.asked == asked  # a finished experiment asks nothing
    assert server.needless == []
    assert kills >= 3
    doubled = sum(count - 1 for count in Counter(told for _, told in asked).values())
    assert doubled <= 3 * kills  # three calls at once in each process that was killed
    with StrangeServer() as calm:
        undisturbed = hold(tmp_path / "calm" / "answers.sqlite", tmp_path, calm.url)
    pd.testing.assert_frame_equal(undisturbed, final)
    assert set(final["status"]) == {"ok", "early_stopped"}
    assert set(final["rewrite_status"]) == {"", "unparsed"}
    assert set(final.query("setting == 'task_3' and status == 'ok'")["doc_ids"]) == {
        ("kg-1", "kg-2", "w1", "w2")
    }
