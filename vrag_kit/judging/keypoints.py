"""Coverage of a question's keypoints, by a rule that compares numbers and words."""

from __future__ import annotations

import math

from vrag_kit.judging.numbers import Number, numbers_in
from vrag_kit.judging.text import content_words, normalize_word, normalized_words
from vrag_kit.types import Query


def keypoint_coverage(query: Query, answer: str) -> float:
    """Return the share of the query's keypoints that the answer states, in [0, 1].
    Keypoints are "gold_claims" in the query's metadata; NaN for a query without any.

    A keypoint is stated if the answer has all of its numbers that the question lacks, in any unit
    and spelling. Without such numbers, it needs all content words that the question lacks.
    Chart-MRAG (Yang et al. 2025) lets a language model decide this, which understands paraphrases
    and negation.
    """
    keypoints = [str(each) for each in query.metadata.get("gold_claims") or ()]
    if not keypoints:
        return math.nan
    return sum(mentions_keypoint(answer, keypoint, query.text) for keypoint in keypoints) / len(
        keypoints
    )


def mentions_keypoint(answer: str, keypoint: str, question: str) -> bool:
    """Return whether an answer to a question states a keypoint; see `keypoint_coverage`.
    Words of the question count only where the keypoint has no others.
    """
    asked = numbers_in(question, words=True)
    numbers = [each for each in numbers_in(keypoint, words=True) if not _among(each, asked)]
    if numbers:
        said = numbers_in(answer, words=True)
        return all(_among(each, said) for each in numbers)
    known = normalized_words(question)
    words = {normalize_word(word) for word in content_words(keypoint, known)} or normalized_words(
        keypoint
    )
    return bool(words) and words <= normalized_words(answer)


def _among(number: Number, others: list[Number]) -> bool:
    return any(number.equals(other) for other in others)
