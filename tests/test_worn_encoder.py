"""The demo's encoder of worn pictures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from conftest import WEIGHTS

from vrag_kit.retrieval import load_encoder
from vrag_kit.synthetic.crag_mm.entities import EntityWorld, describe_appearance
from vrag_kit.synthetic.crag_mm.images import QUALITIES, egocentric_image, reference_image
from vrag_kit.synthetic.world.traits import Species

NAME = "field-guide-egocentric"


def pixels(image: object) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def six_clusters() -> Iterator[Species]:
    """Six species, each with three that are easily taken for it."""
    for number in range(6):
        world = EntityWorld(f"unseen/{number}")
        pictured = world.new_entity()
        near = [world.new_confusable(pictured) for _ in range(3)]
        yield from (each.species for each in (pictured, *near) if each)


SPECIES = list(six_clusters())


@pytest.fixture(scope="module")
def pictures() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Worn and usual ones of species that no training saw."""
    worn, usual = [], []
    for i, each in enumerate(SPECIES):
        worn.append(pixels(egocentric_image(each, QUALITIES[i % 6], f"unseen/worn/{i}")[0]))
        usual.append(pixels(reference_image(each, f"unseen/usual/{i}", 96)))
    return worn, usual


def found(model: str, pictures: tuple[list[torch.Tensor], list[torch.Tensor]]) -> float:
    """Share of worn pictures whose nearest usual one, among those of the species and of
    three easily taken for each, is their own.
    """
    looks = [describe_appearance(each.kind, each.outside) for each in SPECIES]
    encoder = load_encoder(str(WEIGHTS / model)).model
    vectors = []
    for some in pictures:
        with torch.inference_mode():
            rows = encoder.image_features([encoder.pixels(picture) for picture in some])
        vectors.append(torch.nn.functional.normalize(rows.float(), dim=-1))
    best = (vectors[0] @ vectors[1].T).argmax(1).tolist()
    return float(np.mean([looks[place] == looks[own] for own, place in enumerate(best)]))


@pytest.mark.slow
def test_the_bundled_encoder_is_small_and_tells_look_alikes_apart_in_worn_pictures(
    pictures: tuple[list[torch.Tensor], list[torch.Tensor]],
) -> None:
    files = [file for file in (WEIGHTS / NAME).iterdir() if file.suffix != ".md"]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    share = found(NAME, pictures)
    assert share > 0.6
    assert share > found("field-guide-clip-64", pictures) + 0.3
