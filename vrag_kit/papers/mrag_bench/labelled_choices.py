"""Test set of raw multiple-choice answers that the kit's authors labelled before the parser
existed, and the evaluation of both extractors on it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from vrag_kit.judging.multiple_choice import ParsedChoice, read_choice
from vrag_kit.papers.mrag_bench.official_scorer import ScorerOutcome, extract_officially

_FILES = {
    "rule test cases": "choices_official.json",
    "adversarial": "choices_adversarial.json",
}
AS_LABELLED = "correct"
ANOTHER = "misread"
NO_LETTER = "missing"


def extraction_test_set() -> pd.DataFrame:
    """Returns the labelled answers, one per row: source ("rule test cases", or "adversarial",
    ours), raw, options (a tuple), outcome ("letter", "ambiguous", "declined", "unparsed" or
    "empty"), letters (all it may be), rule (the deciding one of `RULES`), and `official`, the
    published scorer's observed outcome for the first source ("" for the other).
    """
    rows = []
    for source, name in _FILES.items():
        data = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for row in data["rows"]:
            told = {"source": source, "official": "", **row}
            rows.append({**told, "options": tuple(data["options"][row["options"]])})
    columns = ["source", "raw", "options", "outcome", "letters", "rule", "official"]
    return pd.DataFrame(rows)[columns]


def evaluate_extractors() -> pd.DataFrame:
    """Runs both extractors on `extraction_test_set`. Added columns: labelled, ours and official as
    text, and ours_is and official_is: `AS_LABELLED`, `ANOTHER`, `NO_LETTER`, or the official
    scorer's "crash" or "falls back to GPT-3.5".

    The official scorer has only four outcomes: where no letter is labelled, scoring the answer as
    incorrect agrees with the label.
    """
    table = extraction_test_set().drop(columns="official")
    cells = []
    for row in table.to_dict("records"):
        ours, theirs = read_choice(row["raw"], row["options"]), extract_officially(row["raw"])
        labelled = ParsedChoice(row["rule"], row["letters"], ours.options_are_letters)
        chosen = labelled.letter or ""
        broken = theirs.outcome in (ScorerOutcome.CRASH, ScorerOutcome.ASKS)
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
