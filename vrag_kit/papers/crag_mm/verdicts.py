"""Strict parsers of a judge's verdict, correct or incorrect; other formats are unparsed."""

from __future__ import annotations

import json
import re

from vrag_kit.judging import UnparsedError, Verdict
from vrag_kit.judging.truthfulness import truth_verdict

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_RESULT = re.compile(r"\bresult\b[\s*_\"'“”]*:(.*)", re.IGNORECASE)
_ROUND = " \t*_`\"'“”.!"
_CALLS = re.compile(r"\bprediction is (not )?(correct|incorrect|wrong)\b", re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def read_result(raw: str) -> Verdict:
    """Parses a verdict that ends with "Result: CORRECT" or "Result: WRONG".

    Bold type, quotes, thoughts in <think> tags and other lines before it are ignored. Raises
    `UnparsedError` if the last line gives no result, or another than these two, such as "INCORRECT"
    or both; if another line gives another one; or if the explanation calls the prediction the
    opposite.
    """
    lines = [line for line in _THOUGHT.sub("\n", raw).splitlines() if line.strip(_ROUND)]
    results = [found[1].strip(_ROUND).upper() for line in lines if (found := _RESULT.search(line))]
    if not results or not _RESULT.search(lines[-1]):
        raise UnparsedError("the last line is not “Result: CORRECT” or “Result: WRONG”")
    if odd := [result for result in results if result not in ("CORRECT", "WRONG")]:
        raise UnparsedError(f"“{odd[0][:30]}” is neither CORRECT nor WRONG")
    if len(set(results)) > 1:
        raise UnparsedError("it says both CORRECT and WRONG")
    right = results[-1] == "CORRECT"
    for denied, called in _CALLS.findall("\n".join(lines)):
        called_right = (called.lower() == "correct") != bool(denied)
        if called_right != right:
            raise UnparsedError(f"the result is {results[-1]}, but the explanation says otherwise")
    return truth_verdict(right)


def read_json(raw: str) -> Verdict:
    """Parses a verdict that is one JSON object, {"accuracy": true} or false.

    A code fence around it and thoughts in <think> tags are ignored. Raises `UnparsedError` for
    anything else, such as "true" in quotes, two objects, or both.
    """
    words = _THOUGHT.sub("\n", raw).strip()
    if fenced := _FENCE.fullmatch(words):
        words = fenced[1]
    try:
        pairs = json.loads(words, object_pairs_hook=list)
    except ValueError as error:
        raise UnparsedError("it is not one JSON object and nothing else") from error
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise UnparsedError("it is no JSON object")
    said = [value for name, value in pairs if name == "accuracy"]
    if len(said) != 1 or not isinstance(said[0], bool):
        raise UnparsedError("“accuracy” is not true or false, once")
    return truth_verdict(said[0])
