"""Judge of multiple-choice answers: 1 for the correct option, 0 for any other answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.config import GREEDY, Entry
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, Task, ask_prompts, load_generator
from vrag_kit.judging import SHARES
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.judging.scale import no_reference_failure, query_answers
from vrag_kit.plotting import outcome_bars
from vrag_kit.plotting.style import DARK, MODEL, OUTCOME
from vrag_kit.types import Benchmark, Judgment, Message, Prompt, Query, Status
from vrag_kit.workspace import Workspace

_NO_CHOICE = frozenset({"ambiguous", "declined", "unparsed", "empty"})
"""Marks of an answer that chooses no option, or several."""


class MultipleChoiceJudge:
    """Parses the chosen option and compares it with the correct one; implements `Judge`.

    A verdict's text is the parsed choice ("B tagged", "ambiguous A, B (letter in text)"), and its
    marks name the rule. Ambiguous, abstaining or unparsed answers score 0, and are marked
    "ambiguous", "abstention" or "unparsed". Letters are never guessed at random. A query whose
    answers are hidden gets no score. Raises `VragError` for a query without options.
    """

    name = "choice"
    scale = SHARES

    def judge(self, benchmark: Benchmark, answers: pd.DataFrame) -> list[tuple[Judgment, ...]]:
        """Returns one verdict for each row of answers."""
        return [(self.judge_one(*pair),) for pair in query_answers(benchmark, answers)]

    def judge_one(self, query: Query, answer: str) -> Judgment:
        """Judges one answer to a query."""
        if not query.choices:
            raise VragError(f"query {query.query_id!r}: found no options; expected some to choose.")
        if not query.answers:
            return no_reference_failure(query)
        parsed = read_choice(answer, query.choices)
        marks = {
            parsed.rule: True,
            "ambiguous": len(parsed.letters) > 1,
            "abstention": parsed.rule == "declined",
            "options are letters": parsed.options_are_letters,
        }
        right = parsed.letter is not None and parsed.letter in correct_letters(query)
        shown = frozenset(mark for mark, holds in marks.items() if holds)
        return Judgment(score=float(right), marks=shown, raw=str(parsed))


def is_unparsed(judged: pd.DataFrame) -> pd.Series:
    """Whether each answer judged by `MultipleChoiceJudge` chooses no option, or several: bool.
    Empty, truncated or failed answers are excluded: they are counted by their status.
    """
    marked = judged["marks"].map(lambda marks: not _NO_CHOICE.isdisjoint(marks.split(", ")))
    return marked.astype(bool) & (judged["status"] == "ok")


LETTERS = "ABCD"
_ENDS = ",.!?;:'"
_MOST_WORDS = 5
UNREAD = "wrong"
"""Outcome of the official scorer: the answer counts as incorrect, whatever its text."""
ASKS = "falls back to GPT-3.5"
"""Outcome: GPT-3.5 extracts the letter."""
CRASH = "crash"
"""Outcome: an AttributeError ends the run, and no score is written."""
HANG = "hang"
"""Outcome: the call to GPT-3.5 fails and is retried 10,000,000 times."""


def extract_officially(raw: str) -> str:
    """Applies the official scorer's rules to an answer, before any model call. Returns a letter (A
    to D), or `UNREAD`, `ASKS` or `CRASH`.

    White space is stripped from both ends, then each of `, . ! ? ; : '` in turn. Candidates are
    letters in round brackets; without any, capitals between two spaces, including the article "A";
    of several, the last occurrence counts. Without any, an answer of more than five words crashes,
    as the scorer compares options' texts but holds a number instead; a shorter one goes to GPT-3.5,
    and an empty one is incorrect.
    """
    text = raw.strip()
    for sign in _ENDS:
        text = text.strip(sign)
    text = f" {text} "
    for pattern in ("({})", " {} "):
        places = {letter: text.rfind(pattern.format(letter)) for letter in LETTERS}
        letter = max(places, key=lambda each: places[each])
        if places[letter] >= 0:
            return letter
    if len(text.split()) > _MOST_WORDS:
        return CRASH
    return ASKS if raw else UNREAD


RIGHT, WRONG = "correct option", "incorrect option"


def _read_both(
    answers: Iterable[str], choices: Iterable[Sequence[str]], rights: Iterable[str]
) -> pd.DataFrame:
    """What both extractions make of answers, of which `rights` are the correct letters, one a row:
    ours (`ParsedChoice`), official, ours_is and official_is: `RIGHT`, `WRONG`, or why there is no
    letter.
    """
    rows = []
    for answer, options, right in zip(answers, choices, rights, strict=True):
        ours, theirs = read_choice(answer, options), extract_officially(answer)
        why_not = "ambiguous" if ours.letters else ours.rule
        ours_is = _outcome(ours.letter or why_not, right)
        rows.append((ours, theirs, ours_is, _outcome(theirs, right)))
    return pd.DataFrame(rows, columns=["ours", "official", "ours_is", "official_is"])


def _outcome(found: str, right: str) -> str:
    """`RIGHT` or `WRONG` for a letter; why there is none otherwise."""
    if len(found) > 1:
        return found
    return RIGHT if found in right else WRONG


def evaluate_extractors() -> pd.DataFrame:
    """Runs both extractors on labelled answers, one per row: source ("rule test cases", or
    "adversarial", ours), raw, options (a tuple), outcome, letters and rule (as labelled), labelled
    and ours (`ParsedChoice`), official, and ours_is and official_is: "correct" (as labelled),
    "misread", "missing", or the official scorer's "crash" or "falls back to GPT-3.5".

    The official scorer has only four outcomes: where no letter is labelled, scoring the answer as
    incorrect agrees with the label.
    """
    data = json.loads(Path(__file__).with_name("choices.json").read_text(encoding="utf-8"))
    table = pd.DataFrame(data["rows"]).drop(columns="official")
    table["options"] = table["options"].map(data["options"]).map(tuple)
    right = table["letters"].where(table["letters"].str.len() == 1, "")
    table = table.join(_read_both(table["raw"], table["options"], right))
    rows = zip(table["ours"], table["rule"], table["letters"], strict=True)
    table["labelled"] = [replace(ours, rule=rule, letters=found) for ours, rule, found in rows]
    without = right.map(lambda letter: "missing" if letter else "correct")
    names = {RIGHT: "correct", WRONG: "misread", ASKS: ASKS, CRASH: CRASH}
    for name in ("ours_is", "official_is"):
        table[name] = table[name].map(names).fillna(without)
    return table


READINGS = {
    "score": "ours",
    "official_low": "official, unparsed as incorrect",
    "official_high": "official, unparsed as correct",
    "official_extracted": "official, unparsed by language model",
}
"""Maps a score column of `with_official_score`, or of `with_extracted_options`, to the name of its
extraction method.
"""


def with_official_score(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds both extractions to the answers that `MultipleChoiceJudge` judged. Columns: rule (ours),
    ours_is (`RIGHT`, `WRONG`, or why there is no letter), official (what `extract_officially`
    returns), official_is (likewise), official_low and official_high: its score if answers that
    crash it or go to GPT-3.5 count as incorrect, or correct.

    Calls that failed have no extraction and no score. The official scorer parses truncated answers
    as they are; here they score 0.
    """
    answered = judged[judged["status"].map(lambda status: Status(status).is_answer).astype(bool)]
    queries = [benchmark.queries[query_id] for query_id in answered["query_id"]]
    choices = [query.choices for query in queries]
    found = _read_both(answered["answer"], choices, map(correct_letters, queries))
    found["rule"] = [ours.rule for ours in found.pop("ours")]
    found["official_low"] = found["official_is"].eq(RIGHT).astype(float)
    found["official_high"] = found["official_is"].isin([RIGHT, CRASH, ASKS]).astype(float)
    return judged.join(found.set_axis(answered.index))


