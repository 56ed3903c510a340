"""Claims taken out of answers, and held against evidence, by a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.forecast import STAND_IN
from vrag_kit.judging.claims import Checking, Extraction, Relation, Said, related, unrelated
from vrag_kit.judging.claims_words import WORDS, to_check, to_extract
from vrag_kit.judging.strict import Reading, StrictAsker
from vrag_kit.options import Entry
from vrag_kit.own_classes import own_spec
from vrag_kit.types import Judgment
from vrag_kit.workspace import path as project_path

AT_ONCE = 5
"""Claims in a call, at most, as in RAGChecker."""
MOST_TOKENS = 512
"""Longest reply."""
_WORDS_A_CLAIM = 8
"""In a forecast an answer makes a claim for every so many words."""


class ModelExtractor:
    """Asks a model for the facts in some words; implements `ClaimExtractor`."""

    def __init__(self, asker: StrictAsker) -> None:
        self.name = asker.generator.name
        self._asker = asker

    def extract(self, said: Sequence[Said]) -> list[Extraction]:
        """The claims in each; in a forecast about as many as there may be."""
        readings = self._asker.ask([to_extract(each) for each in said])
        return [_extraction(each, found) for each, found in zip(said, readings, strict=True)]


class ModelChecker:
    """Asks a model about five claims at most and one item; implements `ClaimChecker`.

    The model sees the item as the answerer did, pictures by their pixels.
    """

    def __init__(self, asker: StrictAsker) -> None:
        self.name = asker.generator.name
        self.fingerprint = asker.generator.fingerprint
        self._asker = asker

    def check(self, checkings: Sequence[Checking]) -> list[tuple[Judgment, ...]]:
        """For each checking one judgment a claim; where the labels of a call cannot be
        read, even when asked for again, none of its claims has one. In a forecast all
        are NEUTRAL, and marked.
        """
        calls = list(chain.from_iterable(map(_calls, checkings)))
        readings = self._asker.ask([to_check(call) for call in calls])
        judgments = chain.from_iterable(map(_judgments, calls, readings))
        return [tuple(islice(judgments, len(each.claims))) for each in checkings]


def load_extractor(
    entry: Entry,
    answers_dir: Path | str,
    *,
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> ModelExtractor:
    """The model that `entry` names as `load_generator` takes it, as extractor; its words
    are kept in `answers_dir`, as answers are.

    It decodes greedily unless its entry says otherwise. Of `run_with` device, batch_size
    and retry_failures count here too. Raises `VragError` as `load_generator` does.
    """
    return ModelExtractor(_asker(entry, answers_dir, "claims", "extract", run_with))


def load_checker(
    entry: Entry,
    answers_dir: Path | str,
    *,
    answerers: Sequence[Entry] = (),
    run_with: Mapping[str, Any] | None = None,  # likewise
) -> ModelChecker:
    """The model that `entry` names as checker, as `load_extractor` has it.

    Raises `VragError` where it is the checkpoint of one of the `answerers`: who made a
    thing up sees it when looking again.
    """
    refuse_own_eyes(entry, answerers)
    return ModelChecker(_asker(entry, answers_dir, "verdicts on claims", "check", run_with))


def refuse_own_eyes(checker: Entry, answerers: Sequence[Entry]) -> None:
    """Raise `VragError` where the checkpoint of one of the `answerers` would check
    claims, at whatever endpoint and by whatever name.
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
    run_with: Mapping[str, Any] | None,
) -> StrictAsker:
    from vrag_kit.generation.asking_options import Asking
    from vrag_kit.generation.loading import load_generator

    default = Asking(decoding="greedy", max_new_tokens=MOST_TOKENS, batch_size=8)
    how = Asking.beside_answerers(run_with or {}, default)
    generator = load_generator(
        entry,
        device=how.device,
        decoding=how.decoding,
        max_new_tokens=how.max_new_tokens,
        concurrency=how.batch_size,
    )
    again = str(WORDS[words]["repair"])
    return StrictAsker(
        generator=generator,
        answers_dir=Path(answers_dir),
        how=how,
        what=what,
        repair=lambda reason: again.format(reason=reason),
    )


def _extraction(said: Said, reading: Reading[tuple[str, ...]]) -> Extraction:
    if reading.foreseen:
        many = max(1, len(said.words.split()) // _WORDS_A_CLAIM)
        claims = tuple(f"claim {n} of: {said.words}" for n in range(1, many + 1))
        return Extraction(claims=claims, raw=reading.raw)
    return Extraction(claims=reading.value or (), raw=reading.raw, failure=reading.failure)


def _calls(checking: Checking) -> list[Checking]:
    """The same in calls of a few claims."""
    starts = range(0, len(checking.claims), AT_ONCE)
    return [replace(checking, claims=checking.claims[start : start + AT_ONCE]) for start in starts]


def _judgments(call: Checking, reading: Reading[tuple[Relation, ...]]) -> list[Judgment]:
    if reading.failure is not None:
        return [unrelated(claim, call.item, reading.failure, reading.raw) for claim in call.claims]
    if reading.value is None:
        nobody = [related(claim, call.item, Relation.NEUTRAL) for claim in call.claims]
        return [replace(each, marks=frozenset({STAND_IN})) for each in nobody]
    pairs = zip(call.claims, reading.value, strict=True)
    return [related(claim, call.item, relation, reading.raw) for claim, relation in pairs]


def _spec(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry.get("model"))


def _checkpoint(entry: Entry) -> str:
    """What a model is whose weights are the same, wherever it runs; of a class of one's own
    the options tell which it is.
    """
    if own_spec(entry):
        options = dict(entry) if isinstance(entry, Mapping) else {"model": entry}
        options.pop("name", None)
        return repr(sorted(options.items()))
    folder = project_path(_spec(entry))
    return str(folder.resolve()) if folder.is_dir() else _spec(entry).partition("@")[0].strip()
