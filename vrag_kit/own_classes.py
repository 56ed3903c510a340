"""Custom classes and functions: "package.module:Name" in a parameter, or an object."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from modulefinder import ModuleFinder
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from vrag_kit.errors import VragError
from vrag_kit.plain import JsonView
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_KIT = Path(__file__).parent
_NO_ARGUMENTS = ("name", "fingerprint", "device")
"""Parameters of a class that change nothing in its results, or enter their key anyway."""
_Instance = Any
"""An object of a custom class; its methods are checked when it is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomObject:
    """An object of a custom class, its name and its fingerprint."""

    made: _Instance
    name: str
    """Name in tables, file names and colours, from the entry, the object or its class."""
    fingerprint: str
    """Version of the results. For an entry: a hash of its options and of the class's `fingerprint`,
    or of its module's source. For an object: its own, with the arguments it keeps; "" without one.
    """

    def require_fingerprint(self, what: str) -> CustomObject:
        """Return this object, whose results are stored under its fingerprint. Raises `VragError`,
        beginning with `what` ("retriever"), if it has none.
        """
        if self.fingerprint:
            return self
        found = getattr(self.made, "fingerprint", None)
        raise VragError(
            f"{what} {type(self.made).__name__}(…): its fingerprint is {found!r}; expected a text"
            " that changes whenever its results may. Give the class an attribute `fingerprint`,"
            ' such as "1".'
        )


def custom_spec(entry: object) -> str | None:
    """Return the "package.module:Name" in an entry; None for any other entry, and if a folder has
    that name.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    if not isinstance(spec, str) or not _SPEC.fullmatch(spec) or project_path(spec).is_dir():
        return None
    return spec


def custom_files(entry: object) -> list[Path]:
    """List the file of the module that an entry names, and the project files that it imports.
    Indirect imports count, the kit's files do not; the list is empty without such a module.
    """
    spec = custom_spec(entry)
    if spec is None:
        return []
    module = spec.partition(":")[0]
    finder = ModuleFinder([str(project_root())], excludes=["vrag_kit"])
    _see_project()
    try:
        found = find_spec(module)
    except Exception:  # it imports the packages above, whose code raises what it likes
        return []
    try:
        finder.import_hook(module)
    except (ImportError, SyntaxError, UnicodeError):  # installed, or to be mended
        finder.modules.clear()
    files = [getattr(each, "__file__", None) for each in finder.modules.values()]
    return sorted({Path(file) for file in (found and found.origin, *files) if file})


def load_class(spec: str, owner: str) -> tuple[type, str]:
    """Return the class that "package.module:Class" names, and the source of its module.

    Raises `VragError`, beginning with `owner`, if there is none.
    """
    module, text = _imported(spec, owner)
    return cast(type, _named(spec, module, owner, "class", inspect.isclass)), text


def load_function(entry: object, what: str) -> Callable[..., Any] | None:
    """Return the function that "package.module:function" names, or `entry` if it is callable; None
    for the name of something else.

    Raises `VragError`, beginning with `what`, if the name is not that of a function.
    """
    spec = custom_spec(entry)
    if spec is None:
        return entry if callable(entry) else None
    owner = f"{what} {spec!r}"
    module, _ = _imported(spec, owner)
    function = _named(spec, module, owner, "function", _is_function)
    return cast(Callable[..., Any], function)


def load_custom(
    entry: object,
    what: str,
    needed: Sequence[str],
    *,
    ours: Sequence[str] = (),
    offered: JsonView | None = None,
) -> CustomObject | None:
    """Return the object of a custom class that an entry names, or is; None for any other entry.

    The module is installed, or a file below the project root. The class is called with the entry's
    options except `name` and `ours`, and with the options of `offered` (device, decoding, …) that
    it has parameters for. It must have the methods `needed`; messages begin with `what`
    ("retriever").

    Raises `VragError` if the module or class does not exist, if the class lacks one of the methods
    (no object is created then), and if it fails with these options.
    """
    spec = custom_spec(entry)
    if spec is None:
        if entry is None or isinstance(entry, str | Mapping | int | float | list | tuple):
            return None  # what a parameter file can hold: its loader says what is wrong
        return _given(entry, what, needed)
    owner = f"{what} {spec!r}"
    options = dict(entry) if isinstance(entry, Mapping) else {}
    options.pop("model", None)
    name = options.pop("name", None)
    made_by, text = load_class(spec, owner)
    # before an object is made: a name in a parameter file must not start a program
    _check(made_by, made_by.__name__, owner, needed)
    taken = _parameters(made_by)
    chosen = {key: value for key, value in (offered or {}).items() if key in taken}
    chosen |= {key: value for key, value in options.items() if key not in ours}
    with catch_custom_errors(f"{owner}: making it with {chosen}", made_by):
        made = made_by(**chosen)
    chosen.pop("device", None)
    own = getattr(made, "fingerprint", None)
    return CustomObject(
        made=made,
        name=_name(name or getattr(made, "name", None) or made_by.__name__, owner),
        fingerprint=_hash(spec, chosen, str(own) if own else text),
    )


@contextmanager
def catch_custom_errors(
    what: str, made: object, *, hint: str = "", passed: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Convert an error from custom code in the block to a `VragError`: "`what` failed with
    KeyError: 'x' (mine.py:20)." and the `hint`. `made` is the class, object or function. The line
    is the last one reached in its file, or else outside the kit. Errors of the types `passed` are
    not converted.
    """
    try:
        yield
    except Exception as error:  # whatever code that is not ours does
        if isinstance(error, (VragError, *passed)):
            raise
        module = sys.modules.get(getattr(made, "__module__", ""))
        file = getattr(module, "__file__", None)
        frames = traceback.extract_tb(error.__traceback__)
        others = [frame for frame in frames if not Path(frame.filename).is_relative_to(_KIT)]
        at = [frame for frame in frames if frame.filename == file] or others
        where = f" ({Path(at[-1].filename).name}:{at[-1].lineno})" if at else ""
        fault = f"{type(error).__name__}: {error}{where}"
        raise VragError(f"{what} failed with {fault}.{hint}") from error


