"""What it costs to enter a room: nothing heavy is imported before it is used; and no engine room
knows the synthetic data's words.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT

from vrag_kit.synthetic.crag_mm import entities

PACKAGE = ROOT / "vrag_kit"
ENGINE = (
    *("benchmarks", "fetching", "retrieval", "generation", "judging"),
    *("claims", "analysis", "plotting", "widgets"),
)


def test_no_word_of_the_synthetic_conversations_stands_in_an_engine_room():
    lists = (entities.GENERA, entities.EPITHETS, entities.FAMILIES, entities.DESCRIBERS)
    names = {name.lower() for each in lists for name in each}
    names |= {name.lower() for name in (*entities.REGIONS, *entities.CAPITALS)}
    for room in ENGINE:
        for path in (PACKAGE / room).glob("*.py"):
            source = path.read_text(encoding="utf-8").lower()
            assert not names.intersection(re.findall(r"[a-z]+", source)), path
            assert not re.search(r"\bthis (?:moth|bird|fish|flower|lizard|mushroom)\b", source), (
                path
            )


HEAVY = {
    *("torch", "transformers", "torchvision", "open_clip", "faiss", "sentence_transformers"),
    *("openai", "datasets", "scipy", "statsmodels", "sklearn", "seaborn", "ipywidgets"),
}
ROOMS = (
    *("benchmarks", "fetching", "retrieval", "generation", "judging", "analysis", "plotting"),
    *("papers", "papers.visual_rag", "synthetic", "building"),
)


@pytest.mark.slow
def test_rooms_are_entered_without_models_statistics_and_widgets():
    each = [
        f"import vrag_kit.{room}; print({room!r}, *{HEAVY} & {{*sys.modules}})" for room in ROOMS
    ]
    command = [sys.executable, "-c", "\n".join(["import sys", *each])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.strip() for line in done.stdout.splitlines()] == [*ROOMS]
