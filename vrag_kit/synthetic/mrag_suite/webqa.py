"""WebQA's layout of the drawn suite: the Field Guide's own WebQA with snippets from the
encyclopedia, and questions that snippets answer.

A snippet that tells what is hidden is the guide's article with one more sentence; others
say nothing of the part, or speak of other species.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrag_kit.benchmarks.articles import Article, chunk_article
from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.facts import Fact
from vrag_kit.synthetic.mrag_suite.ground_truth import Shown
from vrag_kit.synthetic.mrag_suite.species_facts import SpeciesFacts, appearance_facts
from vrag_kit.synthetic.organisms import HiddenPart
from vrag_kit.synthetic.questions import askable_traits, hidden_parts, make_question
from vrag_kit.synthetic.traits import Species, stream
from vrag_kit.types import Json

ANNOTATIONS = "WebQA_train_val.json"
TOKENS = 60
"""Length of a snippet, which the shipped answerers learned to read."""
_NEGATIVES = (4, 8)
_TOLD_SHARE = 0.4  # of the snippets about other species that tell of their hidden part


@dataclass(frozen=True, slots=True)
class Snippet:
    """One piece of an article."""

    snippet_id: str
    title: str
    text: str
    facts: tuple[Fact, ...]

    def row(self) -> Json:
        """As an entry of txt_posFacts or txt_negFacts."""
        address = f"https://field-guide.invalid/{self.title.replace(' ', '_')}"
        told = {"title": self.title, "fact": self.text, "url": address}
        return {**told, "snippet_id": self.snippet_id}


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The snippets of one species."""

    plain: tuple[Snippet, ...]  # nothing of what is hidden
    telling: Mapping[str, Snippet]  # part → the one that tells how it looks


def write_suite_webqa(guide: Path, lives: Sequence[SpeciesFacts], folder: Path, seed: str) -> Shown:
    """Write the rows; the pictures stay in the guide's own imgs.tsv. Returns what
    pictures and snippets tell.
    """
    before = json.loads((guide / "webqa" / ANNOTATIONS).read_text(encoding="utf-8"))
    shelves = {life.subject: _shelf(life) for life in lives}
    of = {life.subject: life for life in lives}
    rows: dict[str, Json] = {}
    for row in before.values():
        species = of[row["topic"]].species
        part = _part_of(row["Q"], species)
        rng = stream(seed, "snippets", row["Guid"])
        for each in _rows(row, species, part, shelves, rng):
            rows[each["Guid"]] = each
    write_file(folder / ANNOTATIONS, json.dumps(rows, indent=1))
    shown = _pictures_show(guide, {life.subject: life.species for life in lives})
    for shelf in shelves.values():
        for snippet in (*shelf.plain, *shelf.telling.values()):
            shown[snippet.snippet_id] = snippet.facts
    return shown


def _part_of(question: str, species: Species) -> HiddenPart:
    return next(part for part in hidden_parts(species) if part.name in question)


def _rows(
    row: Json,
    species: Species,
    part: HiddenPart,
    shelves: Mapping[str, _Shelf],
    rng: np.random.Generator,
) -> Iterator[Json]:
    """The guide's question with snippets beside its pictures, and another one about the
    same part that a snippet answers, where there is one. None asks for a pattern, which
    is guessed too often.
    """
    own = shelves[species.scientific_name]
    tells = own.telling[part.name].row()
    others = _others(species, part, shelves, rng)
    beside = [*(snippet.row() for snippet in own.plain), *(each.row() for each in others)]
    asked = [
        make_question(species, part, asks)
        for asks in askable_traits(species, part)
        if asks != "pattern"
    ]
    if any(f'"{question.text}"' == row["Q"] for question in asked):
        yield {**row, "txt_posFacts": [], "txt_negFacts": beside}
    asked = [question for question in asked if f'"{question.text}"' != row["Q"]]
    if not asked:
        return
    question = asked[int(rng.integers(len(asked)))]
    yield {
        **row,
        **_words(question.text, question.answers),
        "Qcate": "text",
        "img_posFacts": [],
        "txt_posFacts": [tells],
        "txt_negFacts": beside,
    }


def _words(question: str, answers: Sequence[str]) -> Json:
    return {
        "Q": f'"{question}"',
        "A": [f'"{answer}"' for answer in answers],
        "Guid": hashlib.sha256(question.encode()).hexdigest()[:32],
    }


def _others(
    species: Species, part: HiddenPart, shelves: Mapping[str, _Shelf], rng: np.random.Generator
) -> list[Snippet]:
    """Snippets about other species, some of which tell of the same part of theirs."""
    names = [name for name in shelves if name != species.scientific_name]
    found = []
    count = int(rng.integers(_NEGATIVES[0], _NEGATIVES[1] + 1))
    for place in rng.permutation(len(names)):
        shelf = shelves[names[int(place)]]
        if part.name in shelf.telling and rng.random() < _TOLD_SHARE:
            found.append(shelf.telling[part.name])
        else:
            found.append(shelf.plain[int(rng.integers(len(shelf.plain)))])
        if len(found) == count:
            break
    return found


def _shelf(life: SpeciesFacts) -> _Shelf:
    """The article in pieces, as it is and with each hidden part told."""
    key = life.subject.replace(" ", "-").lower()
    plain = [
        Snippet(f"{key}-{number}", life.title, text, _facts_of_text(life, text))
        for number, text in enumerate(_pieces(life.title, life.sections))
    ]
    telling = {}
    for number, part in enumerate(hidden_parts(life.species)):
        pieces = _pieces(life.title, life.sections_describing(part))
        text = next(piece for piece in pieces if "From outside" in piece)
        look = appearance_facts(life.subject, part.name, life.species.hidden[part.name])
        facts = (*_facts_of_text(life, text), *look)
        telling[part.name] = Snippet(f"{key}-part-{number}", life.title, text, facts)
    return _Shelf(tuple(plain), telling)


def _pieces(title: str, sections: tuple[tuple[str, str], ...]) -> list[str]:
    return chunk_article(Article(title, sections), TOKENS)


def _facts_of_text(life: SpeciesFacts, text: str) -> tuple[Fact, ...]:
    """The article's facts that stand in a piece of it."""
    return tuple(fact for fact in life.article_facts() if fact.value in text)


def _pictures_show(guide: Path, species: Mapping[str, Species]) -> dict[str, tuple[Fact, ...]]:
    """Image id → what it shows of the parts that the guide asks about."""
    by_photo = photograph_facts(guide, species)
    file_of = {_digest((guide / "images" / name).read_bytes()): name for name in by_photo}
    shown = {}
    for line in (guide / "webqa" / "imgs.tsv").read_bytes().splitlines():
        image_id, encoded = line.split(b"\t")
        shown[image_id.decode()] = by_photo[file_of[_digest(base64.b64decode(encoded))]]
    return shown


def photograph_facts(guide: Path, species: Mapping[str, Species]) -> dict[str, tuple[Fact, ...]]:
    """Photograph of the drawn guide → what it shows of the parts that are asked about, as
    the labels of the annotations have it.
    """
    shown: dict[str, tuple[Fact, ...]] = {}
    for line in (guide / "annotations.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        about = species[row["sn"]]
        part = _part_of(row["question"], about)
        look = appearance_facts(row["sn"], part.name, about.hidden[part.name])
        for name, label in row["images"].items():
            shown[name] = shown.get(name, ()) + (look if label else ())
    return shown


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
