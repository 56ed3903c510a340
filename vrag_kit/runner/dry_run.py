"""Dry run of a parameter file's notebooks, which counts the model calls of a run and lists what it
lacks.

Cells run with placeholder models on a copy of the answers, in this process; a failing cell does
not hide the calls of the next. Outputs go to a temporary folder.
"""

from __future__ import annotations

import io
import logging
import re
import shutil
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from itertools import chain
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from vrag_kit.checkpoints import check_device
from vrag_kit.dry_run import DryRun, dry_run
from vrag_kit.errors import NotGeneratedError, VragError
from vrag_kit.files import project_path
from vrag_kit.generation import load_generator
from vrag_kit.generation.generators import CostEstimate, DryRunGenerator
from vrag_kit.generation.store import AnswerStore, copy_store
from vrag_kit.log import logger
from vrag_kit.retrieval.encoders.loading import open_encoder
from vrag_kit.retrieval.runs import find_run_file
from vrag_kit.runner.params import cell_tags, entries, read_cells
from vrag_kit.runner.plan import Plan, read_plan, select_notebooks
from vrag_kit.workspace import Workspace

_MODEL = re.compile(r"(model|judge|writer|rewriter|extractor|checker|detector)s?(\.|$)")
_RETRIEVER = re.compile(r"(retriever|service)s?(\.|$)")


@contextmanager
def collect_notes() -> Iterator[list[logging.LogRecord]]:
    """Yield a list to which the notes of the block are added."""
    handler = BufferingHandler(sys.maxsize)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield handler.buffer
    finally:
        logger.removeHandler(handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The expected calls and costs of one model, for all notebooks together."""

    name: str
    forecast: CostEstimate
    max_cost: float | None  # US dollars
    spent: float  # US dollars, on what is stored


@dataclass(slots=True, kw_only=True)
class DryRunReport:
    """The calls that a run would make, and what kept them from being counted."""

    recorded: DryRun
    """Retrievers that were not run yet, and why models cannot be loaded on this machine."""
    models: list[ModelCost] = field(default_factory=list)
    stored: int = 0
    """Number of answers that the notebooks use and that are stored already."""
    failed: dict[str, str] = field(default_factory=dict)
    """Notebook → why a cell fails and, after calls, which: up to there all calls are counted."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Notes, such as on cutoffs k that were clipped, each with its notebook."""
    undrawn: dict[str, str] = field(default_factory=dict)
    """Notebook → data that the run generates first; its calls are not counted."""


def dry_run_notebooks(plan: Plan) -> DryRunReport:
    """Run a plan's notebooks without calling models, and count their calls. Models and retrievers
    that cannot be loaded are replaced by placeholders, and listed.
    """
    answer_ids: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as scratch,
        dry_run(Path(scratch)) as recorded,
        collect_notes() as notes,
    ):
        report = DryRunReport(recorded=recorded)
        for task in plan.tasks:
            name, settings = task.name, task.settings
            redirected = redirect_outputs(settings, Path(scratch))
            if "hardware" in settings:
                redirected["hardware"] = {**settings["hardware"], "device": "cpu"}
                try:
                    check_device(Workspace(**settings["hardware"]).device)
                except VragError as error:
                    recorded.missing[str(error)] = None
            space, fault = execute_cells(task.notebook, redirected, recorded.models)
            texts = dict.fromkeys(note.getMessage() for note in notes)
            report.notes += [(text, name) for text in texts]
            notes.clear()
            answer_ids |= _answer_ids(space)
            if fault is not None:
                _load_models(settings)
                words = str(fault)
                for folder in [each for each in settings if each.endswith("_dir")]:
                    words = words.replace(str(Path(scratch) / folder), str(settings[folder]))
                undrawn = isinstance(fault, NotGeneratedError)
                (report.undrawn if undrawn else report.failed)[name] = words
        with ExitStack() as opened:
            stores = []
            for place in sorted(recorded.stores):
                with suppress(VragError):  # the notebook that opened it failed, and says so
                    stores.append(opened.enter_context(AnswerStore(place)))
            report.models = model_costs(recorded, stores)
            for store in stores:
                stored = store.read(list(answer_ids)).values()
                report.stored += sum(not answer.is_placeholder for answer in stored)
        return report


