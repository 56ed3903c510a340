"""The four page data sets of the drawn suite, in what they ask and print: pages of an
encyclopedia, figures with options, slides of which some questions need two, bar charts.

All ask how a hidden part looks, in the guide's words, about species that it does not
have: what the shipped answerers learned to read, and what nobody told them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from PIL import Image

from vrag_kit.fieldguide.organisms import HiddenPart
from vrag_kit.fieldguide.questions import Question, ask
from vrag_kit.fieldguide.suite import paper
from vrag_kit.fieldguide.suite.bars import colors_chart
from vrag_kit.fieldguide.suite.facts import COLOR, COLORS_OF_TWO, HOME, Fact
from vrag_kit.fieldguide.suite.world import LOOK, MAIN, SECOND, Life, tell
from vrag_kit.fieldguide.traits import COLORS, stream

_ASKS = {COLOR: "color", COLORS_OF_TWO: "colors"}
Pair = tuple[Life, HiddenPart]
"""Whom and what a question is about."""


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


@dataclass(frozen=True, slots=True)
class PageSet:
    """One data set: its pages and what is asked of them."""

    pages: tuple[PrintedPage, ...]
    questions: tuple[PageQuestion, ...]


def asked_of(pair: Pair, kind: str) -> Question:
    """The guide's question about a look of a part."""
    life, part = pair
    return ask(life.species, part, _ASKS[kind])


def pairs_of(lives: Sequence[Life], seed: str) -> list[Pair]:
    """Every hidden part of every species, in an order that the seed determines."""
    every: list[Pair] = []
    for life in lives:
        every += [(life, part) for part in life.parts]
    return [every[i] for i in stream(seed, "asked").permutation(len(every))]


