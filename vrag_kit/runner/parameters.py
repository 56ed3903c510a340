"""Parameter files: flat YAML, each name declared by at least one notebook, each value
of the declared type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.errors import VragError
from vrag_kit.runner.books import names_kernel, parameters_of, read_book
from vrag_kit.runner.fitting import ENTRIES, misfit, misplaced_clue

MODELS = (*ENTRIES, "guide_retriever", "models", "retrievers", "talker")
"""Parameters that name models, one or several."""
SERVES = "notebooks"
"""The reserved line of a parameter file that says which notebooks it is for."""


_NAMED = 3
"""Notebooks that are named where more declare a parameter."""


class _UniqueNames(yaml.SafeLoader):
    """YAML in which a name stands once in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises an error that yaml marks with its line for a name that is
        given twice.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_parameters(path: Path) -> dict[str, Any]:
    """Read a flat YAML file of parameters; raises `VragError` when it is missing, not
    YAML, or not flat.
    """
    if path.suffix == ".ipynb":
        raise VragError(
            f"{path}: this is a notebook; expected a YAML file of parameters. Run it with"
            f" `papermill {path} out.ipynb`, or write a file p.yaml with the line"
            f" `{SERVES}: [{path.stem}]` and `vrag run p.yaml`."
        )
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _UniqueNames) or {}  # a SafeLoader
    except IsADirectoryError as error:
        raise VragError(f"{path}: this is a folder; expected a YAML file of parameters.") from error
    except UnicodeDecodeError as error:
        raise VragError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from error
    except FileNotFoundError as error:
        near = ", ".join(sorted(str(file) for file in path.parent.glob("*.yaml")))
        hint = f" Found here: {near}." if near else ""
        raise VragError(f"{path}: no such parameter file.{hint}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise VragError(
            f"{path}{line}: not YAML ({problem}); expected lines 'name: value'. Check the"
            " indentation."
        ) from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise VragError(f"{path}: expected lines 'name: value', found a {type(values).__name__}.")
    return values


def declared(notebook: Path) -> dict[str, Any]:
    """The parameters a notebook declares in its `parameters` cell, with their defaults."""
    try:
        book = read_book(notebook)
        found = {each.name: each.default for each in parameters_of(book)}
    except ValueError as error:
        raise VragError(f"{notebook}: cannot be run as it is ({error}).") from error
    if not names_kernel(book.metadata):
        raise VragError(
            f"{notebook}: its metadata names no kernel. Open it in JupyterLab once and save it."
        )
    return found


def subsets(
    notebooks: Sequence[Path],
    values: Mapping[str, Any],
    where: Path,
    others: Sequence[Path] = (),
) -> dict[Path, dict[str, Any]]:
    """The part of `values` that each notebook declares.

    A value takes the place of the notebook's own, but for the mappings of `BY_KEY`: of
    those only the keys that are given do, the others stay as in the notebook. Raises
    `VragError` with all that is wrong, a line each: names that no notebook declares, with
    those that are, or with the notebooks among `others` that do; such keys of a mapping;
    and values that a notebook cannot take (see `misfit`).
    """
    defaults = {notebook: declared(notebook) for notebook in notebooks}
    known = set().union(*defaults.values(), [SERVES])
    faults = _unknown(values, known, others)
    for name, value in values.items():
        faults += _first_misfit(name, value, defaults)
    for mapping in BY_KEY:
        if mapping in known and isinstance(values.get(mapping), Mapping):
            faults += _wrong_keys(mapping, values[mapping], list(defaults.values()), others)
    if not faults:
        faults = [misplaced_clue({**names, **values}) for names in defaults.values()]
    if told := [fault for fault in dict.fromkeys(faults) if fault]:
        raise VragError("\n".join(f"{where}: {fault}" for fault in told))
    given = {}
    for notebook, names in defaults.items():
        own = {name: value for name, value in values.items() if name in names}
        for mapping in own.keys() & set(BY_KEY):
            if isinstance(names[mapping], Mapping):
                own[mapping] = {**names[mapping], **own[mapping]}
        given[notebook] = own
    return given


RUN_WITH = "run_with"
"""The parameter that says how a notebook is run."""
BY_KEY = (
    *("assess", "coarse_filter", "crag_mm", "evidence", "graph", "k", "labelling", "largest"),
    *("oracles", "positions", "prompts", "questions", "rules", RUN_WITH, "sweep", "talk", "web"),
)
"""Parameters that are mappings of what goes together, of which a file may give a part."""
WITHIN = {
    "image_service": "graph",
    "rewriter": "web",
    "web_service": "web",
    "filter_model": "coarse_filter",
}
"""Names of a model that stand in a mapping → which one."""
RARELY = {"samples": 1, "retry_failures": False}
"""Keys of `run_with` that notebooks do not show, and what they are when nobody sets them."""


def _declared_by(names: Collection[str], others: Sequence[Path], within: str) -> dict[str, str]:
    """Name that notebooks declare which a file is not for → what to do about it."""
    books: dict[str, list[str]] = {}
    for notebook in others if names else ():
        own: object = {}
        with suppress(VragError):  # nobody has asked for that notebook
            own = declared(notebook)
        own = own.get(within) if within and isinstance(own, dict) else own
        for name in own if isinstance(own, dict) else ():
            if name in names:
                books.setdefault(name, []).append(notebook.stem)
    told = {}
    for name, of in sorted(books.items()):
        what = f"{within}: {name} is a key" if within else f"{name} is a parameter"
        more = f" and {len(of) - _NAMED} more" if len(of) > _NAMED else ""
        told[name] = (
            f"{what} of {', '.join(of[:_NAMED])}{more}, which this file is not for. Name it under"
            f" `{SERVES}`, or remove the line."
        )
    return told


def _first_misfit(
    name: str, value: Any, defaults: Mapping[Path, Mapping[str, Any]]
) -> list[str]:  # Any: parameters are of any type
    """What the first notebook says that cannot take a value; [] when all can."""
    for notebook, names in defaults.items():
        if name in names and (words := misfit(name, value, names[name], notebook.name)):
            return [f"{name} {words}"]
    return []


def _wrong_keys(
    mapping: str,
    given: Mapping[str, Any],
    defaults: Sequence[Mapping[str, Any]],
    others: Sequence[Path],
) -> list[str]:
    """Keys of a mapping that no notebook has in its own, and values that misfit."""
    shown: dict[str, Any] = dict(RARELY) if mapping == RUN_WITH else {}
    for names in defaults:
        own = names.get(mapping, {})
        shown |= own if isinstance(own, Mapping) else {}
    faults = _unknown(given, shown, others, within=mapping)
    for key in given.keys() & shown.keys():
        if words := misfit(key, given[key], shown[key]):
            faults.append(f"{mapping}: {key} {words}")
    return faults


def _unknown(
    values: Collection[str], known: Collection[str], others: Sequence[Path], *, within: str = ""
) -> list[str]:
    """What to say of names that none of a file's notebooks declares, `within` a mapping."""
    told = _declared_by(set(values) - set(known), others, within)
    unknown = sorted(map(str, set(values) - set(known) - told.keys()))
    if not unknown:
        return list(told.values())
    near: list[str] = []
    for name in unknown:
        near += get_close_matches(name, known, 1)
    hints = "".join(f" Did you mean {match!r}?" for match in near)
    of = f" in its {within}" if within else ""
    return [
        *told.values(),
        f"no notebook declares {', '.join(map(repr, unknown))}{of}.{hints} Declared are:"
        f" {', '.join(sorted(set(known) - {SERVES}))}.",
    ]
