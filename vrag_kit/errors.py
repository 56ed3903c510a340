"""Exceptions of the kit, `VragError` and its subclasses, and hints for their messages.

A message states the place, what was found, what was expected, and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

RENAMED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("renamed.json").read_text(encoding="utf-8")
)
"""Old name of a parameter, a key, data or a model → its new names."""


class VragError(Exception):
    """An error in data, parameters or setup that the user can fix.

    The command line prints it without a traceback.
    """


class SetupError(VragError):
    """An error that does not depend on models' answers, and so counts in a dry run too."""


class NotGeneratedError(VragError):
    """Raised in a dry run for missing synthetic data, which a run generates in minutes."""


def short_repr(value: object) -> str:
    """Return the `repr` of a value for a message, at most 60 characters long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" to end a message with, for the new name of `name` if it is among
    `known`, else for the most similar name; "" if none is similar.
    """
    among = list(known)
    near = [new for new in RENAMED.get(name, []) if new in among]
    near += get_close_matches(name, among, 1)
    return f" Did you mean {near[0]!r}?" if near else ""
