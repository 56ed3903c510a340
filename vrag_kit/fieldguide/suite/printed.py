"""The four page data sets of the drawn suite, in what they ask and print: pages of an
encyclopedia, figures with options, slides of which some questions need two, bar charts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from PIL import Image

from vrag_kit.fieldguide.articles import HOMES
from vrag_kit.fieldguide.suite import paper
from vrag_kit.fieldguide.suite.facts import FAMILY, HOME, MONTHS, SEASON, Fact
from vrag_kit.fieldguide.suite.world import Life
from vrag_kit.fieldguide.traits import stream

_QUESTIONS = {
    FAMILY: "To which family does {name} belong?",
    HOME: "Where does {name} live?",
    SEASON: "In which season is {name} mostly seen?",
}
_BOTH = "To which family does {name} belong, and in which season is it mostly seen?"
_COUNTED = "How many sightings of {name} were counted in {month}?"
_N_PANELS = 4
Page = TypeVar("Page")


@dataclass(frozen=True, slots=True)
class PrintedPage:
    """One page before it is drawn."""

    page_id: str
    text: str  # all that stands on it
    facts: tuple[Fact, ...]  # that it tells
    draw: Callable[[], Image.Image]
    format: str = "PNG"


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """One question and the pages that answer it."""

    query_id: str
    text: str
    pages: tuple[str, ...]
    answers: tuple[str, ...]  # with options, the letter
    options: tuple[str, ...] = ()
    is_numerical: bool = False


@dataclass(frozen=True, slots=True)
class PageSet:
    """One data set: its pages and what is asked of them."""

    pages: tuple[PrintedPage, ...]
    questions: tuple[PageQuestion, ...]


def named(life: Life) -> str:
    """How questions call a species."""
    return f"the {life.species.common_name} ({life.subject})"


def plan_documents(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """An encyclopedia as a scanner saw it, an article a page; answers are lists."""
    pages = [_article(life, number) for number, life in enumerate(lives, start=1)]
    asked: list[PageQuestion] = []
    for life, page, rng in _chosen(lives, pages, count, seed):
        kinds = [FAMILY, HOME, SEASON] if life.season_told else [FAMILY, HOME]
        kind = str(rng.choice(kinds))
        asked.append(_ask(life, kind, page.page_id, f"page-query-{len(asked):03d}"))
    return PageSet(tuple(pages), tuple(asked))


def plan_figures(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Figures of four species with a legend; of four options a letter is right."""
    pages = []
    for number in range(len(lives) // _N_PANELS):
        shown = lives[number * _N_PANELS : (number + 1) * _N_PANELS]
        pages.append(_figure(shown, number + 1))
    shown_on = [pages[i // _N_PANELS] for i in range(len(pages) * _N_PANELS)]
    asked: list[PageQuestion] = []
    for life, page, rng in _chosen(lives[: len(shown_on)], shown_on, count, seed):
        home = str(rng.choice(life.homes))
        others = [each for each in _every_home() if each not in life.homes]
        options = [home, *(str(each) for each in rng.choice(others, 3, replace=False))]
        order = rng.permutation(len(options))
        lettered = [f"{'ABCD'[place]}) {options[i]}" for place, i in enumerate(order)]
        letter = "ABCD"[int(np.flatnonzero(order == 0)[0])]
        text = _QUESTIONS[HOME].format(name=named(life))
        query_id = f"figure-query-{len(asked):03d}"
        asked.append(PageQuestion(query_id, text, (page.page_id,), (letter,), tuple(lettered)))
    return PageSet(tuple(pages), tuple(asked))


def plan_slides(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Decks of two slides, one a species; of three questions one needs both slides."""
    decks = [(_slide(life, (FAMILY, HOME), 1), _slide(life, (SEASON,), 2)) for life in lives]
    pages: list[PrintedPage] = []
    for deck in decks:
        pages += deck
    asked: list[PageQuestion] = []
    for life, deck, rng in _chosen(lives, decks, count, seed):
        query_id = f"slide-query-{len(asked):03d}"
        if len(asked) % 3 == 2:
            both = tuple(page.page_id for page in deck)
            text = _BOTH.format(name=named(life))
            answer = f"{life.family} and {life.season}"
            asked.append(PageQuestion(query_id, text, both, (answer,)))
            continue
        kind = str(rng.choice([FAMILY, HOME, SEASON]))
        page = deck[1] if kind == SEASON else deck[0]
        asked.append(_ask(life, kind, page.page_id, query_id))
    return PageSet(tuple(pages), tuple(asked))


def plan_plots(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Bar charts of sightings, one a species; answers are numbers."""
    pages = [_plot(life) for life in lives]
    asked: list[PageQuestion] = []
    for life, page, rng in _chosen(lives, pages, count, seed):
        month = MONTHS[int(rng.integers(12))]
        text = _COUNTED.format(name=named(life), month=month)
        number = life.fact(month).value
        query_id = f"plot-query-{len(asked):03d}"
        asked.append(PageQuestion(query_id, text, (page.page_id,), (number,), is_numerical=True))
    return PageSet(tuple(pages), tuple(asked))


PAGE_SETS: dict[str, Callable[[Sequence[Life], int, str], PageSet]] = {
    "VisRAG-ArXiv": plan_figures,
    "VisRAG-Plot": plan_plots,
    "VisRAG-Slide": plan_slides,
    "VisRAG-Doc": plan_documents,
}
"""The paper's name → what plans it from species, number of questions and seed."""


def _chosen(
    lives: Sequence[Life], pages: Sequence[Page], count: int, seed: str
) -> list[tuple[Life, Page, np.random.Generator]]:
    """Whom the questions are about, each as often as the others to within one, and a
    stream for each.
    """
    order = stream(seed, "asked").permutation(len(lives))
    chosen = []
    for number in range(count):
        place = int(order[number % len(lives)])
        chosen.append((lives[place], pages[place], stream(seed, "question", number)))
    return chosen


def _ask(life: Life, kind: str, page_id: str, query_id: str) -> PageQuestion:
    text = _QUESTIONS[kind].format(name=named(life))
    answers: tuple[str, ...] = (life.fact(kind).value,)
    if kind == HOME:
        first, last = life.homes
        answers = (f"{first} and {last}", f"{last} and {first}", first, last)
    return PageQuestion(query_id, text, (page_id,), answers)


def _every_home() -> list[str]:
    homes: list[str] = []
    for some in HOMES.values():
        homes += some
    return homes


def _article(life: Life, number: int) -> PrintedPage:
    def draw() -> Image.Image:
        picture = paper.portrait(life.species, life.name, 120)
        page = paper.encyclopedia_page(life.title, life.sections, picture, number)
        return paper.scanned(page, life.name)

    lines = [life.title]
    for heading, text in life.sections:
        lines += [heading, text] if heading else [text]
    told = life.told_by_article()
    return PrintedPage(f"encyclopedia-{number:03d}", "\n".join(lines), told, draw, "JPEG")


def _figure(lives: Sequence[Life], number: int) -> PrintedPage:
    legend = []
    facts: list[Fact] = []
    for letter, life in zip("abcd", lives, strict=True):
        legend.append(f"({letter}) {life.subject} lives in {life.homes[0]} and {life.homes[1]}.")
        facts += [life.fact(HOME, home) for home in life.homes]

    def draw() -> Image.Image:
        panels = [paper.portrait(life.species, life.name, 160) for life in lives]
        return paper.figure(panels, legend, number)

    text = f"Figure {number}. {' '.join(legend)}"
    return PrintedPage(f"figure-{number:03d}", text, tuple(facts), draw, "JPEG")


def _slide(life: Life, kinds: Sequence[str], number: int) -> PrintedPage:
    """A slide's id has white space, as ids of files have that run together."""
    homes = f"{life.homes[0]} and {life.homes[1]}"
    told = {FAMILY: life.family, HOME: homes, SEASON: life.season}
    lines = [f"{kind.capitalize()}: {told[kind]}" for kind in kinds]
    facts = [life.fact(kind) for kind in kinds]
    if HOME in kinds:
        facts.append(life.fact(HOME, life.homes[1]))
    title = life.species.common_name

    def draw() -> Image.Image:
        picture = paper.portrait(life.species, f"{life.name}/{number}", 124)
        return paper.slide(title, lines, picture, life.species.kind)

    text = "\n".join([title, *lines])
    return PrintedPage(f"{life.subject} {number}.jpg", text, tuple(facts), draw, "JPEG")


def _plot(life: Life) -> PrintedPage:
    title = f"Sightings of the {life.species.common_name}"
    draw = partial(paper.bar_chart, title, life.sightings, life.subject)
    lines = [life.fact(month).sentence for month in MONTHS]
    return PrintedPage(
        f"plot-{life.subject.replace(' ', '-').lower()}",
        "\n".join([f"{title} ({life.subject})", *lines]),
        life.counted(),
        draw,
    )
