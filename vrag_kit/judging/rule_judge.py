"""Deterministic judge without a model, in the form of Visual-RAG's rubric (Table 12).
It is meant for the demo and for tests.

It treats near synonyms of colours and patterns as equal (`words.json`), as the rubric asks, and
otherwise compares words. It does not understand sentences: real answers need a language model as
judge.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from vrag_kit.judging.abstention import is_abstention
from vrag_kit.judging.rubric import Verdict
from vrag_kit.judging.scale import SHARES, no_reference_failure, query_answers
from vrag_kit.types import Benchmark, Judgment, Query

Trait = tuple[str, str]
"""Kind ("color", "pattern") and name."""
_WORDS = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
_TRAITS: dict[str, Trait] = {}
for _kind, _names in _WORDS["traits"].items():
    for _name, _synonyms in _names.items():
        _TRAITS.update(dict.fromkeys(_synonyms, (_kind, _name)))
_EMPTY = frozenset(_WORDS["empty"].split())
_MARKS = {
    "hallucination": "Likely Hallucination",
    "redundant": "Redundant",
    "abstention": "No Answer",
}
_NO_PATTERN = re.compile(r"\bno (?:visible |clear |distinct )?patterns?\b")
_DENIED = re.compile(
    r"\b(no|not(?! only| just)|without|never|neither|nor|lack(?:s|ing)?|rather than|instead of)\b"
    r"(?:(?!\b(?:but|yet|and|with|it|its|they|which|is|are)\b)[^.,;:!?])*"
)


def canonical_trait(word: str) -> str:
    """Return the canonical name of a colour or pattern; other words are unchanged."""
    return _TRAITS[word][1] if word in _TRAITS else word


class RuleJudge:
    """Scores an answer against a query's accepted answers; implements `Judge`."""

    name = "rule"
    scale = SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers."""
        return [(self.verdict(*pair),) for pair in query_answers(benchmark, answers)]

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
        found = _words(_without_names(answer, query))
        if first := re.search(r"\b(?:yes|no)\b", answer.lower()):
            found = found - {"yes", "no"} | {first[0]}
        lower_case = " ".join(re.findall(r"\b[a-z]+\b", query.text))  # names are capitalised
        asked = _words(lower_case)
        if is_abstention(answer) and not _traits(found - asked):
            best = Verdict(SHARES.worst, frozenset({"abstention"}))
        else:
            verdicts = [_against(accepted, found, asked) for accepted in query.answers]
            best = max(verdicts, key=lambda verdict: (verdict.score, -len(verdict.marks)))
        raw = " | ".join([f"Score: {best.score:g}", *(_MARKS[mark] for mark in sorted(best.marks))])
        return Judgment(score=best.score, marks=best.marks, raw=raw)


def _without_names(answer: str, query: Query) -> str:
    """The answer without the subject's name: names of two and more words, which stand
    capitalised in the question, may hold words such as "red".
    """
    names = re.findall(r"(?<!^)(?:\b[A-Z][\w'’-]*[ -]?){2,}", query.text)
    for name in [query.entity, *names]:
        if len(name.split()) > 1:
            answer = re.sub(re.escape(name.strip()), " ", answer, flags=re.IGNORECASE)
    return answer


def _against(
    accepted: str, found: frozenset[str | Trait], asked: frozenset[str | Trait]
) -> Verdict:
    parts = _parts(re.sub(r"\([^)]*\)", " ", accepted))
    if not parts:
        return Verdict(SHARES.worst)
    share = sum(part <= found for part in parts) / len(parts)
    kinds = {kind for kind, _ in _traits(frozenset().union(*parts))}
    extra = _traits(found - _words(accepted) - asked)
    if any(kind in kinds for kind, _ in extra):
        return Verdict(max(SHARES.worst, share - 0.5), frozenset({"hallucination"}))
    return Verdict(share, frozenset({"redundant"} if extra else ()))


def _parts(accepted: str) -> list[frozenset[str | Trait]]:
    """What an accepted answer consists of: yes or no, or each piece of a list."""
    if yes_no := re.match(r"\s*(yes|no)\b(?! pattern)", accepted.lower()):
        return [frozenset({yes_no[1]})]
    pieces = re.split(r",|;|/|\band\b|\bwith\b|&", accepted)
    return [words for words in map(_words, pieces) if words]


def _words(text: str) -> frozenset[str | Trait]:
    """Content words, near synonyms of colours and patterns as one trait. What is denied ("not
    red") does not count.
    """
    text = _NO_PATTERN.sub(" plain ", text.lower().replace("’", "'"))
    text = _DENIED.sub(lambda denied: " no " if denied[1] == "no" else " ", text)
    return frozenset(
        _TRAITS.get(word, word) for word in re.findall(r"[a-z]+", text) if word not in _EMPTY
    )


def _traits(words: frozenset[str | Trait]) -> set[Trait]:
    return {word for word in words if isinstance(word, tuple)}
