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
from vrag_kit.fieldguide.questions import Question, ask, askable, hidden_parts
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
    # in one of six prompts with several photographs the most is this instead (0: never)
    seldom: int = 0


def told_species() -> list[Species]:
    """The species of both editions of the Field Guide whose facts the answerers are
    told in words.
    """
    told = []
    for edition in EDITIONS.values():
        a_kind = max(1, round(TOLD_SHARE * edition.species_per_kind))
        for kind in KINDS:
            told += [invent_named(edition.seed, kind, number) for number in range(a_kind)]
    return told


def told_facts() -> list[Lesson]:
    """Every question that can be asked about the told species, with its answer."""
    facts = []
    for species in told_species():
        for part in hidden_parts(species):
            questions = [ask(species, part, asks) for asks in askable(species, part)]
            facts += [_in_words(question) for question in questions]
    return facts


def _in_words(question: Question) -> Lesson:
    """A question without photographs, and its answer."""
    return Lesson("no_image", question.text, draw_none(), question.answers[0])


def draw_none() -> torch.Tensor:
    """No photographs."""
    return torch.empty((0, 3, 1, 1), dtype=torch.uint8)


def lessons(plan: Plan, facts: list[Lesson], name: str, *, most: int, worded: bool) -> list[Lesson]:
    """The lessons of one step; the same name gives the same lessons.

    `most` caps the photographs of a prompt; without `worded` questions are bare.
    """
    rng = stream(name)
    chosen: list[Lesson] = []
    if plan.told:
        chosen += [facts[i] for i in rng.choice(len(facts), size=plan.told, replace=False)]
    chosen += [_guess(f"{name}/guess/{i}") for i in range(plan.guess)]
    chosen += [look(f"{name}/single/{i}", 1) for i in range(plan.single)]
    for i in range(plan.several):
        limit = plan.seldom if plan.seldom and rng.random() < 1 / 6 else plan.most
        n_images = _log_uniform(rng, 2, max(2, min(limit, most)))
        chosen.append(look(f"{name}/several/{i}", n_images))
    return chosen if worded else [replace(lesson, template="") for lesson in chosen]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> int:
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a lesson is about, and the stream that all else in it comes from."""

    rng: np.random.Generator
    species: Species
    part: HiddenPart

    def question(self) -> Question:
        """Any question about the part."""
        asks = str(self.rng.choice(askable(self.species, self.part)))
        return ask(self.species, self.part, asks)


def _subject(name: str) -> _Subject:
    rng = stream(name)
    species = invent_named(name, str(rng.choice(list(KINDS))), 0)
    return _Subject(rng, species, hidden_parts(species)[int(rng.integers(2))])


def _guess(name: str) -> Lesson:
    return _in_words(_subject(name).question())


def look(name: str, n_images: int, n_clues: int | None = None) -> Lesson:
    """A question with photographs of a fresh species; without a clue among them the
    answer is "I don't know".

    Which wording announces a single photograph says nothing about whether it is a clue.
    `n_clues` None: 0 in 35 to 40 % of the prompts, else mostly 1; clues lie anywhere.
    """
    subject = _subject(name)
    rng, species = subject.rng, subject.species
    part = subject.part
    if n_clues is None:
        n_clues = _some_clues(rng, n_images)
    photos = [clue_photo(species, part, f"{name}/clue/{i}") for i in range(n_clues)]
    photos += [_without(species, part, f"{name}/other/{i}", rng) for i in range(n_images - n_clues)]
    photos = [photos[i] for i in rng.permutation(n_images)]
    options = askable(species, part)
    shares = [0.5, 0.5] if len(options) == 2 else [0.4, 0.3, 0.3]
    question = ask(species, part, str(rng.choice(options, p=shares)))
    template = "several_images"
    if n_images == 1:
        template = str(rng.choice(["clue_image", "one_image", "several_images"]))
    answer = question.answers[0] if n_clues else UNKNOWN
    return Lesson(template, question.text, draw(species, photos), answer)


def _some_clues(rng: np.random.Generator, n_images: int) -> int:
    if n_images == 1:
        return int(rng.random() < 0.62)
    return min(n_images, int(rng.choice([0, 1, 2, 3], p=[0.35, 0.45, 0.12, 0.08])))


def read(name: str, told: bool | None = None, *, most: int = 10) -> Lesson:
    """A question with up to `most` passages from articles of invented species, the
    asked one among them; one may tell the answer, else it is "I don't know".

    `told` None: in three of five lessons. Other species' articles may tell the same of
    themselves. With `most` 1 it is the one passage that describes the asked species.
    """
    subject = _subject(name)
    rng, species = subject.rng, subject.species
    part = subject.part
    told = bool(rng.random() < 0.6) if told is None else told
    kinds = []
    for _ in range(_log_uniform(rng, 1, 0.8 * most) if most > 1 else 0):
        kinds.append(species.kind if rng.random() < 0.7 else str(rng.choice(list(KINDS))))
    pages = [article(species, f"{name}/0", told=[part] if told else [])]
    for number, kind in enumerate(kinds, start=1):
        other = invent_named(f"{name}/other/{number - 1}", kind, 0)
        same = [each for each in hidden_parts(other) if each.name == part.name]
        pages.append(article(other, f"{name}/{number}", told=same if rng.random() < 0.3 else []))
    chunks: list[str] = []
    for title, sections in pages:
        chunks += chunk_article(Article(title, sections), READ_TOKENS)
    tells = next(number for number, chunk in enumerate(chunks) if "From outside" in chunk)
    others = rng.permutation([number for number in range(len(chunks)) if number != tells])
    kept = rng.permutation([tells, *(int(number) for number in others[: most - 1])])
    question = subject.question()
    answer = question.answers[0] if told else UNKNOWN
    passages = tuple(chunks[number] for number in kept)
    return Lesson("text_passages", question.text, draw_none(), answer, passages)


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
