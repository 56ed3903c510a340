"""Deterministic judge without a model, in the form of Visual-RAG's rubric (Table 12).
It is meant for the demo and for tests.

It treats near synonyms of colours and patterns as equal (`words.json`), as the rubric asks, and
otherwise compares words. It does not understand sentences: real answers need a language model as
judge.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import pandas as pd

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.rubric import Verdict, verdict_label
from vrag_kit.judging.scale import SHARES, no_reference_failure
from vrag_kit.types import Benchmark, Judgment, Query

_WORDS = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
TRAITS: dict[str, dict[str, list[str]]] = _WORDS["traits"]
"""Kind of trait ("color", "pattern") → name → its synonyms."""
Trait = tuple[str, str]
Word = str | Trait
"""A word, or the (kind, name) of a trait."""


def _canonical() -> dict[str, Trait]:
    """Every word for a trait → the trait."""
    found = {}
    for kind, names in TRAITS.items():
        for name, words in names.items():
            found.update(dict.fromkeys(words, (kind, name)))
    return found


_CANONICAL = _canonical()


def canonical_trait(word: str) -> str:
    """Return the canonical name of a colour or pattern; other words are unchanged."""
    return _CANONICAL[word][1] if word in _CANONICAL else word


_TRAIT_WORDS = frozenset(_CANONICAL.values())
_MARKS = {
    "hallucination": "Likely Hallucination",
    "redundant": "Redundant",
    "abstention": "No Answer",
}
_EMPTY = frozenset(_WORDS["empty"].split())
_DENIED = re.compile(
    r"\b(no|not(?! only| just)|without|never|neither|nor|lack(?:s|ing)?|rather than|instead of)\b"
    r"(?:(?!\b(?:but|yet|and|with|it|its|they|which|is|are)\b)[^.,;:!?])*"
)


class RuleJudge:
    """Scores an answer against a query's accepted answers; implements `Judge`."""

    name = "rule"
    scale = SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers."""
        pairs = list(zip(answers["query_id"], answers["answer"], strict=True))
        verdicts = {
            (query_id, answer): self.verdict(benchmark.queries[query_id], answer)
            for query_id, answer in dict.fromkeys(pairs)
        }
        return [(verdicts[pair],) for pair in pairs]

    def verdict(self, query: Query, answer: str) -> Judgment:
        """Return the best verdict over the accepted answers.

        Score: the share of the accepted answer's parts that the answer has, minus 0.5 for a trait
        of the asked kind that the accepted answer does not list (mark "hallucination"), at least 0.
        Traits of another kind are marked "redundant" and cost nothing. An abstention scores 0, mark
        "abstention". Text in brackets of an accepted answer is optional. Negated words ("no spots
        or bands") and the subject's name ("the Red Fox") are ignored. The raw verdict has that
        rubric's format: "Score: 0.5 | Likely Hallucination". For a yes-or-no question the first yes
        or no is the answer. A query whose answers are hidden gets a failure without score.
        """
        if not query.answers:
            return no_reference_failure(query)
        return _verdict_on(answer, query.text, query.entity, tuple(query.answers))


@lru_cache(maxsize=2**16)
def _verdict_on(answer: str, question: str, entity: str, accepted: tuple[str, ...]) -> Judgment:
    said = _words(_without_names(answer, question, entity))
    if first := re.search(r"\b(?:yes|no)\b", answer.lower()):
        said = said - {"yes", "no"} | {first[0]}
    lower_case = " ".join(re.findall(r"\b[a-z]+\b", question))  # names are capitalised
    asked = _words(lower_case)
    if is_abstention(answer) and not any(word in _TRAIT_WORDS for word in said - asked):
        return _verdict(0.0, frozenset({"abstention"}))
    verdicts = [_against(reference, said, asked) for reference in accepted]
    score, marks = max(verdicts, key=lambda verdict: (verdict[0], -len(verdict[1])))
    return _verdict(score, marks)


def _without_names(answer: str, question: str, entity: str) -> str:
    """The answer without the subject's name: names of two and more words, which stand
    capitalised in the question, may hold words such as "red".
    """
    names = [entity, *re.findall(r"(?<!^)(?:\b[A-Z][\w'’-]*[ -]?){2,}", question)]
    for name in names:
        if len(name.split()) > 1:
            answer = re.sub(re.escape(name.strip()), " ", answer, flags=re.IGNORECASE)
    return answer


def _against(
    reference: str, answer: frozenset[Word], asked: frozenset[Word]
) -> tuple[float, frozenset[str]]:
    core = re.sub(r"\([^)]*\)", " ", reference)
    parts = _parts(core)
    if not parts:
        return SHARES.worst, frozenset()
    found = sum(part <= answer for part in parts) / len(parts)
    listed = _words(reference)
    kinds = {word[0] for word in frozenset().union(*parts) & _TRAIT_WORDS}
    extra = (answer - listed - asked) & _TRAIT_WORDS
    invented = any(word[0] in kinds for word in extra)
    score = max(SHARES.worst, found - 0.5 * invented)
    if invented:
        return score, frozenset({"hallucination"})
    return score, frozenset({"redundant"} if extra else ())


def _parts(core: str) -> list[frozenset[Word]]:
    """What an accepted answer consists of: yes or no, or each piece of a list."""
    if yes_no := re.match(r"\s*(yes|no)\b(?! pattern)", core.lower()):
        return [frozenset({yes_no[1]})]
    pieces = re.split(r",|;|/|\band\b|\bwith\b|&", core)
    return [words for words in map(_words, pieces) if words]


def _words(text: str) -> frozenset[Word]:
    """Content words; colour and pattern words as (kind, name), so that near synonyms
    are equal. What is denied ("not red") does not count.
    """
    text = re.sub(
        r"\bno (?:visible |clear |distinct )?patterns?\b", " plain ", text.lower().replace("’", "'")
    )
    text = _DENIED.sub(lambda denied: " no " if denied[1] == "no" else " ", text)
    return frozenset(
        _CANONICAL.get(word, word) for word in re.findall(r"[a-z]+", text) if word not in _EMPTY
    )


def _verdict(score: float, marks: frozenset[str]) -> Judgment:
    return Judgment(
        answer_id="",
        label=verdict_label(Verdict(score, marks), SHARES),
        score=score,
        marks=marks,
        raw=" | ".join([f"Score: {score:g}", *(_MARKS[mark] for mark in sorted(marks))]),
    )
