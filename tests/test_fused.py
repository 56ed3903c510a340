"""The demo's fused retriever: its weights, and a training that was cut goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from vrag_kit.fieldguide.scenarios import open_mrag_bench
from vrag_kit.fieldguide.training import train_fused
from vrag_kit.fieldguide.training.train_fused import Recipe, train
from vrag_kit.papers.mrag_bench import retrieval_by_scenario
from vrag_kit.retrieval import search_all
from vrag_kit.workspace import path as project_path

TINY = Recipe(seed="tiny", topics=18, examples=2, held_out=9, pool=5, batch=6, steps=4)


def test_the_bundled_head_is_under_a_megabyte_and_finds_more_than_the_picture_alone(
    tmp_path: Path,
) -> None:
    files = [file for file in project_path("field-guide-fused").iterdir() if file.suffix != ".md"]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    whole = open_mrag_bench("mrag-drawn-small", cache_dir=tmp_path)
    few = whole.subset(list(whole.queries)[::3])
    wanted = set().union(*few.qrels.values(), *few.left_out.values())
    corpus = {doc_id: each for doc_id, each in whole.corpus.items() if doc_id in wanted}
    picture = {"model": "field-guide-clip-64", "query": "image"}
    runs = search_all(
        replace(few, corpus=corpus), ["field-guide-fused", picture], k=5, cache_dir=tmp_path
    )
    table = retrieval_by_scenario(replace(few, corpus=corpus), runs)
    overall = table[(table["scenario"] == "overall") & (table["metric"] == "recall@5")]
    fused, alone = (overall.set_index("retriever")["value"][name] for name in runs)
    assert fused > alone + 0.1


def test_a_training_that_was_cut_goes_on_and_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_fused, "EVERY", 2)
    train(TINY, tmp_path / "whole", tmp_path / "work")
    (tmp_path / "work" / "state.pt").unlink()
    taken: list[int] = []
    batch = train_fused._batch

    def cut(recipe: Recipe, topics: object, step: int) -> object:
        taken.append(step)
        if taken == [1, 2, 3]:
            raise KeyboardInterrupt
        return batch(recipe, topics, step)

    monkeypatch.setattr(train_fused, "_batch", cut)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "again", tmp_path / "work")
    assert not (tmp_path / "again").exists()
    train(TINY, tmp_path / "again", tmp_path / "work")
    assert taken == [1, 2, 3, 3, 4]  # after the second step its state was kept
    whole, again = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "again"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert "# field-guide-fused" in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")
