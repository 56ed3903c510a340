"""Checks of a parameter file before a run: missing data, models, keys and memory, and the expected
calls. Nothing is run or fetched, and no model is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vrag_kit.building.questions import TEMPLATE
from vrag_kit.checkpoints import check_device
from vrag_kit.claims.checkers import RULE
from vrag_kit.config import Entry, decoding_of, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import Generator, load_generator
from vrag_kit.judging import JUDGES, RuleJudge
from vrag_kit.judging.loading import judge_without_model, split_rubric
from vrag_kit.retrieval.services import WORD_INDEXES
from vrag_kit.runner.availability import (
    images_problem,
    is_open_clip_model,
    missing_checkpoint,
    retriever_problem,
)
from vrag_kit.runner.dry_run import DryRunReport, ModelCost, dry_run_notebooks
from vrag_kit.runner.params import WITHIN, declared_parameters
from vrag_kit.runner.plan import Plan, read_plan, select_notebooks, unknown_data_names
from vrag_kit.runner.totals import total_line
from vrag_kit.runner.values import (
    SEARCHING,
    invalid_judges,
    invalid_model_reason,
    invalid_parameters,
    invalid_retriever_reason,
    merged_parameters,
    models_in,
    unwritable_folders,
)
from vrag_kit.workspace import path as project_path

_ASKED = {
    "tour_model": "answerer",
    "checker": "checker",
    "extractor": "extractor",
    "judge": "judge",
    "rewriter": "rewriter",
    "question_writer": "writer",
    "filter_model": "filter",
    "detectors": "detector",
    "rewriters": "rewriter",
    "filter_models": "filter",
    "models": "model",
}
"""Parameters that name one model each, or a list, and what it is called in messages."""
_ANY_RETRIEVER = "field-guide-clip-64"
"""Shipped retriever that replaces missing ones, whose rankings are unknown."""
_NAMED = 3
"""Maximum number of notebooks named in a finding."""
_INSTEAD: dict[str, tuple[str, Any]] = {
    "judge": ("judge", "rule"),
    "rewriter": ("web_search", {"rewrite": "none"}),
    "question_writer": ("question_writer", TEMPLATE),
    "filter_model": ("filter_model", ""),
    "extractor": ("extractor", ""),
    "checker": ("checker", RULE),
    "detectors": ("detectors", [RULE]),
    "rewriters": ("rewriters", []),
}
"""Missing model → the parameter and its value, or its keys, without that model."""


@dataclass(slots=True)
class _Report:
    """Lines to print, and values that replace missing models in a dry run."""

    found: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    instead: dict[str, Any] = field(default_factory=dict)
    unsearched: list[str] = field(default_factory=list)
    """Missing retrievers, which `_ANY_RETRIEVER` replaces."""
    refused: bool = False
    """Whether it also replaces a retriever that no run accepts."""

    def replace(self, name: str, value: Any) -> None:  # Any: parameters are of any type
        """Set the value of a parameter in a dry run; of a mapping, some of its keys."""
        if mapping := WITHIN.get(name):
            name, value = mapping, {name: value}
        if isinstance(value, Mapping):
            value = {**self.instead.get(name, {}), **value}
        self.instead[name] = value


def check_parameters(parameter_file: Path, only: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return (findings and expected calls, what is missing) as lines to print. They cover the
    notebooks of `only` (`select_notebooks`), or all.

    Raises `VragError` for a file that no notebook could run with.
    """
    (plan,) = select_notebooks([read_plan(parameter_file, data=False)], only)
    if faults := unknown_data_names(plan):
        raise VragError("\n".join([*faults, *invalid_parameters(plan)]))
    report = _Report([f"{parameter_file}: every name is declared by a notebook"])
    values = merged_parameters(plan)
    try:
        check_device(hardware_of(values.get("hardware")).device)
    except VragError as error:
        report.missing.append(str(error))
    report.missing += unwritable_folders(plan)
    _check_retrievers(values, report)
    _check_models(values, report)
    for name, entry in models_in(values):
        if name != "models":
            _check_one(name, entry, values, report)
    if "judge" in report.instead:
        report.replace("judge", _own_judge(plan))
    for line in invalid_judges(plan):
        _once(report.missing, line)
        report.replace("judge", _own_judge(plan))
    _check_tokenizer(values.get("conversation", {}).get("answer_tokenizer", ""), report)
    if problem := images_problem(values.get("image_source")):
        report.missing.append(problem)
    try:
        _tell(dry_run_notebooks(plan, report.instead), report)
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
        if is_open_clip_model(entry):
            line = f"retriever {entry!r}: open_clip fetches its weights on the first run, unless"
            _once(report.found, f"{line} they are in its cache")
        elif refused := invalid_retriever_reason(entry) or retriever_problem(entry):
            _once(report.missing, refused)
            report.refused = lacking = True
        elif absent := missing_checkpoint(entry, "retriever"):
            _once(report.missing, absent)
            told = entry.get("model") if isinstance(entry, Mapping) else entry
            _once(report.unsearched, str(told))
            lacking = True
    return lacking


