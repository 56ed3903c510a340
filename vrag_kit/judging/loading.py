"""The table `JUDGES`, and `load_judge`, which loads the judge that a parameter names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from vrag_kit.config import Entry, check_choice, read_entry
from vrag_kit.errors import VragError
from vrag_kit.judging.answer_metrics import OWN_METRICS, MetricJudge
from vrag_kit.judging.custom_judge import CustomJudge, load_custom_judge, require_signed_scale
from vrag_kit.judging.judge import Judge
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.rubric import (
    RUBRIC,
    Rubric,
    judge_name,
    rubric_from_template,
    rubric_text,
    without_rubric,
)
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.truthfulness import TruthfulnessRuleJudge
from vrag_kit.types import JsonView

MOST_TOKENS = 256
"""Maximum length of a verdict, in tokens."""
JUDGES: dict[str, Callable[[], Judge]] = {
    RuleJudge.name: RuleJudge,
    TruthfulnessRuleJudge.name: TruthfulnessRuleJudge,
    **{name: partial(MetricJudge, name) for name in OWN_METRICS},
}
"""Judges without a language model, by their name in parameters."""


def load_judge(
    entry: Entry | CustomJudge,
    answers_dir: Path | str = "runs/answers",
    *,
    rubric: Rubric | None = None,
    samples: int = 1,
    max_new_tokens: int = MOST_TOKENS,
    hardware: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Judge:
    """Load the judge that a parameter names.
    It is one of `JUDGES`, a custom class (`CustomJudge`) or an object of it, or any model that
    `load_generator` takes, with the `rubric` of a paper. The option "rubric" of the entry replaces
    that rubric's prompt (see `rubric_text`), and the judge's name says so. Scores of a custom class
    are converted to [0, 1]. With a rubric of truthfulness its scale must be symmetric about 0, and
    they are converted to [−1, 1].

    The model decodes with its own defaults unless its entry says otherwise; its verdicts are stored
    in `answers_dir`, as answers are. `samples` repeats every verdict. `hardware` names fields of
    `Hardware`. No weights are loaded.

    Raises `VragError` for a model that cannot be called, as without its key, unless replies of it
    are stored; for one without a rubric; for another scale where the rubric is of truthfulness; for
    a text that is no rubric; and as `load_generator` does.
    """
    if rubric is not None and not isinstance(rubric, Rubric):
        raise VragError(f"load_judge: rubric is {rubric!r}; expected a vrag_kit.judging.Rubric.")
    known = _without_rubric(entry, signed=rubric is not None and rubric.scale.signed)
    if known:
        return known
    hardware = {"batch_size": 8, **(hardware or {})}
    decoding = {"max_new_tokens": max_new_tokens, "samples": samples}
    return _model(cast(Entry, entry), Path(answers_dir), rubric, decoding, hardware)


def builtin_judge_name(entry: Entry | CustomJudge) -> str | None:
    """Return the key of `JUDGES` that an entry names, alone or as its "model".
    None for a model, a class or an object.

    Raises `VragError` for a mapping without a model, and for a rubric or another option with such a
    key.
    """
    if not isinstance(entry, Mapping):
        return entry if isinstance(entry, str) and entry in JUDGES else None
    word = entry.get("model")
    if not isinstance(word, str) or not word:
        raise VragError(
            f"judge: found {entry!r}, which names none; expected one of {', '.join(JUDGES)}, a"
            " model, or {model: <model>, rubric: <words>}."
        )
    if word not in JUDGES:
        return None
    if RUBRIC in entry:
        raise VragError(
            f"judge {word!r} is no model: it reads no rubric. Type `judge: {word}`; or, to ask a"
            " model in these words, judge: {model: <model>, rubric: <words>}."
        )
    read_entry(entry, (), "judge")
    return word


def _without_rubric(entry: Entry | CustomJudge, *, signed: bool) -> Judge | None:
    """The judge of an entry that needs nobody's rubric; None for a model."""
    if word := builtin_judge_name(entry):
        judge = JUDGES[word]()
        if signed:
            require_signed_scale(judge.scale, f"judge {word!r}")
        return judge
    words = rubric_text(entry)
    own = load_custom_judge(without_rubric(cast(Entry, entry)) if words else entry, signed=signed)
    if own is not None and words:
        raise VragError(f"judge {own.name!r} scores by itself; expected no rubric beside it.")
    return own


def _model(
    entry: Entry,
    answers_dir: Path,
    rubric: Rubric | None,
    decoding: JsonView,
    hardware: JsonView,
) -> LLMJudge:
    """The model of an entry as judge: by the rubric, or in the entry's own words."""
    from vrag_kit.config import hardware_of
    from vrag_kit.generation.generators import load_generator

    check_choice(entry, JUDGES, "judge")
    if rubric is None:
        raise VragError(
            f"judge {entry!r} is a model, and nothing says what it is asked; expected one of"
            f" {', '.join(JUDGES)}, or rubric=…, such as vrag_kit.papers.visual_rag.RUBRIC."
        )
    generator = load_generator(without_rubric(entry), decoding=decoding, hardware=hardware)
    words = rubric_text(entry)
    rubric = rubric_from_template(rubric, words) if words else rubric
    judge = LLMJudge(
        generator,
        rubric,
        answers_dir,
        hardware=hardware_of(hardware),
        samples=int(decoding["samples"]),
    )
    judge.name = judge_name(generator.name, words) if words else judge.name
    return judge
