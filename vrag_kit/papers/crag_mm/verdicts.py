"""Read a judge's words as right or wrong, strictly: what does not follow the form that it
was asked for is unreadable.
"""

from __future__ import annotations

import json
import re

from vrag_kit.judging import Unreadable, Verdict
from vrag_kit.judging.truthfulness import right_or_wrong

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_RESULT = re.compile(r"\bresult\b[\s*_\"'“”]*:(.*)", re.IGNORECASE)
_ROUND = " \t*_`\"'“”.!"
_CALLS = re.compile(r"\bprediction is (not )?(correct|incorrect|wrong)\b", re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def read_result(raw: str) -> Verdict:
    """The verdict in words that end with "Result: CORRECT" or "Result: WRONG".

    Bold type, quotes, thoughts in <think> tags and other lines before it are let pass.
    Raises `Unreadable` where the last line gives no result, or another than these two,
    such as "INCORRECT" or both; where another line gives another one; and where the
    explanation calls the prediction the opposite.
    """
    lines = [line for line in _THOUGHT.sub("\n", raw).splitlines() if line.strip(_ROUND)]
    results = [found[1].strip(_ROUND).upper() for line in lines if (found := _RESULT.search(line))]
    if not results or not _RESULT.search(lines[-1]):
        raise Unreadable("the last line is not “Result: CORRECT” or “Result: WRONG”")
    if odd := [result for result in results if result not in ("CORRECT", "WRONG")]:
        raise Unreadable(f"“{odd[0][:30]}” is neither CORRECT nor WRONG")
    if len(set(results)) > 1:
        raise Unreadable("it says both CORRECT and WRONG")
    right = results[-1] == "CORRECT"
    for denied, called in _CALLS.findall("\n".join(lines)):
        called_right = (called.lower() == "correct") != bool(denied)
        if called_right != right:
            raise Unreadable(f"the result is {results[-1]}, but the explanation says otherwise")
    return right_or_wrong(right)


def read_json(raw: str) -> Verdict:
    """The verdict in words that are one JSON object, {"accuracy": true} or false.

    A code fence around it and thoughts in <think> tags are let pass. Raises
    `Unreadable` for anything else, such as "true" in quotes, two objects, or both.
    """
    words = _THOUGHT.sub("\n", raw).strip()
    if fenced := _FENCE.fullmatch(words):
        words = fenced[1]
    try:
        pairs = json.loads(words, object_pairs_hook=list)
    except ValueError as error:
        raise Unreadable("it is not one JSON object and nothing else") from error
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise Unreadable("it is no JSON object")
    said = [value for name, value in pairs if name == "accuracy"]
    if len(said) != 1 or not isinstance(said[0], bool):
        raise Unreadable("“accuracy” is not true or false, once")
    return right_or_wrong(said[0])
