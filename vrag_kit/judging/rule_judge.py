"""A judge without a model: deterministic, in the form of the paper's rubric (Table 12),
for the demo and for tests.

It knows colours and patterns (`words.json`, words that mean nearly the same together,
as the rubric asks) and otherwise compares words. It does not understand sentences: real
answers need a language model as judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from vrag_kit.judging.abstention import declines
from vrag_kit.judging.verdicts import label_of
from vrag_kit.types import Failure, Judgment, Query, Status

_WORDS = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
TRAITS: dict[str, dict[str, list[str]]] = _WORDS["traits"]
"""Kind of trait ("color", "pattern") → name → the words for it."""
_CANONICAL = {
    word: (kind, name)
    for kind, names in TRAITS.items()
    for name, words in names.items()
    for word in words
}
_EMPTY = frozenset(_WORDS["empty"].split())
_DENIED = re.compile(
    r"\b(no|not(?! only| just)|without|never|neither|nor|lack(?:s|ing)?|rather than|instead of)\b"
    r"(?:(?!\b(?:but|yet|and|with|it|its|they|which|is|are)\b)[^.,;:!?])*"
)


class RuleJudge:
    """Scores an answer against a query's accepted answers; implements `Judge`."""

    name = "rule"

    def judge(self, queries: Sequence[Query], answers: Sequence[str]) -> list[tuple[Judgment, ...]]:
        """One verdict for each query and answer."""
        return [
            (self.verdict(query, answer),) for query, answer in zip(queries, answers, strict=True)
        ]

    def verdict(self, query: Query, answer: str) -> Judgment:
        """The best verdict over the accepted answers, any one of which is right.

        Score: the share of the accepted answer's parts that are there, less 0.5 for a
        trait of the asked kind that it does not list (mark "hallucination"), at least
        0. Traits of another kind are marked "redundant" and cost nothing. Declining
        scores 0, mark "abstention". Text in brackets of an accepted answer may be
        mentioned and need not be. Neither what is denied ("no spots or bands") nor the
        subject's name ("the Red Fox") counts as said. The raw verdict reads as the
        paper's: "Score: 0.5 | Likely Hallucination". To a yes-or-no question the first
        yes or no is the answer. A query whose answers are hidden gets no score, and the
        status says so.
        """
        if not query.answers:
            return Judgment(
                answer_id="",
                label="",
                score=None,
                failure=Failure(
                    Status.ERROR,
                    f"query {query.query_id!r} has no accepted answer to compare with",
                ),
            )
        said = _words(_without_names(answer, query))
        if first := re.search(r"\b(?:yes|no)\b", answer.lower()):
            said = said - {"yes", "no"} | {first[0]}
        asked = _words(
            " ".join(re.findall(r"\b[a-z]+\b", query.text))
        )  # without names, which are capitalised
        if declines(answer) and not any(word in _CANONICAL.values() for word in said - asked):
            return _verdict(0.0, frozenset({"abstention"}))
        verdicts = [_against(reference, said, asked) for reference in query.answers]
        score, marks = max(verdicts, key=lambda verdict: (verdict[0], -len(verdict[1])))
        return _verdict(score, marks)


def _without_names(answer: str, query: Query) -> str:
    """The answer without the subject's name: names of two and more words, which stand
    capitalised in the question, may hold words such as "red".
    """
    names = [query.entity, *re.findall(r"(?<!^)(?:\b[A-Z][\w'’-]*[ -]?){2,}", query.text)]
    for name in names:
        if len(name.split()) > 1:
            answer = re.sub(re.escape(name.strip()), " ", answer, flags=re.IGNORECASE)
    return answer


def _against(
    reference: str, said: frozenset[object], asked: frozenset[object]
) -> tuple[float, frozenset[str]]:
    core = re.sub(r"\([^)]*\)", " ", reference)
    yes_no = re.match(r"\s*(yes|no)\b(?! pattern)", core.lower())
    parts = (
        [frozenset({yes_no.group(1)})]
        if yes_no
        else [
            words
            for piece in re.split(r",|;|/|\band\b|\bwith\b|&", core)
            if (words := _words(piece))
        ]
    )
    if not parts:
        return 0.0, frozenset()
    found = sum(part <= said for part in parts) / len(parts)
    listed, kinds = (
        _words(reference),
        {word[0] for part in parts for word in part if word in _CANONICAL.values()},
    )
    extra = {word for word in said - listed - asked if word in _CANONICAL.values()}
    invented = any(word[0] in kinds for word in extra)
    marks = {"hallucination"} if invented else {"redundant"} if extra else set()
    return max(0.0, found - 0.5 * invented), frozenset(marks)


def _words(text: str) -> frozenset[object]:
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
    words = {
        "hallucination": "Likely Hallucination",
        "redundant": "Redundant",
        "abstention": "No Answer",
    }
    return Judgment(
        answer_id="",
        label=label_of(score, marks),
        score=score,
        marks=marks,
        raw=" | ".join([f"Score: {score:g}", *(words[mark] for mark in sorted(marks))]),
    )
