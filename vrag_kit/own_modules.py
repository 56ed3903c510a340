"""Modules that "package.module:Class" names: found below the project's root or among what
is installed, imported as their files are now, and searched for a class or function.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from vrag_kit.errors import VragError
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_READ = "__read_as__"
"""In a module that was opened here: the text that its file then had."""


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


def own_files(entry: object) -> list[Path]:
    """That file, and those below the project's root that it imports, directly or not, but
    for the kit's; none where there is no such file.
    """
    file, spec = own_file(entry), own_spec(entry)
    if file is None or spec is None:
        return []
    finder = ModuleFinder([str(project_root())], excludes=["vrag_kit"])
    try:
        finder.import_hook(spec.partition(":")[0])
    except (ImportError, SyntaxError, UnicodeError):  # installed, or wrong: said when it is opened
        return [file]
    places = [getattr(each, "__file__", None) for each in finder.modules.values()]
    return sorted({file, *(Path(place) for place in places if place)})


def open_class(spec: str, owner: str) -> tuple[type, str]:
    """The class that "package.module:Class" names, and the text of its module's file.

    Raises `VragError`, beginning with `owner`, where there is none.
    """
    module = _module(spec, owner)
    made_by = getattr(module, spec.partition(":")[2], None)
    if isinstance(made_by, type):
        return made_by, getattr(module, _READ)
    classes = [
        each
        for each, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    raise VragError(_no_such(spec, module, "class", classes, owner))


def open_function(entry: object, what: str) -> Callable[..., Any] | None:
    """The function that "package.module:function" names, or that was given itself; None
    for the name of something else.

    Raises `VragError`, beginning with `what`, where the name is that of no function.
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
    if last == "py" and packages:
        module = ".".join(packages)
        return (
            f"{owner}: {path!r} is a file; expected the name of its module, without .py. Did you"
            f" mean '{module}:{name}'?"
        )
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
