"""Objects of classes of one's own, made as a parameter names them or given as they are."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from vrag_kit.errors import VragError
from vrag_kit.own_modules import open_class, own_spec
from vrag_kit.plain import JsonView

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
_NO_ARGUMENTS = ("name", "fingerprint", "device")
"""Parameters of a class that change nothing in what it gives, or count anyway."""
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
    """Of an entry a hash of its options and of the class's own, or of the text of its
    module's file. Of an object its own, with the arguments of its class that it keeps
    under their names; "" where it has none.
    """

    def to_keep(self, what: str) -> Own:
        """The same, whose results are kept under the fingerprint; raises `VragError`
        where it has none. `what` ("retriever") begins the message.
        """
        if self.fingerprint:
            return self
        found = getattr(self.made, "fingerprint", None)
        raise VragError(
            f"{what} {type(self.made).__name__}(…): its fingerprint is {found!r}; expected a text"
            " that changes whenever what it gives may, under which that is kept. Give the class an"
            ' attribute `fingerprint`, such as "1".'
        )


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
    which no object is made then, and for a class that is given in an object's place.
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
    made_by, text = open_class(spec, owner)
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
        fingerprint=_hash(spec, told, str(own) if own else text),
    )


def _given(made: Made, what: str, needed: Sequence[str], one_of: Sequence[str]) -> Own:
    """An object that was given itself."""
    if isinstance(made, type):
        name = made.__name__
        raise VragError(f"{what} {name}: found the class; expected an object of it, {name}(…).")
    kind = type(made).__name__
    owner = f"{what} {kind}(…)"
    _check(made, kind, owner, needed, one_of)
    own = getattr(made, "fingerprint", None)
    fingerprint = own if isinstance(own, str) else ""
    if fingerprint and (told := _arguments(made)):
        fingerprint = _hash(kind, told, fingerprint)
    name = _name(getattr(made, "name", None) or kind, owner)
    return Own(made=made, name=name, fingerprint=fingerprint)


def _arguments(made: Made) -> JsonView:
    """The arguments of an object's class that it keeps under their names (`self.weight`,
    or `self._weight`), as far as they are numbers, texts, or lists or mappings of them.
    """
    found: dict[str, object] = {}
    for name in _parameters(type(made)):
        value = getattr(made, name, getattr(made, f"_{name}", None))
        if name not in _NO_ARGUMENTS and (plain := _plain(value)) is not None:
            found[name] = plain
    return found


def _plain(value: object) -> str | None:
    """A value as JSON; None for nothing, and for what JSON cannot hold."""
    try:
        return None if value is None else json.dumps(value, sort_keys=True, default=float)
    except (TypeError, ValueError):
        return None


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
