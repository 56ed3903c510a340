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

import math
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from fractions import Fraction

import pandas as pd

from vrag_kit.judging.answered import no_reference_failure
from vrag_kit.judging.keypoints import keypoint_coverage
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.judging.rubric import Verdict, verdict_label
from vrag_kit.judging.scale import SHARES
from vrag_kit.judging.webqa_score import webqa_f1
from vrag_kit.types import Benchmark, Failure, Judgment, Query, Status

Metric = Callable[[Query, str], float]
TOLERANCE = Fraction(1, 20)
"""Maximum relative error of a number, compared with the accepted one."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NUMBER = re.compile(r"([-+]?)\s*[$€£]?\s*(\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)\s*%?\.?")
_NUMBER_OR_SIGN = re.compile(
    r"(?P<number>(?<![\w.])-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+))|[^\w\s]|_"
)


def normalised_em(query: Query, answer: str) -> float:
    """Return 1 for an exact match with an accepted answer, else 0; NaN without accepted answers.

    Case, punctuation, articles and surplus white space are ignored, as in SQuAD's evaluation
    (Rajpurkar et al. 2016). A number keeps its sign and its decimal point: 3.5 is not 35. Articles
    count where there is nothing else ("A").
    """
    if not query.answers:
        return math.nan
    return float(any(_same(answer, accepted) for accepted in query.answers))


def choice_accuracy(query: Query, answer: str) -> float:
    """Return 1 if the answer chooses a correct option by letter or text, else 0 (`read_choice`).
    An ambiguous choice scores 0. NaN for a query without options, or without an accepted answer
    among them.

    Options that are single letters themselves, as of a missing key, are compared as texts.
    """
    if not query.choices or not (right := correct_letters(query)):
        return math.nan
    reading = read_choice(answer, query.choices)
    if reading.options_are_letters:
        return normalised_em(query, answer)
    return float(reading.letter is not None and reading.letter in right)


def relaxed_accuracy(query: Query, answer: str) -> float:
    """Return 1 for a number within 5 % of an accepted one, or for `normalised_em` = 1, else 0.

    If the accepted number is 0, the number must equal it. NaN without accepted answers. Both texts
    must be a number and nothing else, but for "%" and a currency sign. Where the query's metadata
    say that the answer is no number ("is_numerical" is false), as for a year, it must match
    exactly. Follows VisRAG's evaluation (Yu et al. 2025), which reads more of an answer and loses a
    number's sign.
    """
    if not query.answers:
        return math.nan
    exact = normalised_em(query, answer)
    said = _number(answer)
    if exact or said is None or query.metadata.get("is_numerical") is False:
        return exact
    numbers = [_number(accepted) for accepted in query.answers]
    return float(any(_close(said, number) for number in numbers if number is not None))


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
        self._metric = OWN_METRICS[name]

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Return one verdict for each row of answers.
        Where the metric is NaN, the verdict is a failure with the reason.
        """
        pairs = zip(answers["query_id"], answers["answer"], strict=True)
        return [(self._verdict(benchmark.queries[name], answer),) for name, answer in pairs]

    def _verdict(self, query: Query, answer: str) -> Judgment:
        value = self._metric(query, answer)
        if not math.isnan(value):
            label = verdict_label(Verdict(value), SHARES)
            raw = f"{self.name}: {value:g}"
            return Judgment(answer_id="", label=label, score=value, raw=raw)
        if not query.answers:
            return no_reference_failure(query)
        words = f"query {query.query_id!r} has nothing that {self.name} compares with"
        return Judgment(answer_id="", label="", score=None, failure=Failure(Status.ERROR, words))


def _same(answer: str, accepted: str) -> bool:
    """Whether two texts are one but for the most that leaves something of either."""
    for plain in (_without_articles, _without_signs):
        one, other = plain(answer), plain(accepted)
        if one or other:
            return one == other
    return answer.split() == accepted.split()


def _without_articles(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", _without_signs(text)).split())


def _without_signs(text: str) -> str:
    """Lower case, without punctuation and surplus white space."""
    kept = _NUMBER_OR_SIGN.sub(_kept, text.lower().replace("−", "-"))
    return " ".join(kept.split())


def _kept(found: re.Match[str]) -> str:
    """A number without commas; of a sign nothing, if it is punctuation."""
    if number := found["number"]:
        return number.replace(",", "")
    sign = found[0]
    dropped = sign in string.punctuation or unicodedata.category(sign).startswith("P")
    return "" if dropped else sign


def _number(text: str) -> Fraction | None:
    """The number that a text is and nothing else, without "%"; None when it is none."""
    found = _NUMBER.fullmatch(text.strip().replace("−", "-"))
    if found is None:
        return None
    value = Fraction(found[2].replace(",", ""))
    return -value if found[1] == "-" else value


def _close(found: Fraction, accepted: Fraction) -> bool:
    return abs(found - accepted) <= TOLERANCE * abs(accepted)
