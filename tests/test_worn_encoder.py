"""The demo's encoder of worn pictures: its weights, and a training that was cut goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import WEIGHTS
from safetensors.torch import load_file

from vrag_kit.fieldguide.training import train_worn_encoder
from vrag_kit.fieldguide.training.train_worn_encoder import NAME, Recipe, train
from vrag_kit.fieldguide.training.worn_stock import SHARD, individual
from vrag_kit.fieldguide.worn.entities import look_words
from vrag_kit.fieldguide.worn.pictures import QUALITIES, usual_picture, worn_picture
from vrag_kit.retrieval import load_encoder

TINY = Recipe(seed="tiny", shards=1, exam_shards=1, clusters=2, steps=4)


def pixels(image: object) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


SPECIES = [individual("unseen", number) for number in range(24)]


@pytest.fixture(scope="module")
def pictures() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Worn and usual ones of species that no training saw."""
    worn, usual = [], []
    for i, each in enumerate(SPECIES):
        worn.append(pixels(worn_picture(each, QUALITIES[i % 6], f"unseen/worn/{i}")[0]))
        usual.append(pixels(usual_picture(each, f"unseen/usual/{i}", 96)))
    return worn, usual


def found(model: str, pictures: tuple[list[torch.Tensor], list[torch.Tensor]]) -> float:
    """Share of worn pictures whose nearest usual one, among those of the species and of
    three easily taken for each, is their own.
    """
    looks = [look_words(each.kind, each.outside) for each in SPECIES]
    encoder = load_encoder({"model": str(WEIGHTS / model), "query": "image"})
    vectors = []
    for some in pictures:
        with torch.inference_mode():
            rows = encoder.picture_features([encoder.pixels(picture) for picture in some])
        vectors.append(torch.nn.functional.normalize(rows.float(), dim=-1))
    best = (vectors[0] @ vectors[1].T).argmax(1).tolist()
    return float(np.mean([looks[place] == looks[own] for own, place in enumerate(best)]))


def test_the_bundled_encoder_is_small_and_tells_look_alikes_apart_in_worn_pictures(
    pictures: tuple[list[torch.Tensor], list[torch.Tensor]],
) -> None:
    files = [file for file in (WEIGHTS / NAME).iterdir() if file.suffix != ".md"]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    share = found(NAME, pictures)
    assert share > 0.6
    assert share > found("field-guide-clip-64", pictures) + 0.3


def test_species_come_in_clusters_that_look_alike_but_never_the_same() -> None:
    for cluster in range(0, 100, 4):
        every = [individual("tiny", cluster + place) for place in range(4)]
        looks = {look_words(each.kind, each.outside) for each in every}
        assert len(looks) == 4
        assert len({each.build for each in every}) == 1


def test_a_training_that_was_cut_goes_on_and_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_worn_encoder, "EVERY", 2)
    monkeypatch.setattr("vrag_kit.fieldguide.training.worn_stock.SHARD", 12)
    monkeypatch.setattr("vrag_kit.fieldguide.training.worn_exam.SHARD", 12)
    monkeypatch.setattr(train_worn_encoder, "SHARD", 12)
    assert SHARD == 100
    train(TINY, tmp_path / "whole", tmp_path / "work")
    (tmp_path / "work" / "encoder.pt").unlink()
    taken: list[int] = []
    batch = train_worn_encoder.Stock.batch

    def cut(stock: train_worn_encoder.Stock, step: int) -> object:
        taken.append(step)
        if taken == [0, 1, 2]:
            raise KeyboardInterrupt
        return batch(stock, step)

    monkeypatch.setattr(train_worn_encoder.Stock, "batch", cut)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "again", tmp_path / "work")
    train(replace(TINY), tmp_path / "again", tmp_path / "work")
    assert taken == [0, 1, 2, 2, 3]  # after the second step its state was kept
    whole, again = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "again"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert f"# {NAME}" in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")
