"""Chart-MRAG's layout of the drawn suite: documents about a hidden part of a species, each
a chart and sentences, and questions with their keypoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_kit.synthetic.mrag_suite.bars import BarChart, colors_chart, habitats_chart
from vrag_kit.synthetic.mrag_suite.facts import COLOR, COLORS_OF_TWO, FAMILY, SEASON, Fact
from vrag_kit.synthetic.mrag_suite.page_questions import (
    Pair,
    species_parts,
    trait_question,
    two_colors_first,
)
from vrag_kit.synthetic.mrag_suite.species_facts import (
    LOOK,
    MAIN,
    SECOND,
    SpeciesFacts,
    describe_part,
)

CHART, TEXT = "chart", "text"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document."""

    sentence_id: str
    text: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class ChartDocument:
    """What was published about a species."""

    chart_id: str
    chart: BarChart
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class ChartQuestion:
    """One row: keypoints are evidence id → statement."""

    row_id: str
    text: str
    answer: str
    keypoints: dict[str, str]
    charts: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvidenceLayout:
    """Where a question's evidence is: of the main colour alone, or of both colours."""

    name: str
    where: tuple[str, ...]  # CHART or TEXT, of the main colour and then of the second
    two_documents: bool = False

    @property
    def files(self) -> int:
        """How many documents tell it."""
        return 1 + self.two_documents

    @property
    def evidence(self) -> list[tuple[str, str, int]]:
        """(what is told, where, in the first or second document) of each colour."""
        whats = (MAIN, SECOND) if len(self.where) > 1 else (LOOK,)
        places = (0, int(self.two_documents))
        return list(zip(whats, self.where, places, strict=False))


_SINGLE = (
    EvidenceLayout("Single-Point_Text-only", (TEXT,)),
    EvidenceLayout("Single-Point_Chart-only", (CHART,)),
)
_DOUBLE = (
    EvidenceLayout("Intra-Document_Text-only", (TEXT, TEXT)),
    EvidenceLayout("Intra-Document_Text-Chart", (CHART, TEXT)),
    EvidenceLayout("Inter_Document_Chart-only", (CHART, CHART), two_documents=True),
    EvidenceLayout("Inter_Document_Text-only", (TEXT, TEXT), two_documents=True),
    EvidenceLayout("Inter_Document_Text-Chart", (TEXT, CHART), two_documents=True),
)


def plan_chart_data(
    lives: Sequence[SpeciesFacts], count: int, seed: str
) -> tuple[list[ChartDocument], list[ChartQuestion]]:
    """All documents, and `count` questions, each of a hidden part of its own: in turn one
    for the main colour that a sentence tells, one that a chart tells, and one for both
    colours, of five sorts in turn.
    """
    two, others = two_colors_first(species_parts(lives, seed), count // 3)
    documents: list[ChartDocument] = []
    questions: list[ChartQuestion] = []
    for number in range(count):
        third = number // 3
        sort = _DOUBLE[third % len(_DOUBLE)] if number % 3 == 2 else _SINGLE[number % 3]
        pair = two[third] if number % 3 == 2 else others[number - third]
        told = [_document(pair, sort, place, len(documents) + place) for place in range(sort.files)]
        documents += told
        questions.append(_row(pair, sort, number, told))
    return documents, questions


def _document(pair: Pair, sort: EvidenceLayout, place: int, number: int) -> ChartDocument:
    """The first or second document of a question: what it does not tell of the part is
    filled by where the species lives, its family and its season.
    """
    life, part = pair
    key = f"{number:05d}"
    chart = habitats_chart(life, f"{life.name}/{key}")
    fillers = [life.fact(kind) for kind in (FAMILY, SEASON)]
    texts: list[tuple[str, tuple[Fact, ...]]] = [(each.sentence, (each,)) for each in fillers]
    for what, where, document in sort.evidence:
        if document == place and where == CHART:
            chart = colors_chart(life, part, f"{life.name}/{part.name}/{key}", what)
        elif document == place:
            texts.insert(1, describe_part(life, part, what, of=life.subject))
    sentences = []
    for at, (text, facts) in enumerate(texts):
        sentence_id = f"paragraph_{key}_{at // 2 + 1:02d}_{at % 2 + 1:02d}"
        sentences.append(Sentence(sentence_id, text, facts))
    return ChartDocument(f"chart_{key}_01", chart, tuple(sentences))


def _row(
    pair: Pair, sort: EvidenceLayout, number: int, told: Sequence[ChartDocument]
) -> ChartQuestion:
    """A keypoint for each colour, at the document that tells it."""
    life, part = pair
    look = life.species.hidden[part.name]
    kind = COLORS_OF_TWO if len(sort.where) > 1 else COLOR
    keypoints: dict[str, str] = {}
    charts: list[str] = []
    texts: list[str] = []
    for (what, where, document), value in zip(
        sort.evidence, (look.color, look.second), strict=False
    ):
        source, said = told[document], describe_part(life, part, what, of=life.subject)[0]
        evidence_id = source.chart_id
        if where == CHART:
            charts.append(evidence_id)
        else:
            evidence_id = next(each.sentence_id for each in source.sentences if each.text == said)
            texts.append(said)
        keypoints[evidence_id] = _statement(pair, value, of_two=kind == COLORS_OF_TWO)
    return ChartQuestion(
        row_id=f"{sort.name}_{number:05d}",
        text=trait_question(pair, kind).text,
        answer=" ".join(keypoints.values()),
        keypoints=keypoints,
        charts=tuple(charts),
        texts=tuple(texts),
    )


def _statement(pair: Pair, color: str, *, of_two: bool) -> str:
    """A keypoint without a number, of which the question does not hold but the colour:
    what `keypoint_coverage` looks for.
    """
    life, part = pair
    if of_two:
        have = "have" if part.plural else "has"
        return f"On the {part.name} of {life.subject}, which {have} two colors, there is {color}."
    are = "are" if part.plural else "is"
    return f"The {part.name} of {life.subject} {are} {color}."
