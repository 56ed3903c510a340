"""Chart-MRAG's layout of the drawn suite: documents about the counts of one species each,
a chart of its sightings and sentences, and questions with their keypoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from vrag_kit.fieldguide.suite import paper
from vrag_kit.fieldguide.suite.facts import BUSIEST, MONTHS, OBSERVERS, PEAK, Fact
from vrag_kit.fieldguide.suite.printed import named
from vrag_kit.fieldguide.suite.world import Life
from vrag_kit.fieldguide.traits import stream


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart before it is drawn."""

    chart_id: str
    draw: Callable[[], Image.Image]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document."""

    sentence_id: str
    text: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class ChartDocument:
    """What was published about the counts of a species."""

    life: Life
    chart: Chart
    sentences: tuple[Sentence, ...]

    def source(self, kind: str) -> str:
        """The id of what tells a kind of fact: the chart where no sentence does."""
        for sentence in self.sentences:
            if any(fact.kind == kind for fact in sentence.facts):
                return sentence.sentence_id
        return self.chart.chart_id


@dataclass(frozen=True, slots=True)
class ChartQuestion:
    """One row: keypoints are evidence id → statement."""

    row_id: str
    text: str
    answer: str
    keypoints: dict[str, str]
    charts: tuple[str, ...]
    texts: tuple[str, ...]


def plan_counts(
    lives: Sequence[Life], count: int, seed: str
) -> tuple[list[ChartDocument], list[ChartQuestion]]:
    """All documents, and `count` questions of seven sorts in turn."""
    documents = [_document(life, number) for number, life in enumerate(lives)]
    order = stream(seed, "documents").permutation(len(documents))
    questions: list[ChartQuestion] = []
    for number in range(count):
        rng = stream(seed, "counts", number)
        first = documents[int(order[number % len(order)])]
        other = documents[int(order[(number + 1) % len(order)])]
        questions.append(_SORTS[number % len(_SORTS)](first, other, number, rng))
    return documents, questions


def _document(life: Life, number: int) -> ChartDocument:
    """Its sentences restate the count of one month, which is asked of no chart."""
    key = f"{number:05d}"
    rng = stream(life.name, "document")
    told = str(rng.choice([month for month in MONTHS if month not in (life.peak, life.busiest)]))
    name = life.species.common_name
    kinds = (OBSERVERS, BUSIEST, told, PEAK)
    texts = [
        f"{life.observers} observers counted {life.subject}, the {name}, in the whole of a year.",
        f"Most observers of {life.subject} were out in {life.busiest}.",
        life.fact(told).sentence,
        f"The {name} was counted most often in {life.peak}.",
    ]
    sentences = []
    for place, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
        sentence_id = f"paragraph_{key}_{place // 2 + 1:02d}_{place % 2 + 1:02d}"
        sentences.append(Sentence(sentence_id, text, (life.fact(kind),)))
    draw = partial(paper.bar_chart, f"Sightings of the {name}", life.sightings, life.subject)
    chart = Chart(f"chart_{key}_01", draw, life.counted())
    return ChartDocument(life, chart, tuple(sentences))


def _row(
    sort: str, number: int, question: str, told: Sequence[tuple[ChartDocument, str]]
) -> ChartQuestion:
    """A question answered by these kinds of facts of documents."""
    keypoints: dict[str, str] = {}
    charts: list[str] = []
    texts: list[str] = []
    for document, kind in told:
        source = document.source(kind)
        statement = document.life.fact(kind).sentence
        keypoints[source] = statement
        if source == document.chart.chart_id:
            charts.append(source)
        else:
            texts += [each.text for each in document.sentences if each.sentence_id == source]
    return ChartQuestion(
        row_id=f"{sort}_{number:05d}",
        text=question,
        answer=" ".join(keypoints.values()),
        keypoints=keypoints,
        charts=tuple(charts),
        texts=tuple(texts),
    )


def _month(document: ChartDocument, rng: np.random.Generator) -> str:
    """A month whose count the chart alone tells."""
    chart = document.chart.chart_id
    return str(rng.choice([month for month in MONTHS if document.source(month) == chart]))


Sort = Callable[[ChartDocument, ChartDocument, int, np.random.Generator], ChartQuestion]


def _observers(
    first: ChartDocument, _other: ChartDocument, number: int, _rng: np.random.Generator
) -> ChartQuestion:
    question = f"How many observers counted {named(first.life)}?"
    return _row("Single-Point_Text-only", number, question, [(first, OBSERVERS)])


def _counted(
    first: ChartDocument, _other: ChartDocument, number: int, rng: np.random.Generator
) -> ChartQuestion:
    month = _month(first, rng)
    question = f"How many sightings of {named(first.life)} were counted in {month}?"
    return _row("Single-Point_Chart-only", number, question, [(first, month)])


def _most(
    first: ChartDocument, _other: ChartDocument, number: int, _rng: np.random.Generator
) -> ChartQuestion:
    question = (
        f"How many observers counted {named(first.life)}, and in which month was it counted"
        " most often?"
    )
    told = [(first, OBSERVERS), (first, PEAK)]
    return _row("Intra-Document_Text-only", number, question, told)


def _when_busiest(
    first: ChartDocument, _other: ChartDocument, number: int, _rng: np.random.Generator
) -> ChartQuestion:
    question = (
        f"How many sightings of {named(first.life)} were counted in the month in which most"
        " observers were out?"
    )
    told = [(first, BUSIEST), (first, first.life.busiest)]
    return _row("Intra-Document_Text-Chart", number, question, told)


def _two_charts(
    first: ChartDocument, other: ChartDocument, number: int, rng: np.random.Generator
) -> ChartQuestion:
    months = [_month(first, rng), _month(other, rng)]
    question = (
        f"How many sightings of {named(first.life)} were counted in {months[0]}, and how many of"
        f" {named(other.life)} in {months[1]}?"
    )
    told = [(first, months[0]), (other, months[1])]
    return _row("Inter_Document_Chart-only", number, question, told)


def _two_texts(
    first: ChartDocument, other: ChartDocument, number: int, _rng: np.random.Generator
) -> ChartQuestion:
    question = f"How many observers counted {named(first.life)}, and how many {named(other.life)}?"
    told = [(first, OBSERVERS), (other, OBSERVERS)]
    return _row("Inter_Document_Text-only", number, question, told)


def _text_and_chart(
    first: ChartDocument, other: ChartDocument, number: int, rng: np.random.Generator
) -> ChartQuestion:
    month = _month(other, rng)
    question = (
        f"How many observers counted {named(first.life)}, and how many sightings of"
        f" {named(other.life)} were counted in {month}?"
    )
    return _row("Inter_Document_Text-Chart", number, question, [(first, OBSERVERS), (other, month)])


_ONE_DOCUMENT: tuple[Sort, ...] = (_observers, _counted, _most, _when_busiest)
_TWO_DOCUMENTS: tuple[Sort, ...] = (_two_charts, _two_texts, _text_and_chart)
_SORTS = (*_ONE_DOCUMENT, *_TWO_DOCUMENTS)
