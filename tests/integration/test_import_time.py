"""What it costs to enter a room: nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    *("torch", "transformers", "torchvision", "open_clip", "faiss", "sentence_transformers"),
    *("openai", "datasets", "scipy", "statsmodels", "sklearn", "seaborn", "ipywidgets"),
}
ROOMS = (
    *("benchmarks", "fetching", "retrieval", "generation", "judging", "analysis", "plotting"),
    *("papers", "papers.visual_rag", "synthetic", "building"),
)


@pytest.mark.slow
def test_rooms_are_entered_without_models_statistics_and_widgets() -> None:
    each = [
        f"import vrag_kit.{room}; print({room!r}, *{HEAVY} & {{*sys.modules}})" for room in ROOMS
    ]
    command = [sys.executable, "-c", "\n".join(["import sys", *each])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.strip() for line in done.stdout.splitlines()] == [*ROOMS]
