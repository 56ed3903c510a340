"""A benchmark that was built, and the parameter file with which the notebooks run on it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import ROOT
from PIL import Image
from readme_pages import README
from retrieval_data import refused
from votes import Votes, asked

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.building.annotations import read_annotation_files
from vrag_kit.building.benchmark_files import write_benchmark
from vrag_kit.building.decisions import Decision, decide_questions
from vrag_kit.building.questions import read_questions
from vrag_kit.building.species import read_species_folders
from vrag_kit.runner.plan import read_plan


def decisions(tmp_path: Path, tree: Path, clues: str = "a", limit: float = 0.25) -> list[Decision]:
    """One question, kept."""
    votes = Votes(tmp_path, *read_species_folders(tree))
    votes("anna", "q", clues, "black")
    return decide_questions(asked("q"), votes.read("anna"), limit=limit)


def test_the_ticks_that_the_readme_shows_make_a_benchmark(tmp_path: Path) -> None:
    things = tmp_path / "things"
    (things / "mug").mkdir(parents=True)
    for number in range(1, 5):
        Image.new("RGB", (8, 8), (0, 0, 60 * number)).save(things / "mug" / f"IMG_{number}.jpg")
    blocks = re.findall(r"```jsonl\n(.*?)```", README, re.DOTALL)
    (log,) = [block for block in blocks if "annotations, version" in block]
    (tmp_path / "ada.jsonl").write_text(log, encoding="utf-8")
    lines = "mug,What color is the bottom of the mug?,bottom,ada\n"
    (tmp_path / "questions.csv").write_text(f"species,question,feature,writer\n{lines}")
    folders = read_species_folders(things)
    questions = read_questions(tmp_path / "questions.csv", folders)
    logs = read_annotation_files([tmp_path / "ada.jsonl"], questions, folders)
    unfiltered = questions.assign(estimated_clue_rate=np.nan, n_judged=0, n_unjudged=0)
    decided = decide_questions(unfiltered, logs)
    benchmark = load_visual_rag(write_benchmark(tmp_path / "b", decided, things, "Mugs"), things)
    (query,) = benchmark.queries.values()
    assert (query.text, query.answers) == ("What color is the bottom of the mug?", ("blue",))
    assert benchmark.relevant(query.query_id) == ("mug/IMG_2.jpg",)
    assert len(benchmark.candidates(query.query_id) or ()) == 4


def test_a_notebook_has_data_or_a_reason(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, title = decisions(tmp_path, tree), "Geese: wild & <tame>"
    annotations = write_benchmark(tmp_path / "geese", kept, tree, title)
    parameters = annotations.with_name("geese.yaml")
    monkeypatch.chdir(ROOT)
    given = {task.notebook.stem: task.given for task in read_plan(parameters).tasks}
    data = {"name": title, "annotations": str(annotations), "image_root": str(tree)}
    assert given["02_retriever_comparison"]["data"] == data
    text = parameters.read_text(encoding="utf-8")
    others = dict(re.findall(r"^# (\d\d_\w+): (.+)$", text, re.MULTILINE))
    every = {file.stem for file in (ROOT / "notebooks" / "visual_rag").glob("[0-9]*.ipynb")}
    assert given.keys() | others.keys() == {*every, "00_tour"}
    left_out = " ".join(sorted(name[:2] for name in others))
    assert left_out == "06 07 08 09 11 12 16 17 18"
    assert others["06_number_of_clues"] == "no question has two clues, and another image"
    assert others["07_easy_negatives"] == "there is one species alone"


def test_nothing_is_written_over_another_benchmark(tmp_path: Path, tree: Path) -> None:
    kept = decisions(tmp_path, tree)
    before = write_benchmark(tmp_path / "mine", kept, tree, "Geese").read_bytes()
    votes = Votes(tmp_path, *read_species_folders(tree))
    votes("ben", "none")
    none = decide_questions(asked("none", "new"), votes.read("ben"))
    nothing = partial(write_benchmark, tmp_path / "mine", none, tree, "Geese")
    refused(nothing, "annotations.jsonl", "1 no clue", "1 not annotated")
    other = partial(write_benchmark, tmp_path / "mine", kept, Path("elsewhere"), "other")
    refused(other, "mine", "'elsewhere'")
    assert (tmp_path / "mine" / "annotations.jsonl").read_bytes() == before


def test_named_models_stay_when_the_file_is_written_again(tmp_path: Path, tree: Path) -> None:
    write = partial(write_benchmark, tmp_path / "mine", decisions(tmp_path, tree), tree, "Geese")
    parameters = write().with_name("mine.yaml")
    values = yaml.safe_load(parameters.read_text(encoding="utf-8"))
    mine = {**values, "models": ["gpt-4o@openai"], "hardware": {"device": "cuda"}}
    parameters.write_text(yaml.safe_dump(mine), encoding="utf-8")
    write()
    assert yaml.safe_load(parameters.read_text(encoding="utf-8")) == mine
