"""Classes and functions of one's own, named in a parameter as "package.module:Class",
opened.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from vrag_kit.errors import VragError
from vrag_kit.own_faults import own_fault
from vrag_kit.plain import JsonView
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_READ = "__read_as__"
"""In a module that was opened here: the text that its file then had."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "int": Integral,
    "float": Real,
    "str": str,
    "bool": bool,
}
"""Annotations of options that are compared with what is given → what fits them."""
_IN_WORDS = {
    "int": "a whole number",
    "float": "a number, such as 0.5 or 1.0e-3",
    "str": "a text, in quotes where it looks like a number",
    "bool": "true or false",
}
Made = Any
"""An object of a class that is not ours; what it must have is looked for when it is
opened.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """An object of somebody's own class, and what the kit calls it."""

    made: Made
    name: str
    """In tables, file names and colours: the entry's, its own, or its class's."""
    fingerprint: str
    """Of an object its own; of an entry a hash of its options and of the class's own, or
    of the text of its module's file.
    """


def own_spec(entry: object) -> str | None:
    """The "package.module:Class" that an entry names; None for every other entry, and
    where a folder has that name.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    if not isinstance(spec, str) or not _SPEC.fullmatch(spec) or project_path(spec).is_dir():
        return None
    return spec


def own_file(entry: object) -> Path | None:
    """The file of the module that an entry names, so that a rerun sees that it changed;
    None for what names none, or one that is not here.
    """
    spec = own_spec(entry)
    if spec is None:
        return None
    _see_project()
    try:
        found = find_spec(spec.partition(":")[0])
    except Exception:  # looking for it imports the packages above, whose code raises what it likes
        return None
    return Path(found.origin) if found is not None and found.origin else None


def open_own(
    entry: object,
    what: str,
    needed: Sequence[str],
    *,
    one_of: Sequence[str] = (),
    ours: Sequence[str] = (),
    offered: JsonView | None = None,
) -> Own | None:
    """What an entry of one's own stands for; None for the name of a model or word.

    An entry is "package.module:Class", that with options in a mapping, or an object.
    The module is one that is installed, or a file below the project's root. The class
    is called with the options but for `name` and `ours`, and with those of `offered`
    (device, decoding, …) that it has parameters for. `what` ("retriever") begins messages.

    Raises `VragError` for a module or class that is not there, options that the class
    does not take, a class that lacks a method of `needed` or has none of `one_of`, of
    which no object is made then, and for an object that is no entry and has no text
    `fingerprint`.
    """
    spec = own_spec(entry)
    if spec is None:
        if entry is None or isinstance(entry, str | Mapping | int | float | list | tuple):
            return None  # what a parameter file can hold: its loader tells what is wrong
        return _given(entry, what, needed, one_of)
    owner = f"{what} {spec!r}"
    options = dict(entry) if isinstance(entry, Mapping) else {}
    options.pop("model", None)
    name = options.pop("name", None)
    options = {key: value for key, value in options.items() if key not in ours}
    module, made_by = _class(spec, owner)
    taken = _parameters(made_by)
    chosen = {key: value for key, value in (offered or {}).items() if key in taken}
    # looked for before an object is made: a name in a parameter file is not to start a program
    _check(made_by, made_by.__name__, owner, needed, one_of)
    made = _made(made_by, {**chosen, **options}, owner)
    told = {key: value for key, value in {**chosen, **options}.items() if key != "device"}
    own = getattr(made, "fingerprint", None)
    return Own(
        made=made,
        name=_name(name or getattr(made, "name", None) or made_by.__name__, owner),
        fingerprint=_hash(spec, told, str(own) if own else getattr(module, _READ)),
    )


@contextmanager
def own_code(owner: str, made: Made) -> Iterator[None]:
    """What code of `made` raises in here becomes a `VragError` that names `owner`
    ("model x"), and the file and line of its class.
    """
    try:
        yield
    except VragError:
        raise
    except Exception as error:  # whatever code that is not ours does
        name = type(made).__name__
        fault = own_fault(made, error)
        raise VragError(f"{owner}: its class {name} failed with {fault}.") from error


def listed(found: object, owner: str) -> list[object]:
    """The items of a list, or of what can be listed, that a method of one's own has
    returned; raises `VragError` for a text or a mapping, whose items are not meant.
    """
    if isinstance(found, Iterable) and not isinstance(found, str | bytes | Mapping):
        return list(found)
    said = "a text" if isinstance(found, str) else f"a {type(found).__name__}"
    raise VragError(f"{owner} returned {said} ({str(found)[:60]!r}); expected a list of texts.")


def _given(made: Made, what: str, needed: Sequence[str], one_of: Sequence[str]) -> Own:
    """An object that was given itself."""
    kind = type(made).__name__
    owner = f"{what} {kind}(…)"
    _check(made, kind, owner, needed, one_of)
    fingerprint = getattr(made, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint:
        raise VragError(
            f"{owner}: its fingerprint is {fingerprint!r}; expected a text that changes whenever"
            " what it gives may, under which that is kept. Give the class an attribute"
            ' `fingerprint`, such as "1".'
        )
    name = _name(getattr(made, "name", None) or kind, owner)
    return Own(made=made, name=name, fingerprint=fingerprint)


def open_function(entry: object, what: str) -> Callable[..., Any] | None:
    """The function that "package.module:function" names, or that was given itself; None
    for the name of something else.

    Raises `VragError` as `open_own` does, and where the name is that of no function.
    """
    spec = own_spec(entry)
    if spec is None:
        return entry if callable(entry) else None
    owner, name = f"{what} {spec!r}", spec.partition(":")[2]
    module = _module(spec, owner)
    function = getattr(module, name, None)
    if callable(function) and not isinstance(function, type):
        return cast(Callable[..., Any], function)
    functions = [
        each
        for each, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    raise VragError(_no_such(spec, module, "function", functions, owner))


def _class(spec: str, owner: str) -> tuple[ModuleType, type]:
    module = _module(spec, owner)
    made_by = getattr(module, spec.partition(":")[2], None)
    if isinstance(made_by, type):
        return module, made_by
    classes = [
        each
        for each, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    raise VragError(_no_such(spec, module, "class", classes, owner))


def _module(spec: str, owner: str) -> ModuleType:
    path, name = spec.split(":")
    _see_project()
    try:
        return _imported(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise VragError(f"{owner}: importing {path} needs {error.name!r}: {error}.") from error
        raise VragError(_no_module(path, name, str(error.name), owner)) from error
    except Exception as error:  # whatever code that is not ours does when it is imported
        raise VragError(
            f"{owner}: importing {path} failed with {type(error).__name__}: {error}. `python -c"
            f' "import {path}"` shows where.'
        ) from error


def _no_such(spec: str, module: ModuleType, kind: str, there: Sequence[str], owner: str) -> str:
    """What to say where a module has no class or function of a name."""
    path, name = spec.split(":")
    near = get_close_matches(name, there, 1)
    meant = f" Did you mean '{path}:{near[0]}'?" if near else ""
    return (
        f"{owner}: {module.__file__} has no {kind} {name!r}; it has {', '.join(there) or 'none'}."
        f"{meant}"
    )


def _no_module(path: str, name: str, lacking: str, owner: str) -> str:
    """What to say where the module, or a package above it, is not there."""
    *packages, last = lacking.split(".")
    above = ".".join(packages)
    package = find_spec(above) if above else None
    places = [project_root()]
    if package is not None:
        places = [Path(each) for each in package.submodule_search_locations or ()]
    found: set[str] = set()
    for place in places:
        found |= {each.stem for each in place.glob("*.py") if each.stem != "__init__"}
    near = get_close_matches(last, found, 1)
    if near:
        right = path.replace(lacking, f"{above}.{near[0]}" if above else near[0], 1)
        end = f"Did you mean '{right}:{name}'?"
    else:
        file = places[0] / f"{last}.py" if places else f"{last}.py"
        end = f"Write it as {file}, or install it."
    listed = ", ".join(sorted(found)) or "no module"
    beside = f"; in {places[0]} there is {listed}" if places else f"; {above} is no package"
    return f"{owner}: there is no module {lacking!r}{beside}. {end}"


def _imported(path: str) -> ModuleType:
    """The module as its file is now: what is kept under the text of the file must not come
    from an earlier one, as in a notebook's kernel.
    """
    before = sys.modules.get(path)
    module = importlib.import_module(path)
    text = _text(module)
    if before is not None and getattr(module, _READ, None) != text:
        module = importlib.reload(module)
    setattr(module, _READ, text)
    return module


def _text(module: ModuleType) -> str:
    file = Path(module.__file__ or "")
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _see_project() -> None:
    """Let modules below the project's root be found, after all that is installed."""
    root = str(project_root())
    if root not in sys.path:
        sys.path.append(root)
    importlib.invalidate_caches()