def _load_models(settings: Mapping[str, Any]) -> None:
    """Load the models and retrievers that a failed notebook may not have reached, so that all that
    is missing is listed. Parameters name them by their roles: `judge`, `filter_models`.
    """
    for name, entry in entries(settings):
        options = {"model": entry} if isinstance(entry, str) else dict(entry)
        options.pop("rubric", None)
        spec = str(options["model"])
        if not set(spec) & set("-/@"):  # a word that is no model
            continue
        if _MODEL.search(name):
            load_generator(options)
        elif _RETRIEVER.search(name) and find_run_file(spec) is None:
            open_encoder(entry)


def model_costs(recorded: DryRun, stores: Sequence[AnswerStore]) -> list[ModelCost]:
    """Return the calls and costs of each model that a dry run recorded; `stores` give the costs so
    far. Prompts of equal models are counted together.
    """
    groups: dict[str, list[DryRunGenerator]] = defaultdict(list)
    for model in recorded.models:
        if model.prompts:
            groups[f"{model.name} {model.fingerprint} {model.decoding}"].append(model)
    costs = []
    for first, *others in groups.values():
        for other in others:
            first.prompts += other.prompts
            first.sizes.update(other.sizes)
        try:
            forecast = first.model.estimate_cost(first.prompts, first.sizes)
        except VragError as error:  # a processor that cannot be read
            recorded.missing[str(error)] = None
            continue
        spent = sum(store.total_cost(first.name) for store in stores)
        cost = ModelCost(
            name=first.name, forecast=forecast, max_cost=first.model.max_cost, spent=spent
        )
        costs.append(cost)
    return costs


