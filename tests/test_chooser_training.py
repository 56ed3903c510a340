"""The training of the answerer of choices: cut and started again, it ends the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from vrag_kit.fieldguide.training import train_chooser
from vrag_kit.fieldguide.training.answerer import Recipe, build_model, build_processor
from vrag_kit.fieldguide.training.exercises import Desk, Exercise, Mix
from vrag_kit.fieldguide.training.lessons import Plan
from vrag_kit.fieldguide.training.shards import seen_file
from vrag_kit.fieldguide.training.stock import SHARD, first_pictures, subject
from vrag_kit.fieldguide.training.train_chooser import Phase, exercises, learn
from vrag_kit.workspace import path as project_path

PHASES = (
    Phase(2, Mix(say=0.5, find=0.5, worded=False), letters=50.0),
    Phase(4, Mix(none=0.2, shows=0.4, mixed=0.2, tells=0.2)),
)
TINY = Recipe(Plan(told=0, guess=0, single=0, several=0, most=1), width=16, layers=1, heads=2)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six steps of four exercises about eighteen topics, of whose pictures a tower is
    said to have seen random numbers; the state is kept every second step.
    """
    work = tmp_path / "work"
    sizes = {"WHERE": work, "PHASES": PHASES, "STEPS": 6, "BATCH": 4, "LOGGED": 2}
    for name, size in {**sizes, "SHARDS": 1, "EXAM_SHARDS": 1, "SHARD": 18}.items():
        monkeypatch.setattr(train_chooser, name, size)
    rng = np.random.default_rng(0)
    for seed, folder in (("choices", work), ("choices/exam", work / "exam")):
        folder.mkdir()
        count = first_pictures(seed, 0)[-1] + subject(seed, SHARD - 1).n_pictures
        np.save(seen_file(folder, 0), rng.normal(size=(count, 9, 256)).astype(np.float16))
    return work


def taught(folder: Path) -> None:
    """Begin as every start does, and learn what is left."""
    desk, texts = Desk("choices", 18), []
    for number in range(6):
        texts += [f"{each.words} {each.answer}" for each in exercises(desk, number)]
    folder.mkdir(exist_ok=True)
    processor = build_processor(TINY, folder, texts)
    torch.manual_seed(0)
    notes = json.loads((project_path(train_chooser.NAME) / "training.json").read_text("utf-8"))
    learn(build_model(TINY, processor.tokenizer), processor, folder, notes["eyes"])


def log_of(folder: Path) -> list[dict[str, float]]:
    rows = json.loads((folder / "training.json").read_text(encoding="utf-8"))["log"]
    return [{name: row[name] for name in row if name not in ("minutes", "loss")} for row in rows]


def test_each_share_on_the_card_is_of_a_whole_number_of_its_exercises() -> None:
    """A share that was rounded to three digits is k / n of the n that the card names."""
    card = project_path(train_chooser.NAME) / "README.md"
    (line,) = re.findall(r"^\| n, exercises \| \| (.+) \|$", card.read_text("utf-8"), re.MULTILINE)
    columns = ("none", "1", "5", "mixed", "20", "tells", "one", "say")
    counts = dict(zip(columns, map(int, line.split(" | ")), strict=True))
    notes = json.loads(card.with_name("training.json").read_text("utf-8"))
    for row in [*notes["log"], *notes["reading"]["log"]]:
        for name in counts.keys() & row.keys():
            right = round(row[name] * counts[name])
            assert row[name] == pytest.approx(right / counts[name], abs=0.0005)


def test_a_training_that_was_cut_goes_on_and_ends_with_the_same_weights(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught(tmp_path / "whole")
    kept = torch.load(work / "state.pt", weights_only=True)
    (work / "state.pt").unlink()
    steps: list[int] = []
    answered = train_chooser.answered

    def cut(model: Any, processor: Any, batch: list[Exercise], seen: Any) -> Any:
        if len(batch) == 4:  # a step's, and not an examination's
            steps.append(len(steps) + 1)
            if len(steps) == 4:
                raise KeyboardInterrupt
        return answered(model, processor, batch, seen)

    monkeypatch.setattr(train_chooser, "answered", cut)
    with pytest.raises(KeyboardInterrupt):
        taught(tmp_path / "again")
    assert [row["step"] for row in log_of(tmp_path / "again")] == [2]
    taught(tmp_path / "again")
    assert len(steps) == 4 + 4  # three whole steps and a cut one, then what came after two
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "again")]
    whole, again = (load_file(file) for file in files)
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    model = torch.load(work / "state.pt", weights_only=True)["model"]  # in full precision
    assert all(torch.equal(kept["model"][name], model[name]) for name in model)
    assert log_of(tmp_path / "whole") == log_of(tmp_path / "again")
    assert [row["step"] for row in log_of(tmp_path / "again")] == [2, 4, 6]