def _check_models(values: Mapping[str, Any], report: _Report) -> None:
    """Note what speaks against `models`; those that can be opened are left to ask."""
    if "models" not in values:
        return
    usable, names = [], []
    for entry in values["models"]:
        model = _opened(entry, "models", values, report)
        if model is None:
            continue
        names.append(model.name)
        if names.count(model.name) > 1:
            problem = f"models: two are named {model.name!r}; list it once, or give one a `name`"
            _once(report.missing, f"{problem} in its entry")
            continue
        samples = decoding_of(values.get("decoding")).samples
        if samples > 1 and model.deterministic:
            wrong = (
                f"model {model.name!r}: samples is {samples}; expected 1, as it decodes greedily"
            )
            report.missing.append(f"{wrong}, or another `decoding`")
            report.replace("decoding", {"samples": 1})
        usable.append(entry)
    if len(usable) < len(values["models"]):
        report.replace("models", usable)


def _check_one(name: str, entry: Entry, values: Mapping[str, Any], report: _Report) -> None:
    try:
        if name == "judge":
            if judge_without_model(entry) is not None:
                return
            entry, _ = split_rubric(entry)
        here = _opened(entry, name, values, report) is not None
    except VragError as error:
        _once(report.missing, str(error))
        here = False
    if not here and name in _INSTEAD:
        report.replace(*_INSTEAD[name])


def _own_judge(plan: Plan) -> str:
    """The judge without a model that the notebooks name by themselves."""
    names = [
        *(declared_parameters(notebook).get("judge") for notebook in plan.given),
        RuleJudge.name,
    ]
    usual = [name for name in names if name in list(JUDGES)]
    signed = [name for name in usual if JUDGES[name]().scale.signed]
    return (signed or usual)[0]  # where one is of truthfulness, no other is taken


def _check_tokenizer(name: str, report: _Report) -> None:
    """Note when the tokenizer that cuts answers is not here; a dry run then cuts none."""
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
    report.replace("conversation", {"answer_tokenizer": ""})


def _opened(
    entry: Entry, name: str, values: Mapping[str, Any], report: _Report
) -> Generator | None:
    """The model that a parameter names, when all its files are here; what is missing is
    noted.
    """
    what = _ASKED[name]
    decoding, hardware = values.get("decoding", {}), values.get("hardware", {})
    if problem := invalid_model_reason(entry, name, decoding) or missing_checkpoint(entry, what):
        _once(report.missing, problem)
        return None
    given = decoding if what in ("model", "answerer") else None
    try:
        model = load_generator(entry, decoding=given, hardware=hardware)
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


def _tell(dry_run: DryRunReport, report: _Report) -> None:
    counted = dry_run.models or dry_run.stored or not dry_run.undrawn
    if counted:
        stored = f"{dry_run.stored:,} answers that the notebooks use are stored already"
        report.found.append(stored)
    for asked in dry_run.models:
        _tell_model(asked, report)
    if counted and not dry_run.models and not dry_run.failed:
        report.found.append("no model is asked anything")
    report.found += _by_words((words, name) for name, words in dry_run.undrawn.items())
    if total := total_line(dry_run):
        report.found.append(total)
    unsearched = list(dry_run.any_order)
    if report.unsearched or report.refused:
        others = [name for name in unsearched if not name.startswith(_ANY_RETRIEVER)]
        unsearched = [*others, *report.unsearched] if unsearched else []
    if unsearched:
        report.found.append(
            "an estimate: not searched yet, and so other documents in their place, is what"
            f" {', '.join(unsearched)} will find"
        )
    cut: list[tuple[str, str]] = []
    for name, lines in dry_run.cut.items():
        cut += [(line, name) for line in lines]
    report.found += _by_words(cut)
    failed = [(fault, name) for name, fault in dry_run.failed.items()]
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


def _tell_model(asked: ModelCost, report: _Report) -> None:
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