def redirect_outputs(settings: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """Return the settings with output folders below `scratch`. Files at the top of the folders are
    copied, because notebooks read them too.
    """
    changed = dict(settings)
    for name, value in settings.items():
        if name.endswith("_dir") and name != "cache_dir":
            target = scratch / name
            if not target.exists():
                target.mkdir()
                _copy_files(project_path(value), target)
            changed[name] = str(target)
    return changed


def _copy_files(source: Path, target: Path) -> None:
    """The files at the top of a folder; a store as one moment of it."""
    for file in source.glob("*"):
        if file.suffix == ".sqlite":
            copy_store(file, target / file.name)
        elif file.is_file() and not file.name.startswith(".") and ".sqlite-" not in file.name:
            shutil.copy(file, target)


def execute_cells(
    notebook: Path, settings: Mapping[str, Any], models: Sequence[DryRunGenerator]
) -> tuple[dict[str, Any], VragError | None]:
    """Execute a notebook's code cells with these settings. Returns (variables at the end, first
    error: later ones mostly follow from it); calls are recorded in `models`. The error is a
    `NotGeneratedError` if the run generates the data that a cell lacks.
    """
    space: dict[str, Any] = {"__name__": "__main__", "display": lambda *_: None}
    cells = [cell for cell in read_cells(notebook) if cell["cell_type"] == "code"]
    before = _prompts(models)
    first: VragError | None = None
    silence = io.StringIO()
    with (
        redirect_stdout(silence),
        redirect_stderr(silence),
        warnings.catch_warnings(),
        mpl.rc_context(),
    ):
        warnings.simplefilter("ignore")
        for number, cell in enumerate(cells, start=1):
            if "parameters" in cell_tags(cell):
                space.update(settings)
                continue
            lines = cell["source"].splitlines()
            code = "\n".join("" if line.startswith("%") else line for line in lines)
            try:
                exec(code, space)
            except Exception as error:  # whatever a notebook's code may raise
                known = isinstance(error, VragError)
                words = str(error) if known else f"{type(error).__name__}: {error}"
                if _prompts(models) > before:
                    words = f"counted up to code cell {number}, which fails: {words}"
                kind = NotGeneratedError if isinstance(error, NotGeneratedError) else VragError
                first = first or kind(words)
    return space, first


def _prompts(models: Sequence[DryRunGenerator]) -> int:
    return sum(len(model.prompts) for model in models)


def _answer_ids(space: Mapping[str, Any]) -> set[str]:
    """The answers in the tables that a notebook has made."""
    answer_ids: set[str] = set()
    for table in [each for each in space.values() if isinstance(each, pd.DataFrame)]:
        if "answer_id" in table:
            answer_ids |= set(table["answer_id"].astype(str))
        if "parts" in table:  # of long answers that are joined from replies
            answer_ids |= set(chain.from_iterable(table["parts"]))
    return answer_ids


def print_dry_run(files: Sequence[Path], only: Sequence[str] = ()) -> bool:
    """Print the expected calls and missing inputs of parameter files, or of their notebooks in
    `only` (`select_notebooks`); returns whether something is missing. Raises `VragError` as
    `read_plan` does.
    """
    complete = True
    for plan in select_notebooks([read_plan(file) for file in files], only):
        found, missing = describe(plan, dry_run_notebooks(plan))
        print(*found, *(f"missing: {line}" for line in missing), sep="\n")
        if missing:
            complete = False
        else:
            print("nothing is missing")
    return not complete


def describe(plan: Plan, report: DryRunReport) -> tuple[list[str], list[str]]:
    """Return (findings and expected calls, what is missing) as lines to print, of a dry run of a
    plan.
    """
    found = [f"{plan.file}: {report.stored:,} answers that it uses are stored already"]
    found += [f"{model.name}\n  {model.forecast}" for model in report.models]
    if any(model.forecast.cost for model in report.models):
        found.append(_total(report))
    elif not (report.models or report.failed or report.undrawn):
        found.append("no model is asked anything")
    found += _by_finding((words, name) for name, words in report.undrawn.items())
    if any_order := ", ".join(sorted(report.recorded.any_order)):
        found.append(
            "an estimate: not searched yet, and so other documents in their place, is what"
            f" {any_order} will find"
        )
    found += _by_finding(report.notes)
    missing = list(report.recorded.missing)
    for model in report.models:
        missing += _too_much(model)
    missing += _by_finding((words, name) for name, words in report.failed.items())
    return found, missing


def _too_much(model: ModelCost) -> list[str]:
    """Whether prompts are too long for a model, or too expensive."""
    cost, lines = model.forecast.cost, []
    if model.forecast.misfits:
        lines.append(f"model {model.name!r}: {model.forecast.misfits:,} prompts will not fit")
    if model.max_cost is not None and cost and model.spent + cost > model.max_cost:
        lines.append(
            f"model {model.name!r}: it will cost about {cost:,.2f} US dollars, after"
            f" {model.spent:,.2f} so far; its max_cost is {model.max_cost:g}"
        )
    return lines


def _total(report: DryRunReport) -> str:
    """The cost and duration of all models together."""
    forecasts = [model.forecast for model in report.models]
    uncounted = any(each.uncounted for each in forecasts) or report.failed or report.undrawn
    cost = sum(each.cost or 0 for each in forecasts)
    hours = sum(each.hours for each in forecasts)
    about = "at least" if uncounted else "about"
    return f"all models together: {about} {cost:,.2f} US dollars and, one by one, {hours:.2f} hours"


def _by_finding(findings: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each finding (words, notebook), with the names of its notebooks before it."""
    books: dict[str, list[str]] = defaultdict(list)
    for words, name in findings:
        books[words].append(name)
    return [f"{', '.join(names)}: {words}" for words, names in books.items()]
