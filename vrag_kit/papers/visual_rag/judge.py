"""The paper's rubric (Table 12): the judge's prompt and the parser of its verdicts; the labels with
which people checked the judge (Table 9).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.agreement import AS_THEY_ARE
from vrag_kit.generation.prompts import read_prompts, strip_thoughts
from vrag_kit.judging.human_labels import score_of_label
from vrag_kit.judging.rubric import Rubric, UnparsedError, Verdict, one_line
from vrag_kit.judging.scale import SHARES
from vrag_kit.types import Query

PROMPTS = read_prompts(Path(__file__).with_name("prompts.yaml"))
"""Prompt templates no_image, clue_image, one_image, several_images and text_passages, and the
template of each setting.
"""


MARKS = {
    "likely hallucination": "hallucination",
    "redundant": "redundant",
    "no answer": "abstention",
}
"""Maps the rubric's marks, in lower case, to the kit's."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")
_MARK = "|".join(MARKS)
_QUOTES = " \t*`_“”\"'.:"
_NO_REMARK = re.compile(r"\d|\bscore|hallucinat|redundan|no answer", re.IGNORECASE)
"""Pattern that an unknown remark must not match: a number, or a mark in other words."""
_ELSEWHERE = re.compile(rf"^\|.*|(?:{_MARK})|.*\bscore\b\W*(?:is|of|=|:)?\W*\d.*", re.IGNORECASE)
"""Pattern of a line that would change the verdict: a remark on a separate line, or a second score.
"""


def read_verdict(raw: str) -> Verdict:
    """Parses the verdict in `raw` from its line "Score: 0.5 | Likely Hallucination | (Explanation:
    …)".

    Bold type, quotes, thoughts in <think> tags, lines of prose around it, and remarks unknown to
    the rubric ("Score: 0.5 | ok") are ignored. Raises `UnparsedError` with the reason if there is
    no such line or several that differ, the score is no number in [0, 1], a mark is misspelt
    ("Hallucination"), a mark or a second score is elsewhere, or "No Answer" comes with a score
    above 0.
    """
    lines = [line.strip(_QUOTES) for line in strip_thoughts(raw).splitlines()]
    found = {line for line in lines if re.match(r"score\b", line, re.IGNORECASE)}
    if not found:
        raise UnparsedError("there is no line that begins with “Score:”")
    if others := [line for line in lines if line not in found and _ELSEWHERE.fullmatch(line)]:
        raise UnparsedError(f"“{others[0][:30]}” stands on a line of its own")
    verdicts = {_line(line) for line in found}
    if len(verdicts) > 1:
        raise UnparsedError("there are several scores")
    return verdicts.pop()


def _line(line: str) -> Verdict:
    rest = re.sub(r"^score[\s*]*:[\s*]*", "", line, flags=re.IGNORECASE)
    head = rest.partition("(")[0]
    bracket, behind = _brackets(rest)
    pieces = [piece.rstrip(_QUOTES) for piece in head.rstrip(" |*.").split("|")]
    pieces = [piece.lstrip(_QUOTES.replace(".", "")) for piece in pieces]
    score, marks = pieces[0], pieces[1:]
    if not _NUMBER.fullmatch(score) or not 0 <= float(score) <= 1:
        raise UnparsedError(f"“{score[:30]}” is no score from 0 to 1")
    others = [mark for mark in marks if mark.lower() not in MARKS]
    if unknown := [mark for mark in others if _NO_REMARK.search(mark)]:
        raise UnparsedError(f"“{unknown[0][:30]}” is none of the marks")
    explained = bracket.lower().startswith("explanation")
    if not explained and re.search(rf"\d|score|{_MARK}", bracket, re.IGNORECASE):
        raise UnparsedError(f"“({bracket[:30]}” is no explanation")
    if re.search(rf"\||score|{_MARK}", behind, re.IGNORECASE):
        raise UnparsedError("something stands behind the explanation")
    read = frozenset(MARKS[mark.lower()] for mark in marks if mark not in others)
    if "abstention" in read and float(score) > 0:
        raise UnparsedError("“No Answer” has a score above 0")
    return Verdict(float(score), read)


def _brackets(rest: str) -> tuple[str, str]:
    """(the words in the first bracket, what stands behind it); a bracket that is never
    closed goes to the end.
    """
    inside = rest.partition("(")[2]
    depth = 1
    for place, letter in enumerate(inside):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return inside[:place].strip(), inside[place + 1 :].strip(_QUOTES + "|")
    return inside.strip(), ""


PAPER_JUDGE = "o4-mini@openai"
"""The paper's judge (section 5.1)."""
_WORDS = json.loads((Path(__file__).parent / "rubric.json").read_text(encoding="utf-8"))
"""Texts of the rubric, verbatim, with their source; our additions are marked in the file."""


def _template() -> str:
    """Rubric, examples, then question, reference answers and the answer."""
    examples = [*_WORDS["examples"], *_WORDS["examples_ours"]["examples"]]
    case = "Question: {question}\nReference Answer: {reference}"
    parts = [*_WORDS["rubric"], _WORDS["opening"]]
    for example in examples:
        judged = [f"Student Answer: {student}\n{score}" for student, score in example["answers"]]
        parts += [case.format_map(example), *judged]
    last = case.replace("{reference}", "{references}")
    return "\n\n".join([*parts, f"{_WORDS['closing']}\n{last}", "Student Answer: {answer}"])


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Several references are written as a list; the answer is on one line."""
    references = query.answers[0] if len(query.answers) == 1 else str(list(query.answers))
    return {"question": query.text, "references": references, "answer": one_line(answer)}


RUBRIC = Rubric(
    scale=SHARES,
    template=_template(),
    fields=_fields,
    read=read_verdict,
    repair=_WORDS["repair"]["text"],
)
"""The rubric: scores from 0 to 1, with the marks "hallucination", "redundant" and "abstention"."""


READINGS = {
    **AS_THEY_ARE,
    "any partial matches; kept as the labeller's label": "tt tt tf  pp pp pp  ft ff ff",
    "any partial matches; kept as the judge's label": "tt pp tf  tt pp ff  ft pp ff",
    "any partial matches; kept as the other label": "tt tt tf  tt pp ff  ft ff ff",
    "any partial matches; both partial left out": "tt tt tf  tt -- ff  ft ff ff",
    "any partial left out": "tt -- tf  -- -- --  ft -- ff",
    "the judge's partial matches": "tt tt tf  pt pp pf  ft ff ff",
    "the labeller's partial matches": "tt tp tf  tt pp ff  ft fp ff",
    "the judge's partial matches; the labeller's left out": "tt tt tf  -- -- --  ft ff ff",
    "the labeller's partial matches; the judge's left out": "tt -- tf  tt -- ff  ft -- ff",
    "partial is true": "tt tt tf  tt tt tf  ft ft ff",
    "partial is false": "tt tf tf  ft ff ff  ft ff ff",
}
"""Reading → what each pair of labels counts as (see `agreement`)."""


def expand_confusion(counts: pd.DataFrame) -> pd.DataFrame:
    """Expands a confusion matrix (human, judge, count) to one row per answer: human_label,
    judge_label, score, group.

    The matrix does not record groups, so each answer is its own group. The judge's score is that of
    its label, in [0, 1].
    """
    rows = counts.loc[counts.index.repeat(counts["count"]), ["human", "judge"]]
    rows = rows.reset_index(drop=True).add_suffix("_label")
    scores = rows["judge_label"].map(score_of_label)
    return rows.assign(score=scores, group=[f"answer {n}" for n in rows.index])
