"""Extract claims from answers and check them against evidence: with a language model, or with a
grammar of the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Protocol

from vrag_kit.claims.prompts import WORDS, checking_request, extraction_request
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimChecker,
    Claims,
    EntailmentLabel,
    EntailmentRequest,
    Label,
)
from vrag_kit.config import GREEDY, Entry, check_choice, custom_spec
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.llm_judge import ParsedReply, StructuredAsker
from vrag_kit.types import Failure
from vrag_kit.workspace import Workspace

MAX_CLAIMS = 5
"""Maximum number of claims per call, as in RAGChecker."""
MAX_TOKENS = 512
"""Maximum length of a reply, in tokens."""
_WORDS_A_CLAIM = 8
"""In a dry run an answer makes a claim for every so many words."""
RULE = "rule"
"""Parameter value that selects the rule-based extractor and checker."""


class ModelExtractor:
    """Extracts claims with a language model; implements `ClaimExtractor`."""

    def __init__(self, asker: StructuredAsker) -> None:
        self.name = asker.generator.name
        self._asker = asker

    def extract(self, texts: Sequence[AnswerText]) -> list[Claims | Failure]:
        """Return the claims of each text; in a dry run, an estimated number of placeholders."""
        replies = self._asker.ask([extraction_request(text) for text in texts])
        return list(map(_claims, texts, replies))


class ModelChecker:
    """Checks up to five claims and one item per call of a model; implements `ClaimChecker`.

    The model sees the item as the answerer did, images by their pixels.
    """

    def __init__(self, asker: StructuredAsker) -> None:
        self.name = asker.generator.name
        self.fingerprint = asker.generator.fingerprint
        self._asker = asker

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return for each request one label per claim.
        If the labels of a call stay unparsed after one retry, none of its claims has a label. In a
        dry run all are NEUTRAL.
        """
        calls = list(chain.from_iterable(map(_calls, requests)))
        replies = self._asker.ask([checking_request(call) for call in calls])
        labels = chain.from_iterable(map(_labels, calls, replies))
        return [tuple(islice(labels, len(request.claims))) for request in requests]


def load_extractor(entry: Entry, at: Workspace) -> ModelExtractor:
    """Load the model that `entry` names, as for `load_generator`, as claim extractor.
    Its replies are stored as answers are.

    It decodes greedily unless its entry says otherwise. Raises `VragError` as `load_generator`
    does.
    """
    return ModelExtractor(_asker(entry, at, "claims", "extract"))


def load_checker(
    entry: Entry,
    at: Workspace,
    *,
    answerers: Sequence[Entry] = (),
) -> ModelChecker:
    """Load the model that `entry` names as claim checker, as `load_extractor` does.

    Raises `VragError` if it is the checkpoint of one of the `answerers`: a model tends to confirm
    its own hallucinations.
    """
    forbid_self_check(entry, answerers)
    return ModelChecker(_asker(entry, at, "verdicts on claims", "check"))


def forbid_self_check(checker: Entry, answerers: Sequence[Entry]) -> None:
    """Raise `VragError` if the checker has the checkpoint of one of the `answerers`.
    Endpoint and name make no difference.
    """
    if _checkpoint(checker) in map(_checkpoint, answerers):
        raise VragError(
            f"checker {_model(checker)!r}: it is an answerer too, and would confirm its own errors."
        )


def _asker(entry: Entry, at: Workspace, what: str, task: str) -> StructuredAsker:
    check_choice(entry, [RULE], "extractor" if task == "extract" else "checker")
    decoding = {**GREEDY, "max_new_tokens": MAX_TOKENS}
    repair = str(WORDS[task]["repair"])
    return StructuredAsker(
        generator=load_generator(entry, decoding=decoding, at=at),
        at=at,
        what=what,
        repair=lambda reason: repair.format(reason=reason),
    )


def _claims(text: AnswerText, reply: ParsedReply[Claims]) -> Claims | Failure:
    if reply.foreseen:
        n = max(1, len(text.words.split()) // _WORDS_A_CLAIM)
        return tuple(f"claim {number} of: {text.words}" for number in range(1, n + 1))
    return reply.failure or reply.value or ()


def _calls(request: EntailmentRequest) -> list[EntailmentRequest]:
    """The request in calls of a few claims."""
    starts = range(0, len(request.claims), MAX_CLAIMS)
    return [replace(request, claims=request.claims[start : start + MAX_CLAIMS]) for start in starts]


def _labels(
    call: EntailmentRequest, reply: ParsedReply[tuple[EntailmentLabel, ...]]
) -> tuple[Label, ...]:
    without = EntailmentLabel.NEUTRAL if reply.foreseen else None
    return reply.value or (without,) * len(call.claims)


def _model(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry.get("model"))


def _checkpoint(entry: Entry) -> str:
    """Identifies the weights of a model, wherever it runs; of a custom class with its options."""
    if custom_spec(entry):
        options = {**({"model": entry} if isinstance(entry, str) else entry), "name": ""}
        return repr(sorted(options.items()))
    folder = project_path(_model(entry))
    return str(folder.resolve()) if folder.is_dir() else _model(entry).partition("@")[0].strip()


class Grammar(Protocol):
    """Splits the texts of a language into claims, and relates claims to texts."""

    def claims(self, question: str, words: str) -> Sequence[str]:
        """Return the facts in an answer to a question, one sentence each, without duplicates.
        Empty for an answer without a fact.
        """

    def relation(self, claim: str, text: str) -> Label:
        """Return the relation of a text to one of these claims.
        None for a claim that the grammar cannot parse.
        """


class RuleExtractor:
    """Extracts claims with a grammar; implements `ClaimExtractor`."""

    name = RULE

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def extract(self, texts: Sequence[AnswerText]) -> list[Claims | Failure]:
        """Return the claims that the grammar finds in each text."""
        return [tuple(self._grammar.claims(text.question, text.words)) for text in texts]


class RuleChecker:
    """Checks claims against texts with a grammar; implements `ClaimChecker`.

    Rules cannot read images. Items with an image go to the `image_checker`; without that
    checker, claims about them get no label.
    """

    name = RULE

    def __init__(self, grammar: Grammar, image_checker: ClaimChecker | None = None) -> None:
        self.fingerprint = image_checker.fingerprint if image_checker else ""
        self._grammar, self._image_checker = grammar, image_checker

    def check(self, requests: Sequence[EntailmentRequest]) -> list[tuple[Label, ...]]:
        """Return for each request one label per claim."""
        images = [request for request in requests if request.item.image is not None]
        found: list[tuple[Label, ...]] = [(None,) * len(request.claims) for request in images]
        if self._image_checker and images:
            found = self._image_checker.check(images)
        by_image = iter(found)
        return [
            self._labels(request) if request.item.image is None else next(by_image)
            for request in requests
        ]

    def _labels(self, request: EntailmentRequest) -> tuple[Label, ...]:
        text = request.item.text or ""
        return tuple(self._grammar.relation(claim, text) for claim in request.claims)
