"""Parameter files: flat YAML whose names and value types are declared by notebooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.config import SAMPLING, Decoding, Hardware
from vrag_kit.errors import VragError, did_you_mean
from vrag_kit.runner.books import has_kernel, parse_parameters_cell, read_notebook
from vrag_kit.runner.fitting import ENTRIES, invalid_clue_position, invalid_value_reason

MODELS = (*ENTRIES, "guide_retriever", "models", "retrievers", "talker")
"""Parameters that name one model or several."""
SERVES = "notebooks"
"""Reserved key of a parameter file that lists its notebooks."""


_NAMED = 3
"""Maximum number of notebooks named if more declare a parameter."""


class _UniqueNames(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; raises a YAML error with the line of a duplicate key."""
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


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """Return the parameters that a notebook declares in its `parameters` cell, with defaults."""
    try:
        book = read_notebook(notebook)
        found = {each.name: each.default for each in parse_parameters_cell(book)}
    except ValueError as error:
        raise VragError(f"{notebook}: cannot be run as it is ({error}).") from error
    if not has_kernel(book.metadata):
        raise VragError(
            f"{notebook}: its metadata names no kernel. Open it in JupyterLab once and save it."
        )
    return found


def split_by_notebook(
    notebooks: Sequence[Path],
    values: Mapping[str, Any],
    where: Path,
    others: Sequence[Path] = (),
) -> dict[Path, dict[str, Any]]:
    """Return the part of `values` that each notebook declares.

    A value replaces the notebook's default, a mapping as a whole, as in papermill. Raises
    `VragError` with all faults, one per line: names that no notebook declares, with those declared,
    or with the notebooks among `others` that declare them; unknown and missing keys of a mapping;
    and values that a notebook cannot take (see `invalid_value_reason`).
    """
    defaults = {notebook: declared_parameters(notebook) for notebook in notebooks}
    known = set().union(*defaults.values(), [SERVES])
    faults = _unknown(values, known, others)
    for name, value in values.items():
        faults += _first_misfit(name, value, defaults)
    for mapping in BY_KEY:
        if mapping in known and isinstance(values.get(mapping), Mapping):
            faults += _wrong_keys(mapping, values[mapping], list(defaults.values()), others)
    if not faults:
        faults = [invalid_clue_position({**names, **values}) for names in defaults.values()]
    if told := [fault for fault in dict.fromkeys(faults) if fault]:
        raise VragError("\n".join(f"{where}: {fault}" for fault in told))
    return {
        notebook: {name: value for name, value in values.items() if name in names}
        for notebook, names in defaults.items()
    }


BY_KEY = (
    *(
        "ambiguity",
        "coarse_filter",
        "crag_mm",
        "paired_contexts",
        "image_search",
        "k",
        "labelling",
        "limits",
    ),
    *(
        "oracles",
        "clue_positions",
        "prompts",
        "max_questions",
        "filter_rules",
        "decoding",
        "hardware",
        "prompt_sweep",
        "conversation",
        "web_search",
    ),
)
"""Parameters that are mappings of related settings."""
WITHIN = {
    "image_service": "image_search",
    "rewriter": "web_search",
    "web_service": "web_search",
    "filter_model": "coarse_filter",
}
"""Key of a mapping that names a model → that mapping."""
RARELY: dict[str, dict[str, Any]] = {
    "decoding": Decoding().model_dump(),
    "hardware": Hardware().model_dump(),
}
"""Parameter → its keys with their defaults, which a notebook need not list."""


def _declared_by(names: Collection[str], others: Sequence[Path], within: str) -> dict[str, str]:
    """Name that notebooks declare which a file is not for → what to do about it."""
    books: dict[str, list[str]] = {}
    for notebook in others if names else ():
        own: object = {}
        with suppress(VragError):  # nobody has asked for that notebook
            own = declared_parameters(notebook)
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
        if name in names and (
            words := invalid_value_reason(name, value, names[name], notebook.name)
        ):
            return [f"{name} {words}"]
    return []


def _wrong_keys(
    mapping: str,
    given: Mapping[str, Any],
    defaults: Sequence[Mapping[str, Any]],
    others: Sequence[Path],
) -> list[str]:
    """Keys that no notebook has in its own mapping, or that `given` lacks; values that misfit."""
    needed: dict[str, Any] = {}
    for names in defaults:
        own = names.get(mapping, {})
        needed |= own if isinstance(own, Mapping) else {}
    shown = {**RARELY.get(mapping, {}), **needed}
    faults = _unknown(given, shown, others, within=mapping)
    lacks = [key for key in needed if key not in given]
    if lacks and mapping not in RARELY:
        faults.append(f"{mapping} lacks {lacks[0]!r}; expected all keys, as in {needed!r}.")
    for key in given.keys() & shown.keys():
        if key in SAMPLING:  # with the models: what fits depends on where they run
            continue
        if words := invalid_value_reason(key, given[key], shown[key]):
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
    hints = "".join(did_you_mean(name, known) for name in unknown)
    of = f" in its {within}" if within else ""
    return [
        *told.values(),
        f"no notebook declares {', '.join(map(repr, unknown))}{of}.{hints} Declared are:"
        f" {', '.join(sorted(set(known) - {SERVES}))}.",
    ]