def _parameters(made_by: type) -> list[str]:
    try:
        return list(inspect.signature(made_by).parameters)
    except ValueError:  # some classes written in C do not tell
        return []


def _made(made_by: type, options: JsonView, owner: str) -> Made:
    try:
        inspect.signature(made_by).bind(**options)
    except TypeError as error:
        takes = ", ".join(_parameters(made_by)) or "no options"
        raise VragError(f"{owner}: {error}; its class takes {takes}.") from error
    except ValueError:
        pass  # it does not tell what it takes
    for name, value in options.items():
        _check_kind(made_by, name, value, owner)
    try:
        return made_by(**options)
    except VragError:
        raise
    except Exception as error:  # whatever code that is not ours does
        words = f"{type(error).__name__}: {error}"
        raise VragError(f"{owner}: making it with {dict(options)} failed with {words}.") from error


def _check_kind(made_by: type, name: str, value: object, owner: str) -> None:
    """Raise `VragError` where a class says plainly that an option is of another type."""
    with suppress(ValueError):  # it does not tell what it takes
        parameter = inspect.signature(made_by).parameters.get(name)
        if parameter is None or (value is None and parameter.default is None):
            return
        wanted = parameter.annotation
        wanted = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "")
        kinds = _KINDS.get(wanted)
        truth = isinstance(value, bool) and wanted != "bool"  # Python counts with it
        if kinds is not None and (truth or not isinstance(value, kinds)):
            raise VragError(
                f"{owner}: {name} is {value!r}; expected {_IN_WORDS[wanted]}, as"
                f" {made_by.__name__} says."
            )


def _check(made: Made, kind: str, owner: str, needed: Sequence[str], one_of: Sequence[str]) -> None:
    """Whether a class or an object, of that `kind`, has the methods."""
    lacking = [name for name in needed if not callable(getattr(made, name, None))]
    if lacking:
        raise VragError(
            f"{owner}: found {kind} without {' and '.join(lacking)}; expected the"
            f' methods {", ".join(needed)}. README, "Classes of your own", shows each.'
        )
    if one_of and not any(callable(getattr(made, name, None)) for name in one_of):
        raise VragError(
            f"{owner}: found {kind} with neither {' nor '.join(one_of)}; expected one of these"
            ' methods. README, "Classes of your own", shows each.'
        )


def _name(name: object, owner: str) -> str:
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise VragError(f"{owner}: its name is {name!r}; expected a text without '/'.")
    return name


def _hash(spec: str, options: JsonView, version: str) -> str:
    whole = json.dumps([spec, dict(options), version], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()
