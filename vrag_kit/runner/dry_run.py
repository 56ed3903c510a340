"""Dry run of a parameter file's notebooks, which counts the model calls of a run.

Cells run with placeholder models on a copy of the answers, in this process and statement by
statement: a failing statement must not hide the calls of the next. Outputs go to a temporary
folder.
"""

from __future__ import annotations

import ast
import io
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from vrag_kit.dry_run import DryRun, dry_run
from vrag_kit.errors import NotGeneratedError, SetupError, VragError
from vrag_kit.generation.generators import CostEstimate, DryRunGenerator
from vrag_kit.generation.store import AnswerStore, copy_store
from vrag_kit.log import collect_notes, last_recorded_cell
from vrag_kit.runner.books import read_notebook
from vrag_kit.runner.job import ADDED, status_file
from vrag_kit.runner.params import BY_KEY, declared_parameters
from vrag_kit.runner.plan import Plan, notebook_name
from vrag_kit.runner.stamp import is_finished
from vrag_kit.workspace import path as project_path

_READ_ALSO = ("answers_dir", "building_dir")
"""Folders that notebooks write and read; a dry run writes to a copy of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The expected calls and costs of one model, for all notebooks together."""

    name: str
    forecast: CostEstimate
    max_cost: float | None  # US dollars
    spent: float  # US dollars, on what is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunReport:
    """The calls that a run would make, and the notebooks that were not counted."""

    models: list[ModelCost]
    stored: int
    """Number of answers that the notebooks use and that are stored already."""
    any_order: list[str]
    """Retrievers that were not run yet."""
    failed: dict[str, str]
    """Notebook → why a cell fails and, after calls, which: up to there all calls are counted."""
    cut: dict[str, list[str]]
    """Notebook → its notes, such as on cutoffs k that were clipped."""
    undrawn: dict[str, str] = field(default_factory=dict)
    """Notebook → data that the run generates first; its calls are not counted."""


def dry_run_notebooks(plan: Plan, instead: Mapping[str, Any]) -> DryRunReport:
    """Run a plan's notebooks without calling models, and count their calls. The values of `instead`
    replace parameters of these names; in the mappings of `BY_KEY` only the keys it has.
    """
    settings = {book: {**declared_parameters(book), **given} for book, given in plan.given.items()}
    failed: dict[str, str] = {}
    cut: dict[str, list[str]] = {}
    undrawn: dict[str, str] = {}
    shown: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as scratch,
        dry_run(Path(scratch)) as recorded,
        collect_notes() as notes,
    ):
        for notebook, own in settings.items():
            chosen = {name: value for name, value in instead.items() if name in own}
            for mapping in chosen.keys() & set(BY_KEY):
                chosen[mapping] = {**own[mapping], **chosen[mapping]}
            given = redirect_outputs({**own, **chosen}, Path(scratch))
            most = None if chosen else _cells_until_last_message(plan, notebook, own)
            space, fault = execute_cells(notebook, given, recorded.models, most)
            if notes:
                cut[notebook_name(notebook)] = list(notes)
                notes.clear()
            shown |= _answer_ids(space)
            if fault is None or (space.get("models") == [] and fault.behind_models):
                continue
            words = restore_folder_names(fault.words, own, Path(scratch))
            if fault.undrawn:
                undrawn[notebook_name(notebook)] = words
            else:
                failed[notebook_name(notebook)] = words
        with ExitStack() as opened:
            stores = []
            for place in sorted(recorded.stores):
                with suppress(VragError):  # the notebook that opened it failed, and says so
                    stores.append(opened.enter_context(AnswerStore(place)))
            counted = DryRunReport(
                models=model_costs(recorded, stores),
                stored=len(_stored(shown, stores)),
                any_order=sorted(recorded.any_order),
                failed=failed,
                cut=cut,
            )
            return replace(counted, undrawn=undrawn)


def _cells_until_last_message(
    plan: Plan, notebook: Path, settings: Mapping[str, Any]
) -> int | None:
    """Of a notebook that a run would skip, as it is finished and nothing has changed: how
    many code cells there are up to the last that asked, or noted what is cut. What stands
    behind it did neither, and went well. None for every other notebook.
    """
    copy = plan.folder / f"{notebook_name(notebook)}.ipynb"
    if not is_finished(notebook, plan.given[notebook], settings, copy):
        return None
    last = last_recorded_cell(status_file(copy))
    counts = [
        cell.execution_count or 0
        for cell in read_notebook(copy).cells
        if cell.cell_type == "code" and not cell.tags & ADDED
    ]
    return sum(count <= last for count in counts) if last else 0


def model_costs(recorded: DryRun, stores: Sequence[AnswerStore]) -> list[ModelCost]:
    """Return the calls and costs of each model that a dry run recorded; `stores` give the costs so
    far.
    """
    asked = [
        model for model in recorded.models if isinstance(model, DryRunGenerator) and model.prompts
    ]
    return [_together(models, stores) for models in _grouped_models(asked)]


def _stored(answer_ids: set[str], stores: Sequence[AnswerStore]) -> set[str]:
    """Which of these answers are there, and no placeholders."""
    found: set[str] = set()
    for store in stores:
        answers = store.read(list(answer_ids)).values()
        found |= {each.answer_id for each in answers if not each.is_placeholder}
    return found


