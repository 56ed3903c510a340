"""Settings and entries of models: decoding, hardware and options, as strict pydantic models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from vrag_kit.custom import custom_spec
from vrag_kit.errors import VragError, did_you_mean, short_repr
from vrag_kit.types import Json, JsonView
from vrag_kit.workspace import path as project_path
from vrag_kit.workspace import shipped_models

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
    """Settings from a parameter file or a notebook. Unknown fields and values of another type are
    refused; null stands for a field's default. A field with `repr=False` may hold a secret.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )

    @field_validator("*", mode="before")
    @classmethod
    def _null_is_default(cls, value: object, info: ValidationInfo) -> object:
        field = cls.model_fields[str(info.field_name)]
        return field.get_default(call_default_factory=True) if value is None else value


class Hardware(StrictModel):
    """Hardware and batching settings, which are not part of a stored answer's key."""

    device: str = "cpu"
    """Where local models run: "cpu", "cuda", "cuda:1"."""
    batch_size: Count = 16
    """Number of prompts per batch of a local model, or of parallel calls to an endpoint."""
    retry_failures: bool = False
    """Whether failed calls are repeated. Empty and truncated answers have not failed; such replies
    of a judge have.
    """


class Workspace(Hardware):
    """Where a notebook keeps what it computes, and the hardware that it uses. Relative folders
    start at the project root. Nothing of it is part of a stored answer's key; device and batch size
    may change the last bits of a number, and so rarely a word.

    Raises `VragError` for an unknown field, and for a value that does not fit.
    """

    cache_dir: Path | str = "runs/embeddings"
    """Embeddings and finished searches."""
    answers_dir: Path | str = "runs/answers"
    """The answer store, `answers.sqlite`."""
    figures_dir: Path | str = "runs/figures-small"
    """Figures and tables."""

    def __init__(self, **given: Any) -> None:  # Any: as a notebook's parameters have it
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _refusal(type(self), given, "Workspace", error) from None

    @property
    def answers_file(self) -> Path:
        """The file of the answer store."""
        return project_path(self.answers_dir) / "answers.sqlite"


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


def decoding_of(given: JsonView | None) -> Decoding:
    """Create `Decoding` from a partial mapping; raises `VragError` as `read_settings`."""
    return read_settings(Decoding, given or {}, "decoding")


def read_settings(model: type[_Settings], given: object, where: str) -> _Settings:
    """Return the settings that a mapping gives; the fields of `model` that it lacks have their
    defaults. Raises `VragError`, beginning with `where` ("model 'x'"), for an unknown field and for
    a value that does not fit. Values of fields with `repr=False` are never shown.
    """
    if not isinstance(given, Mapping):
        raise VragError(
            f"{where}: found {short_repr(given)}; expected a mapping with some of"
            f" {', '.join(model.model_fields)}."
        )
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise _refusal(model, given, where, error) from None


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


def split_entry(entry: object, where: str) -> tuple[str, Json]:
    """Return (model, options) of an entry; raises `VragError`, beginning with `where`
    ("retriever"), for an entry without a model.
    """
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        found = list(entry) if isinstance(entry, Mapping) else entry  # values may be secret
        raise VragError(
            f'{where}: found {found!r}; expected a name, or a mapping with "model" and options.'
        )
    return entry["model"], {str(name): entry[name] for name in entry if name != "model"}


def read_entry(entry: object, allowed: Collection[str], where: str) -> tuple[str, Json]:
    """Return (model, options) of an entry, as `split_entry`.

    Raises `VragError` also for an option that is not among `allowed`.
    """
    model, options = split_entry(entry, where)
    if unknown := sorted(set(options) - set(allowed)):
        raise unknown_option(f"{where} {model!r}", unknown[0], allowed)
    return model, options


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
    if not isinstance(entry, str) or set(entry) & set("/@\\") or custom_spec(entry):
        return
    if entry in words or project_path(entry).is_dir():
        return
    hint = did_you_mean(entry, [*words, *shipped_models()])
    listed = "".join(f"{word!r}, " for word in words if word)
    raise VragError(
        f"{what} is {entry!r}; expected {listed}the name of a model that comes with the kit, a"
        f" folder, <owner>/<name> on the hub, or <model>@<endpoint>.{hint}"
    )
