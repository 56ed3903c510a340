"""The table `JUDGES`, and `load_judge`: the judge that a parameter names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from vrag_kit.errors import VragError
from vrag_kit.judging.judge import Judge
from vrag_kit.judging.llm_judge import LLMJudge
from vrag_kit.judging.own_judge import JudgeClass, check_signed, own_judge
from vrag_kit.judging.own_metrics import OWN_METRICS, MetricJudge
from vrag_kit.judging.rubric import Rubric
from vrag_kit.judging.rule_judge import RuleJudge
from vrag_kit.judging.told_rubric import RUBRIC, in_words, name_of, without_rubric, words_of
from vrag_kit.judging.truth_rules import TruthRuleJudge
from vrag_kit.options import Entry, check_word, read_entry

MOST_TOKENS = 256
"""Longest verdict."""
JUDGES: dict[str, Callable[[], Judge]] = {
    RuleJudge.name: RuleJudge,
    TruthRuleJudge.name: TruthRuleJudge,
    **{name: partial(MetricJudge, name) for name in OWN_METRICS},
}
"""The judges that are no models, by the name that a parameter gives them."""


def load_judge(
    entry: Entry | JudgeClass,
    answers_dir: Path | str = "runs/answers",
    *,
    rubric: Rubric | None = None,
    samples: int = 1,
    max_new_tokens: int = MOST_TOKENS,
    run_with: Mapping[str, Any] | None = None,  # a notebook's parameter: values of any type
) -> Judge:
    """The judge that a parameter names: one of `JUDGES`, a class of one's own
    (`JudgeClass`) or an object of it, or any model that `load_generator` takes, with the
    `rubric` of a paper; in other words where the entry has the option "rubric" (see
    `told_rubric`), which its name then says.
    Scores of a class are brought to [0, 1], unless the rubric is of truthfulness: then
    its scale must go from below 0 to as much above, and they are brought to [−1, 1].

    The model decodes as its own defaults say, unless its entry says otherwise; its
    verdicts are kept in `answers_dir`, as answers are. `samples` repeats every verdict.
    Of `run_with`, which says how the answerers are run, device, batch_size and
    retry_failures count here too. No weights are read.

    Raises `VragError` for a model that cannot be asked, as without its key, unless words of
    it are stored; for one without a rubric; for another scale where the rubric is of
    truthfulness; for words that are no rubric; and as `load_generator` does.
    """
    if rubric is not None and not isinstance(rubric, Rubric):
        raise VragError(f"load_judge: rubric is {rubric!r}; expected a vrag_kit.judging.Rubric.")
    known = _without_rubric(entry, signed=rubric is not None and rubric.scale.signed)
    how = {"samples": samples, "max_new_tokens": max_new_tokens}
    return known or _model(cast(Entry, entry), Path(answers_dir), rubric, how, run_with or {})


def word_of(entry: Entry | JudgeClass) -> str | None:
    """The word by which an entry names one of `JUDGES`, alone or as its "model"; None for
    a model, a class or an object.

    Raises `VragError` for a mapping without a model, and for a rubric or another option
    beside such a word.
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


def _without_rubric(entry: Entry | JudgeClass, *, signed: bool) -> Judge | None:
    """The judge of an entry that needs nobody's rubric; None for a model."""
    if word := word_of(entry):
        judge = JUDGES[word]()
        if signed:
            check_signed(judge.scale, f"judge {word!r}")
        return judge
    words = words_of(entry)
    own = own_judge(without_rubric(cast(Entry, entry)) if words else entry, signed=signed)
    if own is not None and words:
        raise VragError(f"judge {own.name!r} scores by itself; expected no rubric beside it.")
    return own


def _model(
    entry: Entry,
    answers_dir: Path,
    rubric: Rubric | None,
    how: Mapping[str, Any],  # fields of `Asking`
    run_with: Mapping[str, Any],
) -> LLMJudge:
    """The model of an entry as judge: by the rubric, or in the entry's own words."""
    from vrag_kit.generation.asking_options import Asking
    from vrag_kit.generation.loading import load_generator

    check_word(entry, JUDGES, "judge")
    if rubric is None:
        raise VragError(
            f"judge {entry!r} is a model, and nothing says what it is asked; expected one of"
            f" {', '.join(JUDGES)}, or rubric=…, such as vrag_kit.papers.visual_rag.RUBRIC."
        )
    asking = Asking.beside_answerers(run_with, Asking(batch_size=8, **how))
    generator = load_generator(
        without_rubric(entry),
        device=asking.device,
        max_new_tokens=asking.max_new_tokens,
        concurrency=asking.batch_size,
    )
    words = words_of(entry)
    rubric = in_words(rubric, words) if words else rubric
    judge = LLMJudge(generator, rubric, answers_dir, how=asking)
    judge.name = name_of(generator.name, words) if words else judge.name
    return judge
