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

from vrag_kit.judging.judge import Judge
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.judging.rubric import Verdict, verdict_label
from vrag_kit.judging.scale import SHARES, no_reference_failure, ok_answers
from vrag_kit.judging.text import (
    Number,
    content_words,
    normalize_word,
    normalized_words,
    number_word,
    numbers_in,
)
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge
from vrag_kit.retrieval.entity_hit_rate import Pair, Relevance
from vrag_kit.types import Benchmark, Document, Failure, Judgment, Query, Status

_DATA = json.loads((Path(__file__).parent / "webqa_words.json").read_text(encoding="utf-8"))
WORDS: Mapping[str, frozenset[str]] = {
    category: frozenset(_DATA[category].split()) for category in ("color", "shape", "YesNo")
}
"""Category (Qcate) → the words that count in an answer."""
NUMBER = "number"
"""The category in which whole numbers count."""
_DROPPED = str.maketrans("", "", string.punctuation.replace(".", ""))
_WEBQA_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
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
        text = _WEBQA_ARTICLES.sub(" ", text)
    numbers = ((word, number_word(word)) for word in text.split())
    return [_PLURAL.sub("", word) if number is None else str(number) for word, number in numbers]


def rouge_recall(answer: str, references: Sequence[str]) -> float:
    """Return the share of a reference's distinct words that the answer has, in [0, 1].
    Of several references the highest counts, which is our choice: the paper does not say.

    Texts are not preprocessed. The package rejects texts that are empty or only full stops: here
    such an answer has 0, and such a reference is left out. NaN without any other reference.

    Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries".
    """
    from rouge import Rouge

    worded = [reference for reference in references if _has_words(reference)]
    if not worded:
        return math.nan
    if not _has_words(answer):
        return 0.0
    scores = Rouge(metrics=["rouge-1"], stats=["r"]).get_scores([answer] * len(worded), worded)
    return max(float(score["rouge-1"]["r"]) for score in scores)


def add_rouge(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Add the column rouge to a table of answers, judged or not: `rouge_recall`, in [0, 1].
    NaN where the call failed or the query's answers are hidden. An empty or truncated answer has 0.

    Equal answers to a query are scored once. Raises `VragError` for a row that answers no query.
    """
    good = ok_answers(benchmark, answers)
    pairs = set(zip(good["query_id"], good["answer"], strict=True))
    found = {
        (query_id, answer): rouge_recall(answer, benchmark.queries[query_id].answers)
        for query_id, answer in pairs
    }
    shares = []
    for query_id, answer, status in answers[["query_id", "answer", "status"]].itertuples(
        index=False
    ):
        silent = status != "ok" and Status(status).is_answer
        nothing = 0.0 if silent and benchmark.queries[query_id].answers else math.nan
        shares.append(found.get((query_id, answer), math.nan) if status == "ok" else nothing)
    return answers.assign(rouge=shares)


def _has_words(text: str) -> bool:
    return bool(text.strip("."))


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


PARTS = ("snippets", "full pages")
"""The parts of a page that may be read."""


def page_relevance(judge: Judge, benchmark: Benchmark, part: str) -> Relevance:
    """Return a function that decides whether a page contains the answer to a query, for `hit_rate`.
    `part` is "snippets", or "full pages" (the snippet of a page without full text).

    A text is judged as if it were the answer. It is relevant if the verdict is the best of the
    judge's scale, and None if that could not be parsed; each text is judged once. The truthfulness
    rule judge expects an answer of one sentence, and is replaced by `answer_in_page`. A page
    without text is not relevant.
    """
    if isinstance(judge, TruthfulnessRuleJudge):
        return lambda pairs: [
            answer_in_page(query, page, _text(page, part)) for query, page in pairs
        ]

    def relevance(pairs: Sequence[Pair]) -> list[bool | None]:
        texts = [(query.query_id, _text(page, part)) for query, page in pairs]
        table = pd.DataFrame(
            [pair for pair in dict.fromkeys(texts) if pair[1]], columns=["query_id", "answer"]
        )
        known: dict[tuple[str, str], bool | None] = {}
        pages = zip(table["query_id"], table["answer"], judge.judge(benchmark, table), strict=True)
        for query_id, text, verdicts in pages:
            score = verdicts[0].score
            known[query_id, text] = None if score is None else score == judge.scale.best
        return [known[pair] if pair[1] else False for pair in texts]

    return relevance


def answer_in_page(query: Query, page: Document, text: str) -> bool:
    """Return whether a page names the query's entity and contains an accepted answer.
    The entity may be in its title or text. The text must have every content word of an accepted
    answer that the question lacks; where it lacks none, every content word.

    A query without a known entity needs no name. This rule suits regular sentences: real pages
    paraphrase.
    """
    title = str(page.metadata.get("page_name") or "")
    there = normalized_words(text)
    if query.entity and not normalized_words(query.entity) <= normalized_words(f"{title} {text}"):
        return False
    for answer in query.answers:
        words = {
            normalize_word(word) for word in content_words(answer, normalized_words(query.text))
        }
        wanted = words or normalized_words(answer)
        if wanted and wanted <= there:
            return True
    return False


def _text(page: Document, part: str) -> str:
    snippet = page.text or ""
    return snippet if part == PARTS[0] else str(page.metadata.get("page_result") or snippet)


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
