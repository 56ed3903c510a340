"""Settings and entries of models: decoding, hardware and options as strict pydantic models, and
custom classes and functions, "package.module:Name" in a parameter, or an object.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.files import project_path, project_root, shipped_models
from vrag_kit.types import Json, JsonView

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_KIT = Path(__file__).parent
Entry = str | Mapping[str, Any]  # each option has a type of its own, which its reader checks
"""A model as parameters name it: "<name>", or {"model": "<name>", option: value, …}."""


def _keep_integer(value: float, validate: ValidatorFunctionWrapHandler) -> float:
    """Validate a number without changing it: 1 and 1.0 make different keys of stored answers."""
    validate(value)
    return value


Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Dollars = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1), WrapValidator(_keep_integer)]


class StrictModel(BaseModel):
    """Settings from a parameter file or a notebook. Raises `VragError` for an unknown field, with
    the most similar one, and for a value that does not fit; the value of a field with `repr=False`,
    which may hold a secret, is never shown.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(
        cls, given: JsonView, validate: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        try:
            return validate(given)
        except ValidationError as error:
            raise _refusal(cls, given, info.context or cls.__name__, error) from None


class Sampling(StrictModel):
    """Sampling fields, by their names in transformers; None where a field is not given."""

    temperature: Annotated[float, Field(ge=0), WrapValidator(_keep_integer)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None  # −1: vLLM's "all"
    min_p: Share | None = None
    typical_p: Share | None = None
    do_sample: bool | None = None
    num_beams: Count | None = None
    repetition_penalty: Annotated[float, Field(gt=0), WrapValidator(_keep_integer)] | None = None
    no_repeat_ngram_size: Natural | None = None

    @property
    def sampling(self) -> Json:
        """The sampling fields that are given."""
        given = {name: getattr(self, name) for name in SAMPLING}
        return {name: value for name, value in given.items() if value is not None}


class Decoding(Sampling):
    """Decoding settings, which are part of a stored answer's key. Without any sampling field a
    model uses its own defaults (generation_config.json, or the provider's). With `temperature` 0 it
    decodes greedily; otherwise the given fields apply.
    """

    max_new_tokens: Count = 128
    """Maximum length of an answer, in tokens."""
    samples: Count = 1
    """Number of answers generated for each prompt."""


class EntryOptions(StrictModel):
    """Options that every model's entry may have, with those of the parameter `decoding` filled in
    where the entry has none.
    """

    name: str | None = None
    """The model's name in tables."""
    decoding: dict[str, Any] = Field(description="sampling fields, such as {temperature: 0}")
    max_new_tokens: Count
    max_image_side: Count | None = None
    """Maximum side in pixels; larger images are shrunk first."""
    max_images: Count | None = None
    """Maximum number of images in a prompt; longer prompts are left out."""


SAMPLING = tuple(Sampling.model_fields)
GREEDY = {"temperature": 0}
"""`Decoding.sampling` for greedy decoding."""
_Settings = TypeVar("_Settings", bound=StrictModel)


def read_settings(model: type[_Settings], given: object, where: str) -> _Settings:
    """Return the settings that a mapping gives; fields of `model` that it lacks, or that are null,
    have their defaults. Raises `VragError` as `StrictModel`, beginning with `where` ("model 'x'").
    """
    if not isinstance(given, Mapping):
        raise VragError(
            f"{where}: found {short_repr(given)}; expected a mapping with some of"
            f" {', '.join(model.model_fields)}."
        )
    stated = dict(given)
    for name, field in model.model_fields.items():
        if field.default is not None and stated.get(name) is None:
            stated.pop(name, None)
    return model.model_validate(stated, context=where)


def _refusal(
    model: type[StrictModel], given: JsonView, where: str, error: ValidationError
) -> VragError:
    """Return the error for the first value that pydantic refuses."""
    fault = error.errors()[0]
    name = str(fault["loc"][0])
    field = model.model_fields.get(name)
    if field is None:
        return unknown_option(where, name, model.model_fields)
    value = given[name]
    found = short_repr(value) if field.repr else f"a {type(value).__name__}"
    expected = field.description or fault["msg"].removeprefix("Input should be ")
    return VragError(f"{where}, {name}: found {found}; expected {expected}.")


def unknown_option(where: str, name: str, known: Collection[str]) -> VragError:
    """Return the error for an unknown option, with the known ones and the most similar of them."""
    return VragError(
        f"{where}: unknown option {name!r}; expected {', '.join(sorted(known)) or 'no options'}."
        f"{did_you_mean(name, known)}"
    )


def read_entry(
    entry: object, where: str, allowed: Collection[str] | None = None
) -> tuple[str, Json]:
    """Return (model, options) of an entry; raises `VragError`, beginning with `where`
    ("retriever"), for an entry without a model, and for an option that is not among `allowed`
    (None: any).
    """
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        found = list(entry) if isinstance(entry, Mapping) else entry  # values may be secret
        raise VragError(
            f'{where}: found {found!r}; expected a name, or a mapping with "model" and options.'
        )
    options = {str(name): entry[name] for name in entry if name != "model"}
    unknown = [] if allowed is None else sorted(set(options) - set(allowed))
    if unknown:
        raise unknown_option(f"{where} {entry['model']!r}", unknown[0], allowed or ())
    return entry["model"], options


def check_list(entries: object, what: str) -> None:
    """Raise `VragError` for a single name, mapping or object where a list is expected. The message
    begins with `what` ("models").
    """
    if isinstance(entries, str | Mapping) or not isinstance(entries, Iterable):
        shown = short_repr(entries)
        raise VragError(f"{what} is {shown}; expected a list, such as [{shown}].")


def check_choice(entry: object, words: Collection[str], what: str) -> None:
    """Raise `VragError` for a single word that is neither one of `words` nor a local model. `words`
    are values that name no model. Such a word is a typo, and no hub is contacted.
    """
    if not isinstance(entry, str) or entry in words or set(entry) & set("/@\\"):
        return
    if custom_spec(entry) or project_path(entry).is_dir():
        return
    hint = did_you_mean(entry, [*words, *shipped_models()])
    listed = "".join(f"{word!r}, " for word in words if word)
    raise VragError(
        f"{what} is {entry!r}; expected {listed}the name of a model that comes with the kit, a"
        f" folder, <owner>/<name> on the hub, or <model>@<endpoint>.{hint}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomObject:
    """An object of a custom class, its name and its fingerprint."""

    made: Any
    """The object; its methods are checked when it is opened."""
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
        owner = f"{what} {type(self.made).__name__}(…)"
        found = getattr(self.made, "fingerprint", None)
        expected = 'a text that changes whenever its results may, such as "1"'
        raise VragError(f"{owner}: its fingerprint is {found!r}; expected {expected}.")


def custom_spec(entry: object) -> str | None:
    """Return the "package.module:Name" in an entry; None for any other entry, and if a folder has
    that name.
    """
    spec = entry.get("model") if isinstance(entry, Mapping) else entry
    if not isinstance(spec, str) or not _SPEC.fullmatch(spec) or project_path(spec).is_dir():
        return None
    return spec


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


def _adopt(made: Any, what: str, needed: Sequence[str]) -> CustomObject:
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


def _arguments(made: Any) -> dict[str, str]:
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
        file = getattr(sys.modules.get(getattr(made, "__module__", "")), "__file__", None)
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
    add_project_to_path()
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


def add_project_to_path() -> None:
    """Let modules in the project root be imported; installed ones take precedence."""
    root = str(project_root())
    if root not in sys.path:
        sys.path.append(root)
    importlib.invalidate_caches()


def _require_methods(made: Any, owner: str, needed: Sequence[str]) -> None:
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
