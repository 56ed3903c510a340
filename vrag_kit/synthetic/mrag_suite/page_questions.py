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

from vrag_kit.synthetic.mrag_suite import page_renderer
from vrag_kit.synthetic.mrag_suite.bars import colors_chart
from vrag_kit.synthetic.mrag_suite.facts import COLOR, COLORS_OF_TWO, HOME, Fact
from vrag_kit.synthetic.mrag_suite.species_facts import (
    LOOK,
    MAIN,
    SECOND,
    SpeciesFacts,
    describe_part,
)
from vrag_kit.synthetic.organisms import HiddenPart
from vrag_kit.synthetic.questions import Question, make_question
from vrag_kit.synthetic.traits import COLORS, stream

_ASKS = {COLOR: "color", COLORS_OF_TWO: "colors"}
Pair = tuple[SpeciesFacts, HiddenPart]
"""Whom and what a question is about."""


@dataclass(frozen=True, slots=True)
class PagePlan:
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

    pages: tuple[PagePlan, ...]
    questions: tuple[PageQuestion, ...]


def trait_question(pair: Pair, kind: str) -> Question:
    """The guide's question about a look of a part."""
    life, part = pair
    return make_question(life.species, part, _ASKS[kind])


def species_parts(lives: Sequence[SpeciesFacts], seed: str) -> list[Pair]:
    """Every hidden part of every species, in an order that the seed determines."""
    every: list[Pair] = []
    for life in lives:
        every += [(life, part) for part in life.parts]
    return [every[i] for i in stream(seed, "asked").permutation(len(every))]


