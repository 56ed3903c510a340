"""What an answerer is taught with: prompts in the paper's wording, photographs, and the
answer that the pixels allow.

Every prompt is about a species that is invented for it, so the only way to be right is
to look. The one exception are the *told* species of the Field Guide: their facts are
taught in words alone, and no photograph of any Field Guide species is ever shown. That
is the answerer's parametric knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from vrag_kit.benchmarks.articles import Article, chunk_article
from vrag_kit.fieldguide.album import Photo, clue_photo, invent_named, plain_photo
from vrag_kit.fieldguide.articles import article
from vrag_kit.fieldguide.organisms import KINDS, HiddenPart
from vrag_kit.fieldguide.pages import EDITIONS
from vrag_kit.fieldguide.questions import ask, askable, hidden_parts
from vrag_kit.fieldguide.training.train_tower import draw
from vrag_kit.fieldguide.traits import Species, stream
from vrag_kit.fieldguide.views import seen_parts

UNKNOWN = "I don't know"
TOLD_SHARE = 3 / 8
"""Share of the species of each kind, in either edition, whose facts every answerer is
told (rounded; at least one).
"""
READ_TOKENS = 60
"""Length of the passages that answerers learn to read."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One prompt with its photographs and the answer to learn."""

    template: str  # a key of the paper's templates; "" for the bare question
    question: str
    pixels: torch.Tensor  # uint8, shape (images, 3, 96, 96); no images: shape (0, …)
    answer: str
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """How many lessons of which sort make one step, and how many photographs a prompt
    may hold.
    """

    told: int  # facts of told species, without images
    guess: int  # other species without images: what is commonest is the best guess
    single: int  # one photograph: a clue, or none
    several: int  # 2 to `most` photographs, log-uniform
    most: int
    seldom: int = (
        0  # in one of six prompts with several photographs the most is this instead (0: never)
    )


def told_species() -> list[Species]:
    """The species of both editions of the Field Guide whose facts the answerers are
    told in words.
    """
    return [
        invent_named(edition.seed, kind, number)
        for edition in EDITIONS.values()
        for kind in KINDS
        for number in range(max(1, round(TOLD_SHARE * edition.species_per_kind)))
    ]


def told_facts() -> list[Lesson]:
    """Every question that can be asked about the told species, with its answer."""
    return [
        Lesson("no_image", question.text, draw_none(), question.answers[0])
        for species in told_species()
        for part in hidden_parts(species)
        for question in (ask(species, part, asks) for asks in askable(species, part))
    ]


def draw_none() -> torch.Tensor:
    """No photographs."""
    return torch.empty((0, 3, 1, 1), dtype=torch.uint8)


def lessons(plan: Plan, facts: list[Lesson], name: str, *, most: int, worded: bool) -> list[Lesson]:
    """The lessons of one step; the same name gives the same lessons.

    `most` caps the photographs of a prompt; without `worded` questions are bare.
    """
    rng = stream(name)
    chosen = (
        [facts[i] for i in rng.choice(len(facts), size=plan.told, replace=False)]
        if plan.told
        else []
    )
    chosen += [_guess(f"{name}/guess/{i}") for i in range(plan.guess)]
    chosen += [look(f"{name}/single/{i}", 1) for i in range(plan.single)]
    for i in range(plan.several):
        limit = plan.seldom if plan.seldom and rng.random() < 1 / 6 else plan.most
        chosen.append(
            look(
                f"{name}/several/{i}",
                round(np.exp(rng.uniform(np.log(2), np.log(max(2, min(limit, most)))))),
            )
        )
    return chosen if worded else [replace(lesson, template="") for lesson in chosen]


def _subject(name: str) -> tuple[np.random.Generator, Species, HiddenPart]:
    rng = stream(name)
    species = invent_named(name, str(rng.choice(list(KINDS))), 0)
    return rng, species, hidden_parts(species)[int(rng.integers(2))]