def _prompts(models: Iterable[object]) -> int:
    return sum(len(model.prompts) for model in models if isinstance(model, DryRunGenerator))


def redirect_outputs(settings: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """Return the settings with output folders below `scratch`, and without a GPU."""
    changed = dict(settings)
    for name, value in settings.items():
        if name.endswith("_dir") and name != "cache_dir":
            there = scratch / name
            if not there.exists():
                there.mkdir()
                if name in _READ_ALSO:
                    _copy_files(project_path(value), there)
            changed[name] = str(there)
    if "hardware" in settings:
        changed["hardware"] = {**settings["hardware"], "device": "cpu"}
    return changed


def restore_folder_names(words: str, settings: Mapping[str, Any], scratch: Path) -> str:
    """Replace the folders of `redirect_outputs` in a text by those of the settings."""
    for name, value in settings.items():
        if name.endswith("_dir"):
            words = words.replace(str(scratch / name), str(value))
    return words


def _copy_files(source: Path, target: Path) -> None:
    """The files at the top of a folder; a store as one moment of it."""
    for file in source.glob("*"):
        if file.suffix == ".sqlite":
            copy_store(file, target / file.name)
        elif file.is_file() and not file.name.startswith(".") and ".sqlite-" not in file.name:
            shutil.copy(file, target)


@dataclass(frozen=True, slots=True)
class CellError:
    """The first error of a notebook; later ones mostly follow from it."""

    words: str
    behind_models: bool  # whether it may come of there being none
    undrawn: bool  # whether it comes of data that the run draws itself


def execute_cells(
    notebook: Path,
    settings: Mapping[str, Any],
    models: Sequence[object],
    most: int | None = None,
) -> tuple[dict[str, Any], CellError | None]:
    """Execute a notebook's code cells, all or the first `most`, with these settings. Returns
    (variables at the end, first error); calls are recorded in `models`.
    """
    space: dict[str, Any] = {"__name__": "__main__", "display": lambda *_: None}
    cells = [cell for cell in read_notebook(notebook).cells if cell.cell_type == "code"]
    before = _prompts(models)
    fault, behind = None, False
    silence = io.StringIO()
    with (
        redirect_stdout(silence),
        redirect_stderr(silence),
        warnings.catch_warnings(),
        mpl.rc_context(),
    ):
        warnings.simplefilter("ignore")
        for number, cell in enumerate(cells[:most], start=1):
            if "parameters" in cell.tags:
                space.update(settings)
                continue
            error, until = _run_cell(cell.source, space)
            behind = behind or _mentions("models", until)
            if error is not None and fault is None:
                words = _words(error)
                asked = _prompts(models) > before or bool(_answer_ids(space))
                if asked and not isinstance(error, SetupError):
                    words = f"counted up to code cell {number}, which fails: {words}"
                fault = CellError(words, behind, isinstance(error, NotGeneratedError))
    return space, fault


def _mentions(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether statements read a variable."""
    nodes = chain.from_iterable(map(ast.walk, statements))
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _run_cell(source: str, space: dict[str, Any]) -> tuple[Exception | None, list[ast.stmt]]:
    """Run all statements of a cell; returns the first error, and the statements up to it."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        return error, []
    first: Exception | None = None
    until: list[ast.stmt] = []
    for statement in statements:
        until += [] if first else [statement]
        try:
            exec(compile(ast.Module([statement], []), "<cell>", "exec"), space)
        except Exception as error:  # whatever a notebook's code may raise
            first = first or error
    return first, until


def _words(error: Exception) -> str:
    if isinstance(error, VragError):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename == "<unknown>":  # of the cell itself
        return f"{error.msg}: {(error.text or '').strip()}"
    return f"{type(error).__name__}: {error}"


def _answer_ids(space: Mapping[str, Any]) -> set[str]:
    """The answers in the tables that a notebook has made."""
    tables = [each for each in space.values() if isinstance(each, pd.DataFrame)]
    answer_ids: set[str] = set()
    for table in tables:
        if "answer_id" in table:
            answer_ids |= set(table["answer_id"].astype(str))
        if "parts" in table:  # of long answers that are joined from replies
            answer_ids |= set(chain.from_iterable(table["parts"]))
    return answer_ids


def _grouped_models(models: Iterable[DryRunGenerator]) -> list[list[DryRunGenerator]]:
    """Stand-ins of the same model, decoding alike, together."""
    groups: dict[str, list[DryRunGenerator]] = {}
    for model in models:
        key = f"{model.name} {model.fingerprint} {model.decoding}"
        groups.setdefault(key, []).append(model)
    return list(groups.values())


def _together(models: list[DryRunGenerator], stores: Sequence[AnswerStore]) -> ModelCost:
    whole = models[0]
    for other in models[1:]:
        whole.prompts += other.prompts
        whole.sizes.update(other.sizes)
        whole.may_repair += other.may_repair
    return ModelCost(
        name=whole.name,
        forecast=whole.total_cost_estimate(),
        max_cost=whole.model.max_cost,
        spent=sum(store.total_cost(whole.name) for store in stores),
    )