TABLE_5 = json.loads(Path(__file__).with_name("extraction.json").read_text(encoding="utf-8"))
"""The prompt as data, with its source; "examples" is empty, as the paper's in-context examples are
unpublished.
"""

NOT_ASKED = "not asked: `extractor` names no model"
"""Value of extracted for an answer without a model call."""


def extraction_prompt(query: Query, response: str) -> Prompt:
    """Builds the extraction prompt for an answer to a question with options."""
    options = [
        TABLE_5["choice"].format(letter=letter, choice=choice)
        for letter, choice in zip(ascii_uppercase, query.choices, strict=False)
    ]
    words = {"question": query.text, "choices": TABLE_5["between"].join(options)}
    text = TABLE_5["prompt"].format(examples=TABLE_5["examples"], response=response, **words)
    return (Message(role="user", parts=(text,)),)


def with_extracted_options(
    benchmark: Benchmark, read: pd.DataFrame, extractor: Entry, at: Workspace
) -> pd.DataFrame:
    """Adds the official scorer's outcome, with `extractor` in place of its GPT-3.5, to the answers
    of `with_official_score`. Columns: extracted (as `official_is`), and official_extracted, its
    score; answers that crash the scorer score 0.

    The model is called once for each answer that the scorer would send to it; replies are stored.
    As in the scorer, any reply but a bare letter is incorrect; a failed reply ends as it would
    there, as a "hang", and has no score. Calls that failed have neither. With "" for the extractor
    no model is called; `extracted` then says so, and there are no scores. Raises `VragError` as
    `load_generator` does.
    """
    outcomes = read["official_is"].replace(ASKS, NOT_ASKED)
    if not extractor:
        return read.assign(extracted=outcomes, official_extracted=math.nan)
    asked = read[read["official"] == ASKS]
    if len(asked):
        queries = [benchmark.queries[query_id] for query_id in asked["query_id"]]
        prompts = [extraction_prompt(*pair) for pair in zip(queries, asked["answer"], strict=True)]
        decoding = {**GREEDY, "max_new_tokens": TABLE_5["max_new_tokens"]}
        generator = load_generator(extractor, decoding=decoding, at=at)
        task = Task(what="extracted letters", read=lambda raw: {})
        with AnswerStore(at.answers_file) as store:
            replies = ask_prompts(generator, prompts, store, at=at, task=task)
        for place, query, reply in zip(asked.index, queries, replies, strict=True):
            letter = (reply.raw or "").strip()
            found = letter if letter in tuple(LETTERS) else UNREAD
            outcome = _outcome(found, correct_letters(query))
            outcomes[place] = HANG if reply.raw is None else outcome
    scores = outcomes.eq(RIGHT).astype(float).mask(outcomes.isna() | (outcomes == HANG))
    return read.assign(extracted=outcomes, official_extracted=scores)


