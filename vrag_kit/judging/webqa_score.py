"""WebQA's metric of an answer: F1 of the words of its question's category, or recall of all."""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from vrag_kit.judging.numbers import number_word
from vrag_kit.types import Query

_DATA = json.loads((Path(__file__).parent / "webqa_words.json").read_text(encoding="utf-8"))
WORDS: Mapping[str, frozenset[str]] = {
    category: frozenset(_DATA[category].split()) for category in ("color", "shape", "YesNo")
}
"""Category (Qcate) → the words that count in an answer."""
NUMBER = "number"
"""The category in which whole numbers count."""
_DROPPED = str.maketrans("", "", string.punctuation.replace(".", ""))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PLURAL = re.compile(r"(?<=[a-z]{3})(?<![sui])s\b")


def webqa_f1(query: Query, answer: str) -> float:
    """Return WebQA's score of an answer, in [0, 1]: the best over the accepted answers.
    For the categories color, shape, number and YesNo (metadata "category") it is the F1 of the
    words that count in them. For any other it is the recall of the accepted answer's words.

    NaN where no accepted answer has a word that counts. Follows WebQA's own script (Chang et al.
    2022), with three differences. That script compares with key words, which only hidden test
    answers have; on public ones its authors use the answer itself, as here. It takes lemmas by a
    language model; here the s of a plural is dropped. It gives 0 where here is NaN.
    """
    category = str(query.metadata.get("category", ""))
    said = _counted(answer, category)
    wanted = [_counted(accepted, category) for accepted in query.answers]
    by_f1 = category in WORDS or category == NUMBER
    scores = [_score(said, words, f1=by_f1) for words in wanted if words]
    return max(scores, default=math.nan)


def _score(found: Counter[str], wanted: Counter[str], *, f1: bool) -> float:
    same = (found & wanted).total()
    return 2 * same / (found.total() + wanted.total()) if f1 else same / wanted.total()


def _counted(text: str, category: str) -> Counter[str]:
    """The words of a text that count; of a list of words each once."""
    words = _normal(text)
    if category == NUMBER:
        return Counter(str(int(word)) for word in words if word.isdecimal())
    return Counter(WORDS[category].intersection(words) if category in WORDS else words)


def _normal(text: str) -> list[str]:
    """Words in lower case, without punctuation and articles, numbers in figures."""
    text = re.sub(r"\.(?!\d)", "", text.lower().translate(_DROPPED))
    if len(text.split()) > 1:
        text = _ARTICLES.sub(" ", text)
    numbers = ((word, number_word(word)) for word in text.split())
    return [_PLURAL.sub("", word) if number is None else str(number) for word, number in numbers]
