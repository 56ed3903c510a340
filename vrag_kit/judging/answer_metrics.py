"""Answer metrics of data sets, each under its own name.
None is called "accuracy", as they measure different things.

| metric | value | data sets |
|---|---|---|
| normalised_em | {0, 1}: an accepted answer, ignoring case, punctuation and articles | any |
| choice_accuracy | {0, 1}: the correct option, by letter or text | MRAG-Bench, ArxivQA |
| relaxed_accuracy | {0, 1}: a number within 5 %, else normalised_em | PlotQA, ChartQA |
| keypoint_coverage | [0, 1]: the share of keypoints that the answer states, by rule | Chart-MRAG |
| webqa_f1 | [0, 1]: F1 of the category's words, or recall of all | WebQA |

Each is a function of a query and an answer. It returns the best value over the accepted answers,
and NaN where the query has nothing to compare with.
"""

from __future__ import annotations

import json
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pandas as pd

from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.judging.scale import SHARES, ok_answers, query_answers
from vrag_kit.judging.text import NUMBER_WORDS, new_numbers, normalized_words, numbers_in
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status

_DATA = json.loads((Path(__file__).parent / "webqa_words.json").read_text(encoding="utf-8"))
_WEBQA_WORDS = {name: frozenset(_DATA[name].split()) for name in ("color", "shape", "YesNo")}
_DROPPED = str.maketrans("", "", string.punctuation.replace(".", ""))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PLURAL = re.compile(r"(?<=[a-z]{3})(?<![sui])s\b")
_FIGURE = r"(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"
_NUMBER_ALONE = re.compile(rf"([-+]?)\s*[$€£]?\s*({_FIGURE})\s*%?\.?")
_NUMBER_OR_SIGN = re.compile(rf"(?P<number>(?<![\w.])-?{_FIGURE})|[^\w\s]|_")
TOLERANCE = Fraction(1, 20)
"""Maximum relative error of a number, compared with the accepted one."""
Metric = Callable[[Query, str], float]


def normalised_em(query: Query, answer: str) -> float:
    """Return 1 for an exact match with an accepted answer, else 0; NaN without accepted answers.

    Case, punctuation, articles and surplus white space are ignored, as in SQuAD's evaluation
    (Rajpurkar et al. 2016). A number keeps its sign and its decimal point: 3.5 is not 35. Articles
    count where there is nothing else ("A").
    """
    if not query.answers:
        return math.nan
    return float(_normalized(answer) in map(_normalized, query.answers))


def _normalized(text: str) -> str:
    """Lower case without punctuation and articles, as far as that leaves something."""
    signless = _NUMBER_OR_SIGN.sub(_number_or_symbol, text.lower().replace("−", "-"))
    forms = (_ARTICLES.sub(" ", signless), signless, text)
    return next((" ".join(form.split()) for form in forms if form.strip()), "")


def _number_or_symbol(found: re.Match[str]) -> str:
    sign = found[0]
    if found["number"]:
        return sign.replace(",", "")
    dropped = sign in string.punctuation or unicodedata.category(sign).startswith("P")
    return "" if dropped else sign


def choice_accuracy(query: Query, answer: str) -> float:
    """Return 1 if the answer chooses a correct option by letter or text, else 0 (`read_choice`).
    An ambiguous choice scores 0. NaN for a query without options, or without an accepted answer
    among them.

    Options that are single letters themselves, as of a missing key, are compared as texts.
    """
    if not query.choices or not (right := correct_letters(query)):
        return math.nan
    choice = read_choice(answer, query.choices)
    if choice.options_are_letters:
        return normalised_em(query, answer)
    return float(choice.letter is not None and choice.letter in right)


def relaxed_accuracy(query: Query, answer: str) -> float:
    """Return 1 for a number within 5 % of an accepted one, or for `normalised_em` = 1, else 0.

    If the accepted number is 0, the number must equal it. NaN without accepted answers. Both texts
    must be a number and nothing else, but for "%" and a currency sign. Where the query's metadata
    say that the answer is no number ("is_numerical" is false), as for a year, it must match
    exactly. Follows VisRAG's evaluation (Yu et al. 2025), which reads more of an answer and loses a
    number's sign.
    """
    exact, found = normalised_em(query, answer), _number(answer)
    if not query.answers or found is None or query.metadata.get("is_numerical") is False:
        return exact
    numbers = [number for each in query.answers if (number := _number(each)) is not None]
    close = any(abs(found - number) <= TOLERANCE * abs(number) for number in numbers)
    return float(exact or close)


def _number(text: str) -> Fraction | None:
    """The number that a text is and nothing else, without "%"; None when it is none."""
    found = _NUMBER_ALONE.fullmatch(text.strip().replace("−", "-"))
    return Fraction(found[1] + found[2].replace(",", "")) if found else None