def two_colors_first(pairs: Sequence[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """The first `count` of the pairs whose part has two colours, and all others."""
    two = [(life, part) for life, part in pairs if not life.is_plain(part)][:count]
    return two, [pair for pair in pairs if pair not in two]


def plan_documents(lives: Sequence[SpeciesFacts], count: int, seed: str) -> PageSet:
    """An encyclopedia as a scanner saw it, an article a page, each of which tells of one
    hidden part; answers are lists. A page is asked for the main colour, and then those of
    parts with two colours again for both.
    """
    chosen = {life.subject: (life, part) for life, part in reversed(species_parts(lives, seed))}
    pages = {
        life.subject: _article(chosen[life.subject], number)
        for number, life in enumerate(lives, start=1)
    }
    pairs = list(reversed(chosen.values()))
    every = [(COLOR, pair) for pair in pairs]
    every += [(COLORS_OF_TWO, pair) for pair in two_colors_first(pairs, len(pairs))[0]]
    asked: list[PageQuestion] = []
    for number, (kind, pair) in enumerate(every[:count]):
        page_id = pages[pair[0].subject].page_id
        asked.append(_question(f"page-query-{number:03d}", trait_question(pair, kind), [page_id]))
    return PageSet(tuple(pages.values()), tuple(asked))


def plan_figures(lives: Sequence[SpeciesFacts], count: int, seed: str) -> PageSet:
    """Figures of a species, at rest and so that a hidden part shows, with a legend; of
    four options a letter is right.
    """
    pairs = species_parts(lives, seed)
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
        text = trait_question((life, part), COLOR).text
        query_id = f"figure-query-{number:03d}"
        asked.append(PageQuestion(query_id, text, (page.page_id,), answers, lettered))
    return PageSet(tuple(pages), tuple(asked))


def plan_slides(lives: Sequence[SpeciesFacts], count: int, seed: str) -> PageSet:
    """Decks of two slides, one a hidden part; of three questions one needs both: the
    first slide tells the main colour, the second the other one.
    """
    two, others = two_colors_first(species_parts(lives, seed), count // 3)
    decks = [_deck(pair, needs_both=place < len(two)) for place, pair in enumerate((*two, *others))]
    asked: list[PageQuestion] = []
    for number in range(count):
        both = number % 3 == 2
        place = number // 3 if both else len(two) + number - number // 3
        pages = [page.page_id for page in decks[place][: 1 + both]]
        question = trait_question((*two, *others)[place], COLORS_OF_TWO if both else COLOR)
        asked.append(_question(f"slide-query-{number:03d}", question, pages))
    return PageSet(tuple(chain.from_iterable(decks)), tuple(asked))


def plan_plots(lives: Sequence[SpeciesFacts], count: int, seed: str) -> PageSet:
    """Bar charts of the colours that observers named for a part; one question in four
    asks for both colours.
    """
    two, others = two_colors_first(species_parts(lives, seed), count // 4)
    pages = [_plot(pair) for pair in (*two, *others)]
    asked: list[PageQuestion] = []
    for number in range(count):
        both = number % 4 == 3
        place = number // 4 if both else len(two) + number - number // 4
        question = trait_question((*two, *others)[place], COLORS_OF_TWO if both else COLOR)
        asked.append(_question(f"plot-query-{number:03d}", question, [pages[place].page_id]))
    return PageSet(tuple(pages), tuple(asked))


PAGE_SETS: dict[str, Callable[[Sequence[SpeciesFacts], int, str], PageSet]] = {
    "VisRAG-ArXiv": plan_figures,
    "VisRAG-Plot": plan_plots,
    "VisRAG-Slide": plan_slides,
    "VisRAG-Doc": plan_documents,
}
"""The paper's name → what plans it from species, number of questions and seed."""


def _question(query_id: str, question: Question, pages: Sequence[str]) -> PageQuestion:
    return PageQuestion(query_id, question.text, tuple(pages), question.answers)


def _article(pair: Pair, number: int) -> PagePlan:
    life, part = pair
    sections = life.sections_describing(part)

    def draw() -> Image.Image:
        picture = page_renderer.draw_portrait(life.species, life.name, 120)
        page = page_renderer.encyclopedia_page(life.title, sections, picture, number)
        return page_renderer.add_scan_effects(page, life.name)

    lines = [life.title]
    for heading, text in sections:
        lines += [heading, text] if heading else [text]
    facts = (*life.article_facts(), *describe_part(life, part)[1])
    return PagePlan(f"encyclopedia-{number:03d}", "\n".join(lines), facts, draw, "JPEG")


def _figure(pair: Pair, number: int) -> PagePlan:
    life, part = pair
    said, facts = describe_part(life, part)
    text = (
        f"Figure {number}. {life.subject}, the {life.species.common_name}. (a) At rest: from"
        f" outside it is {life.species.outside.color}. (b) {said}"
    )

    def draw() -> Image.Image:
        name = f"{life.name}/{part.name}"
        panels = [page_renderer.draw_portrait(life.species, name, 180)]
        panels.append(page_renderer.draw_detail(life.species, part, name, 180))
        return page_renderer.figure(panels, text)

    return PagePlan(f"figure-{number:03d}", text, facts, draw, "JPEG")


def _deck(pair: Pair, *, needs_both: bool) -> tuple[PagePlan, PagePlan]:
    """A slide that tells the look, or its main colour, and one that tells the other
    colour, or where the species lives.
    """
    life, part = pair
    first = describe_part(life, part, MAIN if needs_both else LOOK)
    homes = f"It lives in {life.homes[0]} and {life.homes[1]}."
    second = homes, tuple(life.fact(HOME, home) for home in life.homes)
    if needs_both:
        second = describe_part(life, part, SECOND)
    outside = f"From outside it is {life.species.outside.color}."
    return _slide(pair, [outside, first[0]], first[1], 1), _slide(pair, [second[0]], second[1], 2)


def _slide(pair: Pair, lines: list[str], facts: tuple[Fact, ...], number: int) -> PagePlan:
    """A slide's id has white space, as ids of files have that run together."""
    life, part = pair
    title, lines = life.species.common_name, [life.subject, *lines]
    name = f"{life.subject} {part.name} {number}"

    def draw() -> Image.Image:
        picture = page_renderer.draw_portrait(
            life.species, f"{life.name}/{part.name}/{number}", 124
        )
        return page_renderer.slide(title, lines, picture, life.species.kind)

    return PagePlan(f"{name}.jpg", "\n".join([title, *lines]), facts, draw, "JPEG")


def _plot(pair: Pair) -> PagePlan:
    life, part = pair
    name = f"{life.subject} {part.name}".replace(" ", "-").lower()
    chart = colors_chart(life, part, f"{life.name}/{part.name}")
    return PagePlan(f"plot-{name}", chart.text, chart.facts, chart.draw)
