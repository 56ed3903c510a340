"""The paper's judge (A.5.2): its prompt, and the parser of its verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.judging import Rubric
from vrag_kit.judging.rubric import fill_template, one_line
from vrag_kit.judging.scale import TRUTH
from vrag_kit.judging.truthfulness import precheck
from vrag_kit.papers.crag_mm.abstention import READINGS
from vrag_kit.papers.crag_mm.verdicts import read_json, read_result
from vrag_kit.types import JsonView, Query

_WORDS = json.loads((Path(__file__).parent / "rubric.json").read_text(encoding="utf-8"))
"""Texts of the rubric, verbatim, with their source; our additions are marked in the file."""
_READ = {"paper": read_result, "challenge": read_json}
FORMS = tuple(_READ)
"""Formats of a verdict: "Result: CORRECT", or {"accuracy": true}."""


def truthfulness_rubric(*, abstention: str = "code", form: str = "paper") -> Rubric:
    """Returns the rubric of the truthfulness judge, on a scale from −1 to 1.

    An answer that abstains by the rule `abstention` (one of `READINGS`) is missing and not sent to
    the judge, nor is one that equals the accepted answer. `form` is one of `FORMS`. Raises
    `VragError` for an unknown rule or form.
    """
    for name, value, known in (("abstention", abstention, READINGS), ("form", form, _READ)):
        if value not in known:
            raise VragError(f"{name} is {value!r}; expected one of {', '.join(known)}.")
    words = _WORDS["forms"][form]
    return Rubric(
        scale=TRUTH,
        template=(("system", _guidelines(words)), ("user", _WORDS["case"])),
        fields=_fields,
        read=_READ[form],
        repair=words["repair"],
        precheck=partial(precheck, declines=READINGS[abstention]),
        variant=abstention,
    )


def _guidelines(words: Mapping[str, str]) -> str:
    """Guidelines and examples, whose verdicts are in the form of `words`."""
    examples = [*_WORDS["examples"], *_WORDS["examples_ours"]["examples"]]
    shown = [_example(each, words) for each in examples]
    return "\n".join(
        [*_WORDS["task"], words["output"], _WORDS["opening"], *shown, _WORDS["closing"]]
    )


def _example(example: JsonView, words: Mapping[str, str]) -> str:
    """A case with its verdict, in the form that is asked for."""
    result = words["right" if example["right"] else "wrong"]
    verdict = words["verdict"].replace("{explanation}", example["explanation"])
    case = {"references": example["truth"], "answer": example["prediction"], **example}
    return f"{fill_template(_WORDS['case'], case)}\n{verdict.replace('{result}', result)}"


def _fields(query: Query, answer: str) -> dict[str, str]:
    """Question, ground truth and prediction, each on one line."""
    fields = {"references": " / ".join(query.answers), "question": query.text, "answer": answer}
    return {name: one_line(text) for name, text in fields.items()}
