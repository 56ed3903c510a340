"""Rows of data sets: checked once, by a pydantic model each, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import escapes_folder


class Kind(StrEnum):
    """Kinds of problems, worst first; all but `ODD` are faults."""

    ROW = "row"
    MISSING = "missing"
    DAMAGED = "damaged"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with data."""

    kind: Kind
    location: str
    """File and row or line."""
    image: str
    """Name of the image; "" for a whole row."""
    message: str


class Problems:
    """What is wrong with data: raised at the first, or collected for `vrag data check`."""

    def __init__(self, *, collect: bool = False) -> None:
        self.collect = collect
        self.found: list[Problem] = []
        """The problems so far, if collected."""

    def add(self, kind: Kind, location: str, message: str, image: str = "") -> None:
        """Collect a problem. Otherwise raises `VragError`, beginning with the location, unless
        the kind is `ODD`.
        """
        if self.collect:
            self.found.append(Problem(kind, location, image, message))
        elif kind is not Kind.ODD:
            raise VragError(f"{location}: {message}")

    def is_new(self, name: str, location: str, seen: dict[str, str]) -> bool:
        """Return whether a name is not in `seen` (name → location), and add it; else it is a
        problem.
        """
        before = seen.setdefault(name, location)
        if before != location:
            self.add(Kind.ROW, location, f"{name} came before, in {before}; expected it once.")
        return before == location


RAISE = Problems()
"""Raises at the first problem."""


def encoded_image(value: object) -> bytes:
    """Return the encoded image of a field, which is bytes or an object with `bytes`; b"" if there
    is none.
    """
    data = value.get("bytes") if isinstance(value, dict) else value
    return data if isinstance(data, bytes) else b""


def _image(value: object) -> bytes:
    if data := encoded_image(value):
        return data
    raise PydanticCustomError("no_image", "an image")


def _inside(name: str) -> str:
    if escapes_folder(name):
        raise ValueError(f"{name!r} points outside its folder.")
    return name


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), Field(description="a text")
]
"""A text that is not blank, without white space around it."""
TrecId = Annotated[str, Field(pattern=r"^\S+$", description="a text without white space")]
"""An id that TREC files can hold."""
InsidePath = Annotated[str, AfterValidator(_inside)]
"""A relative path that does not leave its folder."""
EncodedImage = Annotated[bytes, BeforeValidator(_image)]
"""The bytes of an image in a row, given as such or in an object with `bytes`."""


class Row(BaseModel):
    """The base of rows. Types are strict, and fields that a model does not have are ignored; a
    validator raises ValueError for fields that contradict each other.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", hide_input_in_errors=True, protected_namespaces=()
    )


R = TypeVar("R", bound=Row)


def validate(
    model: type[R],
    values: object,
    location: str,
    problems: Problems,
    context: Mapping[str, object] | None = None,
) -> R | None:
    """Return the row, or None after a problem: its first fault, with field, found and expected.

    The kind is `MISSING` for an image without bytes, else `ROW`. A description of a field of
    `model` says what is expected; `context` is for its validators.
    """
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    kind = Kind.MISSING if fault["type"] == "no_image" else Kind.ROW
    problems.add(kind, location, _describe(model, fault))
    return None


def _describe(model: type[Row], fault: ErrorDetails) -> str:
    """Field, found and expected value of a pydantic error."""
    *outer, field = fault["loc"] or ("",)
    path = "".join(f"{part} " for part in outer)
    kind, found = fault["type"], fault["input"]
    context: Mapping[str, Any] = fault.get("ctx", {})  # Any: as pydantic gives it
    if kind == "value_error":
        return f"{path}{field} {context['error']}".strip()
    if kind == "missing":
        names = ", ".join(map(repr, found)) if isinstance(found, Mapping) else short_repr(found)
        return f"{path}{field!r}: found None; the keys are {names or 'none'}."
    expected = fault["msg"].removeprefix("Input should be ")
    known = model.model_fields.get(str(fault["loc"][0])) if fault["loc"] else None
    if known is not None and known.description and len(fault["loc"]) == 1:
        expected = known.description
    at = f"{path}{field!r}" if isinstance(field, str) else f"{path}{field}"
    return f"{at}: found {short_repr(found)}; expected {expected}."
