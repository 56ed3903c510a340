"""The paper's judge (A.5.2): what it is asked, and how its words are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from vrag_kit.errors import VragError
from vrag_kit.judging import Rubric
from vrag_kit.judging.scale import TRUTH
from vrag_kit.judging.truthfulness import settled
from vrag_kit.papers.crag_mm.abstention import READINGS
from vrag_kit.papers.crag_mm.verdicts import read_json, read_result
from vrag_kit.plain import JsonView
from vrag_kit.types import Message, Prompt, Query

_WORDS = json.loads((Path(__file__).parent / "rubric.json").read_text(encoding="utf-8"))
"""The protocol's wording, verbatim, with its source; what is ours in it is marked."""
_READ = {"paper": read_result, "challenge": read_json}
FORMS = tuple(_READ)
"""How the judge gives its verdict: "Result: CORRECT", or {"accuracy": true}."""


def truth_rubric(*, abstention: str = "code", form: str = "paper") -> Rubric:
    """What a model is asked as judge of truthfulness, on a scale from −1 to 1.

    An answer that declines, in the reading `abstention` (one of `READINGS`), is missing
    and not shown to the judge, nor is one that equals the accepted answer. `form` is
    one of `FORMS`. Raises `VragError` for another of either.
    """
    for name, value, known in (("abstention", abstention, READINGS), ("form", form, _READ)):
        if value not in known:
            raise VragError(f"{name} is {value!r}; expected one of {', '.join(known)}.")
    words = _WORDS["forms"][form]
    return Rubric(
        scale=TRUTH,
        prompt=partial(truth_prompt, form=form),
        read=_READ[form],
        repair=lambda reason: str(words["repair"]).replace("{reason}", reason),
        settles=partial(settled, declines=READINGS[abstention]),
    )


def truth_prompt(query: Query, answer: str, *, form: str = "paper") -> Prompt:
    """What the judge is asked about one answer: the guidelines and examples as system
    text, then question, ground truth and prediction, each on one line.
    """
    words = _WORDS["forms"][form]
    examples = [*_WORDS["examples"], *_WORDS["examples_ours"]["examples"]]
    shown = [_example(each, words) for each in examples]
    opening, closing = _WORDS["opening"], _WORDS["closing"]
    text = "\n".join([*_WORDS["task"], words["output"], opening, *shown, closing])
    case = _case(query.text, " / ".join(query.answers), answer)
    return (Message(role="system", parts=(text,)), Message(role="user", parts=(case,)))


def _case(question: str, truth: str, prediction: str) -> str:
    told = {"question": question, "truth": truth, "prediction": prediction}
    lines = {name: " ".join(text.split()) for name, text in told.items()}
    return str(_WORDS["case"]).format(**lines)


def _example(example: JsonView, words: Mapping[str, str]) -> str:
    """A case with its verdict, in the form that is asked for."""
    result = words["right" if example["right"] else "wrong"]
    verdict = words["verdict"].replace("{explanation}", example["explanation"])
    case = _case(example["question"], example["truth"], example["prediction"])
    return f"{case}\n{verdict.replace('{result}', result)}"
