"""Parameter files: flat YAML, each name declared by at least one notebook, each value
of the declared type.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from papermill import inspect_notebook

from vrag_kit.errors import VragError

_ENTRIES = (
    *("answerer", "checker", "extractor", "filter_model", "judge"),
    *("image_service", "retriever", "rewriter", "text_retriever", "web_service", "writer"),
)
"""Parameters that name a model, and so may be a mapping with "model" and options."""
MODELS = (*_ENTRIES, "guide_retriever", "models", "retrievers", "talker")
"""Parameters that name models, one or several."""
_SOURCES = ("articles", "data", "other_corpus", "pictures", "suite", "webqa")
"""Parameters that name data, and so may be a mapping of files, or of data sets."""
_FROM_ONE = frozenset(
    (
        *("draws", "evidence_draws", "example_draws", "position_draws", "swap_draws"),
        *("batch_size", "chunk_tokens", "image_k", "judge_samples", "k_images", "k_texts"),
        *("max_new_tokens", "most_clues", "votes", "web_k"),
    )
)
"""Numbers of which there is one at least; of others, such as questions, 0 may mean all."""


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
        found = inspect_notebook(str(notebook))
    except ValueError as error:
        raise VragError(
            f"{notebook}: its metadata names no kernel. Open it in JupyterLab once and save it."
        ) from error
    return {name: ast.literal_eval(about["default"]) for name, about in found.items()}


def subsets(
    notebooks: Sequence[Path], values: Mapping[str, Any], where: Path
) -> dict[Path, dict[str, Any]]:
    """The part of `values` that each notebook declares.

    A value takes the place of the notebook's own, but for the mappings of `BY_KEY`: of
    those only the keys that are given do, the others stay as in the notebook. Raises
    `VragError` for a name that no notebook declares, with the names that are, for such a
    key of a mapping, and for a value of another type than the notebook's default.
    """
    defaults = {notebook: declared(notebook) for notebook in notebooks}
    _refuse_unknown(values, set().union(*defaults.values()), where)
    for notebook, names in defaults.items():
        for name in names.keys() & values.keys():
            _refuse_misfit(name, values[name], names[name], f"{where}: {name}", notebook)
    for mapping in BY_KEY:
        if isinstance(values.get(mapping), Mapping):
            _check_keys(mapping, values, list(defaults.values()), where)
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
    *("crag_mm", "graph", "oracles", "prompts"),
    *(RUN_WITH, "search", "talk", "web"),
)
"""Parameters that are mappings of what goes together, of which a file may give a part; in
MRAG-Suite's notebooks `prompts` is a list of names, and given whole.
"""
WITHIN = {"image_service": "graph", "rewriter": "web", "web_service": "web"}
"""Names of a model that stand in a mapping → which one."""
RARELY = {"samples": 1, "retry_failures": False}
"""Keys of `run_with` that notebooks do not show, and what they are when nobody sets them."""


def _check_keys(
    mapping: str, values: Mapping[str, Any], defaults: Sequence[Mapping[str, Any]], where: Path
) -> None:
    """Refuse keys of a mapping that no notebook has in its own, and values that misfit."""
    shown: dict[str, Any] = dict(RARELY) if mapping == RUN_WITH else {}
    for names in defaults:
        shown |= names.get(mapping, {})
    given = values[mapping]
    _refuse_unknown(given, shown, where, of=f" in its {mapping}")
    for key, value in given.items():
        _refuse_misfit(key, value, shown[key], f"{where}: {mapping}: {key}", None)


def _refuse_unknown(
    values: Mapping[str, Any], known: Collection[str], where: Path, *, of: str = ""
) -> None:
    if unknown := sorted(set(values) - set(known)):
        near: list[str] = []
        for name in unknown:
            near += get_close_matches(name, known, 1)
        hints = "".join(f" Did you mean {match!r}?" for match in near)
        raise VragError(
            f"{where}: no notebook declares {', '.join(map(repr, unknown))}{of}.{hints}"
            f" Declared are: {', '.join(sorted(known))}."
        )


def _refuse_misfit(name: str, value: Any, default: Any, what: str, notebook: Path | None) -> None:
    if _fits(name, value, default):
        return
    who = f"{notebook.name} expects" if notebook else "expected is"
    if name in _FROM_ONE and type(value) is int:
        raise VragError(f"{what} is {value}; expected a whole number from 1 on.")
    list_hint = (
        " In YAML each item of a list begins with '- '." if isinstance(default, list) else ""
    )
    if _counts(default):
        list_hint = f" Its items are whole numbers from 1 on, one at least.{list_hint}"
    mapping_hint = (
        f" In YAML: {name}: {{{next(iter(default))}: …}}." if isinstance(default, dict) else ""
    )
    raise VragError(
        f"{what} is {value!r} ({type(value).__name__}), but {who}"
        f" {type(default).__name__}, as in {name} = {default!r}.{list_hint}{mapping_hint}"
    )


def _fits(name: str, value: Any, default: Any) -> bool:
    if isinstance(value, dict):
        if name in _ENTRIES:
            return isinstance(value.get("model"), str)
        return name in _SOURCES or isinstance(default, dict) or name == "decoding"
    if name in _ENTRIES and isinstance(value, str):
        return True
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if _counts(default):
        return _counts(value)
    if name in _FROM_ONE and isinstance(value, int):
        return value > 0
    return isinstance(value, type(default))


def _counts(value: Any) -> bool:
    """Whether a parameter is a list of numbers from 1 on, as `ks` are."""
    whole = isinstance(value, list) and value
    return bool(whole) and all(type(each) is int and each > 0 for each in value)


def models_in(values: Mapping[str, Any]) -> list[Any]:  # Any: entries, as YAML has them
    """The entries of served models, "<model>@<endpoint>" or mappings, among parameters."""
    found = []
    named = []
    for name, mapping in WITHIN.items():
        if isinstance(values.get(mapping), Mapping):
            named.append(values[mapping].get(name))
    for value in (*values.values(), *named):
        for entry in value if isinstance(value, list) else [value]:
            spec = entry.get("model") if isinstance(entry, Mapping) else entry
            if isinstance(spec, str) and "@" in spec:
                found.append(entry)
    return found
