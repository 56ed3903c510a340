"""Raw answers to choices that were labelled before there was a reader, by the kit's
makers, and what both readers make of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from vrag_kit.judging.choice_reader import Reading, read_choice
from vrag_kit.papers.mrag_bench.official_scorer import Outcome, official_reading

_FILES = {
    "rows of the rules": "choices_official.json",
    "adversarial": "choices_adversarial.json",
}
AS_LABELLED = "as labelled"
ANOTHER = "another letter, or one where none is labelled"
NO_LETTER = "no letter where one is labelled"


def labelled_choices() -> pd.DataFrame:
    """One row an answer: source ("rows of the rules", or "adversarial", ours), raw,
    options (a tuple), outcome ("letter", "ambiguous", "declined", "unreadable" or
    "empty"), letters (all it may be), rule (which of `RULES` decides), and `official`,
    what the published scorer was seen to do with the first ("" for the others).
    """
    rows = []
    for source, name in _FILES.items():
        data = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for row in data["rows"]:
            told = {"source": source, "official": "", **row}
            rows.append({**told, "options": tuple(data["options"][row["options"]])})
    columns = ["source", "raw", "options", "outcome", "letters", "rule", "official"]
    return pd.DataFrame(rows)[columns]


def readers_on_labelled() -> pd.DataFrame:
    """`labelled_choices` with what both readers make of each: labelled, ours and official
    in words, and ours_is and official_is: `AS_LABELLED`, `ANOTHER`, `NO_LETTER`, or the
    official scorer's "crash" or "asks GPT-3.5".

    The official scorer knows no more than four outcomes: where no letter is labelled, a
    wrong answer is as labelled.
    """
    table = labelled_choices().drop(columns="official")
    cells = []
    for row in table.to_dict("records"):
        ours, theirs = read_choice(row["raw"], row["options"]), official_reading(row["raw"])
        labelled = Reading(row["rule"], row["letters"], ours.options_are_letters)
        chosen = labelled.letter or ""
        broken = theirs.outcome in (Outcome.CRASH, Outcome.ASKS)
        cells.append(
            {
                "labelled": str(labelled),
                "ours": str(ours),
                "official": str(theirs),
                "ours_is": _against(chosen, ours.letter or ""),
                "official_is": str(theirs) if broken else _against(chosen, theirs.letter),
            }
        )
    return table.join(pd.DataFrame(cells, index=table.index))


def _against(chosen: str, letter: str) -> str:
    """A letter that was read ("" for none) beside the one that was chosen."""
    if chosen == letter:
        return AS_LABELLED
    return ANOTHER if letter else NO_LETTER
