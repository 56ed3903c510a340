"""Train the demo's fused retriever: `python -m vrag_kit.fieldguide.training.train_fused`.

A small MagicLens head over the frozen towers of field-guide-clip-64 learns to place a
picture that hides the answer, and the question about it, near the pictures that show it.
The picture's token is made of a map in the middle of its tower: the tower's last vector
was trained to tell parts apart, and keeps little of what tells species apart.
Topics are invented anew; none of an edition is among them, nor any known species.
Vectors and the last state of a training stay in runs/training, so that one which was
cut goes on where it was.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from vrag_kit.fieldguide.scenarios.table import SCENARIOS
from vrag_kit.fieldguide.training.cards import write_fused_card
from vrag_kit.fieldguide.training.fused_topics import STAGE, Topics, topics_of
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.steps import TRAINING, WEIGHTS, Clock, write_notes
from vrag_kit.fieldguide.training.train_retriever import matching_loss
from vrag_kit.fieldguide.traits import stream
from vrag_kit.files import write_file
from vrag_kit.retrieval.magiclens_head import HeadSizes, MagicLensHead
from vrag_kit.retrieval.openclip import load_open_clip

NAME, BASE = "field-guide-fused", "field-guide-clip-64"
EVERY = 200  # steps between two rows of the log, and two states


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that determines a training."""

    seed: str = "fused"
    topics: int = 18_000
    examples: int = 3  # of each
    held_out: int = 216  # topics of the validation
    pool: int = 10  # their examples, of which the first five are ground truth
    batch: int = 384  # topics a step, each with two of its examples
    steps: int = 2400
    learning_rate: float = 1e-3
    dropped: float = 0.1  # share of a picture's components that a step does not see


SIZES = HeadSizes(width=128, layers=2, heads=4, hidden=192, pooled=256, stage=STAGE, channels=384)


