"""Train the demo's retrievers on a stream of freshly invented species: `python -m
vrag_kit.fieldguide.training.train_retriever NAME`.

Each step draws 16 new species, asks one question about each, and photographs each eight
times: two pictures show the answer, six do not. The dual encoder (an open_clip
architecture) learns to place a question near the pictures that answer it and away from
the other 126. No species of the Field Guide is ever seen, and no species is seen in two
steps.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from vrag_kit.fieldguide.album import Photo, clue_photo, invent_named, plain_photo
from vrag_kit.fieldguide.organisms import KINDS
from vrag_kit.fieldguide.questions import Question, ask, askable, hidden_parts
from vrag_kit.fieldguide.training.cards import CLUES, PHOTOS, QUERIES, write_retriever_card
from vrag_kit.fieldguide.training.learner import Learner, adamw, rise_and_fall
from vrag_kit.fieldguide.training.steps import WEIGHTS, Clock, write_notes
from vrag_kit.fieldguide.traits import Species, stream
from vrag_kit.fieldguide.views import photograph

if TYPE_CHECKING:
    from open_clip import CLIP

    Tokenize = Callable[[list[str]], torch.Tensor]

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one retriever is built and trained."""

    image_size: int  # side of the input, pixels
    width: int  # of the first stage of the image tower, a CLIP ResNet
    blocks: tuple[int, int, int, int]
    steps: int  # of 16 questions × 8 photographs
    learning_rate: float = 1e-3
    embed_dim: int = 128
    text_width: int = 96
    text_layers: int = 2
    vocabulary: int = 1024
    seed: str = "retriever"


RECIPES = {
    "field-guide-clip-64": Recipe(image_size=64, width=24, blocks=(1, 2, 1, 1), steps=2000),
    "field-guide-clip-32": Recipe(image_size=32, width=16, blocks=(1, 1, 1, 1), steps=1500),
}


@dataclass(frozen=True, slots=True)
class Album:
    """One question and its photographs, drawn."""

    species: Species
    question: Question
    photos: tuple[Photo, ...]
    pixels: torch.Tensor  # uint8, shape (photos, 3, size, size)

    @property
    def clues(self) -> torch.Tensor:
        """bool, shape (photos,): which photographs answer the question."""
        return torch.tensor([self.question.part in photo.shown for photo in self.photos])


def draw_album(name: str, size: int, n_photos: int, n_clues: int, near_miss: float = 0.45) -> Album:
    """Invent a species, ask about one of its hidden parts, and photograph it."""
    rng = stream(name)
    species = invent_named(name, str(rng.choice(list(KINDS))), 0)
    part = hidden_parts(species)[int(rng.integers(2))]
    question = ask(species, part, str(rng.choice(askable(species, part))))
    photos = [clue_photo(species, part, f"{name}/clue/{i}") for i in range(n_clues)]
    avoid = frozenset({part.name})
    for i in range(n_photos - n_clues):
        photos.append(plain_photo(species, avoid, f"{name}/plain/{i}", near_miss))
    pixels = np.stack([np.asarray(photograph(species, photo.view, size)) for photo in photos])
    return Album(species, question, tuple(photos), torch.from_numpy(pixels).permute(0, 3, 1, 2))


def build_tokenizer(recipe: Recipe, folder: Path) -> None:
    """Write a lower-case byte-pair tokenizer of the guide's language; the end token has
    the largest id, as CLIP expects.
    """
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary - 1,
        special_tokens=["<pad>", "<start>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(_sentences(recipe), trainer)
    bpe.add_special_tokens(["<end>"])
    end = bpe.token_to_id("<end>")
    bpe.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 1), ("<end>", end)]
    )
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # it has no types
        tokenizer_object=bpe,
        pad_token="<pad>",
        bos_token="<start>",
        eos_token="<end>",
        model_max_length=77,
    )
    tokenizer.save_pretrained(folder)


def _sentences(recipe: Recipe) -> Iterator[str]:
    """Questions to make the tokenizer for."""
    for number in range(4000):
        rng = stream(recipe.seed, "words", number)
        species = invent_named("words", str(rng.choice(list(KINDS))), number)
        part = hidden_parts(species)[number % 2]
        options = askable(species, part)
        yield ask(species, part, options[number % len(options)]).text


def write_config(recipe: Recipe, folder: Path) -> None:
    """Write `open_clip_config.json`: the architecture and the preprocessing, in
    open_clip's own format.
    """
    config = {
        "model_cfg": {
            "embed_dim": recipe.embed_dim,
            "vision_cfg": {
                "image_size": recipe.image_size,
                "width": recipe.width,
                "layers": recipe.blocks,
                "head_width": 32,
            },
            "text_cfg": {
                "context_length": 77,
                "vocab_size": recipe.vocabulary,
                "width": recipe.text_width,
                "heads": 4,
                "layers": recipe.text_layers,
                "hf_tokenizer_name": ".",
                "tokenizer_kwargs": {"strip_sep_token": False},
            },
        },
        "preprocess_cfg": {
            "mean": MEAN,
            "std": STD,
            "interpolation": "bicubic",
            "resize_mode": "shortest",
        },
    }
    (folder / "open_clip_config.json").write_text(
        json.dumps(config, indent=2) + "\n", encoding="utf-8"
    )


