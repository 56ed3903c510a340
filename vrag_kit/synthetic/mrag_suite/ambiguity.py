"""Questions of the drawn suite made ambiguous on purpose, so that it is known which are,
and a rule that says which it takes for ambiguous.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from vrag_kit.synthetic.mrag_suite.facts import PARTS
from vrag_kit.synthetic.organisms import KINDS
from vrag_kit.synthetic.traits import stream
from vrag_kit.types import Benchmark, Query, QueryId

SUBJECT = "subject"
PART = "part"
_NOUNS = {kind.noun: kind.name for kind in KINDS.values()}
_NAME = re.compile(
    r"(?:the )?(?:[A-Z]\w+ )+?(?P<noun>[A-Z]\w+) \((?:scientific name: )?[A-Z][a-z]+ [a-z]+\)"
)
_OF_PART = re.compile(rf"\bthe (?:{'|'.join(PARTS)}) of (?=[A-Z])")
_HINT = re.compile(r", (?:which|that) [^,?]*\?$")
_LOOK = re.compile(r"\bcolors?\b|\bpattern\b|\blooks? like\b")
_A_PART = re.compile(r"\bthe (?!main color of)[a-z]+(?: [a-z]+)* of (?:the )?(?:[A-Z]|this\b)")
_NAMED = re.compile(r"\([^)]*[A-Z][a-z]+ [a-z]+\)|\b[A-Z]\w+ [A-Z]\w+")


@dataclass(frozen=True, slots=True)
class RuleDetection:
    """What the rule says about a question."""

    ambiguous: bool
    explanation: str  # 30 words at most; "" for a clear question


def make_ambiguous(
    benchmark: Benchmark, *, share: float = 0.5, seed: int = 0
) -> tuple[Benchmark, dict[QueryId, str]]:
    """(benchmark, query → what its question lacks now, "" for those left clear).

    Of the queries in a random order, which `seed` and their ids determine, a `share`
    loses in turn the species' name ("of this moth") or the part; one that has no part
    loses the name. Ids, answers and labels stay. Questions about
    a picture of their own, which need no name, stay clear and are left out of the share.
    """
    open_ones = [each for each in benchmark.queries.values() if _droppable(each)]
    order = sorted(open_ones, key=lambda query: stream("ambiguous", seed, query.query_id).random())
    lacks = dict.fromkeys(benchmark.queries, "")
    queries = dict(benchmark.queries)
    for number, query in enumerate(order[: round(share * len(order))]):
        ways = _droppable(query)
        what = ways[number % len(ways)]
        lacks[query.query_id] = what
        queries[query.query_id] = replace(query, text=_without(query.text, what))
    named = f"{benchmark.fingerprint}/ambiguous/{share}/{seed}"
    fingerprint = hashlib.sha256(named.encode()).hexdigest()
    return replace(benchmark, fingerprint=fingerprint, queries=queries), lacks


def detect_by_rule(query: Query) -> RuleDetection:
    """Whether a question names neither species nor picture, or asks for a look without a
    part.

    It is a rule about the guide's wording, no reader of questions.
    """
    text = query.text
    if query.image is None and not _NAMED.search(text):
        return RuleDetection(True, "The question does not say which species it is about.")
    if _LOOK.search(text) and not _A_PART.search(text):
        return RuleDetection(True, "The question does not say which part is meant.")
    return RuleDetection(False, "")


def _droppable(query: Query) -> tuple[str, ...]:
    """What a question can lose."""
    if query.image is not None or not _NAME.search(query.text):
        return ()
    if _LOOK.search(query.text) and _A_PART.search(query.text):
        return (SUBJECT, PART)
    return (SUBJECT,)


def _without(text: str, what: str) -> str:
    if what == SUBJECT:
        return _NAME.sub(lambda found: f"this {_NOUNS.get(found['noun'], 'species')}", text)
    bare = _OF_PART.sub("", _HINT.sub("?", text))
    return bare.replace(" do ", " does ").replace("What color are ", "What color is ")
