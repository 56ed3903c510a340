"""What a parameter file says that no notebook could run with: the run refuses it before
one begins, and the check lists it, in the same words.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vrag_kit.building.template_writer import NAME as TEMPLATE
from vrag_kit.checkpoints import find_checkpoint, near_name
from vrag_kit.errors import VragError
from vrag_kit.generation.loading import read_model
from vrag_kit.generation.remote.endpoints import find_endpoints
from vrag_kit.judging import JUDGES
from vrag_kit.judging.claims_by_rule import RULE
from vrag_kit.judging.loading import word_of
from vrag_kit.judging.own_judge import check_signed, own_judge
from vrag_kit.judging.told_rubric import without_rubric
from vrag_kit.options import Entry, check_word, read_entry
from vrag_kit.own_classes import own_spec
from vrag_kit.plain import JsonView
from vrag_kit.retrieval import OPTIONS
from vrag_kit.retrieval.given_run import run_file
from vrag_kit.retrieval.services import WORD_INDEXES
from vrag_kit.runner.parameters import BY_KEY, RUN_WITH, WITHIN, declared
from vrag_kit.runner.plan import Plan
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shown

NOBODY: dict[str, tuple[str, ...]] = {
    "judge": tuple(JUDGES),
    "rewriter": ("",),
    "writer": (TEMPLATE,),
    "filter_model": ("",),
    "extractor": ("", RULE),
    "checker": (RULE,),
    "answerer": (),
    "models": (),
    "filter_models": (),
    "assessors": (RULE,),
    "rewriters": (),
}
"""Parameters that name one model each, or a list, and values of theirs that name none."""
SEARCHING = ("retrievers", "retriever", "text_retriever", "image_service", "web_service")
"""Parameters that name retrievers: one, several, or several of each modality."""


def refusals(plan: Plan) -> list[str]:
    """What a run would refuse, a line each: mistyped names, folders that are not there,
    options that nothing takes, scales of judges. No model is opened, loaded or fetched.
    """
    values = together(plan)
    lines = folder_refusals(plan)
    lines += [retriever_refusal(entry) for entry in retrievers_in(values)]
    for name, entry in models_in(values):
        lines.append(model_refusal(entry, name, values.get(RUN_WITH, {})))
    lines += judge_refusals(plan)
    return [line for line in dict.fromkeys(lines) if line]


def folder_refusals(plan: Plan) -> list[str]:
    """Which folders a run could not write to: those whose parameters end in `_dir`, and
    that of its executed copies. Nothing is made.
    """
    folders = {("the folder of executed copies", shown(plan.folder)): None}
    for notebook, given in plan.given.items():
        for name, value in {**declared(notebook), **given}.items():
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
        return f"found {shown(there)}, which is no folder"
    try:
        with tempfile.TemporaryFile(dir=there):
            return ""
    except OSError as error:
        return f"found {shown(there)}, which takes no file ({error.strerror})"


def together(plan: Plan) -> dict[str, Any]:  # Any: parameters are of any type
    """The parameters of all notebooks in one: the mappings of `BY_KEY` with the keys of
    all, and the names of `WITHIN` as if they stood beside them.
    """
    values: dict[str, Any] = {}
    for notebook, given in plan.given.items():
        own = {**declared(notebook), **given}
        for mapping in own.keys() & set(BY_KEY):
            if isinstance(own[mapping], Mapping):
                own[mapping] = {**values.get(mapping, {}), **own[mapping]}
        values |= own
    for name, mapping in WITHIN.items():
        if name in values.get(mapping, {}):
            values[name] = values[mapping][name]
    return values


def retrievers_in(values: JsonView) -> Iterator[Entry]:
    """The entries of all parameters that name retrievers, but for searches by words."""
    for name in SEARCHING:
        value = values.get(name)
        by_modality = isinstance(value, Mapping) and "model" not in value
        for group in value.values() if by_modality and isinstance(value, Mapping) else [value]:
            for entry in group if isinstance(group, list) else [group]:
                if entry and entry not in list(WORD_INDEXES):
                    yield entry


def models_in(values: JsonView) -> Iterator[tuple[str, Entry]]:
    """(parameter, entry) of all models that parameters name."""
    for name, nobody in NOBODY.items():
        value = values.get(name, [])
        if name == "rewriter" and not _rewrites(values):
            continue
        for entry in value if isinstance(value, list) else [value]:
            if entry not in nobody:
                yield name, entry


def _rewrites(values: JsonView) -> bool:
    """Whether a model is to say questions anew."""
    return values.get("web", {}).get("rewrite") not in ("none", "given")


def retriever_refusal(entry: Entry) -> str:
    """Why a retriever cannot be searched with, as far as that is told by its entry; ""
    when nothing speaks against it.
    """
    try:
        if own_spec(entry) is None and run_file(entry) is None:
            spec, _ = read_entry(entry, OPTIONS, "retriever")
            _check_place(spec)
            check_word(spec, tuple(WORD_INDEXES), "retriever")
    except VragError as error:
        return str(error)
    return ""


def model_refusal(entry: Entry, name: str, how: JsonView) -> str:
    """Why the model that the parameter `name` names cannot be asked, as far as that is
    told by its entry and the `decoding` and `max_new_tokens` of `how`; "" when nothing
    speaks against it.
    """
    told = {}
    if name in ("models", "answerer"):
        told = {key: how[key] for key in ("decoding", "max_new_tokens") if key in how}
    try:
        if name == "judge":
            if word_of(entry):
                return ""
            entry = without_rubric(entry)
        if own_spec(entry) is None:
            spec, options = read_model(entry, **told)
            if "@" in spec and not project_path(spec).is_dir():
                find_endpoints(spec, options)
            else:
                _check_place(spec)
                check_word(spec, NOBODY[name], name)
    except VragError as error:
        return str(error)
    return ""


def judge_refusals(plan: Plan) -> list[str]:
    """Why the judge of some notebook cannot judge there, by its scale; a notebook whose
    own judge is of truthfulness takes none of another.
    """
    lines: list[str] = []
    for notebook, given in plan.given.items():
        usual = declared(notebook).get("judge")
        if usual not in list(JUDGES):
            continue
        entry = given.get("judge", usual)
        try:
            _check_scale(entry, signed=JUDGES[usual]().scale.signed)
        except VragError as error:
            lines.append(str(error))
    return list(dict.fromkeys(lines))


def _check_scale(entry: Entry, *, signed: bool) -> None:
    if (word := word_of(entry)) is None:
        own_judge(entry, signed=signed)
    elif signed:
        check_signed(JUDGES[word]().scale, f"judge {word!r}")


def _check_place(spec: str) -> None:
    """Raise `VragError` for the path of a checkpoint that is not there, and for a name
    that is nearly that of one which is here; no hub is asked.
    """
    is_path = spec.startswith((".", "/", "~")) or spec.count("/") > 1
    if is_path or ("/" not in spec and near_name(spec)):
        find_checkpoint(spec)