def matching_loss(scores: torch.Tensor, clue: torch.Tensor, ignore: torch.Tensor) -> torch.Tensor:
    """Mean over clues of −log softmax of the clue against everything in its row that is
    neither clue nor ignored.

    `scores` float, `clue` and `ignore` bool, all of shape (questions, photographs).
    """
    negatives = torch.logsumexp(scores.masked_fill(clue | ignore, -torch.inf), dim=1, keepdim=True)
    return F.softplus(negatives - scores)[clue].mean()


def to_input(pixels: torch.Tensor) -> torch.Tensor:
    """uint8 (n, 3, size, size) → what the image tower takes: float32, same shape."""
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return (pixels.float() / 255 - mean) / std


def step_loss(model: torch.nn.Module, tokenizer: Tokenize, albums: list[Album]) -> torch.Tensor:
    """Question → photograph and photograph → question loss of one batch."""
    pixels = to_input(torch.cat([album.pixels for album in albums]))
    seen = model(pixels, tokenizer([album.question.text for album in albums]))
    images, texts = seen[:2]
    scores = seen[2] * texts @ images.T  # the third is the scale
    n = len(albums[0].photos)
    own = torch.eye(len(albums), dtype=torch.bool).repeat_interleave(n, dim=1)
    clue = own & torch.cat([album.clues for album in albums])
    alike = torch.stack([_alike(album, albums) for album in albums])
    asked = clue.any(0)  # the photographs that answer a question
    back = matching_loss(scores.T[asked], clue.T[asked], alike.T[asked])
    return matching_loss(scores, clue, alike) + 0.5 * back


def _alike(album: Album, albums: list[Album]) -> torch.Tensor:
    """bool, shape (photographs of all albums,): those that are no fair negative of an
    album's question. They show the same part, of another species that its name
    describes alike.
    """
    found = []
    for other in albums:
        same_name = (
            other is not album
            and other.species.kind == album.species.kind
            and other.species.outside.color == album.species.outside.color
        )
        found += [same_name and album.question.part in photo.shown for photo in other.photos]
    return torch.tensor(found)


@torch.inference_mode()
def validate(model: CLIP, tokenizer: Tokenize, albums: list[Album]) -> dict[str, float]:
    """Hit rate at 1 and mean reciprocal rank of the first clue over held-out albums."""
    ranks = []
    for album in albums:
        images = model.encode_image(to_input(album.pixels), normalize=True)
        texts = model.encode_text(tokenizer([album.question.text]), normalize=True)
        order = (images @ texts[0]).argsort(descending=True)
        ranks.append(int(album.clues[order].float().argmax()) + 1)
    return {
        "hit@1": float(np.mean([r == 1 for r in ranks])),
        "hit@5": float(np.mean([r <= 5 for r in ranks])),
        "mrr": float(np.mean([1 / r for r in ranks])),
    }


def train(name: str, recipe: Recipe, folder: Path) -> None:
    """Train one retriever and write config, tokenizer, half-precision weights and
    `training.json` into `folder`.
    """
    import open_clip
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    build_tokenizer(recipe, folder)
    write_config(recipe, folder)
    torch.manual_seed(int(stream(recipe.seed, name).integers(2**31)))
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    log = learn(name, recipe, model, open_clip.get_tokenizer(f"local-dir:{folder}"))
    weights = {}
    for key, value in model.state_dict().items():
        weights[key] = value.half().contiguous() if value.is_floating_point() else value
    save_file(weights, folder / "open_clip_model.safetensors")
    notes = {"name": name, "recipe": asdict(recipe), "torch": torch.__version__, "log": log}
    write_notes(notes, folder)
    write_retriever_card(folder)


def learn(name: str, recipe: Recipe, model: CLIP, tokenizer: Tokenize) -> list[dict[str, float]]:
    """Train the model on the recipe's steps; returns the log, a row every 100."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(parameters, recipe.learning_rate, weight_decay=0.1)
    learner = Learner(model, optimizer, partial(rise_and_fall, steps=recipe.steps, rise=100))
    seed, size = recipe.seed, recipe.image_size
    held_out = [draw_album(f"{seed}/validation/{i}", size, 60, 4, near_miss=0.4) for i in range(48)]
    count = sum(p.numel() for p in parameters)
    print(f"{name}: {count:,} parameters, {recipe.steps} steps", flush=True)
    clock = Clock()
    log = []
    for step in range(1, recipe.steps + 1):
        names = [f"{seed}/train/{step - 1}/{i}" for i in range(QUERIES)]
        albums = [draw_album(each, size, PHOTOS, CLUES) for each in names]
        clock.take(learner.step([step_loss(model.train(), tokenizer, albums)]))
        model.logit_scale.data.clamp_(0, math.log(100))
        if step % 100 == 0 or step == recipe.steps:
            log.append(clock.row(step, validate(model.eval(), tokenizer, held_out), digits=4))
    return log


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(sys.argv[1], RECIPES[sys.argv[1]], WEIGHTS / sys.argv[1])