class Trained(torch.nn.Module):
    """The head, and the scale of the cosines that it is trained with."""

    def __init__(self) -> None:
        super().__init__()
        self.head = MagicLensHead(SIZES)
        self.scale = torch.nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def unit(self, pictures: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """(n, d) and (n, d) → (n, d), unit length."""
        return F.normalize(self.head(pictures, texts), dim=-1)


def step_loss(model: Trained, batch: Topics, empty: torch.Tensor) -> torch.Tensor:
    """Query → example and example → query loss.

    `empty` is the vector of an empty text, shape (d,). Topics of one place are each
    other's, as nothing in their pictures tells them apart.
    """
    n_examples = batch.examples.shape[1]
    documents = batch.examples.flatten(0, 1)
    asking = model.unit(batch.queries, batch.texts)
    found = model.unit(documents, empty.expand(len(documents), -1))
    scores = model.scale.exp() * asking @ found.T
    own = torch.eye(len(asking), dtype=torch.bool)
    same = (batch.places[:, None] == batch.places) & (batch.places >= 0)
    clue = (own | same).repeat_interleave(n_examples, dim=1)
    none = torch.zeros_like(clue)
    back = matching_loss(scores.T, clue.T, none.T)
    return matching_loss(scores, clue, none) + 0.5 * back


@torch.inference_mode()
def validate(model: Trained, held_out: Topics, empty: torch.Tensor) -> dict[str, float]:
    """hit@5 by scenario and over all, among the examples of all held-out topics; the
    ground truth of a topic is its first five.
    """
    documents = held_out.examples.flatten(0, 1)
    found = model.unit(documents, empty.expand(len(documents), -1))
    return hits(model.unit(held_out.queries, held_out.texts), found, held_out)


def hits(asking: torch.Tensor, found: torch.Tensor, topics: Topics) -> dict[str, float]:
    """hit@5 by scenario, and as "all" over all topics."""
    n, pool = topics.examples.shape[:2]
    best = (asking @ found.T).topk(5, dim=1).indices
    of_topic, place = best // pool, best % pool
    hit = ((of_topic == torch.arange(n)[:, None]) & (place < 5)).any(1).float()
    shares = {"all": round(float(hit.mean()), 4)}
    for number, scenario in enumerate(SCENARIOS):
        shares[scenario] = round(float(hit[number :: len(SCENARIOS)].mean()), 4)
    return shares


def train(recipe: Recipe, folder: Path, work: Path) -> None:
    """Train the head and write config.json, model.safetensors in half precision,
    `training.json` and the card into `folder`; goes on from what lies in `work`.
    """
    from safetensors.torch import save

    towers = load_open_clip(BASE)
    with torch.inference_mode():
        empty = towers.text_features([""])[0].clone()
    topics = topics_of(towers, recipe.seed, recipe.topics, recipe.examples, work)
    name = f"{recipe.seed}-validation"
    drawn = topics_of(towers, name, recipe.held_out, recipe.pool, work)
    held_out = drawn.floats()
    model, log = learn(recipe, topics, held_out, empty, work)
    weights = {key: value.half().contiguous() for key, value in model.head.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "magiclens", "base": BASE, **asdict(SIZES)}
    write_file(folder / "config.json", json.dumps(config, indent=2) + "\n")
    write_file(folder / "model.safetensors", save(weights))
    notes = {
        "name": NAME,
        "recipe": asdict(recipe),
        "sizes": asdict(SIZES),
        "torch": torch.__version__,
        "log": log,
    }
    write_notes(notes, folder)
    write_fused_card(folder)


def learn(
    recipe: Recipe, topics: Topics, held_out: Topics, empty: torch.Tensor, work: Path
) -> tuple[Trained, list[dict[str, float]]]:
    """The trained head and the log, a row every `EVERY` steps, after which the state is
    kept in `work`.
    """
    torch.manual_seed(int(stream(recipe.seed, "weights").integers(2**31)))
    model = Trained()
    _standardise(model.head, topics)
    optimizer = adamw(model.parameters(), recipe.learning_rate, weight_decay=0.05)
    learner = Learner(model, optimizer, partial(rise_and_fall, steps=recipe.steps, rise=100))
    state = work / "state.pt"
    kept = learner.go_on(state, asdict(recipe))
    log: list[dict[str, float]] = kept["log"] if kept else []
    clock = Clock(log[-1]["minutes"] if log else 0.0)
    for step in range(int(log[-1]["step"]) + 1 if log else 1, recipe.steps + 1):
        batch = _batch(recipe, topics, step)
        clock.take(learner.step([step_loss(model.train(), batch, empty)]))
        model.scale.data.clamp_(0, math.log(100))
        if step % EVERY == 0 or step == recipe.steps:
            log.append(clock.row(step, validate(model.eval(), held_out, empty), digits=4))
            learner.keep(state, {"recipe": asdict(recipe), "log": log})
    return model, log


def _standardise(head: MagicLensHead, topics: Topics) -> None:
    """Let the map of pictures begin with components of mean 0 and variance 1."""
    seen = topics.examples[:2000].flatten(0, 1).float()
    weight, bias = head.of_map.parameters()
    weight.data /= seen.std(0) + 1e-3
    bias.data = -weight.data @ seen.mean(0)


def _batch(recipe: Recipe, topics: Topics, step: int) -> Topics:
    """The topics of a step, two examples of each, and components of the pictures left
    out; the same step gives the same.
    """
    rng = stream(recipe.seed, "step", step)
    rows = torch.from_numpy(rng.choice(len(topics.places), recipe.batch, replace=False))
    two = rng.choice(recipe.examples, 2, replace=False).tolist()
    torch.manual_seed(int(rng.integers(2**31)))
    queries = F.dropout(topics.queries[rows].float(), recipe.dropped)
    examples = F.dropout(topics.examples[rows][:, two].float(), recipe.dropped)
    return Topics(queries, topics.texts[rows].float(), examples, topics.places[rows])


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(Recipe(), WEIGHTS / NAME, TRAINING / "fused")
