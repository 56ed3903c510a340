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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.types import JsonView
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import project_root

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_KIT = Path(__file__).parent
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
            ' that changes whenever its results may, such as "1".'
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
    _add_project_to_path()
    files = set()
    with suppress(Exception):  # it imports the packages above the module, which may raise anything
        found = find_spec(module)
        files.add(found and found.origin)
    with suppress(ImportError, SyntaxError):  # an installed module, or one with errors
        finder.import_hook(module)
    files.update(each.__file__ for each in finder.modules.values())  # type: ignore[attr-defined]
    return sorted(Path(file) for file in files if file)


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
            return None
        return _adopt(entry, what, needed)
    owner = f"{what} {spec!r}"
    given = dict(entry) if isinstance(entry, Mapping) else {}
    cls, text = load_member(spec, owner, "class", inspect.isclass)
    # before an object is created: a name in a parameter file must not start a program
    _require_methods(cls, owner, needed)
    parameters = inspect.signature(cls).parameters
    options = {key: value for key, value in (offered or {}).items() if key in parameters}
    options |= {key: given[key] for key in given if key not in ("model", "name", *ours)}
    with catch_custom_errors(f"{owner}: creating it with {options}", cls):
        made = cls(**options)
    options.pop("device", None)
    name = given.get("name") or getattr(made, "name", None) or cls.__name__
    version = str(getattr(made, "fingerprint", None) or text)
    return CustomObject(
        made=made, name=check_name(name, owner), fingerprint=_hash(spec, options, version)
    )


def _adopt(made: _Instance, what: str, needed: Sequence[str]) -> CustomObject:
    """Check an object that was given itself."""
    if isinstance(made, type):
        name = made.__name__
        raise VragError(f"{what} {name}: found the class; expected an object of it, {name}(…).")
    kind = type(made).__name__
    owner = f"{what} {kind}(…)"
    _require_methods(made, owner, needed)
    version = getattr(made, "fingerprint", None)
    fingerprint = version if isinstance(version, str) else ""
    if fingerprint and (arguments := _arguments(made)):
        fingerprint = _hash(kind, arguments, fingerprint)
    name = getattr(made, "name", None) or kind
    return CustomObject(made=made, name=check_name(name, owner), fingerprint=fingerprint)


def _arguments(made: _Instance) -> dict[str, str]:
    """Return an object's constructor arguments that it keeps as attributes (`self.weight` or
    `self._weight`) and that JSON can hold; each is part of its key.
    """
    found = {}
    for name in inspect.signature(type(made)).parameters:
        value = getattr(made, name, getattr(made, f"_{name}", None))
        if value is not None and name not in ("name", "fingerprint", "device"):
            with suppress(TypeError, ValueError):
                found[name] = json.dumps(value, sort_keys=True, default=float)
    return found


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
    except Exception as error:  # custom code may raise anything
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


def load_member(
    spec: str, owner: str, kind: str, fits: Callable[[object], bool]
) -> tuple[Any, str]:  # Any: a class or function
    """Return the class or function (`kind`, for which `fits` holds) that "package.module:Name"
    names, and the source of its module. An edited module is reloaded: results must not be stored
    under the source of other code.

    Raises `VragError`, beginning with `owner`, if there is none.
    """
    path, name = spec.split(":")
    files = ", ".join(sorted(each.name for each in project_root().glob("*.py"))) or "none"
    hint = f" {project_root()} has {files}."
    _add_project_to_path()
    with catch_custom_errors(f"{owner}: importing {path}", None, hint=hint):
        loaded = path in sys.modules
        module = importlib.import_module(path)
        file = Path(module.__file__ or "")
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        if loaded and getattr(module, "__read_as__", None) != text:
            module = importlib.reload(module)
    members = vars(module)
    members["__read_as__"] = text
    if fits(members.get(name)):
        return members[name], text
    own = [key for key, each in members.items() if getattr(each, "__module__", "") == path]
    raise VragError(
        f"{owner}: {module.__file__} has no {kind} {name!r}; it has {', '.join(own) or 'none'}."
    )


def _add_project_to_path() -> None:
    """Let modules in the project root be imported; installed ones take precedence."""
    root = str(project_root())
    if root not in sys.path:
        sys.path.append(root)
    importlib.invalidate_caches()


def _require_methods(made: _Instance, owner: str, needed: Sequence[str]) -> None:
    """Raise `VragError` unless a class or an object has the methods."""
    kind = getattr(made, "__name__", type(made).__name__)
    for name in needed:
        if not callable(getattr(made, name, None)):
            raise VragError(
                f"{owner}: found {kind} without {name}; expected the methods {', '.join(needed)}."
            )


def check_name(name: object, owner: str) -> str:
    """Return a name for tables and files. Raises `VragError`, beginning with `owner`, for anything
    but a text without "/".
    """
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise VragError(f"{owner}: its name is {name!r}; expected a text without '/'.")
    return name


def _hash(spec: str, options: JsonView, version: str) -> str:
    whole = json.dumps([spec, dict(options), version], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()