_CLASSES = {RIGHT: "correct", WRONG: "incorrect", ASKS: "asks", CRASH: "crash"}
_CLASSES |= {"correct": "correct", "misread": "incorrect"}
_WITHOUT = {"missing": "no option found", "asks": "falls back to GPT-3.5", "crash": "crashes"}
_SHADES = {**OUTCOME, "asks": MODEL[4], "crash": DARK}


def extraction_shares(read: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns the shares, in percent, of what each extraction finds in answers: `by`, extraction
    ("official", "ours"), n, metric ("correct", "incorrect", "missing" where it finds no option,
    "asks", "crash"), value. All of them are given for each extraction, 0 where there is none.

    `read` comes from `evaluate_extractors` (then "correct" is as labelled), or from
    `with_official_score`, whose failed calls are left out.
    """
    long = read.melt(by, ["official_is", "ours_is"], "extraction", "metric").dropna()
    long["metric"] = long["metric"].map(_CLASSES).fillna("missing")
    long["extraction"] = long["extraction"].str.removesuffix("_is")
    counts = long.groupby([by, "extraction", "metric"]).size().unstack("metric", fill_value=0)
    counts = counts.reindex(columns=["correct", "incorrect", *_WITHOUT], fill_value=0)
    n = counts.sum(axis=1)
    shares = counts.mul(100).div(n, axis=0).assign(n=n).reset_index()
    return shares.melt([by, "extraction", "n"], var_name="metric")


def extraction_figure(
    shares: pd.DataFrame, right: str, wrong: str, title: str, caption: str = ""
) -> Figure:
    """Draws `extraction_shares`, of which `right` and `wrong` name the first two outcomes;
    `caption` precedes what the rows are.
    """
    names = {"correct": right, "incorrect": wrong, **_WITHOUT}
    return outcome_bars(
        shares,
        rows=[shares.columns[0], "extraction"],
        outcomes=names,
        colors=_SHADES,
        names={"ours": "our parser", "official": "released scorer"},
        title=title,
        caption=f"{caption} Both read the same answers; the shares of a row sum to 100 %. The"
        " released scorer calls GPT-3.5 where its rules fail, and may crash, which ends its run.",
    )
