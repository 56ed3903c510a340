"""WebQA's data set of the synthetic suite: the Field Guide's own WebQA with snippets from the
encyclopedia, and questions that snippets answer.

A snippet that describes a hidden part is the guide's article with one more sentence; the others
say nothing about the part, or are about other species.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vrag_kit.benchmarks.articles import Article, chunk_article
from vrag_kit.files import write_file
from vrag_kit.synthetic.mrag_suite.facts import Fact, Shown, SpeciesFacts, appearance_facts
from vrag_kit.synthetic.visual_rag.questions import askable_traits, make_question
from vrag_kit.synthetic.world.organisms import HiddenPart, hidden_parts
from vrag_kit.synthetic.world.traits import Species, choose, shuffled, stream
from vrag_kit.types import Json

ANNOTATIONS = "WebQA_train_val.json"
_TOKENS = 60  # of a snippet, as in the shipped answerers' training texts
_NEGATIVES = (4, 8)
_DESCRIBING_SHARE = 0.4  # of the snippets about other species that describe their hidden part


class _Snippets(NamedTuple):
    """The snippets of one species, as entries of txt_posFacts and txt_negFacts."""

    plain: list[Json]  # without hidden parts
    describing: dict[str, Json]  # part → the one that describes it


def write_webqa(guide: Path, lives: Sequence[SpeciesFacts], seed: str, folder: Path) -> Shown:
    """Write the rows; the images stay in the guide's own imgs.tsv. Returns what images and
    snippets show.
    """
    before = json.loads((guide / "webqa" / ANNOTATIONS).read_text(encoding="utf-8"))
    species = {life.subject: life.species for life in lives}
    shown = _images_show(guide, species)
    snippets = {life.subject: _snippets(life, shown) for life in lives}
    rows: dict[str, Json] = {}
    for row in before.values():
        rng = stream(seed, "snippets", row["Guid"])
        rows |= {each["Guid"]: each for each in _rows(row, species[row["topic"]], snippets, rng)}
    write_file(folder / ANNOTATIONS, json.dumps(rows, indent=1))
    return shown


def _rows(
    row: Json, species: Species, snippets: Mapping[str, _Snippets], rng: np.random.Generator
) -> list[Json]:
    """The guide's question with snippets beside its images, and another one about the same part
    that a snippet answers, if there is one. None asks for a pattern, which is guessed too often.
    """
    part = _part_of(row["Q"], species)
    own = snippets[species.scientific_name]
    others = [each for subject, each in snippets.items() if subject != species.scientific_name]
    negatives = {"txt_negFacts": [*own.plain, *_negatives(others, part, rng)]}
    kinds = [kind for kind in askable_traits(species, part) if kind != "pattern"]
    questions = [make_question(species, part, kind) for kind in kinds]
    rest = [each for each in questions if f'"{each.text}"' != row["Q"]]
    rows = [] if len(rest) == len(questions) else [{**row, "txt_posFacts": [], **negatives}]
    if rest:
        question = choose(rest, rng)
        changed = {
            "Q": f'"{question.text}"',
            "A": [f'"{answer}"' for answer in question.answers],
            "Guid": hashlib.sha256(question.text.encode()).hexdigest()[:32],
            "Qcate": "text",
            "img_posFacts": [],
            "txt_posFacts": [own.describing[part.name]],
        }
        rows.append({**row, **changed, **negatives})
    return rows


def _part_of(question: str, species: Species) -> HiddenPart:
    return next(part for part in hidden_parts(species) if part.name in question)


def _negatives(
    others: Sequence[_Snippets], part: HiddenPart, rng: np.random.Generator
) -> list[Json]:
    """Snippets about other species, some of which describe the same part of theirs."""
    found = []
    count = rng.integers(*_NEGATIVES, endpoint=True)
    for other in shuffled(others, rng)[:count]:
        if part.name in other.describing and rng.random() < _DESCRIBING_SHARE:
            found.append(other.describing[part.name])
        else:
            found.append(choose(other.plain, rng))
    return found


def _snippets(life: SpeciesFacts, shown: dict[str, tuple[Fact, ...]]) -> _Snippets:
    """The article in pieces, as it is and with each hidden part described; what they tell is added
    to `shown`.
    """
    name = life.subject.replace(" ", "-").lower()
    title = life.article.title

    def snippet(suffix: str, text: str, look: tuple[Fact, ...] = ()) -> Json:
        facts = [fact for fact in life.article_facts() if fact.value in text]
        shown[f"{name}-{suffix}"] = (*facts, *look)
        return {
            "title": title,
            "fact": text,
            "url": f"https://field-guide.invalid/{title.replace(' ', '_')}",
            "snippet_id": f"{name}-{suffix}",
        }

    pieces = chunk_article(Article(title, life.article.sections), _TOKENS)
    plain = [snippet(str(number), text) for number, text in enumerate(pieces)]
    describing: dict[str, Json] = {}
    for number, about in enumerate(life.parts):
        pieces = chunk_article(Article(title, about.sections()), _TOKENS)
        text = next(piece for piece in pieces if "From outside" in piece)
        describing[about.part.name] = snippet(f"part-{number}", text, about.facts)
    return _Snippets(plain, describing)


def _images_show(guide: Path, species: Mapping[str, Species]) -> dict[str, tuple[Fact, ...]]:
    """Image id → what it shows of the parts that the guide asks about."""
    by_photo = photograph_facts(guide, species)
    by_bytes = {(guide / "images" / name).read_bytes(): by_photo[name] for name in by_photo}
    lines = (guide / "webqa" / "imgs.tsv").read_text(encoding="ascii").splitlines()
    images = (line.split("\t") for line in lines)
    return {image_id: by_bytes[base64.b64decode(encoded)] for image_id, encoded in images}


def photograph_facts(guide: Path, species: Mapping[str, Species]) -> dict[str, tuple[Fact, ...]]:
    """Map each photograph of the Field Guide to what it shows of the parts that are asked about,
    by the labels of the annotations.
    """
    shown: dict[str, tuple[Fact, ...]] = {}
    for line in (guide / "annotations.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        about = species[row["sn"]]
        look = appearance_facts(about, _part_of(row["question"], about).name)
        for name, label in row["images"].items():
            shown[name] = shown.get(name, ()) + (look if label else ())
    return shown
