"""What it costs to enter a room: nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WEIGHTS
from strange_server import StrangeServer

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.config import Workspace
from vrag_kit.generation import ask_models, zero_shot
from vrag_kit.papers.visual_rag.judge import PROMPTS

pytestmark = pytest.mark.slow
MODELS = {
    *("torch", "transformers", "torchvision", "open_clip", "faiss", "sentence_transformers"),
    *("openai", "datasets"),
}
HEAVY = MODELS | {"scipy", "statsmodels", "sklearn", "seaborn", "ipywidgets", "anywidget"}
ROOMS = (
    *("benchmarks", "fetching", "retrieval", "generation", "judging", "analysis", "plotting"),
    *("papers", "papers.visual_rag", "synthetic", "building"),
)


def printed_by(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", f"import sys\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    return set(printed_by(f"{code}\nprint(*sys.modules)").split())


def test_rooms_are_entered_without_models_statistics_and_widgets() -> None:
    each = [
        f"import vrag_kit.{room}; print({room!r}, *{HEAVY} & {{*sys.modules}})" for room in ROOMS
    ]
    assert [line.strip() for line in printed_by("\n".join(each)).splitlines()] == [*ROOMS]


READING = """
import sys
from vrag_kit import Workspace
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.generation import ask_models, zero_shot
from vrag_kit.papers.visual_rag.judge import PROMPTS

annotations, images, answers, *models = sys.argv[1:]
benchmark = load_visual_rag(annotations, images)
contexts = zero_shot(benchmark)
decoding = {"temperature": 0, "max_new_tokens": 4}
at = Workspace(answers_dir=answers)
table = ask_models(models, benchmark, contexts, at, prompts=PROMPTS, decoding=decoding)
print(len(table), *sorted({"torch", "transformers", "openai"} & set(sys.modules)))
"""


def test_stored_answers_of_all_models_are_read_without_a_heavy_import(
    write_annotations, tree: Path, tmp_path: Path
) -> None:
    annotations = write_annotations({})
    benchmark = load_visual_rag(annotations, tree)
    with StrangeServer() as server:
        models = [str(WEIGHTS / "field-guide-vlm-few"), f"served@{server.url}"]
        decoding = {"temperature": 0, "max_new_tokens": 4}
        contexts = zero_shot(benchmark)
        ask_models(
            models,
            benchmark,
            contexts,
            Workspace(answers_dir=tmp_path),
            prompts=PROMPTS,
            decoding=decoding,
        )
    # the server is gone: whoever asked again would fail
    command = [sys.executable, "-c", READING, str(annotations), str(tree), str(tmp_path), *models]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "2"