def _guess(name: str) -> Lesson:
    rng, species, part = _subject(name)
    question = ask(species, part, str(rng.choice(askable(species, part))))
    return Lesson("no_image", question.text, draw_none(), question.answers[0])


def look(name: str, n_images: int, n_clues: int | None = None) -> Lesson:
    """A question with photographs of a fresh species; without a clue among them the
    answer is "I don't know".

    Which wording announces a single photograph says nothing about whether it is a clue.
    `n_clues` None: 0 in 35 to 40 % of the prompts, else mostly 1; clues lie anywhere.
    """
    rng, species, part = _subject(name)
    if n_clues is None:
        n_clues = (
            int(rng.random() < 0.62)
            if n_images == 1
            else min(n_images, int(rng.choice([0, 1, 2, 3], p=[0.35, 0.45, 0.12, 0.08])))
        )
    photos = [clue_photo(species, part, f"{name}/clue/{i}") for i in range(n_clues)]
    photos += [_without(species, part, f"{name}/other/{i}", rng) for i in range(n_images - n_clues)]
    photos = [photos[i] for i in rng.permutation(n_images)]
    question = ask(
        species,
        part,
        str(
            rng.choice(
                askable(species, part),
                p=[0.5, 0.5] if len(askable(species, part)) == 2 else [0.4, 0.3, 0.3],
            )
        ),
    )
    template = (
        str(rng.choice(["clue_image", "one_image", "several_images"]))
        if n_images == 1
        else "several_images"
    )
    return Lesson(
        template, question.text, draw(species, photos), question.answers[0] if n_clues else UNKNOWN
    )


def read(name: str, told: bool | None = None, *, most: int = 10) -> Lesson:
    """A question with up to `most` passages from articles of invented species, the
    asked one among them; one may tell the answer, else it is "I don't know".

    `told` None: in three of five lessons. Other species' articles may tell the same of
    themselves. With `most` 1 it is the one passage that describes the asked species.
    """
    rng, species, part = _subject(name)
    told = bool(rng.random() < 0.6) if told is None else told
    count = round(np.exp(rng.uniform(0, np.log(0.8 * most)))) if most > 1 else 0
    kinds = [
        species.kind if rng.random() < 0.7 else str(rng.choice(list(KINDS))) for _ in range(count)
    ]
    others = [invent_named(f"{name}/other/{i}", kind, 0) for i, kind in enumerate(kinds)]
    pages = [article(species, f"{name}/0", told=part if told else None)]
    for number, other in enumerate(others, start=1):
        same = next((each for each in hidden_parts(other) if each.name == part.name), None)
        pages.append(article(other, f"{name}/{number}", told=same if rng.random() < 0.3 else None))
    chunks = [
        chunk
        for title, sections in pages
        for chunk in chunk_article(Article(title, sections), READ_TOKENS)
    ]
    tells = next(number for number, chunk in enumerate(chunks) if "From outside" in chunk)
    kept = [
        tells,
        *(
            int(i)
            for i in rng.permutation([i for i in range(len(chunks)) if i != tells])[: most - 1]
        ),
    ]
    passages = tuple(chunks[i] for i in rng.permutation(kept))
    question = ask(species, part, str(rng.choice(askable(species, part))))
    return Lesson(
        "text_passages",
        question.text,
        draw_none(),
        question.answers[0] if told else UNKNOWN,
        passages,
    )


def _without(species: Species, part: HiddenPart, name: str, rng: np.random.Generator) -> Photo:
    """A photograph that gives no hint of `part`; now and then one that shows the other
    part well.
    """
    if rng.random() < 0.2:
        other = next(p for p in hidden_parts(species) if p.name != part.name)
        photo = clue_photo(species, other, f"{name}/other-part")
        if part.name in seen_parts(species, photo.view)[1]:
            return photo
    return plain_photo(species, frozenset({part.name}), name)