def with_two_colors(pairs: Sequence[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """The first `count` of the pairs whose part has two colours, and all others."""
    two = [(life, part) for life, part in pairs if not life.is_plain(part)][:count]
    return two, [pair for pair in pairs if pair not in two]


def plan_documents(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """An encyclopedia as a scanner saw it, an article a page, each of which tells of one
    hidden part; answers are lists. A page is asked for the main colour, and then those of
    parts with two colours again for both.
    """
    chosen = {life.subject: (life, part) for life, part in reversed(pairs_of(lives, seed))}
    pages = {
        life.subject: _article(chosen[life.subject], number)
        for number, life in enumerate(lives, start=1)
    }
    pairs = list(reversed(chosen.values()))
    every = [(COLOR, pair) for pair in pairs]
    every += [(COLORS_OF_TWO, pair) for pair in with_two_colors(pairs, len(pairs))[0]]
    asked: list[PageQuestion] = []
    for number, (kind, pair) in enumerate(every[:count]):
        page_id = pages[pair[0].subject].page_id
        asked.append(_question(f"page-query-{number:03d}", asked_of(pair, kind), [page_id]))
    return PageSet(tuple(pages.values()), tuple(asked))


def plan_figures(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Figures of a species, at rest and so that a hidden part shows, with a legend; of
    four options a letter is right.
    """
    pairs = pairs_of(lives, seed)
    pages = [_figure(pair, number) for number, pair in enumerate(pairs, start=1)]
    asked: list[PageQuestion] = []
    for number, ((life, part), page) in enumerate(list(zip(pairs, pages, strict=True))[:count]):
        rng = stream(seed, "question", number)
        main = life.species.hidden[part.name].color
        others = [color for color in COLORS if color != main]
        options = [main, *(str(each) for each in rng.choice(others, 3, replace=False))]
        order = [int(place) for place in rng.permutation(len(options))]
        lettered = tuple(f"{'ABCD'[place]}) {options[i]}" for place, i in enumerate(order))
        answers = ("ABCD"[order.index(0)],)
        text = asked_of((life, part), COLOR).text
        query_id = f"figure-query-{number:03d}"
        asked.append(PageQuestion(query_id, text, (page.page_id,), answers, lettered))
    return PageSet(tuple(pages), tuple(asked))


def plan_slides(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Decks of two slides, one a hidden part; of three questions one needs both: the
    first slide tells the main colour, the second the other one.
    """
    two, others = with_two_colors(pairs_of(lives, seed), count // 3)
    decks = [_deck(pair, needs_both=place < len(two)) for place, pair in enumerate((*two, *others))]
    asked: list[PageQuestion] = []
    for number in range(count):
        both = number % 3 == 2
        place = number // 3 if both else len(two) + number - number // 3
        pages = [page.page_id for page in decks[place][: 1 + both]]
        question = asked_of((*two, *others)[place], COLORS_OF_TWO if both else COLOR)
        asked.append(_question(f"slide-query-{number:03d}", question, pages))
    return PageSet(tuple(chain.from_iterable(decks)), tuple(asked))


def plan_plots(lives: Sequence[Life], count: int, seed: str) -> PageSet:
    """Bar charts of the colours that observers named for a part; one question in four
    asks for both colours.
    """
    two, others = with_two_colors(pairs_of(lives, seed), count // 4)
    pages = [_plot(pair) for pair in (*two, *others)]
    asked: list[PageQuestion] = []
    for number in range(count):
        both = number % 4 == 3
        place = number // 4 if both else len(two) + number - number // 4
        question = asked_of((*two, *others)[place], COLORS_OF_TWO if both else COLOR)
        asked.append(_question(f"plot-query-{number:03d}", question, [pages[place].page_id]))
    return PageSet(tuple(pages), tuple(asked))


PAGE_SETS: dict[str, Callable[[Sequence[Life], int, str], PageSet]] = {
    "VisRAG-ArXiv": plan_figures,
    "VisRAG-Plot": plan_plots,
    "VisRAG-Slide": plan_slides,
    "VisRAG-Doc": plan_documents,
}
"""The paper's name → what plans it from species, number of questions and seed."""


def _question(query_id: str, question: Question, pages: Sequence[str]) -> PageQuestion:
    return PageQuestion(query_id, question.text, tuple(pages), question.answers)


def _article(pair: Pair, number: int) -> PrintedPage:
    life, part = pair
    sections = life.telling(part)

    def draw() -> Image.Image:
        picture = paper.portrait(life.species, life.name, 120)
        page = paper.encyclopedia_page(life.title, sections, picture, number)
        return paper.scanned(page, life.name)

    lines = [life.title]
    for heading, text in sections:
        lines += [heading, text] if heading else [text]
    facts = (*life.told_by_article(), *tell(life, part)[1])
    return PrintedPage(f"encyclopedia-{number:03d}", "\n".join(lines), facts, draw, "JPEG")


def _figure(pair: Pair, number: int) -> PrintedPage:
    life, part = pair
    said, facts = tell(life, part)
    text = (
        f"Figure {number}. {life.subject}, the {life.species.common_name}. (a) At rest: from"
        f" outside it is {life.species.outside.color}. (b) {said}"
    )

    def draw() -> Image.Image:
        name = f"{life.name}/{part.name}"
        panels = [paper.portrait(life.species, name, 180)]
        panels.append(paper.detail(life.species, part, name, 180))
        return paper.figure(panels, text)

    return PrintedPage(f"figure-{number:03d}", text, facts, draw, "JPEG")


def _deck(pair: Pair, *, needs_both: bool) -> tuple[PrintedPage, PrintedPage]:
    """A slide that tells the look, or its main colour, and one that tells the other
    colour, or where the species lives.
    """
    life, part = pair
    first = tell(life, part, MAIN if needs_both else LOOK)
    homes = f"It lives in {life.homes[0]} and {life.homes[1]}."
    second = homes, tuple(life.fact(HOME, home) for home in life.homes)
    if needs_both:
        second = tell(life, part, SECOND)
    outside = f"From outside it is {life.species.outside.color}."
    return _slide(pair, [outside, first[0]], first[1], 1), _slide(pair, [second[0]], second[1], 2)


def _slide(pair: Pair, lines: list[str], facts: tuple[Fact, ...], number: int) -> PrintedPage:
    """A slide's id has white space, as ids of files have that run together."""
    life, part = pair
    title, lines = life.species.common_name, [life.subject, *lines]
    name = f"{life.subject} {part.name} {number}"

    def draw() -> Image.Image:
        picture = paper.portrait(life.species, f"{life.name}/{part.name}/{number}", 124)
        return paper.slide(title, lines, picture, life.species.kind)

    return PrintedPage(f"{name}.jpg", "\n".join([title, *lines]), facts, draw, "JPEG")


def _plot(pair: Pair) -> PrintedPage:
    life, part = pair
    name = f"{life.subject} {part.name}".replace(" ", "-").lower()
    chart = colors_chart(life, part, f"{life.name}/{part.name}")
    return PrintedPage(f"plot-{name}", chart.text, chart.facts, chart.draw)