def _given(made: _Instance, what: str, needed: Sequence[str]) -> CustomObject:
    """An object that was given itself."""
    if isinstance(made, type):
        name = made.__name__
        raise VragError(f"{what} {name}: found the class; expected an object of it, {name}(…).")
    kind = type(made).__name__
    owner = f"{what} {kind}(…)"
    _check(made, kind, owner, needed)
    own = getattr(made, "fingerprint", None)
    fingerprint = own if isinstance(own, str) else ""
    if fingerprint and (told := _arguments(made)):
        fingerprint = _hash(kind, told, fingerprint)
    name = _name(getattr(made, "name", None) or kind, owner)
    return CustomObject(made=made, name=name, fingerprint=fingerprint)


def _arguments(made: _Instance) -> JsonView:
    """The arguments of an object's class that it keeps under their names (`self.weight`,
    or `self._weight`), as far as JSON holds them.
    """
    found: dict[str, str] = {}
    for name in _parameters(type(made)):
        value = getattr(made, name, getattr(made, f"_{name}", None))
        if value is None or name in _NO_ARGUMENTS:
            continue
        try:
            found[name] = json.dumps(value, sort_keys=True, default=float)
        except (TypeError, ValueError):
            continue
    return found


def _parameters(cls: type) -> list[str]:
    try:
        return list(inspect.signature(cls).parameters)
    except ValueError:  # some classes written in C have no signature
        return []


def _check(made: _Instance, kind: str, owner: str, needed: Sequence[str]) -> None:
    """Raise `VragError` unless a class or an object, of that `kind`, has the methods."""
    for name in needed:
        if not callable(getattr(made, name, None)):
            raise VragError(
                f"{owner}: found {kind} without {name}; expected the methods {', '.join(needed)}."
                ' README, "Classes of your own", shows each.'
            )


def _imported(spec: str, owner: str) -> tuple[ModuleType, str]:
    """The module as its file is now, and the file's text: what is stored under the text must
    not come from an earlier one, as a kernel holds it.
    """
    path = spec.partition(":")[0]
    _see_project()
    before = sys.modules.get(path)
    try:
        module = importlib.import_module(path)
        file = Path(module.__file__ or "")
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        if before is not None and getattr(module, "__read_as__", None) != text:
            module = importlib.reload(module)
    except ModuleNotFoundError as error:
        files = ", ".join(sorted(each.name for each in project_root().glob("*.py")))
        raise VragError(f"{owner}: {error}; {project_root()} has {files or 'none'}.") from error
    except Exception as error:  # whatever code that is not ours does
        raise VragError(
            f"{owner}: importing {path} failed with {type(error).__name__}: {error}. `python -c"
            f' "import {path}"` shows where.'
        ) from error
    vars(module)["__read_as__"] = text
    return module, text


def _named(
    spec: str, module: ModuleType, owner: str, kind: str, fits: Callable[[object], bool]
) -> object:
    """The class or function that an entry names, of what its module has."""
    name = spec.partition(":")[2]
    found = getattr(module, name, None)
    if fits(found):
        return found
    there = [
        each
        for each, value in vars(module).items()
        if fits(value) and getattr(value, "__module__", "") == module.__name__
    ]
    raise VragError(
        f"{owner}: {module.__file__} has no {kind} {name!r}; it has {', '.join(there) or 'none'}."
    )


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


def _see_project() -> None:
    """Let modules below the project's root be found, after all that is installed."""
    root = str(project_root())
    if root not in sys.path:
        sys.path.append(root)
    importlib.invalidate_caches()


def _name(name: object, owner: str) -> str:
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise VragError(f"{owner}: its name is {name!r}; expected a text without '/'.")
    return name


def _hash(spec: str, options: JsonView, version: str) -> str:
    whole = json.dumps([spec, dict(options), version], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()
