"""What MRAG-Bench's own scorer does with an answer, told and not done: its letter, or
that it crashes, asks a model, or never ends.

Read from the published `eval/score.py` and what it calls (last change 2025-01-22).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from vrag_kit.judging.choice_reader import read_choice, right_letters
from vrag_kit.types import Benchmark

LETTERS = "ABCD"
_ENDS = ",.!?;:'"
_MOST_WORDS = 5
_WRITTEN = (
    *("Overall", "Angle", "Partial", "Scope", "Occlusion"),
    *("Temporal", "Deformation", "Incomplete", "Biological", "Others"),
)


class Outcome(StrEnum):
    """What becomes of an answer, or of the whole run."""

    LETTER = "letter"
    """A letter is found."""
    WRONG = "wrong"
    """It is counted as wrong, whatever it says."""
    ASKS = "asks GPT-3.5"
    """Its letter is whatever GPT-3.5 makes of it."""
    CRASH = "crash"
    """An AttributeError ends the run, and no score is written."""
    HANG = "hang"
    """The question to GPT-3.5 fails and is asked again, 10,000,000 times."""


@dataclass(frozen=True, slots=True)
class Official:
    """What the scorer makes of one answer."""

    outcome: Outcome
    letter: str = ""
    """A to D; "" unless the outcome is a letter."""

    def __str__(self) -> str:
        return self.letter or str(self.outcome)


def official_reading(raw: str) -> Official:
    """What the scorer makes of an answer, before anything is asked of a model.

    White space is taken off both ends, then each of `, . ! ? ; : '` in turn. Candidates
    are the letters in round brackets; without any, capitals between two spaces, the
    article "A" included; of several the one that occurs last. Without any, an answer of
    more than five words crashes, as options' texts are to be compared and a number
    stands in their place; a shorter one goes to GPT-3.5, and one that is empty is wrong.
    """
    said = raw.strip()
    for sign in _ENDS:
        said = said.strip(sign)
    said = f" {said} "
    for shown in ("({})", " {} "):
        places = {letter: said.rfind(shown.format(letter)) for letter in LETTERS}
        letter = max(places, key=lambda each: places[each])
        if places[letter] >= 0:
            return Official(Outcome.LETTER, letter)
    if len(said.split()) > _MOST_WORDS:
        return Official(Outcome.CRASH)
    return Official(Outcome.ASKS if raw else Outcome.WRONG)


def after_asking(found: Official, reply: str | None) -> Official:
    """What becomes of an answer that GPT-3.5 is asked about: a bare letter counts, any
    other reply is wrong; without any reply (None: no key, or openai 1.0 and above) the
    run hangs. All other outcomes stay.
    """
    if found.outcome is not Outcome.ASKS:
        return found
    if reply is None:
        return Official(Outcome.HANG)
    letter = reply.strip()
    wrong = Official(Outcome.WRONG)
    return Official(Outcome.LETTER, letter) if letter and letter in tuple(LETTERS) else wrong


def run_end(found: Sequence[Official]) -> tuple[Outcome, int] | None:
    """How a run over these answers ends early, and at which place, from 0; None when it
    reaches its end.
    """
    for place, each in enumerate(found):
        if each.outcome in (Outcome.CRASH, Outcome.HANG):
            return each.outcome, place
    return None


def score_file(answers_file: str, scores: Mapping[str, float]) -> tuple[str, dict[str, float]]:
    """The name of the file of scores, and what of them is written into it.

    The name ends at the path's first dot: "./x.jsonl" becomes "_score.json". Keys are
    written by a list of names, which has "Overall" for `overall_accuracy` and
    "Occlusion" for the data's `Obstruction`: both are lost.
    """
    stem = answers_file.split(".", maxsplit=1)[0].rsplit("/", maxsplit=1)[-1]
    kept = {name: scores[name] for name in _WRITTEN if name in scores}
    return f"{stem}_score.json", kept


def readers_compared(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """The table of answers that have words, with what both readers make of each.

    Added columns: right (the right letter), official (a letter or an `Outcome`),
    official_letter, ours (as `Reading` prints), rule, letter, official_right and
    ours_right (whether they count it as right; a crash or a question to GPT-3.5 does
    not), and same (whether both find the same letter, or neither any).
    """
    rows = answers[answers["status"] == "ok"]
    cells = []
    for query_id, raw in zip(rows["query_id"], rows["answer"], strict=True):
        query = benchmark.queries[query_id]
        theirs, ours = official_reading(raw), read_choice(raw, query.choices)
        letter, right = ours.letter or "", right_letters(query)
        cells.append(
            {
                "right": right,
                "official": str(theirs),
                "official_letter": theirs.letter,
                "ours": str(ours),
                "rule": ours.rule,
                "letter": letter,
                "official_right": bool(theirs.letter) and theirs.letter in right,
                "ours_right": bool(letter) and letter in right,
                "same": theirs.letter == letter,
            }
        )
    names = ("right", "official", "official_letter", "ours", "rule", "letter")
    columns = [*names, "official_right", "ours_right", "same"]
    return rows.join(pd.DataFrame(cells, index=rows.index, columns=columns))
