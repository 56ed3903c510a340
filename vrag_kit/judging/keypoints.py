"""Which keypoints of a question an answer tells, by a rule that compares numbers and
words.
"""

from __future__ import annotations

import math

from vrag_kit.judging.numbers import Number, numbers_in
from vrag_kit.judging.truth_words import content, plain, plain_words
from vrag_kit.types import Query


def keypoint_coverage(query: Query, answer: str) -> float:
    """The share of the query's keypoints (its metadata's "gold_claims") that the answer
    tells, in [0, 1]; NaN for a query without any.

    A keypoint is told where the answer has all of its numbers that the question has not,
    in whatever unit and spelling; where there are none, all of its content words that
    the question has not. Chart-MRAG (Yang et al. 2025) has a language model decide the
    same, which understands other words and denials.
    """
    keypoints = [str(each) for each in query.metadata.get("gold_claims") or ()]
    if not keypoints:
        return math.nan
    return sum(tells(answer, keypoint, query.text) for keypoint in keypoints) / len(keypoints)


def tells(answer: str, keypoint: str, question: str) -> bool:
    """Whether an answer to a question tells a keypoint; see `keypoint_coverage`. What
    the question itself tells counts where the keypoint has nothing else.
    """
    asked = numbers_in(question, words=True)
    numbers = [each for each in numbers_in(keypoint, words=True) if not _among(each, asked)]
    if numbers:
        said = numbers_in(answer, words=True)
        return all(_among(each, said) for each in numbers)
    known = plain_words(question)
    words = {plain(word) for word in content(keypoint, known)} or plain_words(keypoint)
    return bool(words) and words <= plain_words(answer)


def _among(number: Number, others: list[Number]) -> bool:
    return any(number.equals(other) for other in others)
