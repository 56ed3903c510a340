"""Exceptions of the kit: `VragError` and its subclasses.

A message states the place, what was found, what was expected, and what to do.
"""

from __future__ import annotations


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
