"""What the notebooks of a parameter file would ask, by running their cells with models
that say nothing, on a copy of the answers.

Cells run in this process, statement by statement, since a statement that fails must not
keep the next one from asking. What notebooks write goes to a folder that is thrown away.
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

from vrag_kit.errors import CertainError, NotDrawnError, VragError
from vrag_kit.forecast import STAND_IN, forecasting
from vrag_kit.forecast import Forecast as Ongoing
from vrag_kit.generation.answers import AnswerStore
from vrag_kit.generation.generator import Forecast
from vrag_kit.generation.stand_in import StandIn
from vrag_kit.generation.store_copies import copy_store
from vrag_kit.runner.books import read_book
from vrag_kit.runner.copies import ADDED
from vrag_kit.runner.execution import tally_of
from vrag_kit.runner.finished import is_finished
from vrag_kit.runner.parameters import BY_KEY, RUN_WITH, declared
from vrag_kit.runner.plan import Plan, name_of
from vrag_kit.tally import last_cell
from vrag_kit.workspace import path as project_path

_READ_ALSO = ("answers_dir", "building_dir")
"""Folders that notebooks write and read, so that a copy of them is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one model would be asked by all notebooks together."""

    name: str
    forecast: Forecast
    max_cost: float | None  # US dollars
    spent: float  # US dollars, on what is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """What a run would ask."""

    models: list[Asked]
    stored: int
    """Answers that the notebooks use and that are stored already."""
    any_order: list[str]
    """Retrievers whose search was not made yet."""
    failed: dict[str, str]
    """Notebook → why it fails before it asks anything, or whatever is answered."""
    partly: dict[str, str]
    """Notebook → the cell that fails after others asked, whose questions are not counted."""
    cut: dict[str, list[str]]
    """Notebook → which numbers of documents are cut to what there is."""
    undrawn: dict[str, str] = field(default_factory=dict)
    """Notebook → which data the run draws first, so that what it asks is not counted."""


def foresee(plan: Plan, instead: Mapping[str, Any]) -> Foresight:
    """Run the plan's notebooks up to what they would ask, with the values of `instead`
    in the place of parameters of these names; of the mappings of `BY_KEY` only the keys
    that it has.
    """
    settings = {book: {**declared(book), **given} for book, given in plan.given.items()}
    failed: dict[str, str] = {}
    partly: dict[str, str] = {}
    cut: dict[str, list[str]] = {}
    undrawn: dict[str, str] = {}
    shown: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch, forecasting(Path(scratch)) as forecast:
        for notebook, own in settings.items():
            chosen = {name: value for name, value in instead.items() if name in own}
            for mapping in chosen.keys() & set(BY_KEY):
                chosen[mapping] = {**own[mapping], **chosen[mapping]}
            given = harmless({**own, **chosen}, Path(scratch))
            most = None if chosen else _cells_that_told(plan, notebook, own)
            space, fault = executed(notebook, given, forecast.models, most)
            if forecast.cut:
                cut[name_of(notebook)] = list(forecast.cut)
                forecast.cut.clear()
            shown |= _answer_ids(space)
            if fault is None or (space.get("models") == [] and fault.behind_models):
                continue
            words = in_own_folders(fault.words, own, Path(scratch))
            if fault.undrawn:
                undrawn[name_of(notebook)] = words
            elif fault.asked and not fault.certain:
                partly[name_of(notebook)] = f"code cell {fault.cell} fails there: {words}"
            else:
                failed[name_of(notebook)] = words
        with ExitStack() as opened:
            stores = []
            for place in sorted(forecast.stores):
                with suppress(VragError):  # the notebook that opened it failed, and says so
                    stores.append(opened.enter_context(AnswerStore(place)))
            counted = Foresight(
                models=would_ask(forecast, stores),
                stored=len(_stored(shown, stores)),
                any_order=sorted(forecast.any_order),
                failed=failed,
                partly=partly,
                cut=cut,
            )
            return replace(counted, undrawn=undrawn)


def _cells_that_told(plan: Plan, notebook: Path, settings: Mapping[str, Any]) -> int | None:
    """Of a notebook that a run would skip, as it is finished and nothing has changed: how
    many code cells there are up to the last that asked, or noted what is cut. What stands
    behind it did neither, and went well. None for every other notebook.
    """
    copy = plan.folder / f"{name_of(notebook)}.ipynb"
    if not is_finished(notebook, plan.given[notebook], settings, copy):
        return None
    last = last_cell(tally_of(copy))
    counts = [
        cell.execution_count or 0
        for cell in read_book(copy).cells
        if cell.cell_type == "code" and not cell.tags & (ADDED - {"parameters"})
    ]
    return sum(count <= last for count in counts) if last else 0


def would_ask(forecast: Ongoing, stores: Sequence[AnswerStore]) -> list[Asked]:
    """What each model would be asked that a forecast has come upon; `stores` tell what it
    has cost so far.
    """
    asked = [model for model in forecast.models if isinstance(model, StandIn) and model.prompts]
    return [_together(models, stores) for models in _alike(asked)]


def _stored(answer_ids: set[str], stores: Sequence[AnswerStore]) -> set[str]:
    """Which of these answers are there, and no stand-ins."""
    found: set[str] = set()
    for store in stores:
        answers = store.read(list(answer_ids)).values()
        found |= {each.answer_id for each in answers if not each.fields.get(STAND_IN)}
    return found


def _prompts(models: Iterable[object]) -> int:
    return sum(len(model.prompts) for model in models if isinstance(model, StandIn))


def harmless(settings: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """The settings with folders to write to below `scratch`, and no GPU."""
    changed = dict(settings)
    for name, value in settings.items():
        if name.endswith("_dir") and name != "cache_dir":
            there = scratch / name
            if not there.exists():
                there.mkdir()
                if name in _READ_ALSO:
                    _copy_files(project_path(value), there)
            changed[name] = str(there)
    if "batch_size" in settings.get(RUN_WITH, {}):
        changed[RUN_WITH] = {**settings[RUN_WITH], "device": "cpu"}
    return changed


def in_own_folders(words: str, settings: Mapping[str, Any], scratch: Path) -> str:
    """Words in which the folders of `harmless` are called what the settings call them."""
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
class Fault:
    """The first error of a notebook; later ones mostly follow from it."""

    cell: int  # code cells are counted from 1
    words: str
    asked: bool  # whether questions or answers had been come upon by then
    certain: bool  # whether it comes whatever is answered
    behind_models: bool  # whether it may come of there being none
    undrawn: bool  # whether it comes of data that the run draws itself


def executed(
    notebook: Path,
    settings: Mapping[str, Any],
    models: Sequence[object],
    most: int | None = None,
) -> tuple[dict[str, Any], Fault | None]:
    """(variables at the end, first error) of a notebook's code cells, all, or the first
    `most`, run with these settings; what they ask is noted in `models`.
    """
    space: dict[str, Any] = {"__name__": "__main__", "display": lambda *_: None}
    cells = [cell for cell in read_book(notebook).cells if cell.cell_type == "code"]
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
                asked = _prompts(models) > before or bool(_answer_ids(space))
                certain = isinstance(error, CertainError)
                undrawn = isinstance(error, NotDrawnError)
                fault = Fault(number, _words(error), asked, certain, behind, undrawn)
    return space, fault


def _mentions(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether statements read a variable."""
    nodes = chain.from_iterable(map(ast.walk, statements))
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _run_cell(source: str, space: dict[str, Any]) -> tuple[Exception | None, list[ast.stmt]]:
    """Run a cell's statements, all of them; returns the first error, and the statements
    up to it.
    """
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        return error, []
    fault: Exception | None = None
    until: list[ast.stmt] = []
    for statement in statements:
        until += [] if fault else [statement]
        code = compile(ast.Module([statement], []), "<cell>", "exec")
        try:
            exec(code, space)
        except Exception as error:  # whatever a notebook's code may raise; it is told
            fault = fault or error
    return fault, until


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


def _alike(models: Iterable[StandIn]) -> list[list[StandIn]]:
    """Stand-ins of the same model, decoding alike, together."""
    groups: dict[str, list[StandIn]] = {}
    for model in models:
        key = f"{model.name} {model.fingerprint} {model.decoding}"
        groups.setdefault(key, []).append(model)
    return list(groups.values())


def _together(models: list[StandIn], stores: Sequence[AnswerStore]) -> Asked:
    whole = models[0]
    for other in models[1:]:
        whole.prompts += other.prompts
        whole.sizes.update(other.sizes)
        whole.may_repair += other.may_repair
    return Asked(
        name=whole.name,
        forecast=whole.whole_forecast(),
        max_cost=whole.model.max_cost,
        spent=sum(store.spent(whole.name) for store in stores),
    )
