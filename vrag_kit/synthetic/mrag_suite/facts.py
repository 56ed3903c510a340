"""Facts about a species: the sentence of each, what other facts say about it, and the file of
what every document of a data set shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from vrag_kit.claims.verdicts import EntailmentLabel
from vrag_kit.files import write_file
from vrag_kit.synthetic.world.organisms import KINDS
from vrag_kit.types import DocId

COLOR = "color"
COLORS_OF_TWO = "colors"
PATTERN = "pattern"
FAMILY = "family"
HOME = "home"
SEASON = "season"
LOOKS = (COLOR, COLORS_OF_TWO, PATTERN)
"""Kinds of facts about a part; the others are lines of the encyclopedia."""
_SENTENCES = {
    COLOR: "The main color of the {part} of {subject} is {value}.",
    COLORS_OF_TWO: "One of the two colors of the {part} of {subject} is {value}.",
    PATTERN: "The {part} of {subject} {are} {value}.",
    FAMILY: "{subject} belongs to the family {value}.",
    HOME: "{subject} lives in {value}.",
    SEASON: "{subject} is mostly seen in {value}.",
}
_HIDDEN = tuple(chain.from_iterable(kind.hidden for kind in KINDS.values()))
PARTS = tuple(dict.fromkeys(part.name for part in _HIDDEN))
"""The hidden parts of all kinds of organism."""
PLURAL = frozenset(part.name for part in _HIDDEN if part.plural)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of one species, or of a part of it."""

    subject: str
    """Scientific name."""
    kind: str
    """`COLOR`, `COLORS_OF_TWO`, `PATTERN`, `FAMILY`, `HOME` or `SEASON`."""
    value: str
    part: str = ""
    """A hidden part for looks; "" for the rest."""
    denied: bool = False
    """Whether it is said not to be so."""

    @property
    def sentence(self) -> str:
        """The fact in words that stand alone."""
        are = "are" if self.part in PLURAL else "is"
        said = _SENTENCES[self.kind].format(
            part=self.part, subject=self.subject, value=self.value, are=are
        )
        if not self.denied:
            return said
        first = said[0].lower() if said.startswith("The ") else said[0]
        return f"It is not so that {first}{said[1:]}"

    @property
    def about(self) -> tuple[str, str, str]:
        """What it is a value of."""
        return self.subject, self.part, self.kind


def relation(claim: Fact, facts: Iterable[Fact]) -> EntailmentLabel:
    """What facts say about a claim: an equal value entails it, another one of the same
    species, part and kind or a denial contradicts it, else they are neutral.

    Of several values, as of two homes, one that is equal is enough. The main colour of a
    part is one of its two colours, and is none that is not among both; while only one of
    the two is told, another colour may be the other one, unless the part is plain. A
    claim that something is not so is entailed where it is denied or another value is
    told.
    """
    about = [fact for fact in facts if (fact.subject, fact.part) == (claim.subject, claim.part)]
    told = _values(about, claim.kind)
    if claim.kind == COLORS_OF_TWO:
        told |= _values(about, COLOR)
    denied = {fact.value for fact in about if fact.kind == claim.kind and fact.denied}
    is_all = claim.kind != COLORS_OF_TWO or len(told) > 1 or "plain" in _values(about, PATTERN)
    both = _values(about, COLORS_OF_TWO)
    is_third = claim.kind == COLOR and len(both) == 2 and claim.value not in both
    answer = EntailmentLabel.NEUTRAL
    if claim.value in told:
        answer = EntailmentLabel.ENTAILMENT
    elif (told and is_all) or claim.value in denied or is_third:
        answer = EntailmentLabel.CONTRADICTION
    opposite = {
        EntailmentLabel.ENTAILMENT: EntailmentLabel.CONTRADICTION,
        EntailmentLabel.CONTRADICTION: EntailmentLabel.ENTAILMENT,
    }
    return opposite.get(answer, answer) if claim.denied else answer


def _values(about: Iterable[Fact], kind: str) -> set[str]:
    """What is told of a kind, and not denied."""
    return {fact.value for fact in about if fact.kind == kind and not fact.denied}


Shown = Mapping[DocId, tuple[Fact, ...]]
"""Document → the facts that it shows or tells."""


def write_ground_truth(shown: Shown, path: Path) -> None:
    """Write what documents show, one JSON object a line."""
    lines = []
    for doc_id, facts in shown.items():
        told = [{k: v for k, v in asdict(fact).items() if v} for fact in facts]
        lines.append(json.dumps({"doc_id": doc_id, "shows": told}))
    write_file(path, "\n".join(lines) + "\n")


def read_ground_truth(path: Path) -> dict[DocId, tuple[Fact, ...]]:
    """Return what `write_ground_truth` wrote."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[str(row["doc_id"])] = tuple(Fact(**told) for told in row["shows"])
    return found
