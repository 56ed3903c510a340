"""Extract claims from answers, and check them against evidence, with a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vrag_kit.claims.prompts import WORDS, checking_prompt, extraction_prompt
from vrag_kit.claims.verdicts import (
    AnswerText,
    ClaimExtraction,
    EntailmentLabel,
    EntailmentRequest,
    failed_verdict,
    verdict,
)
from vrag_kit.config import Entry
from vrag_kit.custom import custom_spec
from vrag_kit.errors import VragError
from vrag_kit.judging.llm_judge import ParsedReply, StructuredAsker
from vrag_kit.types import PLACEHOLDER, Judgment
from vrag_kit.workspace import path as project_path

AT_ONCE = 5
"""Maximum number of claims per call, as in RAGChecker."""
MOST_TOKENS = 512
"""Maximum length of a reply, in tokens."""
_WORDS_A_CLAIM = 8
"""In a dry run an answer makes a claim for every so many words."""


class ModelExtractor:
    """Extracts claims with a language model; implements `ClaimExtractor`."""

    def __init__(self, asker: StructuredAsker) -> None:
        self.name = asker.generator.name
        self._asker = asker

    def extract(self, texts: Sequence[AnswerText]) -> list[ClaimExtraction]:
        """Return the claims of each text; in a dry run, an estimated number of placeholders."""
        readings = self._asker.ask([extraction_prompt(each) for each in texts])
        return [_extraction(each, found) for each, found in zip(texts, readings, strict=True)]


class ModelChecker:
    """Checks up to five claims and one item per call of a model; implements `ClaimChecker`.

    The model sees the item as the answerer did, images by their pixels.
    """

    def __init__(self, asker: StructuredAsker) -> None:
        self.name = asker.generator.name
        self.fingerprint = asker.generator.fingerprint
        self._asker = asker

    def check(self, checkings: Sequence[EntailmentRequest]) -> list[tuple[Judgment, ...]]:
        """Return for each request one judgment per claim.
        If the labels of a call stay unparsed after one retry, none of its claims has a label. In a
        dry run all are NEUTRAL, and marked.
        """
        calls = list(chain.from_iterable(map(_calls, checkings)))
        readings = self._asker.ask([checking_prompt(call) for call in calls])
        judgments = chain.from_iterable(map(_judgments, calls, readings))
        return [tuple(islice(judgments, len(each.claims))) for each in checkings]


def load_extractor(
    entry: Entry,
    answers_dir: Path | str,
    *,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> ModelExtractor:
    """Load the model that `entry` names, as for `load_generator`, as claim extractor.
    Its replies are stored in `answers_dir`, as answers are.

    It decodes greedily unless its entry says otherwise. `hardware` names fields of `Hardware`.
    Raises `VragError` as `load_generator` does.
    """
    return ModelExtractor(_asker(entry, answers_dir, "claims", "extract", hardware))


def load_checker(
    entry: Entry,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    hardware: Mapping[str, Any] | None = None,  # likewise
) -> ModelChecker:
    """Load the model that `entry` names as claim checker, as `load_extractor` does.

    Raises `VragError` if it is the checkpoint of one of the `answerers`: a model tends to confirm
    its own hallucinations.
    """
    forbid_self_check(entry, answerers)
    return ModelChecker(_asker(entry, answers_dir, "verdicts on claims", "check", hardware))


def forbid_self_check(checker: Entry, answerers: Sequence[Entry]) -> None:
    """Raise `VragError` if the checker has the checkpoint of one of the `answerers`.
    Endpoint and name make no difference.
    """
    for entry in answerers:
        if _checkpoint(entry) == _checkpoint(checker):
            raise VragError(
                f"checker {_spec(checker)!r}: it is an answerer too, and would check its own claims"
                " by the same eyes. Set `checker` to another checkpoint, or take it out of"
                " `models`."
            )


def _asker(
    entry: Entry,
    answers_dir: Path | str,
    what: str,
    words: str,
    hardware: Mapping[str, Any] | None,
) -> StructuredAsker:
    from vrag_kit.config import GREEDY, hardware_of
    from vrag_kit.generation.generators import load_generator

    hardware = {"batch_size": 8, **(hardware or {})}
    decoding = {**GREEDY, "max_new_tokens": MOST_TOKENS}
    generator = load_generator(entry, decoding=decoding, hardware=hardware)
    again = str(WORDS[words]["repair"])
    return StructuredAsker(
        generator=generator,
        answers_dir=Path(answers_dir),
        hardware=hardware_of(hardware),
        what=what,
        repair=lambda reason: again.format(reason=reason),
    )


def _extraction(text: AnswerText, reading: ParsedReply[tuple[str, ...]]) -> ClaimExtraction:
    if reading.foreseen:
        many = max(1, len(text.words.split()) // _WORDS_A_CLAIM)
        claims = tuple(f"claim {n} of: {text.words}" for n in range(1, many + 1))
        return ClaimExtraction(claims=claims, raw=reading.raw)
    return ClaimExtraction(claims=reading.value or (), raw=reading.raw, failure=reading.failure)


def _calls(checking: EntailmentRequest) -> list[EntailmentRequest]:
    """The same in calls of a few claims."""
    starts = range(0, len(checking.claims), AT_ONCE)
    return [replace(checking, claims=checking.claims[start : start + AT_ONCE]) for start in starts]


def _judgments(
    call: EntailmentRequest, reading: ParsedReply[tuple[EntailmentLabel, ...]]
) -> list[Judgment]:
    if reading.failure is not None:
        return [
            failed_verdict(claim, call.item, reading.failure, reading.raw) for claim in call.claims
        ]
    if reading.value is None:
        nobody = [verdict(claim, call.item, EntailmentLabel.NEUTRAL) for claim in call.claims]
        return [replace(each, marks=frozenset({PLACEHOLDER})) for each in nobody]
    pairs = zip(call.claims, reading.value, strict=True)
    return [verdict(claim, call.item, relation, reading.raw) for claim, relation in pairs]


def _spec(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry.get("model"))


def _checkpoint(entry: Entry) -> str:
    """What a model is whose weights are the same, wherever it runs; of a class of one's own
    the options tell which it is.
    """
    if custom_spec(entry):
        options = dict(entry) if isinstance(entry, Mapping) else {"model": entry}
        options.pop("name", None)
        return repr(sorted(options.items()))
    folder = project_path(_spec(entry))
    return str(folder.resolve()) if folder.is_dir() else _spec(entry).partition("@")[0].strip()
