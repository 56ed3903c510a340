"""Validation of parameter values that no notebook could run with. A run refuses them before it
starts, and a check lists them, with the same messages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vrag_kit.building.questions import TEMPLATE
from vrag_kit.checkpoints import check_checkpoint_name
from vrag_kit.claims.checkers import RULE
from vrag_kit.config import Entry, check_choice, read_entry
from vrag_kit.custom import custom_spec
from vrag_kit.errors import VragError
from vrag_kit.generation.generators import parse_model_entry
from vrag_kit.generation.remote.providers import EndpointOptions, find_endpoints
from vrag_kit.judging import JUDGES
from vrag_kit.judging.loading import builtin_judge_name, judge_without_model, split_rubric
from vrag_kit.retrieval.encoders.loading import OPTIONS
from vrag_kit.retrieval.runs import find_run_file
from vrag_kit.retrieval.services import WORD_INDEXES
from vrag_kit.runner.params import BY_KEY, WITHIN, declared_parameters
from vrag_kit.runner.plan import Plan
from vrag_kit.types import JsonView
from vrag_kit.workspace import display_path
from vrag_kit.workspace import path as project_path

NOBODY: dict[str, tuple[str, ...]] = {
    "judge": tuple(JUDGES),
    "rewriter": ("",),
    "question_writer": (TEMPLATE,),
    "filter_model": ("",),
    "extractor": ("", RULE),
    "checker": (RULE,),
    "tour_model": (),
    "models": (),
    "filter_models": (),
    "detectors": (RULE,),
    "rewriters": (),
}
"""Parameters that name one model, or a list → their values that name no model."""
SEARCHING = ("retrievers", "retriever", "text_retriever", "image_service", "web_service")
"""Parameters that name retrievers: one, several, or several of each modality."""


def invalid_parameters(plan: Plan) -> list[str]:
    """Return what a run would refuse, one line each: mistyped names, missing folders, unknown
    options, scales of judges. No model is opened, loaded or fetched.
    """
    values = merged_parameters(plan)
    lines = unwritable_folders(plan)
    lines += [invalid_retriever_reason(entry) for entry in retrievers_in(values)]
    for name, entry in models_in(values):
        lines.append(invalid_model_reason(entry, name, values.get("decoding", {})))
    lines += invalid_judges(plan)
    return [line for line in dict.fromkeys(lines) if line]


def unwritable_folders(plan: Plan) -> list[str]:
    """Return the folders that a run could not write to. Checked are parameters that end in `_dir`,
    and the folder of executed copies; nothing is created.
    """
    folders = {("the folder of executed copies", display_path(plan.folder)): None}
    for notebook, given in plan.given.items():
        for name, value in {**declared_parameters(notebook), **given}.items():
            if name.endswith("_dir"):
                folders[name, value] = None
    lines = []
    for name, folder in folders:
        if why := _unwritable(project_path(folder)):
            expected = "expected a folder that can be written, or a path where one can be made"
            lines.append(f"{name} is {folder!r}, which cannot be written: {why}; {expected}.")
    return lines


def _unwritable(folder: Path) -> str:
    """Why a folder cannot be written, or made; "" when it can. It is tried: rights alone
    say nothing to root, or of a disk that is mounted to be read.
    """
    there = folder
    while not os.path.lexists(there):
        there = there.parent
    if not os.path.isdir(there):
        return f"found {display_path(there)}, which is no folder"
    try:
        with tempfile.TemporaryFile(dir=there):
            return ""
    except OSError as error:
        return f"found {display_path(there)}, which takes no file ({error.strerror})"


def merged_parameters(plan: Plan) -> dict[str, Any]:  # Any: parameters are of any type
    """Merge the parameters of all notebooks. Mappings of `BY_KEY` have the keys of all, and the
    names of `WITHIN` are also at the top level.
    """
    values: dict[str, Any] = {}
    for notebook, given in plan.given.items():
        own = {**declared_parameters(notebook), **given}
        for mapping in own.keys() & set(BY_KEY):
            if isinstance(own[mapping], Mapping):
                own[mapping] = {**values.get(mapping, {}), **own[mapping]}
        values |= own
    for name, mapping in WITHIN.items():
        if name in values.get(mapping, {}):
            values[name] = values[mapping][name]
    return values


def retrievers_in(values: JsonView) -> Iterator[Entry]:
    """Yield the entries of all parameters that name retrievers, except lexical search."""
    for name in SEARCHING:
        value = values.get(name)
        by_modality = isinstance(value, Mapping) and "model" not in value
        for group in value.values() if by_modality and isinstance(value, Mapping) else [value]:
            for entry in group if isinstance(group, list) else [group]:
                if entry and entry not in list(WORD_INDEXES):
                    yield entry


def models_in(values: JsonView) -> Iterator[tuple[str, Entry]]:
    """Yield (parameter, entry) of all models that parameters name."""
    for name, nobody in NOBODY.items():
        value = values.get(name, [])
        if name == "rewriter" and not _rewrites(values):
            continue
        for entry in value if isinstance(value, list) else [value]:
            if entry not in nobody:
                yield name, entry


def _rewrites(values: JsonView) -> bool:
    """Whether a model rewrites queries."""
    return values.get("web_search", {}).get("rewrite") not in ("none", "given")


def invalid_retriever_reason(entry: Entry) -> str:
    """Return why a retriever cannot be used, as far as its entry shows; "" if no fault is found."""
    try:
        if custom_spec(entry) is None and find_run_file(entry) is None:
            spec, _ = read_entry(entry, OPTIONS, "retriever")
            check_checkpoint_name(spec)
            check_choice(spec, tuple(WORD_INDEXES), "retriever")
    except VragError as error:
        return str(error)
    return ""


def invalid_model_reason(entry: Entry, name: str, decoding: JsonView) -> str:
    """Return why the model of the parameter `name` cannot be called; "" if no fault is found. Only
    its entry and `decoding`, that of answerers, are checked.
    """
    given = decoding if name in ("models", "tour_model") else None
    try:
        if name == "judge":
            if builtin_judge_name(entry):
                return ""
            entry, _ = split_rubric(entry)
        if custom_spec(entry) is None:
            spec, options = parse_model_entry(entry, given)
            if isinstance(options, EndpointOptions):
                find_endpoints(spec, options)
            else:
                check_checkpoint_name(spec)
                check_choice(spec, NOBODY[name], name)
    except VragError as error:
        return str(error)
    return ""


def invalid_judges(plan: Plan) -> list[str]:
    """Return why the judges of some notebooks cannot be used, by their scales. A notebook whose
    default judge is of truthfulness accepts no other scale.
    """
    lines: list[str] = []
    for notebook, given in plan.given.items():
        usual = declared_parameters(notebook).get("judge")
        if usual not in list(JUDGES):
            continue
        entry = given.get("judge", usual)
        try:
            judge_without_model(entry, signed=JUDGES[usual]().scale.signed)
        except VragError as error:
            lines.append(str(error))
    return list(dict.fromkeys(lines))