def keypoint_coverage(query: Query, answer: str) -> float:
    """Return the share of the query's keypoints that the answer states, in [0, 1].
    Keypoints are "gold_claims" in the query's metadata; NaN for a query without any.

    A keypoint is stated if the answer has all of its numbers that the question lacks, in any unit
    and spelling. Without such numbers, it needs all content words that the question lacks, or all
    of its content words where the question lacks none. Chart-MRAG (Yang et al. 2025) lets a
    language model decide this, which understands paraphrases and negation.
    """
    keypoints = [str(keypoint) for keypoint in query.metadata.get("gold_claims") or ()]
    if not keypoints:
        return math.nan
    return sum(_states(answer, keypoint, query.text) for keypoint in keypoints) / len(keypoints)


def _states(answer: str, keypoint: str, question: str) -> bool:
    if numbers := new_numbers(keypoint, question, words=True):
        found = numbers_in(answer, words=True)
        return all(number.is_among(found) for number in numbers)
    return has_new_words(answer, keypoint, question)


def has_new_words(text: str, wanted: str, question: str) -> bool:
    """Return whether a text has all content words of `wanted` that the question lacks; all of them
    where it lacks none.
    """
    words = normalized_words(wanted, normalized_words(question)) or normalized_words(wanted)
    return bool(words) and words <= normalized_words(text)


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
    found = _webqa_words(answer, category)
    scores = []
    for wanted in (_webqa_words(accepted, category) for accepted in query.answers):
        same, size = (found & wanted).total(), wanted.total()
        if size and (category in _WEBQA_WORDS or category == "number"):
            scores.append(2 * same / (found.total() + size))
        elif size:
            scores.append(same / size)
    return max(scores, default=math.nan)


def _webqa_words(text: str, category: str) -> Counter[str]:
    """The words of a text that count in a category; of a list of words each once."""
    text = re.sub(r"\.(?!\d)", "", text.lower().translate(_DROPPED))
    if len(text.split()) > 1:
        text = _ARTICLES.sub(" ", text)
    words = [str(NUMBER_WORDS.get(word, _PLURAL.sub("", word))) for word in text.split()]
    if category == "number":
        return Counter(str(int(word)) for word in words if word.isdecimal())
    return Counter(
        _WEBQA_WORDS[category].intersection(words) if category in _WEBQA_WORDS else words
    )


OWN_METRICS: Mapping[str, Metric] = {
    "normalised_em": normalised_em,
    "choice_accuracy": choice_accuracy,
    "relaxed_accuracy": relaxed_accuracy,
    "keypoint_coverage": keypoint_coverage,
    "webqa_f1": webqa_f1,
}
"""Metrics by their name in parameters and tables."""


class MetricJudge:
    """Scores answers by one of `OWN_METRICS`; implements `Judge`."""

    scale = SHARES

    def __init__(self, name: str) -> None:
        """`name` is a key of `OWN_METRICS`."""
        self.name = name

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers.
        Where the metric is NaN, the verdict is a failure with the reason.
        """
        return [(self._verdict(*pair),) for pair in query_answers(benchmark, answers)]

    def _verdict(self, query: Query, answer: str) -> Judgment:
        value = OWN_METRICS[self.name](query, answer)
        if math.isnan(value):
            words = f"query {query.query_id!r} has nothing that {self.name} compares with"
            return Judgment(score=None, failure=Failure(Status.ERROR, words))
        return Judgment(score=value, raw=f"{self.name}: {value:g}")


def rouge_recall(answer: str, references: Sequence[str]) -> float:
    """Return the share of a reference's distinct words that the answer has, in [0, 1].
    Of several references the highest counts, which is our choice: the paper does not say.

    Texts are not preprocessed. The package rejects texts that are empty or only full stops: here
    such an answer has 0, and such a reference is left out. NaN without any other reference.

    Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries".
    """
    from rouge import Rouge

    references = [reference for reference in references if reference.strip(".")]
    if not references:
        return math.nan
    if not answer.strip("."):
        return 0.0
    rouge = Rouge(metrics=["rouge-1"], stats=["r"])
    scores = rouge.get_scores([answer] * len(references), references)
    return max(float(score["rouge-1"]["r"]) for score in scores)


def add_rouge(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Add the column rouge to a table of answers, judged or not: `rouge_recall`, in [0, 1].
    NaN where the call failed or the query's answers are hidden. An empty or truncated answer has 0.

    Raises `VragError` for a row that answers no query.
    """
    ok_answers(benchmark, answers)
    rows = zip(answers["query_id"], answers["answer"], answers["status"], strict=True)
    shares = []
    for query_id, answer, status in rows:
        references = benchmark.queries[query_id].answers if Status(status).is_answer else ()
        shares.append(rouge_recall(answer if status == "ok" else "", references))
    return answers.assign(rouge=shares)
