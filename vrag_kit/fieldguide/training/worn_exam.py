"""How well worn pictures are matched to usual ones of held-out species, and from which
similarity on two pictures are taken to show the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.training.tower import to_input
from vrag_kit.fieldguide.training.worn_stock import N_WORN, SHARD, individual, read_shard
from vrag_kit.fieldguide.traits import COLORS, PATTERNS, Species
from vrag_kit.fieldguide.worn.entities import look_words
from vrag_kit.fieldguide.worn.pictures import QUALITIES

HEADS = {"kind": len(KINDS), "color": len(COLORS), "pattern": len(PATTERNS), "second": len(COLORS)}
"""What is named beside; the second colour of what is not plain."""
KEPT = 0.9
"""Share of queries whose right picture is to lie above the threshold."""
FOUND = 10
"""Usual pictures that a search brings, of which the threshold is chosen."""


class WornExam:
    """Held-out species with distinct looks: worn pictures ask, usual ones are found."""

    def __init__(self, seed: str, shards: int, folder: Path) -> None:
        self.species: list[Species] = []
        worn: list[np.ndarray] = []
        usual: list[np.ndarray] = []
        qualities: list[np.ndarray] = []
        seen: set[str] = set()
        for shard in range(shards):
            file = read_shard(folder, shard)
            for place in range(SHARD):
                species = individual(seed, shard * SHARD + place)
                look = look_words(species.kind, species.outside)
                if look not in seen:
                    seen.add(look)
                    self.species.append(species)
                    worn.append(file.pixels[place, :N_WORN])
                    usual.append(file.pixels[place, N_WORN])
                    qualities.append(file.qualities[place])
        self.worn = torch.from_numpy(np.concatenate(worn)).permute(0, 3, 1, 2)
        self.usual = torch.from_numpy(np.stack(usual)).permute(0, 3, 1, 2)
        self.qualities = torch.from_numpy(np.concatenate(qualities))


def numbers_of(species: Species) -> tuple[int, int, int, int]:
    """Kind, colour, pattern and second colour as `HEADS` count them; −1 without one."""
    look, colors = species.outside, list(COLORS)
    second = colors.index(look.second) if look.pattern != "plain" else -1
    kind = list(KINDS).index(species.kind)
    return kind, colors.index(look.color), PATTERNS.index(look.pattern), second


@torch.inference_mode()
def examined(model: Any, exam: WornExam) -> dict[str, float]:
    """Shares in [0, 1]: recall at 1 and `FOUND` over all usual pictures, recall at 1 by
    quality; right names of what worn pictures show; and the threshold with precision and
    recall of what it keeps of the first `FOUND`.
    """
    asking, names = _seen(model, exam.worn)
    found, _ = _seen(model, exam.usual)
    own = torch.arange(len(found)).repeat_interleave(N_WORN)
    scores = asking @ found.T
    best, order = scores.topk(FOUND, dim=1)
    right = order == own[:, None]
    shares = {"recall@1": _share(right[:, 0]), f"recall@{FOUND}": _share(right.any(1))}
    for number, quality in enumerate(QUALITIES):
        shares[quality] = _share(right[exam.qualities == number, 0])
    truth = torch.tensor([numbers_of(each) for each in exam.species])
    truth = truth.repeat_interleave(N_WORN, dim=0)
    for place, name in enumerate(HEADS):
        told = truth[:, place] >= 0
        shares[name] = _share((names[place] == truth[:, place])[told])
    return shares | threshold(best, right)


def threshold(scores: torch.Tensor, right: torch.Tensor) -> dict[str, float]:
    """The highest similarity above which `KEPT` of all right ones still lie (0 where none
    does), with the precision of all that lies above it and the share of right ones.

    Both shaped (queries, found), at most one of a row right. An answerer looks again at
    what it is shown, but not at what is kept from it: so the right ones come first.
    """
    best = {"threshold": 0.0, "precision": _share(right), "kept": _share(right.any(1))}
    for edge in torch.arange(0.3, 0.99, 0.01).tolist():
        above = scores > edge
        kept = float((above & right).sum()) / len(scores)
        if kept >= KEPT:
            precision = _share(right[above])
            best = {"threshold": round(edge, 2), "precision": precision, "kept": round(kept, 4)}
    return best


def _seen(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Unit vectors, and the number named by each head."""
    vectors, named = [], []
    for start in range(0, len(pixels), 128):
        some, heads = model(to_input(pixels[start : start + 128]))
        vectors.append(some)
        named.append(torch.stack([logits.argmax(1) for logits in heads]))
    return torch.cat(vectors), list(torch.cat(named, dim=1))


def _share(right: torch.Tensor) -> float:
    return round(float(right.float().mean()), 4)
