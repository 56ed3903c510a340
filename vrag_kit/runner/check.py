"""What a parameter file needs before it runs: data, models, keys and memory that are
missing, and what it will ask. Nothing is run or fetched, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vrag_kit.building.template_writer import NAME as TEMPLATE
from vrag_kit.checkpoints import check_device
from vrag_kit.errors import VragError
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.loading import load_generator
from vrag_kit.judging import JUDGES, RuleJudge
from vrag_kit.judging.claims_by_rule import RULE
from vrag_kit.judging.loading import word_of
from vrag_kit.judging.own_judge import own_judge
from vrag_kit.judging.told_rubric import without_rubric
from vrag_kit.options import Entry
from vrag_kit.retrieval.services import WORD_INDEXES
from vrag_kit.runner.at_hand import not_here, of_open_clip, pictures_problem, retriever_problem
from vrag_kit.runner.foresight import Asked, Foresight, foresee
from vrag_kit.runner.parameters import RARELY, RUN_WITH, WITHIN, declared
from vrag_kit.runner.plan import Plan, narrowed, read_plan, wrong_names
from vrag_kit.runner.totals import total_line
from vrag_kit.runner.values import (
    SEARCHING,
    folder_refusals,
    judge_refusals,
    model_refusal,
    models_in,
    refusals,
    retriever_refusal,
    together,
)
from vrag_kit.workspace import path as project_path

_ASKED = {
    "answerer": "answerer",
    "checker": "checker",
    "extractor": "extractor",
    "judge": "judge",
    "rewriter": "rewriter",
    "writer": "writer",
    "filter_model": "filter",
    "assessors": "assessor",
    "rewriters": "rewriter",
    "filter_models": "filter",
    "models": "model",
}
"""Parameters that name one model each, or a list, and what it is called in messages."""
_ANY_RETRIEVER = "field-guide-clip-64"
"""Comes with the kit; stands in for those that are not here, whose order is not known."""
BUT = "but: "
"""Begins the last finding where nothing is missing, and yet something is wrong."""
_NAMED = 3
"""Notebooks that are named where a finding is of several."""
_INSTEAD: dict[str, tuple[str, Any]] = {
    "judge": ("judge", "rule"),
    "rewriter": ("web", {"rewrite": "none"}),
    "writer": ("writer", TEMPLATE),
    "filter_model": ("filter_model", ""),
    "extractor": ("extractor", ""),
    "checker": ("checker", RULE),
    "assessors": ("assessors", [RULE]),
    "rewriters": ("rewriters", []),
}
"""A model that is not here → the parameter and its value, or its keys, without it."""


@dataclass(slots=True)
class _Report:
    """Lines to print, and values that a forecast takes in the place of what is not here."""

    found: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    instead: dict[str, Any] = field(default_factory=dict)
    unsearched: list[str] = field(default_factory=list)
    """Retrievers that are not here yet, in whose place `_ANY_RETRIEVER` stands."""
    refused: bool = False
    """Whether it stands in the place of one that no run takes, too."""

    def replace(self, name: str, value: Any) -> None:  # Any: parameters are of any type
        """Note what a forecast takes for a parameter; of a mapping, for some of its keys."""
        if mapping := WITHIN.get(name):
            name, value = mapping, {name: value}
        if isinstance(value, Mapping):
            value = {**self.instead.get(name, {}), **value}
        self.instead[name] = value


def check_parameters(parameter_file: Path, only: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """(what there is and how much it will ask, what is missing): lines to print; of the
    notebooks of `only` (`narrowed`), or of all.

    Raises `VragError` for a file that no notebook could run with.
    """
    (plan,) = narrowed([read_plan(parameter_file, data=False)], only)
    if faults := wrong_names(plan):
        raise VragError("\n".join([*faults, *refusals(plan)]))
    report = _Report([f"{parameter_file}: every name is declared by a notebook"])
    values = together(plan)
    how = {**RARELY, **values.get(RUN_WITH, {})}
    if "device" in how:
        try:
            check_device(how["device"])
        except VragError as error:
            report.missing.append(str(error))
    report.missing += folder_refusals(plan)
    _check_retrievers(values, report)
    _check_models(values, how, report)
    for name, entry in models_in(values):
        if name != "models":
            _check_one(name, entry, how, report)
    if "judge" in report.instead:
        report.replace("judge", _own_judge(plan))
    for line in judge_refusals(plan):
        _once(report.missing, line)
        report.replace("judge", _own_judge(plan))
    _check_tokenizer(values.get("talk", {}).get("answer_tokenizer", ""), report)
    if problem := pictures_problem(values.get("pictures")):
        report.missing.append(problem)
    try:
        _tell(foresee(plan, report.instead), report)
    except VragError as error:  # a checkpoint whose processor cannot be read
        report.missing.append(str(error))
    if not report.missing:
        report.found[0] += ", every value has the right type"
    return report.found, report.missing


def _check_retrievers(values: Mapping[str, Any], report: _Report) -> None:
    for name in SEARCHING:
        value = values.get(name)
        if isinstance(value, Mapping) and "model" not in value:  # some of each modality
            lacking = [each for each in value if _check_some(value[each], report)]
            if lacking:
                report.replace(name, {**value, **{each: [_ANY_RETRIEVER] for each in lacking}})
        elif _check_some(value, report):
            one = _ANY_RETRIEVER
            report.replace(name, [one] if isinstance(value, list) else one)


def _check_some(value: Any, report: _Report) -> bool:  # a parameter: one retriever, or a list
    """Whether a retriever is not here; what is missing is noted."""
    lacking = False
    for entry in value if isinstance(value, list) else [value]:
        if not entry or entry in list(WORD_INDEXES):
            continue
        if of_open_clip(entry):
            line = f"retriever {entry!r}: open_clip fetches its weights on the first run, unless"
            _once(report.found, f"{line} they are in its cache")
        elif refused := retriever_refusal(entry) or retriever_problem(entry):
            _once(report.missing, refused)
            report.refused = lacking = True
        elif absent := not_here(entry, "retriever"):
            _once(report.missing, absent)
            told = entry.get("model") if isinstance(entry, Mapping) else entry
            _once(report.unsearched, str(told))
            lacking = True
    return lacking


def _check_models(values: Mapping[str, Any], how: Mapping[str, Any], report: _Report) -> None:
    """Note what speaks against `models`; those that can be opened are left to ask."""
    if "models" not in values:
        return
    usable, names = [], []
    for entry in values["models"]:
        model = _opened(entry, "models", how, report)
        if model is None:
            continue
        names.append(model.name)
        if names.count(model.name) > 1:
            problem = f"models: two are named {model.name!r}; list it once, or give one a `name`"
            _once(report.missing, f"{problem} in its entry")
            continue
        samples = how["samples"]
        if samples > 1 and model.deterministic:
            wrong = (
                f"model {model.name!r}: samples is {samples}; expected 1, as it decodes greedily"
            )
            report.missing.append(f"{wrong}, or another `decoding`")
            report.replace(RUN_WITH, {"samples": 1})
        usable.append(entry)
    if len(usable) < len(values["models"]):
        report.replace("models", usable)


def _check_one(name: str, entry: Entry, how: Mapping[str, Any], report: _Report) -> None:
    try:
        if name == "judge":
            if word_of(entry) or own_judge(without_rubric(entry)) is not None:
                return
            entry = without_rubric(entry)
        here = _opened(entry, name, how, report) is not None
    except VragError as error:
        _once(report.missing, str(error))
        here = False
    if not here and name in _INSTEAD:
        report.replace(*_INSTEAD[name])


def _own_judge(plan: Plan) -> str:
    """The judge without a model that the notebooks name by themselves."""
    names = [*(declared(notebook).get("judge") for notebook in plan.given), RuleJudge.name]
    usual = [name for name in names if name in list(JUDGES)]
    signed = [name for name in usual if JUDGES[name]().scale.signed]
    return (signed or usual)[0]  # where one is of truthfulness, no other is taken


def _check_tokenizer(name: str, report: _Report) -> None:
    """Note when the tokenizer that cuts answers is not here; a forecast then cuts none."""
    from huggingface_hub import try_to_load_from_cache

    if not name or (project_path(name) / "tokenizer.json").is_file():
        return
    words = "there is no such folder with a tokenizer.json"
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        if isinstance(try_to_load_from_cache(name, "tokenizer.json"), str):
            return
        words = "it is not on this machine yet; the first run fetches it, or"
        words = f"{words} `hf download {name} tokenizer.json` does now"
    report.missing.append(f"answer_tokenizer {name!r}: {words}")
    report.replace("talk", {"answer_tokenizer": ""})


def _opened(entry: Entry, name: str, how: Mapping[str, Any], report: _Report) -> Generator | None:
    """The model that a parameter names, when all its files are here; what is missing is
    noted.
    """
    what = _ASKED[name]
    if problem := model_refusal(entry, name, how) or not_here(entry, what):
        _once(report.missing, problem)
        return None
    options = {key: how[key] for key in ("device", "decoding", "max_new_tokens") if key in how}
    if what != "model" and what != "answerer":
        options = {"device": how.get("device", "cpu")}
    try:
        model = load_generator(entry, **options)
    except VragError as error:
        _once(report.missing, str(error))
        return None
    if lack := model.missing():
        _once(report.missing, f"{what} {model.name!r}: {lack}")
    if "@" in (entry if isinstance(entry, str) else entry["model"]):
        line = (
            "endpoints are not contacted: whether a key, a name and an address are right shows at"
        )
        _once(report.found, f"{line} the first call of the run")
    return model


def _tell(foresight: Foresight, report: _Report) -> None:
    counted = foresight.models or foresight.stored or not foresight.undrawn
    if counted:
        stored = f"{foresight.stored:,} answers that the notebooks use are stored already"
        report.found.append(stored)
    for asked in foresight.models:
        _tell_model(asked, report)
    if counted and not foresight.models and not foresight.failed:
        report.found.append("no model is asked anything")
    report.found += _by_words((words, name) for name, words in foresight.undrawn.items())
    if total := total_line(foresight):
        report.found.append(total)
    unsearched = list(foresight.any_order)
    if report.unsearched or report.refused:
        others = [name for name in unsearched if not name.startswith(_ANY_RETRIEVER)]
        unsearched = [*others, *report.unsearched] if unsearched else []
    if unsearched:
        report.found.append(
            "an estimate: not searched yet, and so other documents in their place, is what"
            f" {', '.join(unsearched)} will find"
        )
    cut: list[tuple[str, str]] = []
    for name, lines in foresight.cut.items():
        cut += [(line, name) for line in lines]
    report.found += _by_words(cut)
    partly = []
    for name, fault in foresight.partly.items():
        partly.append((f"counted without what a cell would have asked, if anything; {fault}", name))
    report.found += _by_words(partly)
    if partly:
        cells = "one cell fails" if len(partly) == 1 else f"{len(partly)} cells fail"
        report.found.append(f"{BUT}{cells} in the rehearsal (above): look at it before you pay")
    failed = [(fault, name) for name, fault in foresight.failed.items()]
    failed = [each for each in failed if not any(each[0] in line for line in report.missing)]
    report.missing += _by_words(failed)


def _by_words(findings: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each finding (words, notebook) with its notebooks: their names before it,
    or, of many, their number behind it.
    """
    books: dict[str, list[str]] = {}
    for words, name in findings:
        books.setdefault(words, []).append(name)
    return [_with_books(words, names) for words, names in books.items()]


def _with_books(words: str, names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return f"{', '.join(names)}: {words}"
    first = [Path(name).name.partition("_")[0] for name in names[:_NAMED]]
    return f"{words} ({len(names)} notebooks: {', '.join(first)}, …)"


def _tell_model(asked: Asked, report: _Report) -> None:
    forecast = asked.forecast
    report.found.append(f"{asked.name}\n  {forecast}")
    if forecast.misfits:
        report.missing.append(
            f"model {asked.name!r}: {forecast.misfits:,} prompts will not fit; see its forecast"
        )
    if asked.max_cost is None or forecast.cost is None:
        return
    if asked.spent + forecast.cost > asked.max_cost:
        so_far = f", after {asked.spent:,.2f} so far" if asked.spent else ""
        report.missing.append(
            f"model {asked.name!r}: it will cost about {forecast.cost:,.2f} US dollars{so_far},"
            f" and its max_cost is {asked.max_cost:g}"
        )


def _once(lines: list[str], line: str) -> None:
    if line not in lines:
        lines.append(line)
