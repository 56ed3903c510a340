"""The table `JUDGES`, and `load_judge`, which loads the judge that a parameter names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from vrag_kit.config import Entry, check_choice, custom_spec, read_entry
from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.files import project_path
from vrag_kit.generation.generators import load_generator
from vrag_kit.judging.answer_metrics import OWN_METRICS, MetricJudge
from vrag_kit.judging.judge import CustomJudge, CustomJudgeAdapter, Judge, load_custom_judge
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.rubric import FIELDS, Rubric, rubric_from_text
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.scale import TRUTH
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge
from vrag_kit.workspace import Workspace

MOST_TOKENS = 256
"""Maximum length of a verdict, in tokens."""
RUBRIC = "rubric"
"""The option of a model's entry that replaces the text of a paper's rubric."""
JUDGES: dict[str, Callable[[], Judge]] = {
    RuleJudge.name: RuleJudge,
    TruthfulnessRuleJudge.name: TruthfulnessRuleJudge,
    **{name: partial(MetricJudge, name) for name in OWN_METRICS},
}
"""Judges without a language model, by their name in parameters."""


def load_judge(
    entry: Entry | CustomJudge,
    at: Workspace | None = None,
    *,
    rubric: Rubric | None = None,
    samples: int = 1,
    max_new_tokens: int = MOST_TOKENS,
) -> Judge:
    """Load the judge that a parameter names.
    It is one of `JUDGES`, a custom class (`CustomJudge`) or an object of it, or any model that
    `load_generator` takes, with the `rubric` of a paper. The option "rubric" of the entry replaces
    that rubric's text (see `split_rubric`), and the judge's name says so. Scores of a custom class
    are converted to [0, 1]. With a rubric of truthfulness its scale must be symmetric about 0, and
    they are converted to [−1, 1].

    The model decodes with its own defaults unless its entry says otherwise; its verdicts are stored
    as answers are. `samples` repeats every verdict. No weights are loaded.

    Raises `VragError` for a model that cannot be called, as without its key, unless replies of it
    are stored; for one without a rubric; for another scale where the rubric is of truthfulness; for
    a text that is no rubric; and as `load_generator` does.
    """
    signed = rubric is not None and rubric.scale.signed
    if judge := judge_without_model(entry, signed=signed):
        return judge
    check_choice(entry, JUDGES, "judge")
    if rubric is None:
        known = ", ".join(JUDGES)
        raise VragError(f"judge {entry!r} is a model, and has no rubric; expected one, or {known}.")
    at = at or Workspace()
    decoding = {"max_new_tokens": max_new_tokens, "samples": samples}
    model, text = split_rubric(cast(Entry, entry))
    generator = load_generator(model, decoding=decoding, at=at)
    name = generator.name
    if text:
        rubric = rubric_from_text(rubric, text)
        name += f", own rubric {hashlib.sha256(text.encode()).hexdigest()[:4]}"
    return LLMJudge(generator, rubric, at, samples=samples, name=name)


def judge_without_model(entry: Entry | CustomJudge, *, signed: bool = False) -> Judge | None:
    """Return the judge of an entry that names one of `JUDGES` or a custom class, or that is an
    object of such a class; None for a model. `signed` requires a scale of truthfulness.

    Raises `VragError` for another scale, for a rubric beside such a judge, and as
    `load_custom_judge` does.
    """
    judge: Judge | None
    if word := builtin_judge_name(entry):
        judge = JUDGES[word]()
    else:
        model, text = split_rubric(entry)
        judge = load_custom_judge(model)
        if judge is not None and text:
            raise VragError(f"judge {judge.name!r} scores by itself; expected no rubric beside it.")
    if judge is None or not signed:
        return judge
    if not judge.scale.signed:
        raise VragError(
            f"judge {word or custom_spec(entry) or judge.name!r}: its scale is"
            f" {judge.scale.worst:g} to {judge.scale.best:g}. Truthfulness needs (-1, 1)."
        )
    if isinstance(judge, CustomJudgeAdapter):
        judge.table_scale = TRUTH
    return judge


def builtin_judge_name(entry: Entry | CustomJudge) -> str | None:
    """Return the key of `JUDGES` that an entry names, alone or as its "model".
    None for a model, a class or an object.

    Raises `VragError` for a mapping without a model, and for a rubric or another option with such a
    key.
    """
    word = entry.get("model") if isinstance(entry, Mapping) else entry
    if isinstance(entry, Mapping) and not word:
        known = ", ".join(JUDGES)
        raise VragError(f"judge: found {entry!r}, which names none; expected a model, or {known}.")
    if not isinstance(word, str) or word not in JUDGES:
        return None
    if isinstance(entry, Mapping) and RUBRIC in entry:
        raise VragError(f"judge {word!r} is no model; expected no rubric. Type `judge: {word}`.")
    read_entry(entry, "judge", ())
    return word


def split_rubric(entry: Entry | CustomJudge) -> tuple[Entry, str]:
    """Return the entry without its option "rubric", and the text of that, "" without one.

    Raises `VragError` for a rubric that is no text, lacks {answer} or has an unknown placeholder,
    and for a text in place of a judge.
    """
    if isinstance(entry, str) and len(entry.split()) > 3 and not project_path(entry).is_dir():
        raise VragError(
            f"judge is {short_repr(entry)}, a text; expected a judge. A rubric is an option of a"
            " model's entry: judge: {model: <model>, rubric: <words>}."
        )
    if not isinstance(entry, Mapping) or RUBRIC not in entry:
        return cast(Entry, entry), ""
    text = entry[RUBRIC]
    fields = ", ".join(f"{{{name}}}" for name in FIELDS)
    if not isinstance(text, str) or "{answer}" not in text:
        raise VragError(f"judge: its rubric is {short_repr(text)}; expected {{answer}} in a text.")
    for name in re.findall(r"{([^\W\d]\w*)}", text):
        if name not in FIELDS:
            raise VragError(
                f"judge: its rubric has {{{name}}}; expected {fields}.{did_you_mean(name, FIELDS)}"
            )
    return {name: value for name, value in entry.items() if name != RUBRIC}, text
