"""Rooms are entered quickly: nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    *("torch", "transformers", "torchvision", "open_clip", "faiss", "sentence_transformers"),
    *("openai", "datasets", "sklearn", "statsmodels", "ipywidgets", "anywidget"),
)


@pytest.mark.parametrize("room", ["benchmarks", "fetching", "fieldguide", "building"])
def test_entering_a_room_imports_nothing_heavy(room: str) -> None:
    code = f"import sys, vrag_kit.{room}; print(*sorted(set(sys.modules) & set({HEAVY})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
