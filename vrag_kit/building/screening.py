"""Which candidate questions should not go on: those that break an instruction of the
paper's Table 10, as far as words tell. A person has the last word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vrag_kit.benchmarks.articles import sentences
from vrag_kit.judging.rule_judge import TRAITS

_DATA = json.loads((Path(__file__).parent / "screening.json").read_text(encoding="utf-8"))
_KIND_OF: dict[str, str] = {}
for kind, words in _DATA["kinds"].items():
    _KIND_OF.update(dict.fromkeys(words.split(), kind))
_VALUES = {
    "shape": frozenset(_DATA["shapes"].split()),
    "texture": frozenset(_DATA["textures"].split()),
}
for kind, names in TRAITS.items():
    _VALUES[kind] = frozenset().union(*names.values())
_EMPTY = frozenset(_DATA["empty"].split())
_END = re.compile(rf"\b(?:{'|'.join(_DATA['ends of a part'].split())})\b")
_SIZE_WORDS = frozenset(_DATA["sizes"].split())
_SIZES = "|".join(_SIZE_WORDS)
_BODIES = re.compile(rf"\b(?:{'|'.join(_DATA['other bodies'].split())})\b(?!-)")
_ADJECTIVES = (
    r"(?:(?:exact|average|typical|approximate|usual|total|full|maximum|relative|common|mean|overall"
    r"|surface|estimated) )*"
)
_SIZE = re.compile(
    r"\bhow (?:long|big|large|tall|wide|thick|broad|small|high|heavy|deep)\b|\b(?:what|which)"
    rf" {_ADJECTIVES}(?:{_SIZES})\b"
    r"|\b(?:what|which) (?:is|are) the"
    rf" {_ADJECTIVES}(?:{_SIZES})s?\b|\b(?:centi|milli)met(?:er|re)s?\b|\b(?:cm|mm|inch(?:es)?)\b"
)
_ASKS = re.compile(r"(?:(?:in|of|on|at|to) )?(?:what|which|how|is|are|does|do|can|has|have)\b")
_CLAUSE = re.compile(r"[,;:]|\b(?:when|while|which|that|during|after|before|until|if|where)\b")
_OTHERS = (
    r"(?:(?:the|any|its|most|all) )?(?:other|others|another|similar|related|different|closely"
    r" related)"
)
_PLURALS = (
    ("eaves", "eaf"),
    ("ae", "a"),
    ("ies", "y"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("sses", "ss"),
)
_ORGANISMS = "|".join(_DATA["organisms"].split())
_COMPARES = re.compile(
    r"\b(?:than|from|to|with|unlike|like|resembles?|between)\b (?:(?:that|those|the ones?)"
    rf" (?:of|in) )?{_OTHERS} (?:\w+ )?(?:{_ORGANISMS})\b"
    r"|\b(?:other|another|similar|related) (?:sub)?species\b|\bclosely related\b|\b(?:its|their)"
    r" relatives\b"
)


def screen_questions(candidates: pd.DataFrame, paragraphs: Mapping[str, str]) -> pd.DataFrame:
    """The candidates with the reason in `dropped` where one should not go on; what was
    dropped before stays so.

    `paragraphs` maps a species to the text that its writer was given. In this order: it
    does not name the species (scientific name); asks for a size; asks for eggs, nests
    or webs; compares with another species (within an individual is fine); the paragraph
    tells the feature; an earlier question of the species asks for the same feature.
    """
    asked: set[object] = set()
    reasons = []
    table = candidates[["species", "question", "feature", "dropped"]]
    for row in table.to_dict("records"):
        species, question = row["species"], row["question"]
        keys = {(species, _feature_words(row["feature"])), (species, _plain(question))}
        reason = row["dropped"] or _fault(row, paragraphs.get(species, ""))
        if not reason and keys & asked:
            reason = "asks again for the same feature"
        if not reason:
            asked |= keys
        reasons.append(reason)
    return candidates.assign(dropped=pd.Series(reasons, index=candidates.index, dtype=object))


def _fault(row: Mapping[Hashable, str], paragraph: str) -> str:
    """The first rule that a question breaks on its own; "" if none."""
    question, feature = row["question"], row["feature"]
    if _plain(row["species"]) not in _plain(question):
        return "does not name the species"
    if asks_for_size(question, feature):
        return "asks for a size"
    if asks_for_eggs(question, feature):
        return "asks for eggs, nests or webs"
    if compares(question):
        return "compares with another species"
    return "told in the paragraph" if is_told(feature, paragraph) else ""


def asks_for_size(question: str, feature: str) -> bool:
    """Whether a length, an area or another size is asked for: of what is asked, or as
    the feature. "Along the length of the wing" is none.
    """
    words = [word for word in _words(feature) if word not in _EMPTY]
    if _SIZE.search(_asked(question)):
        return True
    if not words or any(word in _KIND_OF for word in words):
        return False
    # "collar area" is a part
    return words[0] in _SIZE_WORDS or words[-1] in _SIZE_WORDS - {"area"}


def asks_for_eggs(question: str, feature: str) -> bool:
    """Whether eggs, nests, webs or nets are the feature or stand in the clause that
    asks; not where they tell when ("while on the nest") or what like ("egg-shaped").
    """
    return bool(_BODIES.search(_asked(question)) or _BODIES.search(_END.split(_plain(feature))[0]))


def compares(question: str) -> bool:
    """Whether a question names two species, or speaks of other, similar or related
    ones; upper and lower half of a bill may be compared.
    """
    named = set(re.findall(r"scientific name: ([^)\]]+)", _plain(question)))
    return len(named) > 1 or bool(_COMPARES.search(_plain(question)))


def is_told(feature: str, paragraph: str) -> bool:
    """Whether a clause of `paragraph` has all words of the feature's part, and a color,
    pattern, shape or texture where the feature is one.

    It goes by words: "seeds" and "seed" are one part, "red" and "reddish" colors;
    "seeds" and "kernels" are two. It sees neither what is told in another sentence
    ("They are red") nor a part under another name, and takes a value for the part's
    that the clause says of another ("hindwings below the brown forewings").
    """
    words = _words(_END.split(_plain(feature))[0])
    kinds = {_KIND_OF[word] for word in words if word in _KIND_OF}
    part = {_singular(word) for word in words if word not in _KIND_OF and word not in _EMPTY}
    if not part:
        return False
    values: set[str] = set()
    for kind in kinds:
        values |= _VALUES[kind]
    return any(part <= said.parts and values & said.words for said in _clauses(paragraph))


@dataclass(frozen=True, slots=True)
class _Clause:
    """The words of a clause, and without their plurals."""

    words: frozenset[str]
    parts: frozenset[str]


def _clauses(paragraph: str) -> Iterator[_Clause]:
    for sentence in sentences(paragraph):
        for clause in re.split(r"[;:]|\b(?:but|while|whereas|although)\b", sentence.lower()):
            words = frozenset(_words(clause))
            yield _Clause(words, frozenset(_singular(word) for word in words))


def _asked(question: str) -> str:
    """The clause that asks, without brackets: of "When open, what color is it?" the
    second.
    """
    bare = re.sub(r"[(\[][^)\]]*[)\]]", " ", _plain(question))
    clauses = [clause.strip() for clause in _CLAUSE.split(bare) if clause.strip()]
    first = clauses[0] if clauses else ""
    return next((clause for clause in clauses if _ASKS.match(clause)), first)


def _feature_words(feature: str) -> frozenset[str]:
    return frozenset(
        _singular(_KIND_OF.get(word, word)) for word in _words(feature) if word not in _EMPTY
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _words(text: str) -> list[str]:
    return re.findall(r"\w+(?:-\w+)*", text.lower())


def _singular(word: str) -> str:
    """A word without the most usual endings of the plural."""
    for ending, other in _PLURALS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + other
    return word.removesuffix("s") if len(word) > 3 and not word.endswith(("ss", "us")) else word
